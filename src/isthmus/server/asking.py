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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.core.journal import (
    UNUSABLE,
    Effect,
    Journal,
    Replay,
    TooLarge,
    Unsealed,
    binding,
    seal,
    unseal,
)
from isthmus.errors import CapabilityMissing, Misbehaved, NotInRevision, Refuse
from isthmus.revisions import METHODS, Era, project
from isthmus.runtime.inbound import Inbound
from isthmus.server.context import Context
from isthmus.server.effects import describe, perform, recall
from isthmus.server.facilities import Facilities
from isthmus.server.needs import require
from isthmus.server.notes import Notes
from isthmus.server.workers import Leave, Workers
from isthmus.wire import InputRequest, InputRequiredResult
from isthmus.wire.base import Wire
from isthmus.wire.jsonrpc import encode

__all__ = ["Asker", "Body", "DirectAsker", "JournalAsker", "SilentAsker", "run_once", "run_rounds"]

Body = Callable[[Context], Awaitable[Any]]
"""What serves a call: it may ask through the context, and may run more than once."""

TURNS = 4
"""Turns of the loop that siblings get to ask in the same round: one per level of tasks."""

AUTHOR_STATE = "author's state"
"""Where an author's own ``request_state`` lies among a journal's effects; no digest has a blank."""


class Asker(Protocol):
    """How the body of one call asks."""

    @property
    def silent(self) -> bool:
        """Whether what the body does now was done in a round before, so that it says nothing."""
        ...

    async def ask(self, method: str, params: Wire, key: str | None) -> Raw:
        """Ask the client; returns the raw result of the method.

        Raises:
            Refused, ConnectionLost, NotInRevision: as it went.
        """
        ...

    async def once(self, effect: Callable[..., Any], args: Sequence[Any], key: str | None) -> Any:
        """Run an effect, or return what it gave in a round before."""
        ...

    def unreadable(self, method: str, error: Exception) -> Exception:
        """The exception for an answer that is not of the shape its method has."""
        ...


class SilentAsker:
    """The asker of a call that must not ask: any but tools, prompts and resources.

    Args:
        inbound: the call.
        workers: the threads for plain functions.
    """

    __slots__ = ("_inbound", "_workers")

    silent = False

    def __init__(self, inbound: Inbound, workers: Workers) -> None:
        self._inbound = inbound
        self._workers = workers

    async def ask(self, method: str, params: Wire, key: str | None) -> Raw:  # noqa: ARG002
        """Refuse to ask.

        Raises:
            NotInRevision: always.
        """
        # spec 2026-07-28 basic/patterns/mrtr#supported-requests: MUST NOT on any other request
        raise NotInRevision(
            f"{method} cannot be asked while serving {self._inbound.method}: since 2026-07-28 "
            "only tools/call, prompts/get and resources/read may ask"
        )

    async def once(self, effect: Callable[..., Any], args: Sequence[Any], key: str | None) -> Any:  # noqa: ARG002
        """Run the effect."""
        return await _perform_now(effect, args, self._workers)

    def unreadable(self, method: str, error: Exception) -> Exception:
        """The exception for an answer that is not of the shape its method has."""
        return Misbehaved(f"the answer to {method} is malformed: {error}")


class DirectAsker(SilentAsker):
    """Up to 2025-11-25: a question is a request to the client, tied to the call it serves."""

    __slots__ = ()

    async def ask(self, method: str, params: Wire, key: str | None) -> Raw:  # noqa: ARG002
        """Send the question and wait for the answer."""
        inbound = self._inbound
        answer: Raw = await inbound.link.call(method, params, Raw, relates_to=inbound.id)
        return answer


