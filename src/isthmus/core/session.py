"""The session as pure state: bytes in, events out, and bytes for what we want to say.

A :class:`Session` knows no clock, no socket and no event loop. It correlates our calls with their
answers, keeps account of the other side's, walks the phases, and refuses what no revision allows.
**Nothing that arrives makes it raise, and nothing that arrives ends it**: bad input becomes a
``SendBytes`` with an error, or nothing. Two parts do the work: ``core/calls`` and ``core/phases``.

Example:
    >>> from isthmus.core.session import Session
    >>> session = Session("server")
    >>> session.receive(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')[0].method
    'ping'
    >>> session.answer(1, b"{}")
    b'{"jsonrpc":"2.0","id":1,"result":{}}'
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, Raw

from isthmus.core.batch import MAX_TAKEN_MEMBERS, IncomingBatch, find_batch_flaw
from isthmus.core.caller import read_envelope
from isthmus.core.calls import CallIds, IncomingCalls, OutgoingCall, OutgoingCalls
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
    SessionEvent,
)
from isthmus.core.phases import Phase, step
from isthmus.wire import CancelledParams, ProgressParams
from isthmus.wire.jsonrpc import (
    ErrorBody,
    Frame,
    Unreadable,
    encode,
    encode_answer,
    encode_call,
    encode_error,
    encode_note,
    find_answered_id,
    parse,
    shorten,
)
from isthmus.wire.meta import Envelope
from isthmus.wire.struct import Id

Side = Literal["client", "server"]
"""Which side of the conversation we are."""

# The most requests of the other side's that are served at once; each further one is refused
MAX_IN_FLIGHT = 10_000

_cancelled = msgspec.json.Decoder(CancelledParams).decode
_progress = msgspec.json.Decoder(ProgressParams).decode


class Session:
    """One conversation with one other side.

    Args:
        side: which side we are.
        in_flight: the most requests of the other side's that are served at once; each further one
            is refused. None for any number.
        call_ids: gives our requests their ids; numbers of its own by default.

    Attributes:
        phase: where the conversation stands.
        deaf: the other side may not ask for anything, and gets no answer if it does.
        batches: the revision agreed on has arrays of messages.
        held: no call of ours expires now.
    """

    __slots__ = (
        "_batches", "_calls", "_opening", "_served", "batches", "deaf", "held", "phase", "side",
    )  # fmt: skip

    def __init__(
        self,
        side: Side,
        *,
        in_flight: int | None = MAX_IN_FLIGHT,
        call_ids: CallIds | None = None,
    ) -> None:
        self.side = side
        self.phase = Phase.NEW
        self.deaf = False
        self.batches = False
        self.held = False
        self._batches: dict[Id, IncomingBatch] = {}
        self._calls = OutgoingCalls(call_ids)
        self._served = IncomingCalls(in_flight)
        self._opening: Id | None = None

    # What arrives

    def receive(self, data: bytes, now: float = 0.0) -> list[SessionEvent]:
        """Take in one message and say what it means; never raises.

        Args:
            data: one JSON-RPC message.
            now: seconds of the clock that deadlines are measured with.
        """
        frame = parse(data)
        if isinstance(frame, Frame):
            return self.take(frame, now)
        if not isinstance(frame, Unreadable):
            return self._take_batch(frame, now)
        call = self._calls.settle(find_answered_id(data))
        if call is not None:  # it was answered: waiting for another answer would help nobody
            return [CallGarbled(call.id, frame.message)]
        if self.side == "client":
            # spec 2026-07-28 basic/transports/stdio: the client MUST NOT write JSON-RPC responses,
            # and no server of any revision knows what to do with one nobody asked for
            return [_drop_unreadable(frame)]
        error = ErrorBody(code=frame.code, message=frame.message)
        return [SendBytes(encode_error(frame.id, error), frame.id)]

    def _take_batch(self, members: Sequence[Raw], now: float) -> list[SessionEvent]:
        """Several messages in one array; what is to be answered is answered by one array."""
        wrong = find_batch_flaw(members, accepted=self.batches)
        if wrong is not None and self.side == "server":
            return [SendBytes(encode_error(None, ErrorBody(code=-32600, message=wrong)))]
        if len(members) > MAX_TAKEN_MEMBERS:
            what = f"a batch of {len(members)} messages; at most {MAX_TAKEN_MEMBERS} are taken"
            return [MessageDropped("batch", what)]
        # spec 2025-03-26 basic#batching: MUST support receiving batches. A client takes one apart
        # in any revision, for it cannot refuse one.
        batch = IncomingBatch()
        events = [
            event for one in members for event in self._take_member(parse(bytes(one)), batch, now)
        ]
        whole = batch.whole()
        return events if whole is None else [*events, SendBytes(whole)]

    def _take_member(
        self, frame: Frame | Unreadable | Sequence[Raw], batch: IncomingBatch, now: float
    ) -> list[SessionEvent]:
        """Take one message of an array; what answers it at once is kept for the array's answer."""
        if isinstance(frame, Unreadable):
            id, code, message = frame.id, frame.code, frame.message
            if self.side == "client":
                return [_drop_unreadable(frame)]
        elif isinstance(frame, Frame):
            if frame.method != "initialize" or frame.id is UNSET:
                return self._collect_member(batch, self.take(frame, now))
            # spec 2025-03-26 basic/lifecycle#initialization: MUST NOT be part of a batch
            id, code, message = frame.id, -32600, "Invalid request: initialize in a batch"
        else:
            id, code, message = None, -32600, "Invalid request: a batch in a batch"
        if self.side == "server":
            batch.add(encode_error(id, ErrorBody(code=code, message=message)))
        return []

    def _collect_member(
        self, batch: IncomingBatch, events: list[SessionEvent]
    ) -> list[SessionEvent]:
        """Events of one member: errors go into the batch, and it waits for what is asked."""
        if not self.batches:
            return events
        kept: list[SessionEvent] = []
        for event in events:
            if isinstance(event, SendBytes):
                batch.add(event.data)
            elif isinstance(event, RequestReceived) and event.enveloped:
                self._served.close(event.id)
                message = "Invalid request: batches ended with 2025-03-26"
                batch.add(encode_error(event.id, ErrorBody(code=-32600, message=message)))
            else:
                kept.append(event)
                if isinstance(event, RequestReceived):
                    batch.expect()
                    self._batches[event.id] = batch
        return kept

    def take(
        self, frame: Frame, now: float = 0.0, envelope: Envelope | None = None
    ) -> list[SessionEvent]:
        """As :meth:`receive`, for a frame that is parsed already.

        Args:
            frame: the message.
            now: seconds of the clock that deadlines are measured with.
            envelope: what ``read_envelope`` made of its params, where somebody has read it.
        """
        method = frame.method
        if method is UNSET:
            return self._take_answer(frame)
        params = frame.params or None
        if frame.id is UNSET or frame.id is None:
            return self._take_notification(method, params, now)
        return self._take_request(frame.id, method, params, envelope)

    def _take_request(
        self, id: Id, method: str, params: Raw | None, envelope: Envelope | None
    ) -> list[SessionEvent]:
        if self.deaf:
            # spec 2026-07-28 basic/patterns/mrtr: servers MUST NOT send requests of their own
            what = f"a request for {shorten_for_log(method)}, which servers of this revision do not send"
            return [MessageDropped("request", what)]
        if envelope is None:
            read = read_envelope(params)
            if not isinstance(read, Envelope):
                return [self._make_refusal(id, read.code, read.message)]
            envelope = read
        enveloped = envelope.meta is not UNSET and bool(envelope.meta.protocol_version)
        if self.side == "server":
            then = step(self.phase, method, enveloped=enveloped)
            if not isinstance(then, Phase):
                return [self._make_refusal(id, *then)]
            if then is Phase.OPENING and method == "initialize":
                self._opening = id
            self.phase = then
        if not self._served.open(id):
            return [self._refuse_unopened(id)]
        return [RequestReceived(id, method, params, envelope, enveloped)]

    def _refuse_unopened(self, id: Id) -> SendBytes:
        if self._served.full:
            message = (
                f"Too many requests: {len(self._served)} are in flight; wait for answers to them"
            )
            return self._make_refusal(id, -32603, message)
        return self._make_refusal(
            id, -32600, f"Invalid request: id {shorten(repr(id))} is in flight already"
        )

    def _make_refusal(self, id: Id, code: int, message: str) -> SendBytes:
        return SendBytes(encode_error(id, ErrorBody(code=code, message=message)), id)

    def _take_notification(self, method: str, params: Raw | None, now: float) -> list[SessionEvent]:
        own = _OWN_NOTIFICATIONS.get(method)
        return (
            [NotificationReceived(method, params)]
            if own is None
            else own(self, method, params, now)
        )

    def _take_cancelled(self, _method: str, params: Raw | None, _now: float) -> list[SessionEvent]:
        try:
            what = _cancelled(params or b"")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # spec 2026-07-28 basic/patterns/cancellation#error-handling: ignore
            return [MessageDropped("notification", "a malformed notifications/cancelled")]
        id = what.request_id
        if id is UNSET or id == self._opening:
            return []  # spec 2025-11-25 basic/utilities/cancellation: never initialize
        if self._served.withdraw(id):
            return [RequestWithdrawn(id, what.reason or None)]
        return self._end_listen_stream(id) if self.side == "client" else []

    def _end_listen_stream(self, id: Id) -> list[SessionEvent]:
        """A server may cancel one thing of ours: a listen stream, which then has ended."""
        # spec 2026-07-28 basic/patterns/cancellation#behavior-requirements
        call = self._calls.find(id)
        if call is None or call.method != "subscriptions/listen":
            return []
        self._calls.settle(id)
        return [CallAnswered(id, Raw(b"{}"))]

    def _take_progress(self, method: str, params: Raw | None, now: float) -> list[SessionEvent]:
        try:
            progress = _progress(params or b"")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return [MessageDropped("notification", "a malformed notifications/progress")]
        call = self._calls.progress(progress.progress_token, now)
        if call is not None:
            return [CallProgressed(call.id, progress)]
        # spec 2025-11-25 basic/utilities/tasks#task-progress-notifications: a token stays valid
        # throughout the lifetime of the task that its call has become
        return [NotificationReceived(method, params)] if self.side == "client" else []

    def _take_initialized(self, method: str, params: Raw | None, _now: float) -> list[SessionEvent]:
        then = step(self.phase, method)
        if isinstance(then, Phase):
            self.phase = then
            return [NotificationReceived(method, params)]
        return []

    def _take_answer(self, frame: Frame) -> list[SessionEvent]:
        id = None if frame.id is UNSET else frame.id
        if id is None and frame.error is not UNSET:
            # An error without an id can only be about a message we sent; where one call is in
            # flight, it is that one, and waiting for its timeout would help nobody.
            id = self._calls.only()
        call = self._calls.settle(id)
        if call is None:
            if id is not None and self._calls.was_open(id):  # late, or answered twice
                return [] if frame.result is UNSET else [LateAnswer(id, frame.result)]
            if frame.error is not UNSET and id is None:
                what = f"an error that names no request: {shorten_for_log(frame.error.message)}"
            else:
                what = f"an answer to {shorten_for_log(id)}, the id of no request"
            return [MessageDropped("answer", what)]
        if frame.error is not UNSET:
            return [CallFailed(call.id, frame.error)]
        return [CallAnswered(call.id, frame.result or Raw(b"{}"))]

    # What we say

    def call(
        self,
        method: str,
        params: bytes | None = None,
        *,
        now: float = 0.0,
        timeout: float | None = None,
        max_timeout: float | None = None,
    ) -> tuple[Id, bytes]:
        """Ask the other side for something.

        Args:
            method: what to ask for.
            params: its parameters as JSON, or None.
            now: seconds of the clock that deadlines are measured with.
            timeout: seconds without an answer or progress until it expires, or None.
            max_timeout: seconds until it expires whatever the progress, or None.

        Returns:
            The id that later events name, and the bytes to send.
        """
        call = self._calls.open(method, now, timeout, max_timeout)
        return call.id, encode_call(call.id, method, params)

    def next_id(self) -> Id:
        """The id the next :meth:`call` will get."""
        return self._calls.next_id()

    def note(self, method: str, params: bytes | None = None) -> bytes:
        """Tell the other side something that wants no answer."""
        return encode_note(method, params)

    def answer(self, id: Id, result: bytes) -> bytes | None:
        """Answer the other side's call; None if it was withdrawn, and then never.

        A member of a batch has no answer of its own: what comes back is the whole array, when
        this was the last member to be settled, and None before.
        """
        if id == self._opening:
            self._opening = None
        data = encode_answer(id, result) if self._served.close(id) else None
        return self._settle_batched(id, data) if self._batches else data

    def enclose(self, id: Id) -> tuple[bytes, bytes] | None:
        """As :meth:`answer`, without copying the result: what stands before it, and behind it.

        It is not for a session that has batches.
        """
        data = self.answer(id, b"")
        return None if data is None else (data[:-1], data[-1:])

    def fail(self, id: Id, error: ErrorBody) -> bytes | None:
        """Refuse the other side's call; None if it was withdrawn, and then never.

        As for :meth:`answer`, what answers a member of a batch is the whole array, when this was
        the last member to be settled, and None before.
        """
        if id == self._opening:
            self._opening = None
            self.phase = Phase.NEW  # a refused handshake may be tried again
        data = encode_error(id, error) if self._served.close(id) else None
        return self._settle_batched(id, data) if self._batches else data

    def _settle_batched(self, id: Id, data: bytes | None) -> bytes | None:
        batch = self._batches.pop(id, None)
        return data if batch is None else batch.settle(data)

    def withdrawn(self, id: Id) -> bool:
        """True while work goes on for a call that the other side has withdrawn."""
        return self._served.withdrawn(id)

    def cancel(self, id: Id, reason: str | None = None) -> bytes | None:
        """Give up one of our calls; its answer, if one still comes, is dropped.

        Returns:
            The notification that says so, or None where the call has ended or nothing may be
            said about it.
        """
        call = self._calls.settle(id)
        return None if call is None else make_cancellation(call, reason)

    # What time does

    def next_deadline(self) -> float | None:
        """The earliest moment at which :meth:`tick` may have something to say."""
        return None if self.held else self._calls.next_deadline()

    def hold(self) -> None:
        """Let no call of ours expire until :meth:`release`: what they wait for is not the server."""
        self.held = True

    def release(self, seconds: float) -> None:
        """Go on as if no time had passed since :meth:`hold`.

        Args:
            seconds: how long that was.
        """
        self.held = False
        self._calls.extend(seconds)

    def tick(self, now: float) -> list[CallExpired]:
        """Expire every call whose deadline has come.

        A server that has asked us something waits for us, so its silence is not held against it
        meanwhile.
        """
        if self.held:
            return []
        if self.side == "client" and len(self._served):
            self._calls.excuse(now)
        return [
            CallExpired(call.id, now - call.started, make_cancellation(call, "timed out"))
            for call in self._calls.expire(now)
        ]

    def close(self) -> list[Id]:
        """End the conversation; returns the ids of our calls that will never be answered."""
        self.phase = Phase.CLOSED
        return [call.id for call in self._calls.clear()]


