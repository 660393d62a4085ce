"""Askers put a body's questions: to the client at once, or through a journal and rounds.

An :class:`Asker` is what a context asks through. Which one it is depends on how questions travel
in the caller's revision; :mod:`isthmus.server.asking.rounds` chooses it and drives the body around it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Raw, structs

from isthmus.core.encoding import make_encodable
from isthmus.core.journal import Journal, JournalEffect, Replay, encode_canonically
from isthmus.core.trace import read_trace
from isthmus.errors import Misbehaved, NotInRevision, Refuse
from isthmus.revisions import project
from isthmus.runtime.inbound import Inbound
from isthmus.server.asking.effects import describe_effect, perform_effect, recall_effect
from isthmus.server.asking.notifications import CallNotifications
from isthmus.server.asking.requirements import drop_task, takes_tasks
from isthmus.server.asking.state import CallState
from isthmus.server.serve.workers import CallCancellation, Workers
from isthmus.wire import InputRequest
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.tasks.requestor import TaskRequestor

T = TypeVar("T")

SIBLING_TURNS = 4  # of the loop, for siblings to ask in the same round: one per level of tasks


class Asker(Protocol):
    """Puts the questions of one call's body, and does its effects once."""

    @property
    def silent(self) -> bool:
        """Whether what the body does now was done in a round before, so that it says nothing."""
        ...

    def recall(self, method: str, params: Wire) -> bytes | None:
        """The answer that a question was given in a round before; None where it is to be asked."""
        ...

    async def ask(self, method: str, params: Wire, key: str | None) -> bytes | Raw:
        """Ask the client; returns the raw result of the method.

        Raises:
            Refused, ConnectionLost, NotInRevision: as it went.
        """
        ...

    async def once(self, effect: Callable[..., Any], args: Sequence[Any], key: str | None) -> Any:
        """Run an effect, or return what it gave in a round before."""
        ...

    def make_misfit(self, method: str, error: Exception) -> Exception:
        """The exception for an answer that is not of the shape its method has."""
        ...