class JournalAsker:
    """Since 2026-07-28: answers come from the journal, and what it lacks ends the round.

    Args:
        journal: what earlier rounds left.
        responses: the answers that came with this one.
        inbound: the call.
        workers: the threads for plain functions.
        leave: how a body in a thread hears that the round is over.

    Attributes:
        parked: the round was ended by its questions.
        questions: what was asked, by the keys it has on the wire.
    """

    __slots__ = ("_cancelling", "_effects", "_handle", "_inbound", "_journal", "_leave", "_made", "_over", "_responses", "_running", "_task", "_turns", "_waiting", "_workers", "parked", "questions",)  # fmt: skip

    def __init__(
        self,
        journal: Journal,
        responses: Mapping[str, Raw],
        inbound: Inbound,
        workers: Workers,
        leave: Leave,
    ) -> None:
        self.parked = False
        self.questions: dict[str, InputRequest] = {}
        self._made: Replay | None = None
        self._journal = journal
        self._responses = responses
        self._inbound = inbound
        self._workers = workers
        self._leave = leave
        task: Any = asyncio.current_task()
        self._task: asyncio.Task[Any] = task
        self._cancelling = task.cancelling()
        self._over = False
        self._turns = 0
        self._running = 0
        self._handle: asyncio.Handle | None = None
        self._waiting: list[asyncio.Future[Raw]] = []
        self._effects: set[asyncio.Task[tuple[bytes, Exception | None]]] = set()

    @property
    def silent(self) -> bool:
        """Whether this was done in a round before, or the round is being left."""
        return self._over or (self._journal.rounds > 0 and self._replay.replaying)

    @property
    def _replay(self) -> Replay:
        """This run over the journal; most bodies never ask, and do without."""
        if self._made is None:
            self._made = Replay(self._journal, self._responses)
        return self._made

    async def ask(self, method: str, params: Wire, key: str | None) -> Raw:
        """The answer from the journal; without one, the question ends the round."""
        await self._still_on()
        content = encode(project(params, self._inbound.caller.revision))
        question = self._replay.question(method, content, key)
        if question.answer is not None:
            return question.answer
        self.questions[question.key] = InputRequest(method=method, params=Raw(content))
        self._end_soon()
        future: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return await future

    async def once(self, effect: Callable[..., Any], args: Sequence[Any], key: str | None) -> Any:
        """What the effect gave in a round before; else run it, and keep the round open for it."""
        await self._still_on()
        name, arguments = (key, None) if key else describe(effect, args)
        step = self._replay.effect(name, arguments)
        if step.result is not None:
            return recall(step.result, effect)
        self._running += 1
        task = asyncio.get_running_loop().create_task(self._happen(step, effect, args))
        self._effects.add(task)
        task.add_done_callback(self._effects.discard)
        # A body that gives up waiting does not stop what has begun: half an effect, and then the
        # whole of it in the next round, would be worse than one that nobody waits for.
        record, error = await asyncio.shield(task)
        if error is not None:
            raise error
        return recall(record, effect)

    def unreadable(self, method: str, error: Exception) -> Exception:
        """An answer is part of the request that brought it: its parameters are invalid."""
        # spec 2026-07-28 basic/patterns/mrtr#error-handling: SHOULD be a JSON-RPC error
        return Refuse(-32602, f"Invalid params: inputResponses: the answer to {method}: {error}")

    def settle(self, notes: Notes) -> None:
        """The body has left; take back the cancellation that made it leave.

        Raises:
            CancelledError: somebody else cancelled the request as well.
        """
        self._over = True
        notes.over = True
        if self._handle is not None:
            self._handle.cancel()
        for future in self._waiting:
            future.cancel()  # a task the body has left behind must not wait for ever
        if self.parked and self._task.uncancel() > self._cancelling:
            raise asyncio.CancelledError

    def journal(self) -> Journal:
        """What the next round starts from."""
        return self._replay.journal()

    async def _happen(
        self, step: Effect, effect: Callable[..., Any], args: Sequence[Any]
    ) -> tuple[bytes, Exception | None]:
        try:
            record, error = await perform(effect, args, self._workers)
            self._replay.record(step, record)
        finally:
            self._running -= 1
            if self.questions:
                self._end_soon()
        return record, error

    async def _still_on(self) -> None:
        """Let nothing new begin in a body that is being cancelled, whatever its ``finally`` does."""
        if self._over:
            await asyncio.sleep(0)
            raise asyncio.CancelledError

    def _end_soon(self) -> None:
        """End the round after a few turns of the loop, counted anew from here."""
        self._turns = TURNS
        if self._handle is None and not self._over:
            self._handle = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._handle = None
        if self._over or self._running:
            return  # an effect that runs keeps the round open, and its end comes back here
        if self._turns:
            self._turns -= 1
            self._handle = asyncio.get_running_loop().call_soon(self._turn)
            return
        self._over = self.parked = self._leave.wait = True
        self._task.cancel()


async def _perform_now(effect: Callable[..., Any], args: Sequence[Any], workers: Workers) -> Any:
    """Run an effect in a task of its own, as the journal does: it ends whoever waits for it."""
    task = asyncio.ensure_future(perform(effect, args, workers))
    _begun.add(task)
    task.add_done_callback(_begun.discard)
    record, error = await asyncio.shield(task)
    if error is not None:
        raise error
    return recall(record, effect)


_begun: set[asyncio.Future[Any]] = set()
"""Effects that run, held on to while nobody may be waiting for them."""


# --- the drivers -----------------------------------------------------------------------------


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
        return await _ask_directly(body, inbound, facilities)
    try:
        return await _ask_in_result(body, inbound, params, target, facilities)
    except CapabilityMissing as lack:
        # spec 2026-07-28 basic#_meta: a server MUST refuse a request that needs a capability
        # the client did not declare, and say which
        raise Refuse(-32021, str(lack), {"requiredCapabilities": lack.required}) from lack


