"""Calls in flight, ours and the other side's: ids, deadlines and withdrawals.

Time is a number that comes in. Each call ends exactly once: whoever settles it first gets the
record, everybody later gets None. A call of the other side's that was withdrawn is never answered.
"""

import msgspec

from isthmus.wire.struct import Id

MAX_ID_DIGITS = 15  # of a number in an id of ours


class OutgoingCall(msgspec.Struct):
    """One request of ours that has no answer yet.

    Attributes:
        id: what it was sent under, and the progress token offered with it.
        method: what was asked.
        started: when, in seconds of the caller's clock.
        timeout: seconds of silence allowed, or None for no limit.
        deadline: when silence becomes too long, or None.
        limit: when even a talking server has had its time, or None.
    """

    id: Id
    method: str
    started: float
    timeout: float | None
    deadline: float | None
    limit: float | None


class CallIds:
    """The ids of our requests: 1, 2, 3, or ``"n7.1"``, ``"n7.2"`` where they name their sender.

    Sessions that share one never use an id twice, whichever of them comes and goes.

    Args:
        sender: the node that asks; empty where answers cannot arrive anywhere else.
    """

    __slots__ = ("_last", "_prefix")

    def __init__(self, sender: str = "") -> None:
        self._prefix = f"{sender}." if sender else ""
        self._last = 0

    def take(self) -> Id:
        """An id never used before."""
        self._last += 1
        return self._make(self._last)

    def peek(self) -> Id:
        """The id that :meth:`take` gives next."""
        return self._make(self._last + 1)

    def were_used(self, id: Id | None) -> bool:
        """Whether an id was taken."""
        if not self._prefix:
            return isinstance(id, int) and 0 < id <= self._last
        if not isinstance(id, str) or not id.startswith(self._prefix):
            return False
        number = id[len(self._prefix) :]
        plain = number.isascii() and number.isdigit() and len(number) <= MAX_ID_DIGITS
        return plain and 0 < int(number) <= self._last

    def _make(self, number: int) -> Id:
        return f"{self._prefix}{number}" if self._prefix else number


def find_asking_node(id: Id | None) -> str | None:
    """The node that asked under an id which :class:`CallIds` made; None where it names none."""
    if not isinstance(id, str):
        return None
    node, dot, _ = id.partition(".")
    return node if dot and node else None


class OutgoingCalls:
    """The requests we sent and await.

    Args:
        ids: gives each its id; its own, in numbers, by default.
    """

    __slots__ = ("_ids", "_open")

    def __init__(self, ids: CallIds | None = None) -> None:
        self._open: dict[Id, OutgoingCall] = {}
        self._ids = CallIds() if ids is None else ids

    def __len__(self) -> int:
        return len(self._open)

    def open(
        self,
        method: str,
        now: float = 0.0,
        timeout: float | None = None,
        max_timeout: float | None = None,
    ) -> OutgoingCall:
        """Begin a call under an id never used before on this session.

        Args:
            method: what is asked.
            now: seconds.
            timeout: seconds without an answer or progress until it expires, or None.
            max_timeout: seconds until it expires whatever the progress, or None.
        """
        id = self._ids.take()
        limit = None if max_timeout is None else now + max_timeout
        call = OutgoingCall(id, method, now, timeout, None, limit)
        call.deadline = _find_deadline(call, now)
        self._open[id] = call
        return call

    def next_id(self) -> Id:
        """The id the next call will get."""
        return self._ids.peek()

    def find(self, id: Id) -> OutgoingCall | None:
        """The record of a call in flight, or None."""
        return self._open.get(id)

    def was_open(self, id: Id | None) -> bool:
        """Whether a call has ever had this id."""
        return self._ids.were_used(id)

    def settle(self, id: Id | None) -> OutgoingCall | None:
        """End a call and return its record; None if it is unknown or has ended already."""
        return None if id is None else self._open.pop(id, None)

    def only(self) -> Id | None:
        """The id of the one call in flight, or None when there are none or several."""
        return next(iter(self._open)) if len(self._open) == 1 else None

    def progress(self, token: Id, now: float) -> OutgoingCall | None:
        """Note that a call is under way: its deadline moves, never past its limit."""
        call = self._open.get(token)
        if call is not None:
            # spec 2025-11-25 basic/lifecycle#timeouts: progress MAY reset the clock, a maximum
            # timeout SHOULD always be enforced
            call.deadline = _find_deadline(call, now)
        return call

    def expire(self, now: float) -> list[OutgoingCall]:
        """End and return every call whose deadline has come."""
        late = [c for c in self._open.values() if c.deadline is not None and c.deadline <= now]
        for call in late:
            del self._open[call.id]
        return late

    def excuse(self, now: float) -> None:
        """Give calls whose deadline has come their time again, never past their limit."""
        for call in self._open.values():
            if call.deadline is not None and call.deadline <= now:
                call.deadline = _find_deadline(call, now)

    def extend(self, seconds: float) -> None:
        """Give every call so much more time, its limit included."""
        for call in self._open.values():
            call.started += seconds
            call.deadline = None if call.deadline is None else call.deadline + seconds
            call.limit = None if call.limit is None else call.limit + seconds

    def next_deadline(self) -> float | None:
        """The earliest moment at which a call may expire, or None."""
        return min(
            (c.deadline for c in self._open.values() if c.deadline is not None), default=None
        )

    def clear(self) -> list[OutgoingCall]:
        """End and return every call."""
        calls = list(self._open.values())
        self._open.clear()
        return calls


def _find_deadline(call: OutgoingCall, now: float) -> float | None:
    if call.timeout is None:
        return call.limit
    deadline = now + call.timeout
    return deadline if call.limit is None else min(deadline, call.limit)


class IncomingCalls:
    """The other side's requests from arrival to answer.

    A withdrawn id stays taken until the work under it has stopped, so that a reused id can
    never receive the answer to an earlier request.

    Args:
        most: how many may be in flight at once, or None for any number.
    """

    __slots__ = ("_most", "_wanted")

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._wanted: dict[Id, bool] = {}

    def __len__(self) -> int:
        return len(self._wanted)

    @property
    def full(self) -> bool:
        """Whether there are as many as there may be."""
        return self._most is not None and len(self._wanted) >= self._most

    def open(self, id: Id) -> bool:
        """Take a request in; False if its id is in flight already, or there are too many."""
        # spec 2026-07-28 basic#requests: an id MUST NOT match another unanswered request's
        if id in self._wanted or (self._most is not None and len(self._wanted) >= self._most):
            return False
        self._wanted[id] = True
        return True

    def withdraw(self, id: Id) -> bool:
        """Mark a request as no longer wanted; False if it is unknown, answered or withdrawn."""
        if not self._wanted.get(id):
            return False
        self._wanted[id] = False
        return True

    def withdrawn(self, id: Id) -> bool:
        """True while work goes on for a request that nobody wants any more."""
        return self._wanted.get(id) is False

    def close(self, id: Id) -> bool:
        """The work has ended; True if its answer may be sent, False if it never may."""
        # spec 2026-07-28 basic/patterns/cancellation: no response for a cancelled request
        return self._wanted.pop(id, False)