def make_cancellation(call: OutgoingCall, reason: str | None = None) -> bytes | None:
    """The notification that withdraws a call of ours, or None where none may be sent."""
    # spec 2025-11-25 basic/utilities/cancellation: a client MUST NOT cancel initialize. And where
    # the probe met silence, a legacy server is to hear initialize next, before any notification.
    if call.method in ("initialize", "server/discover"):
        return None
    # The reason may be a message of the other side's, and hold what no JSON can.
    said = UNSET if reason is None else reason.encode(errors="replace").decode()
    params = CancelledParams(request_id=call.id, reason=said)
    return encode_note("notifications/cancelled", encode(params))


MAX_LOGGED_CHARS = 100  # characters of what the other side sent that a log line repeats


def shorten_for_log(value: object) -> str:
    """A value of the other side's as one short line that no terminal obeys."""
    text = repr(value)
    return text if len(text) <= MAX_LOGGED_CHARS else f"{text[:MAX_LOGGED_CHARS]}…"


def _drop_unreadable(frame: Unreadable) -> MessageDropped:
    return MessageDropped("unreadable", f"what is no message: {shorten_for_log(frame.message)}")


_OWN_NOTIFICATIONS: Mapping[
    str, Callable[[Session, str, Raw | None, float], list[SessionEvent]]
] = {
    "notifications/cancelled": Session._take_cancelled,  # noqa: SLF001 - its own table of methods
    "notifications/progress": Session._take_progress,  # noqa: SLF001
    "notifications/initialized": Session._take_initialized,  # noqa: SLF001
}