async def run_once(body: Body, inbound: Inbound, facilities: Facilities) -> Any:
    """Run what serves a method that has no rounds: one of the author's own."""
    kind = DirectAsker if inbound.caller.revision.era is Era.LEGACY else SilentAsker
    notes = Notes(inbound)
    try:
        result = await body(Context(inbound, facilities, kind(inbound, facilities.workers), notes))
    except Exception:
        await notes.finish()
        raise
    finally:
        notes.over = True
    if notes.busy:
        await notes.finish()
    return result


async def _ask_directly(body: Body, inbound: Inbound, facilities: Facilities) -> Any:
    """Up to 2025-11-25; the raw form is fulfilled here, by asking and running the body again."""
    answers: Mapping[str, Any] = {}
    state: str | None = None
    for _ in range(facilities.max_rounds + 1):
        asker = DirectAsker(inbound, facilities.workers)
        notes = Notes(inbound)
        try:
            result = await body(
                Context(inbound, facilities, asker, notes, responses=answers, request_state=state)
            )
        except Exception:
            await notes.finish()
            raise
        finally:
            notes.over = True
        if notes.busy:
            await notes.finish()
        if not isinstance(result, InputRequiredResult):
            return result
        answers = await _fulfilled(result, inbound)
        state = result.request_state or None
    raise Refuse(-32603, f"Internal error: more than {facilities.max_rounds} rounds of questions")


async def _fulfilled(result: InputRequiredResult, inbound: Inbound) -> Mapping[str, Any]:
    """The answers to an author's questions, asked all at once."""
    questions = result.input_requests or {}
    for question in questions.values():
        require(inbound.caller.capabilities, question.method, _params(question))
    raws = await asyncio.gather(
        *(
            inbound.link.call(question.method, _params(question), Raw, relates_to=inbound.id)
            for question in questions.values()
        )
    )
    return {key: msgspec.json.decode(raw) for key, raw in zip(questions, raws, strict=True)}


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
    journal, state = Journal(), None
    if params.request_state is not UNSET:
        journal, state = _opened(params.request_state, inbound, params, target, facilities)
    leave = Leave()
    responses: Mapping[str, Raw] = params.input_responses or {}
    asker = JournalAsker(journal, responses, inbound, facilities.workers, leave)
    notes = Notes(inbound)
    result = None
    try:
        result = await body(
            Context(
                inbound,
                facilities,
                asker,
                notes,
                responses=responses,
                request_state=state,
                leave=leave,
            )
        )
    except asyncio.CancelledError:
        if not asker.parked:
            raise
    except Exception:
        if not asker.parked:
            await notes.finish()
            raise
    finally:
        asker.settle(notes)
    if notes.busy:
        await notes.finish()
    if asker.parked:
        result = InputRequiredResult(input_requests=asker.questions)
    elif isinstance(result, InputRequiredResult):
        for question in (result.input_requests or {}).values():
            require(inbound.caller.capabilities, question.method, _params(question))
    else:
        return result
    return _sealed(result, asker.journal(), _binding(inbound, params, target), facilities)


def _opened(
    token: str, inbound: Inbound, params: Any, target: str, facilities: Facilities
) -> tuple[Journal, str | None]:
    """The journal that came back, and the author's own state if there was one."""
    bound = _binding(inbound, params, target)
    try:
        journal = unseal(token, facilities.journal_keys, time.time(), bound)
    except Unsealed as error:
        import logging  # not needed until somebody tampers

        logging.getLogger("isthmus").warning("%s of %s: %s", inbound.method, target, error)
        # One answer for every reason, so that it tells an attacker nothing.
        raise Refuse(-32602, UNUSABLE) from error
    state = journal.effects.pop(AUTHOR_STATE, None)
    return journal, None if state is None else msgspec.json.decode(state, type=str)


def _sealed(
    result: InputRequiredResult, journal: Journal, bound: bytes, facilities: Facilities
) -> InputRequiredResult:
    """The questions with the journal, and with the author's own state inside it."""
    if result.request_state is not UNSET:
        journal.effects[AUTHOR_STATE] = Raw(encode(result.request_state))
    expires_at = time.time() + facilities.state_ttl
    try:
        token = seal(journal, facilities.journal_keys, os.urandom(12), expires_at, bound)
    except TooLarge as error:
        raise Refuse(-32603, f"Internal error: {error}") from error
    return structs.replace(result, request_state=token)


def _binding(inbound: Inbound, params: Any, target: str) -> bytes:
    """What a journal belongs to: this call, with these arguments, by this principal."""
    arguments = getattr(params, "arguments", UNSET)
    if arguments is UNSET:
        raw = None
    else:
        raw = arguments if isinstance(arguments, Raw) else encode(arguments)
    principal = inbound.caller.principal
    who = None if principal is None else str(getattr(principal, "subject", principal))
    return binding(inbound.method, target, raw, who)
