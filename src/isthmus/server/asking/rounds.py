"""Rounds of a call that asks: its questions become its result, or requests in older revisions.

Up to 2025-11-25 a question is a request of its own, and the call waits for its answer. Since
2026-07-28 a question travels in the call's result: the call ends, the client sends it again
with the answers, and the body runs anew (basic/patterns/mrtr). Authors see one ``await`` either
way; which of the two it is, is decided in :func:`run_rounds` and nowhere else.

The modern way in short. The body runs in the request's own task. A question whose answer is
known returns it. An unknown one is noted, and waits for a future that never comes; its siblings
get a few turns of the loop to ask as well, so that the questions of a ``gather`` go out
together. Then the body is cancelled, as ``asyncio.timeout`` would do it, so that ``finally``,
``async with`` and task groups keep their meaning, and the questions are the result. What was
answered, and what :meth:`Asker.once` did, is sealed into ``requestState``.
"""

import asyncio
import os
from collections.abc import Awaitable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.core.journal import Journal
from isthmus.errors import CapabilityMissing, Misbehaved, Refuse, UrlRequired
from isthmus.revisions import METHODS, Era, project
from isthmus.revisions.codes import url_required_code
from isthmus.runtime.inbound import Inbound
from isthmus.server.asking.askers import DirectAsker, JournalAsker, SilentAsker
from isthmus.server.asking.context import Body, Context
from isthmus.server.asking.notifications import CallNotifications
from isthmus.server.asking.requirements import require_askable
from isthmus.server.asking.state import CallState
from isthmus.server.serve.workers import CallCancellation
from isthmus.server.settings import SharedSettings
from isthmus.wire import ElicitParams, InputRequest, InputRequiredResult
from isthmus.wire.jsonrpc import encode


class ReturnedQuestions(msgspec.Struct, array_like=True):
    """The last questions that the body returned instead of awaiting them, as they were answered.

    Attributes:
        state: the author's own ``request_state``.
        answers: what was answered, by the author's keys.
    """

    state: str | None = None
    answers: dict[str, Raw] = {}


_decode_returned = msgspec.json.Decoder(ReturnedQuestions).decode


async def run_rounds(
    body: Body, inbound: Inbound, params: Any, target: str, settings: SharedSettings
) -> Any:
    """Run the body of a call that may ask.

    Args:
        body: what serves the call.
        inbound: the call.
        params: its parameters, with what came back from the round before.
        target: the tool's or prompt's name, or the resource's URI.
        settings: those of the server, shared by all its parts.

    Returns:
        What the body returned, or the questions to answer with.

    Raises:
        Refuse: the state that came back is not to be trusted, or the client lacks what the
            body needs.
        Exception: whatever the body raised.
    """
    if inbound.caller.revision.era is Era.LEGACY:
        notes = CallNotifications(inbound, settings.limiters)
        asker = _make_direct_asker(DirectAsker, inbound, settings)
        return await run_and_flush(ask_directly(body, inbound, settings, notes, asker), notes)
    try:
        return await _ask_in_result(body, inbound, params, target, settings)
    except CapabilityMissing as lack:
        raise make_capability_refusal(lack) from lack


def make_capability_refusal(lack: CapabilityMissing) -> Refuse:
    """Make the refusal of a request that takes a capability the client did not declare."""
    # spec 2026-07-28 basic#_meta: a server MUST refuse a request that needs a capability the
    # client did not declare, and say which
    return Refuse(-32021, str(lack), {"requiredCapabilities": lack.required})


async def run_once(body: Body, inbound: Inbound, settings: SharedSettings) -> Any:
    """Run what serves a method that has no rounds: one of the author's own."""
    legacy = inbound.caller.revision.era is Era.LEGACY
    asker = _make_direct_asker(DirectAsker if legacy else SilentAsker, inbound, settings)
    notes = CallNotifications(inbound, settings.limiters)
    try:
        return await run_and_flush(body(Context(inbound, settings, asker, notes)), notes)
    except CapabilityMissing as lack:
        if legacy:
            raise
        raise make_capability_refusal(lack) from lack


def _make_direct_asker(
    kind: type[DirectAsker], inbound: Inbound, settings: SharedSettings
) -> DirectAsker:
    return kind(
        inbound,
        settings.workers,
        patience=settings.limits.answer_timeout,
        client_tasks=settings.client_tasks,
    )


async def run_and_flush(work: Awaitable[Any], notes: CallNotifications) -> Any:
    """Wait for work, and until all is said that it said: the answer comes after that."""
    try:
        result = await work
    except Exception:
        await notes.finish()
        raise
    finally:
        notes.close()
    if notes.busy:
        await notes.finish()
    return result


async def ask_directly(
    body: Body,
    inbound: Inbound,
    settings: SharedSettings,
    notes: CallNotifications,
    asker: DirectAsker,
) -> Any:
    """Run a body that gets its answers while it waits: up to 2025-11-25, and in tasks.

    The raw form is fulfilled here, by asking and running the body again.
    """
    answers: Mapping[str, Any] = {}
    state: str | None = None
    for _ in range(settings.max_rounds + 1):
        ctx = Context(inbound, settings, asker, notes, responses=answers, request_state=state)
        try:
            result = await body(ctx)
        except UrlRequired as need:
            result = make_page_questions(need, inbound, settings.changes)
        if not isinstance(result, InputRequiredResult):
            return result
        answers = await _ask_all(result, inbound, asker)
        state = result.request_state or None
        asker = asker.make_rerun()
    raise Refuse(-32603, f"Internal error: more than {settings.max_rounds} rounds of questions")


