"""Lists of servers that outlast the run, so that a server need not be started to be known."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from isthmus.host.catalog.listed import Listed

if TYPE_CHECKING:
    import sqlite3

    from isthmus.host.state import HostState

__all__ = ["Kept"]

LASTS = 7 * 24 * 3600.0
"""Seconds that a list is good for without asking its server."""

MOST_BYTES = 4 * 1024 * 1024
"""Bytes of one server's lists that are kept; larger ones are fetched in every run."""

ROOM = 500
"""Servers whose lists are kept; those not seen for the longest time make room."""


class Kept:
    """What servers said in earlier runs, by what they are bound to.

    Args:
        state: the store.
        lasts: seconds that lists are good for.
        clock: says the seconds since the epoch.
    """

    def __init__(
        self, state: "HostState", *, lasts: float = LASTS, clock: Callable[[], float] = time.time
    ) -> None:
        self._state = state
        self._lasts = lasts
        self._clock = clock

    async def find(self, identity: str) -> Listed | None:
        """The lists of a server; None where none are kept, or they are too old."""

        def look(connection: "sqlite3.Connection") -> tuple[bytes, float] | None:
            found: tuple[bytes, float] | None = connection.execute(
                "SELECT listed, fetched FROM catalog_list WHERE identity = ?", (identity,)
            ).fetchone()
            return found

        row = await self._state.read(look)
        if row is None or not 0 <= self._clock() - row[1] < self._lasts:
            return None
        try:
            listed = msgspec.msgpack.decode(row[0], type=Listed)
        except (msgspec.MsgspecError, RecursionError):  # an earlier version wrote it
            return None
        # one that does not say of each kind that it has come may lack what the server has
        return structs.replace(listed, cached=True) if listed.whole else None

    async def keep(self, identity: str, listed: Listed) -> None:
        """Keep the lists of a server; lists with faults, large ones and odd ones are not kept.

        Where one has not come, those of before stay.
        """
        if listed.missing or not listed.whole:
            return
        try:
            data = msgspec.msgpack.encode(listed)
        except (OverflowError, RecursionError, ValueError):  # JSON has numbers that this has not
            await self.forget(identity)
            return
        if listed.faults or len(data) > MOST_BYTES:
            await self.forget(identity)
            return

        def write(connection: "sqlite3.Connection") -> None:
            connection.execute(
                "INSERT OR REPLACE INTO catalog_list(identity, fetched, listed) VALUES (?, ?, ?)",
                (identity, listed.fetched, data),
            )
            connection.execute(
                "DELETE FROM catalog_list WHERE identity NOT IN"
                " (SELECT identity FROM catalog_list ORDER BY fetched DESC LIMIT ?)",
                (ROOM,),
            )

        await self._state.write(write)

    async def forget(self, identity: str) -> None:
        """Keep the lists of this server no more."""

        def drop(connection: "sqlite3.Connection") -> None:
            connection.execute("DELETE FROM catalog_list WHERE identity = ?", (identity,))

        await self._state.write(drop)
