"""How a server asks its client something in the middle of a call, in either era.

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
import time
from collections.abc import Awaitable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.core.journal import UNUSABLE, Journal, TooLarge, Unsealed, binding, seal, unseal
from isthmus.core.principal import owner_of
from isthmus.errors import CapabilityMissing, Misbehaved, Refuse, UrlRequired
from isthmus.revisions import METHODS, Era
from isthmus.runtime.inbound import Inbound
from isthmus.server.askers import DirectAsker, JournalAsker, SilentAsker
from isthmus.server.context import Context
from isthmus.server.facilities import Facilities
from isthmus.server.needs import require
from isthmus.server.notes import Notes
from isthmus.server.pages import demanded
from isthmus.server.running import Body
from isthmus.server.workers import Leave
from isthmus.wire import InputRequest, InputRequiredResult
from isthmus.wire.jsonrpc import encode

__all__ = ["ask_directly", "required", "run_once", "run_rounds", "told"]

RETURNED = "returned by the author"
"""Where :class:`Returned` lies among a journal's effects; no digest has a blank."""


class Returned(msgspec.Struct, array_like=True):
    """What became of the last questions the body returned instead of awaiting them.

    Attributes:
        state: the author's own ``request_state``.
        answers: what was answered, by the author's keys.
    """

    state: str | None = None
    answers: dict[str, Raw] = {}


_decode_returned = msgspec.json.Decoder(Returned).decode


async def run_rounds(
    body: Body, inbound: Inbound, params: Any, target: str, facilities: Facilities
) -> Any:
    """Run the body of a call that may ask.

    Args:
        body: what serves the call.
        inbound: the call.
        params: its parameters, with what came back from the round before.
        target: the tool's or prompt's name, or the resource's URI.
        facilities: the server's.

    Returns:
        What the body returned, or the questions to answer with.

    Raises:
        Refuse: the state that came back is not to be trusted, or the client lacks what the
            body needs.
        Exception: whatever the body raised.
    """
    if inbound.caller.revision.era is Era.LEGACY:
        notes = Notes(inbound, facilities.limiters)
        asker = _direct(DirectAsker, inbound, facilities)
        return await told(ask_directly(body, inbound, facilities, notes, asker), notes)
    try:
        return await _ask_in_result(body, inbound, params, target, facilities)
    except CapabilityMissing as lack:
        raise required(lack) from lack


def required(lack: CapabilityMissing) -> Refuse:
    """What a request is refused with that takes a capability the client did not declare."""
    # spec 2026-07-28 basic#_meta: a server MUST refuse a request that needs a capability the
    # client did not declare, and say which
    return Refuse(-32021, str(lack), {"requiredCapabilities": lack.required})


async def run_once(body: Body, inbound: Inbound, facilities: Facilities) -> Any:
    """Run what serves a method that has no rounds: one of the author's own."""
    legacy = inbound.caller.revision.era is Era.LEGACY
    asker = _direct(DirectAsker if legacy else SilentAsker, inbound, facilities)
    notes = Notes(inbound, facilities.limiters)
    try:
        return await told(body(Context(inbound, facilities, asker, notes)), notes)
    except CapabilityMissing as lack:
        if legacy:
            raise
        raise required(lack) from lack


def _direct(kind: type[DirectAsker], inbound: Inbound, facilities: Facilities) -> DirectAsker:
    """An asker whose questions are requests."""
    return kind(
        inbound,
        facilities.workers,
        patience=facilities.limits.answer_timeout,
        client_tasks=facilities.client_tasks,
    )


async def told(work: Awaitable[Any], notes: Notes) -> Any:
    """Wait for work, and until all is said that it said: the answer comes after that."""
    try:
        result = await work
    except Exception:
        await notes.finish()
        raise
    finally:
        notes.over = True
    if notes.busy:
        await notes.finish()
    return result


async def ask_directly(
    body: Body, inbound: Inbound, facilities: Facilities, notes: Notes, asker: DirectAsker
) -> Any:
    """Run a body that gets its answers while it waits: up to 2025-11-25, and in tasks.

    The raw form is fulfilled here, by asking and running the body again.
    """
    answers: Mapping[str, Any] = {}
    state: str | None = None
    for _ in range(facilities.max_rounds + 1):
        ctx = Context(inbound, facilities, asker, notes, responses=answers, request_state=state)
        try:
            result = await body(ctx)
        except UrlRequired as need:
            result = demanded(need, inbound, facilities.changes)
        if not isinstance(result, InputRequiredResult):
            return result
        answers = await _fulfilled(result, inbound, asker)
        state = result.request_state or None
        asker = asker.again()
    raise Refuse(-32603, f"Internal error: more than {facilities.max_rounds} rounds of questions")


