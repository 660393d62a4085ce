"""Table of grants: they lie in the state of a host, which processes of one machine may share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from msgspec import Struct, structs

from isthmus.host.approvals.grant_matching import Grant
from isthmus.host.state.database import decode_row
from isthmus.host.state.presence import ProcessPresence
from isthmus.runtime.sorted_ids import new_id

if TYPE_CHECKING:
    import sqlite3

    from isthmus.host.state.database import HostState

T = TypeVar("T")
MAX_TIME_US = 2.0**62  # the latest time that a state can hold, since the epoch


class GrantsRead(Struct, frozen=True):
    """Grants as they were read.

    Attributes:
        changes: counts their changes, of all processes.
        seen: the latest time that any process saw, in seconds since the epoch.
        grants: those that hold; None where nothing has changed since what is known.
    """

    changes: int
    seen: float
    grants: list[Grant] | None


class GrantStorage(Protocol):
    """Keeps grants; see :class:`GrantTable` and ``GrantRecords``.

    Attributes:
        session: names the life of the host, which some grants hold for.
        is_shared: other processes may change them.
        outlives_process: the life of the host goes on in other processes.
    """

    session: str
    is_shared: bool
    outlives_process: bool

    async def open(self) -> None:
        """Tell other processes that this one is there."""
        ...

    async def close(self) -> None:
        """Tell them that it is there no more."""
        ...

    def is_over(self, session: str) -> bool:
        """Whether another life of the host has ended."""
        ...

    async def read(self, known: int) -> GrantsRead:
        """Those that hold; without them where their changes are those that are known."""
        ...

    async def insert(self, grant: Grant, seen: float) -> tuple[int, GrantsRead]:
        """Keep one more; durable when it returns."""
        ...

    async def end(self, ids: Sequence[str], why: str, seen: float) -> tuple[int, GrantsRead]:
        """End some; says how many held until now."""
        ...

    async def use(self, id: str, seen: float) -> tuple[int, GrantsRead]:
        """Count a use of one that may be used a number of times; 0 where it was used up."""
        ...

    async def read_history(self, most: int) -> Sequence[Grant]:
        """Those that hold and those that have ended, the newest first."""
        ...


class GrantTable:
    """Keeps grants in the state of a host.

    Args:
        state: where.
        session: names this life of the host; a new name by default.
    """

    outlives_process = False

    def __init__(self, state: "HostState", session: str = "") -> None:
        self.session = session or new_id()
        self.is_shared = state.folder is not None
        self._state = state
        self._presence = ProcessPresence(state.folder, f"grants {self.session}")

    async def open(self) -> None:
        """As :meth:`GrantStorage.open`."""
        with suppress(OSError):  # then others take this life of the host for over: it asks again
            self._presence.begin()

    async def close(self) -> None:
        """As :meth:`GrantStorage.close`."""
        self._presence.end()

    def is_over(self, session: str) -> bool:
        """As :meth:`GrantStorage.is_over`."""
        return self._presence.gone(f"grants {session}")

    async def read(self, known: int) -> GrantsRead:
        """As :meth:`GrantStorage.read`.

        Raises:
            StoreUnavailable: they cannot be read.
        """

        def look(db: "sqlite3.Connection") -> GrantsRead:
            changes, seen_us = _read_clock(db)
            return GrantsRead(
                changes, seen_us / 1e6, None if changes == known else _read_holding(db)
            )

        return await self._state.read(look)

    async def insert(self, grant: Grant, seen: float) -> tuple[int, GrantsRead]:
        """As :meth:`GrantStorage.insert`.

        Raises:
            StoreUnavailable: it was not kept.
        """
        body = msgspec.json.encode(structs.replace(grant, uses=None))
        until_us = None if grant.until is None else int(min(grant.until * 1e6, MAX_TIME_US))
        row = (grant.id, int(grant.created * 1e6), until_us, grant.uses, body)
        sql = "INSERT INTO grant_ (id, created_us, until_us, uses, body) VALUES (?, ?, ?, ?, ?)"
        return await self._change(lambda db: db.execute(sql, row).rowcount, seen)

    async def end(self, ids: Sequence[str], why: str, seen: float) -> tuple[int, GrantsRead]:
        """As :meth:`GrantStorage.end`.

        Raises:
            StoreUnavailable: it is not known to have been written.
        """
        return await self._change(lambda db: _end_grants(db, ids, why), seen)

    async def use(self, id: str, seen: float) -> tuple[int, GrantsRead]:
        """As :meth:`GrantStorage.use`.

        Raises:
            StoreUnavailable: it cannot be counted.
        """
        return await self._change(lambda db: _use_grant(db, id), seen)

    async def read_history(self, most: int) -> Sequence[Grant]:
        """As :meth:`GrantStorage.read_history`.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        rows = await self._state.read(
            lambda db: db.execute(
                "SELECT body, uses, ended FROM grant_ ORDER BY created_us DESC, id DESC LIMIT ?",
                (most,),
            ).fetchall()
        )
        found = _decode_grants((body, (uses, ended)) for body, uses, ended in rows)
        return [structs.replace(grant, uses=uses, ended=ended) for grant, (uses, ended) in found]

    async def _change(
        self, work: "Callable[[sqlite3.Connection], int]", seen: float
    ) -> tuple[int, GrantsRead]:
        """Change something, and tell other processes."""
        seen_us = int(seen * 1e6)

        def whole(db: "sqlite3.Connection") -> tuple[int, GrantsRead]:
            done = work(db)
            if done:
                db.execute(
                    "INSERT INTO grant_clock (id, changes, seen_us) VALUES (1, 1, ?) "
                    "ON CONFLICT DO UPDATE SET changes = changes + 1, "
                    "seen_us = max(seen_us, excluded.seen_us)",
                    (seen_us,),
                )
            changes, seen_by_all = _read_clock(db)
            return done, GrantsRead(changes, seen_by_all / 1e6, _read_holding(db))

        return await self._state.write(whole)


def _decode_grants(rows: Iterable[tuple[bytes, T]]) -> Iterator[tuple[Grant, T]]:
    """The grants that can be read, each with what stands beside it."""
    decoder = msgspec.json.Decoder(Grant)
    for body, beside in rows:
        grant = decode_row(decoder, body, "a grant")
        if grant is not None:
            yield grant, beside


def _read_clock(db: "sqlite3.Connection") -> tuple[int, int]:
    row = db.execute("SELECT changes, seen_us FROM grant_clock").fetchone()
    return row or (0, 0)


def _read_holding(db: "sqlite3.Connection") -> list[Grant]:
    rows = db.execute("SELECT body, uses FROM grant_ WHERE ended = ''").fetchall()
    return [structs.replace(grant, uses=uses) for grant, uses in _decode_grants(rows)]


def _end_grants(db: "sqlite3.Connection", ids: Sequence[str], why: str) -> int:
    ended = 0
    for id in ids:
        sql = "UPDATE grant_ SET ended = ? WHERE id = ? AND ended = ''"
        ended += db.execute(sql, (why, id)).rowcount
    return ended


def _use_grant(db: "sqlite3.Connection", id: str) -> int:
    counted = db.execute(
        "UPDATE grant_ SET uses = uses - 1 WHERE id = ? AND ended = '' AND uses > 0", (id,)
    ).rowcount
    db.execute("UPDATE grant_ SET ended = 'used up' WHERE id = ? AND uses = 0", (id,))
    return counted
