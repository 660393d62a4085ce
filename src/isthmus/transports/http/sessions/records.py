"""Session records: what a client has changed since its handshake, for the nodes that adopt its session.

A session's id says all that the handshake settled. The log level and the subscriptions that came
later, and that the session has ended, are its record: one entry in the store, ``session/{mark}``,
written only when one of them changes, and read once by each node that adopts the session. Plain
calls neither read nor write it.

Whoever serves a request that changes something of the kind awaits ``inbound.remember(…)`` with a
function from the old record to the new one; a pipe, which has no records, does nothing then. Other nodes are told that there is another record
(``NodeSessions.hear_change``), and read it anew; after a gap in the bus they read those of all sessions
that they hold (``NodeSessions.hear_gap``).
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from isthmus.runtime.failures import log_warning
from isthmus.store.store import StoreUnavailable
from isthmus.wire import LogLevel

if TYPE_CHECKING:
    from isthmus.store.kv import KV

MAX_RECORD_BYTES = 4 * 1024 * 1024  # of one in the store; a larger one is none of ours

MAX_CHANGE_ATTEMPTS = 16  # to change a record that other nodes change, too

MAX_ENDED_MARKS = 100_000  # sessions that have ended, and whose ids would open again

MAX_STATE_ENTRIES = 1_000  # of one session: each server mounted in another has one

MIN_RECORD_TTL_S = 60.0  # of a record of a session whose life is over


class SessionRecord(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What has changed in a session since its handshake.

    Attributes:
        ended: nobody may use it any more.
        log_level: the least severe log messages that its client wants, where it said so.
        subscriptions: the URIs of the resources that it hears of.
        has_state: something is kept for it (``ctx.session``), which goes with it.
    """

    ended: bool = False
    log_level: LogLevel | None = None
    subscriptions: tuple[str, ...] = ()
    has_state: bool = False


BLANK = SessionRecord()

RecordChange: TypeAlias = Callable[[SessionRecord], SessionRecord]
"""Makes the new record out of the old one; it may be called several times."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SessionRecord).decode


class SessionRecords:
    """The records of sessions in the store of the nodes.

    Args:
        kv: the store.
    """

    def __init__(self, kv: "KV") -> None:
        self._kv = kv

    async def load(self, mark: str) -> SessionRecord:
        """The record of a session; a blank one where nothing has changed in it.

        Raises:
            StoreUnavailable: it cannot be read now.
        """
        entry = await self._kv.get(_make_key(mark))
        return BLANK if entry is None else _read(entry.value, mark)

    async def change(self, mark: str, ttl: float, change: RecordChange) -> SessionRecord:
        """Change the record of a session.

        Args:
            mark: the session's.
            ttl: seconds until its id is good for nothing any more.
            change: makes the new record.

        Returns:
            The record that is there now. One of a session that has ended stays as it is.

        Raises:
            StoreUnavailable: it cannot be written now.
        """
        key = _make_key(mark)
        for _ in range(MAX_CHANGE_ATTEMPTS):
            entry = await self._kv.get(key)
            old = BLANK if entry is None else _read(entry.value, mark)
            new = old if old.ended else change(old)
            if new == old:
                return old
            version = 0 if entry is None else entry.version
            if await self._kv.cas(key, _encode(new), version, max(ttl, MIN_RECORD_TTL_S)):
                return new
        raise StoreUnavailable("the record of a session is changed by too many at once")

    async def delete_state(self, id: str) -> None:
        """Delete what is kept for a session that has ended.

        Raises:
            StoreUnavailable: it cannot be deleted now.
        """
        for key, _ in await self._kv.scan(
            name_session_state(f"session {id}"), "", MAX_STATE_ENTRIES
        ):
            await self._kv.delete(key)


def name_session_state(whose: str) -> str:
    """The beginning of the keys of all that is kept for a session or a principal (``ctx.session``).

    Args:
        whose: ``"session {id}"`` or ``"principal {owner}"``, of which nothing can be read in the key.
    """
    from hashlib import sha256  # a server that is alone digests nothing

    return f"session-state/{sha256(whose.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}/"


def _make_key(mark: str) -> str:
    return f"session/{mark}"


def _read(value: bytes, mark: str) -> SessionRecord:
    """A record of the store; of what is none, the session has ended: nobody knows what it said."""
    try:
        if len(value) <= MAX_RECORD_BYTES:
            return _decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    log_warning("the store has no readable record of session %s: it has ended", mark)
    return SessionRecord(ended=True)


class EndedMarks:
    """The marks of sessions that ended here while their ids would still open: bounded, oldest first.

    Args:
        life: seconds an id is good for.
        clock: says the time in seconds since the epoch, by which ids end, too.
    """

    def __init__(self, life: float, clock: Callable[[], float] = time.time) -> None:
        self._life = life
        self._clock = clock
        self._until: dict[str, float] = {}

    def __contains__(self, mark: str) -> bool:
        return mark in self._until

    def __len__(self) -> int:
        return len(self._until)

    def add(self, mark: str) -> None:
        """Keep the mark of a session that has ended just now."""
        until, now = self._until, self._clock()
        until.pop(mark, None)
        until[mark] = now + self._life
        while until:
            oldest = next(iter(until))
            if len(until) <= MAX_ENDED_MARKS and until[oldest] > now:
                return
            del until[oldest]