async def _fulfilled(
    result: InputRequiredResult, inbound: Inbound, asker: DirectAsker
) -> Mapping[str, Any]:
    """The answers to an author's questions, asked all at once."""
    questions = result.input_requests or {}
    _require_all(result, inbound)
    raws = await asyncio.gather(
        *(asker.put(question.method, _params(question), key) for key, question in questions.items())
    )
    return {key: msgspec.json.decode(raw) for key, raw in zip(questions, raws, strict=True)}


def _require_all(result: InputRequiredResult, inbound: Inbound) -> None:
    """See to it that the client can answer what the body returned.

    Raises:
        CapabilityMissing: it did not declare what it takes.
        Misbehaved: something in it is no question.
    """
    for question in (result.input_requests or {}).values():
        require(inbound.caller, question.method, _params(question))


def _params(question: InputRequest) -> Any:
    """A raw question's parameters as their struct.

    Raises:
        Misbehaved: it is no question, or not of its method's shape.
    """
    row = METHODS.get(question.method)
    if row is None or question.method not in ASKABLE:
        raise Misbehaved(f"{question.method!r} is no question: ask {', '.join(sorted(ASKABLE))}")
    try:
        return row.decode_params(question.params or b"{}")
    except msgspec.ValidationError as error:
        raise Misbehaved(f"the question {question.method} is malformed: {error}") from error


ASKABLE = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})


async def _ask_in_result(
    body: Body, inbound: Inbound, params: Any, target: str, facilities: Facilities
) -> Any:
    """Since 2026-07-28."""
    came: dict[str, Raw] = params.input_responses or {}
    journal, returned = _opened(came, inbound, params, target, facilities)
    leave, notes = Leave(), Notes(inbound, facilities.limiters)
    asker = JournalAsker(journal, came, inbound, facilities.workers, leave)
    result = None
    try:
        result = await body(
            Context(
                inbound,
                facilities,
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
            result = demanded(error, inbound, facilities.changes)
    finally:
        asker.settle(notes)
    if notes.busy:
        await notes.finish()
    if asker.parked:
        result = InputRequiredResult(input_requests=asker.questions)
    elif isinstance(result, InputRequiredResult):
        _require_all(result, inbound)
        returned = Returned(result.request_state or None)
    else:
        return result
    journal = asker.journal()
    if returned.state is not None or returned.answers:
        journal.effects[RETURNED] = Raw(encode(returned))
    return structs.replace(
        result, request_state=_sealed(journal, _binding(inbound, params, target), facilities)
    )


def _opened(
    came: dict[str, Raw], inbound: Inbound, params: Any, target: str, facilities: Facilities
) -> tuple[Journal, Returned]:
    """The journal that came back, if one did, and what became of questions the body returned."""
    if params.request_state is UNSET:
        return Journal(), Returned(answers=came)
    bound = _binding(inbound, params, target)
    try:
        journal = unseal(
            params.request_state,
            facilities.journal_keys,
            time.time(),
            bound,
            max_chars=facilities.limits.request_state,
        )
    except Unsealed as error:
        import logging  # not needed until somebody tampers

        logging.getLogger("isthmus").warning("%s of %s: %s", inbound.method, target, error)
        # One answer for every reason, so that it tells an attacker nothing.
        raise Refuse(-32602, UNUSABLE) from error
    kept = journal.effects.pop(RETURNED, None)
    returned = Returned() if kept is None else _decode_returned(kept)
    returned.answers.update((k, v) for k, v in came.items() if k not in journal.pending)
    return journal, returned


def _sealed(journal: Journal, bound: bytes, facilities: Facilities) -> str:
    """The journal as the token that the client hands back."""
    expires_at = time.time() + facilities.state_ttl
    try:
        return seal(
            journal,
            facilities.journal_keys,
            os.urandom(12),
            expires_at,
            bound,
            max_chars=facilities.limits.request_state,
        )
    except TooLarge as error:
        raise Refuse(-32603, f"Internal error: {error}") from error


def _binding(inbound: Inbound, params: Any, target: str) -> bytes:
    """What a journal belongs to: this call, with these arguments, by this principal."""
    arguments = getattr(params, "arguments", UNSET)
    if arguments is UNSET:
        raw = None
    else:
        raw = arguments if isinstance(arguments, Raw) else encode(arguments)
    return binding(inbound.method, target, raw, owner_of(inbound.principal))
