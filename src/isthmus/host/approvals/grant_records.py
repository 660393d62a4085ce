"""Records of grants: they lie in the store that hosts share.

Each grant is a record. A counter of changes says when to read them again; it is raised after each
change, before whoever made the change is told that it is done.
"""

import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct, structs

from isthmus.host.approvals.grant_matching import Grant
from isthmus.host.approvals.grant_table import GrantsRead
from isthmus.host.state.database import decode_row
from isthmus.host.state.shared_state import MAX_CAS_ATTEMPTS, SharedState
from isthmus.runtime.sorted_ids import new_id
from isthmus.store.store import StoreUnavailable

GRANT_PREFIX, ENDED_PREFIX = "grant/", "ended-grant/"
CLOCK_KEY, SESSION_KEY = "grants", "session"
MAX_GRANT_RECORDS = 20_000
ENDED_GRANT_TTL_S = 30 * 86_400.0
SESSION_TTL_S = 6.0  # without any process of the host, its session ends
SESSION_RENEWAL_S = 2.0
WHOLE_READ_INTERVAL_S = 5.0  # a process may have died between a change and its counter

_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Grant)


class GrantClock(Struct, frozen=True):
    """The counter of changes, and the latest time that any process saw."""

    changes: int = 0
    seen: float = 0.0


_clock_decoder = msgspec.json.Decoder(GrantClock)


class GrantRecords:
    """Keeps grants in the store that the processes of a host share.

    A session is the life of the host in all its processes: it ends when none of them is there.

    Args:
        shared: the store.
        steady: says seconds that only go forward.
    """

    is_shared = True
    outlives_process = True

    def __init__(self, shared: SharedState, steady: Callable[[], float] = time.monotonic) -> None:
        self.session = new_id()
        self._shared = shared
        self._steady = steady
        self._renewed_at = float("-inf")
        self._whole_at = float("-inf")

    async def open(self) -> None:
        """As of :class:`~isthmus.host.approvals.grant_table.GrantStorage`.

        Raises:
            StoreUnavailable: the store cannot be used.
        """
        await self._renew_session()

    async def close(self) -> None:
        """Nothing ends with one process."""

    def is_over(self, session: str) -> bool:
        """Whether another life of the host has ended: there is one at a time."""
        return session != self.session

    async def read(self, known: int) -> GrantsRead:
        """Those that hold, where they have changed.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        await self._renew_session()
        now = self._steady()
        clock = await self._read_clock()
        if clock.changes == known and now - self._whole_at < WHOLE_READ_INTERVAL_S:
            return GrantsRead(clock.changes, clock.seen, None)
        grants = await self._read_prefix(GRANT_PREFIX, MAX_GRANT_RECORDS)
        self._whole_at = now
        return GrantsRead(clock.changes, clock.seen, grants)

    async def insert(self, grant: Grant, seen: float) -> tuple[int, GrantsRead]:
        """Keep one more.

        Raises:
            StoreUnavailable: it is not known to be kept.
        """
        await self._shared.put(GRANT_PREFIX + grant.id, _encode(grant))
        return 1, await self._tell_change(seen)

    async def end(self, ids: Sequence[str], why: str, seen: float) -> tuple[int, GrantsRead]:
        """End some; says how many held until now.

        Raises:
            StoreUnavailable: it is not known whether they have ended.
        """
        done = 0
        for id in ids:
            value, version = await self._shared.get(GRANT_PREFIX + id)
            grant = None if value is None else decode_row(_decoder, value, "a grant")
            # A use that is counted meanwhile makes another version: the end is what counts.
            if version and await self._shared.delete(GRANT_PREFIX + id):
                done += 1
                await self._keep_ended(grant, why)
        return done, await (self._tell_change(seen) if done else self.read(-1))

    async def use(self, id: str, seen: float) -> tuple[int, GrantsRead]:
        """Count a use.

        Raises:
            StoreUnavailable: it cannot be counted.
        """
        key = GRANT_PREFIX + id
        for _ in range(MAX_CAS_ATTEMPTS):
            value, version = await self._shared.get(key)
            grant = None if value is None else decode_row(_decoder, value, "a grant")
            if grant is None or grant.uses is None or grant.uses < 1:
                return 0, await self.read(-1)
            left = structs.replace(grant, uses=grant.uses - 1)
            if left.uses == 0:
                if await self._shared.delete(key, version):
                    await self._keep_ended(left, "used up")
                    return 1, await self._tell_change(seen)
            elif await self._shared.cas(key, _encode(left), version) is not None:
                return 1, await self._tell_change(seen)
        raise StoreUnavailable("a grant is used by too many processes at once")

    async def read_history(self, most: int) -> Sequence[Grant]:
        """Those that hold and those that have ended, the newest first.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        found = [
            *await self._read_prefix(GRANT_PREFIX, MAX_GRANT_RECORDS),
            *await self._read_prefix(ENDED_PREFIX, MAX_GRANT_RECORDS),
        ]
        return sorted(found, key=lambda grant: (grant.created, grant.id), reverse=True)[:most]

    async def _keep_ended(self, grant: Grant | None, why: str) -> None:
        if grant is not None:
            ended = structs.replace(grant, ended=why)
            await self._shared.put(ENDED_PREFIX + grant.id, _encode(ended), ENDED_GRANT_TTL_S)

    async def _read_prefix(self, prefix: str, most: int) -> list[Grant]:
        rows = await self._shared.scan(prefix, most)
        found = (decode_row(_decoder, value, "a grant") for _, value, _ in rows)
        return [grant for grant in found if grant is not None]

    async def _read_clock(self) -> GrantClock:
        value, _ = await self._shared.get(CLOCK_KEY)
        return GrantClock() if value is None else _clock_decoder.decode(value)

    async def _tell_change(self, seen: float) -> GrantsRead:
        """Raise the counter, and read what holds now."""

        def count(value: bytes | None) -> tuple[bytes, None]:
            clock = GrantClock() if value is None else _clock_decoder.decode(value)
            return _encode(GrantClock(clock.changes + 1, max(clock.seen, seen))), None

        await self._shared.update(CLOCK_KEY, count)
        return await self.read(-1)

    async def _renew_session(self) -> None:
        """Say that the host lives, in this process; take its session over, or begin one."""
        now = self._steady()
        if now - self._renewed_at < SESSION_RENEWAL_S:
            return
        for _ in range(MAX_CAS_ATTEMPTS):
            value, version = await self._shared.get(SESSION_KEY)
            session = value or new_id().encode()
            if await self._shared.cas(SESSION_KEY, session, version, SESSION_TTL_S) is not None:
                self.session = session.decode()
                self._renewed_at = now
                return
        raise StoreUnavailable("the session of the host is renewed by too many processes at once")
