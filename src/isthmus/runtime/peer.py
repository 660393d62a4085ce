"""Peer: one side of a conversation, a session on a channel with a router.

The :class:`Peer` is the only place where isthmus starts tasks for requests. Servers and clients
are both peers with different routers. It can be driven in two ways: :meth:`Peer.run` reads the
channel until it is over, with a task per request; an HTTP session instead hands each POST to
:meth:`Peer.take` and awaits :meth:`Peer.serve` in the request's own task.

Every call made through a peer ends exactly once, whatever happens to the channel: with its
result, or with one of :class:`~isthmus.errors.Refused`, :class:`~isthmus.errors.CallTimedOut`
and :class:`~isthmus.errors.ConnectionLost`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw

from isthmus.core.batch import has_batches
from isthmus.core.caller import Caller, read_caller
from isthmus.core.calls import CallIds
from isthmus.core.events import (
    CallAnswered,
    CallExpired,
    CallFailed,
    CallGarbled,
    CallProgressed,
    LateAnswer,
    MessageDropped,
    NotificationReceived,
    RequestReceived,
    RequestWithdrawn,
    SendBytes,
)
from isthmus.core.phases import Phase
from isthmus.core.session import Session, Side
from isthmus.errors import (
    CallTimedOut,
    ConnectionLost,
    Misbehaved,
    NotInRevision,
    OutOfPhase,
    refused,
)
from isthmus.revisions import METHODS, Revision
from isthmus.runtime.batches import send_batch
from isthmus.runtime.channel import (
    LARGE_RESULT_BYTES,
    LOCAL,
    Channel,
    Delivery,
    Origin,
    Outgoing,
)
from isthmus.runtime.failures import log_failure, log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.outbound import (
    AwaitedCall,
    ProgressCallback,
    UnclaimedCalls,
    add_progress_token,
    encode_params,
    first_timeout,
    make_decoder,
    wait_until_open,
)
from isthmus.runtime.router import RequestServer
from isthmus.wire.jsonrpc import ErrorBody, Frame
from isthmus.wire.meta import Envelope
from isthmus.wire.struct import Id, Wire

R = TypeVar("R")

DRAIN_GRACE_S = 1.2  # that work in hand may take after the other side has said its last word

CANCEL_WAIT_S = 0.4  # seconds that work may take to end once it was cancelled


class Peer:
    """One side of one conversation.

    Args:
        channel: carries the messages.
        router: serves what the other side asks for.
        side: which side we are.
        origin: where messages come from when a delivery does not say.
        call_ids: gives our requests their ids; numbers of its own by default.

    Attributes:
        other_name: the other side, as log messages call it.
        unclaimed: our calls that were given up, where somebody wants their results.
    """

    other_name = "the other side"
    unclaimed = UnclaimedCalls()  # which keeps none
    _loop: asyncio.AbstractEventLoop | None = None  # known while it reads its channel

    def __init__(
        self,
        channel: Channel,
        router: RequestServer,
        *,
        side: Side,
        origin: Origin = LOCAL,
        call_ids: CallIds | None = None,
    ) -> None:
        self.session = Session(side, in_flight=router.in_flight, call_ids=call_ids)
        self.caller = Caller()
        self.channel = channel
        self.router = router
        self.origin = origin
        self.outbox: list[Outgoing] = []
        self.lost: ConnectionLost | None = None
        self._waiting: dict[Id, AwaitedCall] = {}
        self._serving: dict[Id, asyncio.Task[Any] | None] = {}
        self._enveloped: dict[Id, Revision] = {}  # what is being served in a revision of its own
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closers: dict[object, Callable[[], None]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.opening: asyncio.Event | None = None
        self._dropped_kinds: set[str] | None = None

    @property
    def revision(self) -> Revision:
        """The revision our own messages are written in."""
        return self.caller.revision

    # Reading

    async def run(self) -> None:
        """Serve the channel until it is over; never raises but when cancelled."""
        self._loop = asyncio.get_running_loop()
        # Asked of its class: what wraps a channel, and has not this, wants to see each message.
        give_to = getattr(type(self.channel), "give_to", None)
        if give_to is not None:
            give_to(self.channel, self._take_at_once)
        try:
            while (delivery := await self.channel.receive()) is not None:
                for inbound in self.take(delivery):
                    self.spawn(inbound)
                if self.outbox:
                    await self.flush()
        except ConnectionLost as error:
            await self.finish(error)
        finally:
            await self.finish()

    def _take_at_once(self, delivery: Delivery) -> None:
        """As :meth:`run` takes a message in, outside of its task."""
        for inbound in self.take(delivery):
            self.spawn(inbound)
        if self.outbox:
            self.start(self.flush())

    def take(
        self, delivery: Delivery, frame: Frame | None = None, envelope: Envelope | None = None
    ) -> list[Inbound]:
        """Take one message in and settle all that needs no waiting.

        Args:
            delivery: the message.
            frame: the message parsed, where the transport had to look into it already.
            envelope: the same of its envelope.

        Returns:
            The requests to :meth:`serve`. Refusals wait in ``outbox`` for :meth:`flush`.
        """
        loop = self._loop
        now = 0.0 if not self._waiting else (loop or asyncio.get_running_loop()).time()
        if frame is None:
            events = self.session.receive(delivery.data, now)
        else:
            events = self.session.take(frame, now, envelope)
        calls: list[Inbound] = []
        for event in events:
            if type(event) is RequestReceived:
                inbound = self._admit(event, delivery.origin)
                if inbound is not None:
                    calls.append(inbound)
            else:
                _EVENT_HANDLERS[type(event)](self, event, delivery)
        return calls if len(events) < 2 else self._drop_withdrawn(calls)

    def _drop_withdrawn(self, calls: list[Inbound]) -> list[Inbound]:
        """The calls of a batch that no other member of it has withdrawn."""
        wanted = [inbound for inbound in calls if not self.session.withdrawn(inbound.id)]
        for inbound in calls if len(wanted) < len(calls) else ():
            if self.session.withdrawn(inbound.id):
                self._refuse(inbound.id, CANCELLED_ERROR)
        return wanted

    async def flush(self) -> None:
        """Send the refusals that :meth:`take` left."""
        waiting, self.outbox = self.outbox, []
        for out in waiting:
            await self.channel.send(out)

    def _admit(self, called: RequestReceived, origin: Origin) -> Inbound | None:
        meta = called.envelope.meta
        caller = self.caller
        if called.enveloped:
            facts = read_caller(called.envelope, self.router.supported, origin.principal)
            if not isinstance(facts, Caller):
                data = UNSET if facts.data is None else facts.data
                self._refuse(
                    called.id, ErrorBody(code=facts.code, message=facts.message, data=data)
                )
                return None
            caller = facts
            self._enveloped[called.id] = facts.revision
        token = None if not meta or meta.progress_token is UNSET else meta.progress_token
        return Inbound(called.id, called.method, called.params, caller, self, origin, token)

    def _refuse(self, id: Id, error: ErrorBody) -> None:
        data = self.session.fail(id, error)
        if data is not None:
            self.outbox.append(Outgoing(data, answers=id))

    def _on_send(self, event: SendBytes, _delivery: Delivery) -> None:
        self.outbox.append(Outgoing(event.data, answers=event.answers))

    def _on_answered(self, event: CallAnswered, _delivery: Delivery) -> None:
        waiting = self._waiting.pop(event.id, None)
        if waiting is not None and not waiting.future.done():
            waiting.future.set_result(event.result)

    def _on_late(self, event: LateAnswer, _delivery: Delivery) -> None:
        self.unclaimed.take(event.id, event.result)

    def _on_failed(self, event: CallFailed, _delivery: Delivery) -> None:
        error = event.error
        data = None if error.data is UNSET else error.data
        self._fail(event.id, refused(error.code, error.message, data))

    def _on_garbled(self, event: CallGarbled, _delivery: Delivery) -> None:
        waiting = self._waiting.get(event.id)
        method = "a call" if waiting is None else waiting.method
        self._fail(event.id, Misbehaved(f"the answer to {method} cannot be read: {event.text}"))

    def _on_progressed(self, event: CallProgressed, _delivery: Delivery) -> None:
        waiting = self._waiting.get(event.id)
        if waiting is not None and waiting.on_progress is not None:
            try:
                waiting.on_progress(event.params)
            except Exception as error:  # noqa: BLE001 - a listener's bug must not end the connection
                log_failure(f"progress callback of {waiting.method}", error)

    def _on_withdrawn(self, event: RequestWithdrawn, _delivery: Delivery) -> None:
        task = self._serving.get(event.id)
        if task is not None:
            task.cancel()
            self.forget_unstarted(event.id)

    def _on_noted(self, event: NotificationReceived, delivery: Delivery) -> None:
        inbound = Inbound("", event.method, event.params, self.caller, self, delivery.origin)
        self.router.note(event.method, event.params, inbound)
        if self.opening is not None and self.session.phase is Phase.OPEN:
            self.opening.set()

    def _on_dropped(self, event: MessageDropped, _delivery: Delivery) -> None:
        """Log a message that nothing comes of: the first of each kind."""
        if self._dropped_kinds is None:
            self._dropped_kinds = set()
        if event.kind not in self._dropped_kinds:
            self._dropped_kinds.add(event.kind)
            log_warning("%s sent %s", self.other_name, event.what)

    def _fail(self, id: Id, error: Exception) -> AwaitedCall | None:
        """Let one of our calls end with an error; its record, if it had not ended before."""
        waiting = self._waiting.pop(id, None)
        if waiting is None or waiting.future.done():
            return None
        waiting.future.set_exception(error)
        return waiting

    def _cut(self, id: Id, error: Exception) -> None:
        """As :meth:`_fail`, also where the channel has not taken the call yet."""
        waiting = self._fail(id, error)
        if waiting is not None and waiting.sender is not None:
            waiting.cut = waiting.sender.cancel()

    def fail_calls(self, why: str) -> None:
        """End every call of ours that waits: its answer may have been lost on its way."""
        for id in list(self._waiting):
            data = self.session.cancel(id, why)
            self._cut(id, ConnectionLost(why))
            self._withdraw(id, data)

    # Serving

    def spawn(self, inbound: Inbound) -> asyncio.Task[None]:
        """Serve a request in a task of its own."""
        loop = self._loop or asyncio.get_running_loop()
        task = self._serving[inbound.id] = loop.create_task(self.serve(inbound))
        self._tasks.add(task)  # until the end of serve
        return task

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something beside the conversation, for as long as the conversation lasts."""
        loop = self._loop or asyncio.get_running_loop()
        task = loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def forget_unstarted(self, id: Id) -> None:
        """Free the id of a request whose task was cancelled before it began.

        Such a task runs none of its code, so that nothing in :meth:`serve` frees it.
        """
        task = self._serving.get(id)
        if task not in self._tasks:
            return
        work: Any = task.get_coro()
        if getcoroutinestate(work) != CORO_CREATED:
            return
        self._serving.pop(id, None)
        self._enveloped.pop(id, None)
        self._tasks.discard(task)
        data = self.session.fail(id, CANCELLED_ERROR)
        if data is not None:  # the rest of a batch, which waited for this alone
            self.outbox.append(Outgoing(data, answers=id))

    async def serve(self, inbound: Inbound, task: asyncio.Task[Any] | None = None) -> None:
        """Run a request (in ``task``, if that is known) and answer it, unless it is withdrawn."""
        id = inbound.id
        task = self._serving[id] = task or self._serving.get(id) or asyncio.current_task()
        rest: tuple[bytes, ...] = ()
        try:
            try:
                outcome = await self.router.serve(inbound)
                if isinstance(outcome, bytes):
                    if len(outcome) > LARGE_RESULT_BYTES and self._takes_pieces():
                        data, rest = self._enclose(id, outcome)
                    else:
                        data = self.session.answer(id, outcome)
                else:
                    data = self.session.fail(id, outcome)
            except asyncio.CancelledError:
                withdrawn = self.session.withdrawn(id)
                # the id is free again; what is sent is the rest of a batch, which waited for this
                data = self.session.fail(id, CANCELLED_ERROR)
                if task is None or not withdrawn:
                    raise
                task.uncancel()
            finally:
                self._serving.pop(id, None)
                self._enveloped.pop(id, None)
            if data is not None:
                await self.channel.send(Outgoing(data, answers=id, rest=rest))
        except ConnectionLost:
            return  # nobody is left to tell
        finally:
            self._tasks.discard(task)
            del task  # which keeps what is raised, and so would this frame

    def _takes_pieces(self) -> bool:
        """Whether an answer may be given to the channel in pieces.

        Its class is asked: what wraps a channel wants to see whole messages.
        """
        return not self.session.batches and getattr(type(self.channel), "takes_pieces", False)

    def _enclose(self, id: Id, result: bytes) -> tuple[bytes | None, tuple[bytes, ...]]:
        """An answer in pieces: its beginning, None where it is withdrawn, and the rest."""
        around = self.session.enclose(id)
        return (None, ()) if around is None else (around[0], (result, around[1]))

    # Saying

    async def note(self, method: str, params: Any = None, *, relates_to: Id | None = None) -> None:
        """Send a notification; nothing happens once the channel is over.

        Raises:
            NotInRevision: the revision agreed on, or that of the request the notification
                relates to, has no such notification from this side.
        """
        revision = self._enveloped.get(relates_to, self.revision)  # type: ignore[arg-type]  # None is no key
        self._check(method, revision)
        if self.lost is not None and relates_to not in self._serving:
            return  # what is still being answered after the other side's last word may report
        if relates_to is not None and self.session.withdrawn(relates_to):
            return  # spec 2025-11-25 basic/utilities/cancellation: nothing more is said about it
        data = self.session.note(method, encode_params(params, revision))
        await self._tell(Outgoing(data, relates_to=relates_to, method=method))

    async def call(
        self,
        method: str,
        params: Wire | None,
        result: type[R],
        *,
        relates_to: Id | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        on_progress: ProgressCallback | None = None,
        name: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> R:
        """Ask the other side, and wait for its answer.

        Args:
            method: what to ask for.
            params: its parameters in the newest shape; cut to the revision here.
            result: the type to read the answer into; ``Raw`` leaves it unread.
            relates_to: the other side's request on whose behalf this is asked.
            timeout: seconds without an answer or progress until it is given up.
            max_timeout: seconds until it is given up whatever the progress.
            on_progress: called with each progress notification; asks for them, too.
            name: what the ``Mcp-Name`` header shall say.
            headers: ``Mcp-Param-*`` headers.

        Raises:
            UsageError: the revision has no such request, or the connection has ended.
            Refused: the other side answered with an error.
            CallTimedOut: no answer in time; the call was cancelled on the wire.
            ConnectionLost: the channel ended first.
            Misbehaved: the answer does not have the shape it must have.
        """
        self._check(method, self.revision)
        if self.session.phase is Phase.OPENING:
            await wait_until_open(self, method)
        if self.lost is not None:
            raise OutOfPhase(f"cannot call {method}: {self.lost}") from self.lost
        if relates_to is not None and self.session.withdrawn(relates_to):
            raise OutOfPhase(f"cannot call {method}: the request it belongs to was cancelled")
        loop = self._loop or asyncio.get_running_loop()
        if on_progress is not None:
            params = add_progress_token(params, self.session.next_id())
        out, now = encode_params(params, self.revision), loop.time()
        id, data = self.session.call(method, out, now=now, timeout=timeout, max_timeout=max_timeout)
        future, task = loop.create_future(), asyncio.current_task(loop)
        waiting = AwaitedCall(method, future, on_progress, task, task.cancelling() if task else 0)
        self._waiting[id] = waiting
        self._arm(loop, first_timeout(timeout, max_timeout))
        try:
            await self.channel.send(Outgoing(data, id, None, relates_to, method, name, headers))
            waiting.sender = None
            return self._read(method, await future, result)
        except BaseException as error:
            self._give_up(id, waiting, error)
            if waiting.was_cut(task):
                raise future.exception() or error from None
            raise
        finally:
            del future, waiting, task  # which keep what is raised, and so would this frame

    async def batch(self, calls: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
        """Make calls, and send what each of them says first as one array (2025-03-26 alone).

        Args:
            calls: coroutines that call or note through this peer; none is awaited yet.

        Returns:
            What each of them returned, in order, or the exception it raised.

        Raises:
            NotInRevision: the revision agreed on has no batches; nothing was sent.
            UsageError: there are more calls than a batch may have members.
        """
        if not self.session.batches:
            for call in calls:
                call.close()
            raise NotInRevision(f"revision {self.revision.name} has no batches")
        return await send_batch(self, calls)

    def _give_up(self, id: Id, waiting: AwaitedCall, error: BaseException) -> None:
        """The caller stops waiting: tell the other side, if it may still be working on it."""
        if self._waiting.pop(id, None) is not None and not waiting.future.done():
            waiting.future.cancel()
        if (data := self.session.cancel(id, str(error) or "cancelled")) is not None:
            self._withdraw(id, data)
        self.unclaimed.add(id, waiting)

    def _withdraw(self, id: Id, data: bytes | None) -> None:
        if not self.channel.abandon(id) and data is not None and self.lost is None:
            self.start(self._tell(Outgoing(data, relates_to=id, method="notifications/cancelled")))

    async def _tell(self, out: Outgoing) -> None:
        try:
            await self.channel.send(out)
        except ConnectionLost:
            return

    def _check(self, method: str, revision: Revision) -> None:
        row = METHODS.get(method)
        if row is not None and not revision.allows(self.session.side, method):
            raise NotInRevision(
                f"revision {revision.name} has no {method!r} from the {self.session.side}"
            )

    def _read(self, method: str, raw: Raw, result: type[R]) -> R:
        if result is Raw:
            return raw  # type: ignore[return-value]  # R is Raw here
        try:
            return make_decoder(result)(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Misbehaved(f"the answer to {method} is malformed: {error}") from error

    # Time

    def _arm(self, loop: asyncio.AbstractEventLoop, wait: float | None) -> None:
        """See to it that the clock is looked at in ``wait`` seconds, or sooner.

        One timer serves all calls: it is moved only to come earlier, and finds the next
        deadline itself when it fires, so that a call costs no timer of its own.
        """
        if wait is None:
            return
        when = loop.time() + wait
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = loop.call_at(when, self.tick, loop)

    def tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look at the clock: end the calls whose time is over, and come back for the next."""
        if self._timer is not None:  # somebody looks before its time
            self._timer.cancel()
            self._timer = None
        now = loop.time()
        for expired in self.session.tick(now):
            self._on_expired(expired)
        deadline = self.session.next_deadline()
        self._arm(loop, None if deadline is None else deadline - now)

    def _on_expired(self, event: CallExpired) -> None:
        waiting = self._waiting.get(event.id)
        method = "the call" if waiting is None else waiting.method
        self._cut(event.id, CallTimedOut(f"no answer to {method} after {event.waited:.3g} s"))
        self._withdraw(event.id, event.data)

    # Facts and the end

    def agree(self, caller: Caller) -> None:
        """Keep the facts that a handshake settled, for every later message."""
        self.caller = caller
        self.session.batches = has_batches(caller.revision)

    def on_close(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Run ``callback`` when the conversation ends; the returned function takes that back."""
        if self._closers is None:
            self._closers = {}
        key = object()
        self._closers[key] = callback
        closers = self._closers
        return lambda: closers.pop(key, None) and None

    async def let_go(self, id: Id, retry: float | None = None) -> None:
        """Let go of the connection that waits for the answer to a call; it is opened again later."""
        let_go = getattr(self.channel, "let_go", None)  # of all transports, one has this
        if let_go is not None:
            await let_go(id, retry)

    async def close(self) -> None:
        """End the channel; a running :meth:`run` then finishes. Safe to call twice."""
        await self.channel.close()

    async def finish(self, lost: ConnectionLost | None = None) -> None:
        """Settle everything that was in flight; called when the channel is over.

        Work in hand gets :data:`DRAIN_GRACE_S` seconds if the other side only said its last word, and
        none if the channel broke.
        """
        if self.lost is not None:
            return
        # without its traceback, whose frames keep all that was in hand
        self.lost = (lost or ConnectionLost("the connection was closed")).with_traceback(None)
        closers, self._closers = self._closers or {}, {}
        for callback in list(closers.values()):
            callback()
        self.session.close()
        for id, waiting in list(self._waiting.items()):
            self._cut(id, ConnectionLost(f"while waiting for {waiting.method}: {self.lost}"))
        if self._timer is not None:
            self._timer.cancel()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        if tasks and lost is None:
            await asyncio.wait(tasks, timeout=DRAIN_GRACE_S)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_WAIT_S)


CANCELLED_ERROR = ErrorBody(code=-32603, message="cancelled")

_EVENT_HANDLERS: dict[type[Any], Callable[[Peer, Any, Delivery], None]] = {
    SendBytes: Peer._on_send,  # noqa: SLF001 - its own table of events
    CallAnswered: Peer._on_answered,  # noqa: SLF001
    CallFailed: Peer._on_failed,  # noqa: SLF001
    CallGarbled: Peer._on_garbled,  # noqa: SLF001
    CallProgressed: Peer._on_progressed,  # noqa: SLF001
    RequestWithdrawn: Peer._on_withdrawn,  # noqa: SLF001
    NotificationReceived: Peer._on_noted,  # noqa: SLF001
    LateAnswer: Peer._on_late,  # noqa: SLF001
    MessageDropped: Peer._on_dropped,  # noqa: SLF001
}