async def _ask_all(
    result: InputRequiredResult, inbound: Inbound, asker: DirectAsker
) -> Mapping[str, Any]:
    """Ask an author's questions all at once, and return their answers by key."""
    questions = result.input_requests or {}
    _require_all(result, inbound)
    raws = await asyncio.gather(
        *(
            asker.put(question.method, _decode_question(question), key)
            for key, question in questions.items()
        )
    )
    return {key: msgspec.json.decode(raw) for key, raw in zip(questions, raws, strict=True)}


def _require_all(result: InputRequiredResult, inbound: Inbound) -> None:
    """See to it that the client can answer what the body returned.

    Raises:
        CapabilityMissing: it did not declare what it takes.
        Misbehaved: something in it is no question.
    """
    for question in (result.input_requests or {}).values():
        require_askable(inbound.caller, question.method, _decode_question(question))


def _decode_question(question: InputRequest) -> Any:
    """A raw question's parameters as their struct.

    Raises:
        Misbehaved: it is no question, or not of its method's shape.
    """
    row = METHODS.get(question.method)
    if row is None or question.method not in ASKABLE_METHODS:
        raise Misbehaved(
            f"{question.method!r} is no question: ask {', '.join(sorted(ASKABLE_METHODS))}"
        )
    try:
        return row.decode_params(question.params or b"{}")
    except msgspec.ValidationError as error:
        raise Misbehaved(f"the question {question.method} is malformed: {error}") from error


ASKABLE_METHODS = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})


async def _ask_in_result(
    body: Body, inbound: Inbound, params: Any, target: str, settings: SharedSettings
) -> Any:
    """Run a body whose questions become its result: since 2026-07-28."""
    came: dict[str, Raw] = params.input_responses or {}
    state, returned = CallState(inbound, params, target, settings), ReturnedQuestions(answers=came)
    if params.request_state is not UNSET:
        await state.open(params.request_state)
        returned = _read_returned(state.journal, came)
    leave, notes = CallCancellation(), CallNotifications(inbound, settings.limiters)
    asker = JournalAsker(state, came, inbound, settings.workers, leave)
    result = None
    try:
        result = await body(
            Context(
                inbound,
                settings,
                asker,
                notes,
                responses=returned.answers,
                request_state=returned.state,
                leave=leave,
            )
        )
    except asyncio.CancelledError:
        if not asker.parked:
            raise
    except Exception as error:
        if not asker.parked:
            if not isinstance(error, UrlRequired):
                await notes.finish()
                raise
            result = make_page_questions(error, inbound, settings.changes)
    finally:
        asker.settle(notes)
    if notes.busy:
        await notes.finish()
    if asker.parked:
        result = InputRequiredResult(input_requests=asker.questions)
    elif isinstance(result, InputRequiredResult):
        _require_all(result, inbound)
        returned = ReturnedQuestions(result.request_state or None)
    else:
        return result
    return structs.replace(result, request_state=await _seal_round(state, asker, returned))


async def _seal_round(state: CallState, asker: JournalAsker, returned: ReturnedQuestions) -> str:
    """Seal what the next round starts from."""
    journal = asker.journal()
    if returned.state is not None or returned.answers:
        journal = structs.replace(journal, returned=encode(returned))
    return await state.seal(journal)


def _read_returned(journal: Journal, came: dict[str, Raw]) -> ReturnedQuestions:
    """The questions that the body returned, with the answers that came to them."""
    returned = _decode_returned(journal.returned) if journal.returned else ReturnedQuestions()
    returned.answers.update((k, v) for k, v in came.items() if k not in journal.pending)
    return returned


def make_page_questions(need: UrlRequired, inbound: Inbound, changes: Any) -> InputRequiredResult:
    """Make the questions for pages a user must visit, after whose answers the body runs again.

    Args:
        need: what the body raised.
        inbound: the call.
        changes: remembers whom to tell when a page was dealt with.

    Raises:
        Refuse: the revision has an error for it (2025-11-25).
        CapabilityMissing: the client opens no pages.
    """
    revision = inbound.caller.revision
    pages = [
        ElicitParams(mode="url", url=url, message=why, elicitation_id=os.urandom(16).hex())
        for url, why in need.pages
    ]
    for page in pages:
        require_askable(inbound.caller, "elicitation/create", page)
    code = url_required_code(revision)
    if code is None:
        return InputRequiredResult(
            input_requests={
                f"page{number}": InputRequest(
                    method="elicitation/create", params=Raw(encode(project(page, revision)))
                )
                for number, page in enumerate(pages, 1)
            }
        )
    for page in pages:
        changes.add_page(inbound.link, page.elicitation_id)
    # spec 2025-11-25 client/elicitation#url-elicitation-required-error: MUST list elicitations of
    # URL mode, each with an elicitationId
    raise Refuse(code, str(need), {"elicitations": pages}) from need