class AnswerMisfit(Refuse, Misbehaved):
    """The client's answer does not fit its question: where nobody catches it, the call is refused.

    It is `Misbehaved` for the function that asked, and the client reads why.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.message = str(self)  # of which little is repeated


class DirectAsker:
    """Up to 2025-11-25: a question is a request to the client, tied to the call it serves.

    Args:
        inbound: the call.
        workers: the threads for plain functions.
        before: the body's run before this one, where it runs again.
        patience: seconds that the client may take for an answer, or None.
        client_tasks: gives what puts questions that are tasks of the client, where any may be.
    """

    __slots__ = ("_before", "_client_tasks", "_inbound", "_patience", "_questions", "_records", "_workers")  # fmt: skip

    def __init__(
        self,
        inbound: Inbound,
        workers: Workers,
        before: Replay | None = None,
        *,
        patience: float | None = None,
        client_tasks: "Callable[[], TaskRequestor] | None" = None,
    ) -> None:
        self._patience = patience
        self._client_tasks = client_tasks
        self._inbound = inbound
        self._workers = workers
        self._before = before
        self._questions: list[tuple[str, Wire, str | None, Raw]] = []
        self._records: list[tuple[str, bytes, bytes]] = []

    @property
    def silent(self) -> bool:
        """Whether this was done in a run before."""
        return self._before is not None and self._before.replaying

    def recall(self, method: str, params: Wire) -> bytes | None:  # noqa: ARG002 - the protocol of askers
        """Nothing: what a run before was answered is found, and noted for the next, in `ask`."""
        return None

    async def ask(self, method: str, params: Wire, key: str | None) -> bytes | Raw:
        """Send the question and wait for the answer, unless it is known from a run before."""
        known, params = None, make_encodable(params)
        if self._before is not None:
            known = self._before.question(method, encode_canonically(params), key).answer
        answer = await self.put(method, params, key) if known is None else Raw(known)
        self._questions.append((method, params, key, answer))
        return answer

    async def put(self, method: str, params: Wire, key: str | None) -> Raw:  # noqa: ARG002 - a task's question has its key on the wire
        """Send a question and wait for its answer."""
        inbound = self._inbound
        trace = read_trace(inbound.params)
        if trace is not None:
            params = structs.replace(params, meta={**trace.members(), **(params.meta or {})})  # type: ignore[attr-defined]  # every question has a _meta
        bare, patience, tasks = drop_task(params), self._patience, self._client_tasks
        if bare is not params and tasks is not None and takes_tasks(inbound.caller, method):
            if inbound.record is not None:
                inbound.record.asked = True
            return await tasks().ask(method, params, inbound, patience)
        return await inbound.ask(method, bare, patience)

    async def once(self, effect: Callable[..., Any], args: Sequence[Any], key: str | None) -> Any:
        """Run the effect, unless it happened in a run before."""
        name, arguments = (key, b"") if key else describe_effect(effect, args)
        if self._before is not None:
            known = self._before.effect(name, arguments).result
            if known is not None:
                self._records.append((name, arguments, known))
                return recall_effect(known, effect)

        async def perform() -> tuple[bytes, Exception | None]:
            record, error = await perform_effect(effect, args, self._workers)
            self._records.append((name, arguments, record))
            return record, error

        record, error = await _wait_until_finished(perform())
        if error is not None:
            try:
                raise error
            finally:
                del error  # it keeps this frame, and must not be kept by it
        return recall_effect(record, effect)

    def make_misfit(self, method: str, error: Exception) -> Exception:
        """The client answered a request of ours with what it must not."""
        if isinstance(error, Misbehaved):
            return AnswerMisfit(-32603, str(error))
        return AnswerMisfit(-32603, f"the client's answer to {method} is malformed: {error}")

    def make_rerun(self) -> "DirectAsker":
        """The asker of the next run, which asks and does nothing that this one has."""
        replay, answers = Replay(Journal()), {}
        for method, params, key, answer in self._questions:
            answers[replay.question(method, encode_canonically(params), key).key] = answer
        for name, arguments, record in self._records:
            replay.record(replay.effect(name, arguments), record)
        return self.rerun(Replay(replay.journal(), answers))

    def rerun(self, before: Replay) -> "DirectAsker":
        """An asker like this one, for a run after those in ``before``."""
        return DirectAsker(
            self._inbound,
            self._workers,
            before,
            patience=self._patience,
            client_tasks=self._client_tasks,
        )


class SilentAsker(DirectAsker):
    """Since 2026-07-28: the asker of a method that must not be answered with questions."""

    __slots__ = ()

    async def ask(self, method: str, params: Wire, key: str | None) -> bytes | Raw:  # noqa: ARG002
        """Refuse to ask.

        Raises:
            NotInRevision: always.
        """
        # spec 2026-07-28 basic/patterns/mrtr#supported-requests: MUST NOT on any other request
        raise NotInRevision(
            f"{method} cannot be asked while serving {self._inbound.method}: since 2026-07-28 "
            "only tools/call, prompts/get and resources/read may ask"
        )


class JournalAsker:
    """Since 2026-07-28: answers come from the journal, and what it lacks ends the round.

    Args:
        state: what earlier rounds left.
        responses: the answers that came with this one.
        inbound: the call.
        workers: the threads for plain functions.
        leave: how a body in a thread hears that the round is over.

    Attributes:
        parked: the round was ended by its questions.
        questions: what was asked, by the keys it has on the wire.
    """

    __slots__ = ("_cancelling", "_handle", "_inbound", "_leave", "_made", "_over", "_responses", "_running", "_state", "_task", "_turns", "_waiting", "_workers", "parked", "questions")  # fmt: skip

    def __init__(
        self,
        state: CallState,
        responses: Mapping[str, Raw],
        inbound: Inbound,
        workers: Workers,
        leave: CallCancellation,
    ) -> None:
        self.parked = False
        self.questions: dict[str, InputRequest] = {}
        self._made: Replay | None = None
        self._state = state
        self._responses = responses
        self._inbound = inbound
        self._workers = workers
        self._leave = leave
        self._task = asyncio.current_task()
        self._cancelling = 0 if self._task is None else self._task.cancelling()
        self._over = False
        self._turns = 0
        self._running = 0
        self._handle: asyncio.Handle | None = None
        self._waiting: list[asyncio.Future[Raw]] = []

    @property
    def silent(self) -> bool:
        """Whether this was done in a round before, or the round is being left."""
        return self._over or (self._state.journal.rounds > 0 and self._replay.replaying)

    @property
    def _replay(self) -> Replay:
        """This run over the journal; most bodies never ask, and do without."""
        if self._made is None:
            self._made = Replay(self._state.journal, self._responses, self._state.kept)
        return self._made

    def recall(self, method: str, params: Wire) -> bytes | None:
        """The answer from the journal, at the cost of one digest."""
        if self._over:
            return None
        try:
            content = encode_canonically(params)
        except UnicodeEncodeError:
            return None
        return (self._made or self._replay).recall(method, content)

    async def ask(self, method: str, params: Wire, key: str | None) -> bytes | Raw:
        """The answer from the journal; without one, the question ends the round."""
        if self._over:
            await self._stop()
        params = make_encodable(params)
        question = self._replay.question(method, encode_canonically(params), key)
        if question.answer is not None:
            return question.answer
        content = encode(project(params, self._inbound.caller.revision))
        self.questions[question.key] = InputRequest(method=method, params=Raw(content))
        self._end_soon()
        future: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return await future

    async def once(self, effect: Callable[..., Any], args: Sequence[Any], key: str | None) -> Any:
        """Return what the effect gave in a round before; else run it, and keep the round open."""
        if self._over:
            await self._stop()
        name, arguments = (key, b"") if key else describe_effect(effect, args)
        step = self._replay.effect(name, arguments)
        if step.result is not None:
            return recall_effect(step.result, effect)
        self._running += 1
        record, error = await _wait_until_finished(self._perform(step, effect, args))
        if error is not None:
            try:
                raise error
            finally:
                del error  # it keeps this frame, and must not be kept by it
        return recall_effect(record, effect)

    def make_misfit(self, method: str, error: Exception) -> Exception:
        """An answer is part of the request that brought it: its parameters are invalid."""
        # spec 2026-07-28 basic/patterns/mrtr#error-handling: SHOULD be a JSON-RPC error
        return AnswerMisfit(
            -32602, f"Invalid params: inputResponses: the answer to {method}: {error}"
        )

    def settle(self, notes: CallNotifications) -> None:
        """The body has left; take back the cancellation that made it leave.

        Raises:
            CancelledError: somebody else cancelled the request as well.
        """
        self._over = True
        notes.close()
        if self._handle is not None:
            self._handle.cancel()
        for future in self._waiting:
            future.cancel()  # a task the body has left behind must not wait for ever
        task, self._task = self._task, None  # which keeps what is raised, and so would its frames
        if self.parked and task is not None and task.uncancel() > self._cancelling:
            del task
            raise asyncio.CancelledError

    async def calm(self) -> None:
        """Go on when no question waits for an answer; while one does, the round is to end first."""
        if self._over:
            await self._stop()
        if self.questions:
            future: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    def journal(self) -> Journal:
        """The journal that the next round starts from."""
        return self._replay.journal()

    async def _perform(
        self, step: JournalEffect, effect: Callable[..., Any], args: Sequence[Any]
    ) -> tuple[bytes, Exception | None]:
        try:
            record, error = await perform_effect(effect, args, self._workers)
            self._replay.record(step, record)
        finally:
            self._running -= 1
            if self.questions:
                self._end_soon()
        return record, error

    async def _stop(self) -> None:
        """Let nothing new begin in a body that is being cancelled, whatever its ``finally`` does."""
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    def _end_soon(self) -> None:
        """End the round after a few turns of the loop, counted anew from here."""
        self._turns = SIBLING_TURNS
        if self._handle is None and not self._over:
            self._handle = asyncio.get_running_loop().call_soon(self._count_turn)

    def _count_turn(self) -> None:
        self._handle = None
        if self._over or self._running:
            return  # an effect that runs keeps the round open, and its end comes back here
        if self._turns:
            self._turns -= 1
            self._handle = asyncio.get_running_loop().call_soon(self._count_turn)
            return
        self._over = self.parked = self._leave.wait = True
        if self._task is not None:
            self._task.cancel()


async def _wait_until_finished(work: Coroutine[Any, Any, T]) -> T:
    """Wait for work that goes on to its end, whether or not somebody still waits for it.

    A body that gives up waiting does not stop what has begun: half an effect, and then the whole
    of it in the next round, would be worse than one that nobody waits for.
    """
    task = asyncio.get_running_loop().create_task(work)
    _running_effects.add(task)
    task.add_done_callback(_running_effects.discard)
    return await asyncio.shield(task)


_running_effects: set[asyncio.Task[Any]] = set()  # kept while nobody may wait for them
