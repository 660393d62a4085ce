"""Storage of fingerprints: a table in the state of a host, or records in a store that hosts share."""

import asyncio
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from isthmus.errors import IsthmusError
from isthmus.host.state.shared_state import SharedState
from isthmus.runtime.failures import log_failure

if TYPE_CHECKING:
    import sqlite3

    from isthmus.host.state.database import HostState

ToolKey: TypeAlias = tuple[str, str, str]  # server, identity, tool
KnownDefinition: TypeAlias = tuple[str, bytes]  # fingerprint, compressed definition
TakeFirst: TypeAlias = Callable[[KnownDefinition | None], None]

TOOL_PREFIX, RELEASES_KEY = "tool/", "releases"
MAX_TOOL_RECORDS = 100_000


class FingerprintStorage(Protocol):
    """Keeps what tools were when they were approved."""

    async def load(self) -> dict[ToolKey, KnownDefinition]:
        """All of them."""
        ...

    async def has_changed(self) -> bool:
        """Whether another process has replaced one since :meth:`load`."""
        ...

    async def insert(self, place: ToolKey, known: KnownDefinition) -> KnownDefinition:
        """Keep a definition, unless there is one; gives the one that is kept."""
        ...

    def post(self, place: ToolKey, known: KnownDefinition, then: TakeFirst) -> None:
        """As :meth:`insert`, within milliseconds; ``then`` gets the one that is kept, or None."""
        ...

    async def replace(self, place: ToolKey, known: KnownDefinition) -> None:
        """Keep a definition, whatever was there."""
        ...


class FingerprintTable:
    """Keeps fingerprints in the state of a host.

    Args:
        state: where.
    """

    def __init__(self, state: "HostState") -> None:
        self._state = state

    async def load(self) -> dict[ToolKey, KnownDefinition]:
        """As :meth:`FingerprintStorage.load`.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        rows = await self._state.read(
            lambda db: db.execute(
                "SELECT server, identity, tool, hash, definition FROM fingerprint"
            ).fetchall()
        )
        return {(s, i, t): (hash, kept) for s, i, t, hash, kept in rows}

    async def has_changed(self) -> bool:
        """Nobody tells: a process sees it when it learns a tool."""
        return False

    async def insert(self, place: ToolKey, known: KnownDefinition) -> KnownDefinition:
        """As :meth:`FingerprintStorage.insert`.

        Raises:
            StoreUnavailable: it is not kept.
        """
        row = self._make_row(place, known)
        return await self._state.write(lambda db: _insert_row(db, row))

    def post(self, place: ToolKey, known: KnownDefinition, then: TakeFirst) -> None:
        """As :meth:`FingerprintStorage.post`."""
        row, found = self._make_row(place, known), list[KnownDefinition]()
        self._state.post(
            lambda db: found.append(_insert_row(db, row)),
            lambda error: then(found[-1] if error is None and found else None),
        )

    async def replace(self, place: ToolKey, known: KnownDefinition) -> None:
        """As :meth:`FingerprintStorage.replace`.

        Raises:
            StoreUnavailable: it is not kept.
        """
        row = self._make_row(place, known)
        await self._state.write(
            lambda db: (
                db.execute(
                    "INSERT INTO fingerprint (server, identity, tool, hash, first_us, definition) "
                    "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
                    "SET hash = excluded.hash, definition = excluded.definition",
                    row,
                ).rowcount
            )
        )

    def _make_row(
        self, place: ToolKey, known: KnownDefinition
    ) -> tuple[str, str, str, str, int, bytes]:
        return (*place, known[0], int(self._state.clock() * 1_000_000), known[1])


def _insert_row(
    db: "sqlite3.Connection", row: tuple[str, str, str, str, int, bytes]
) -> KnownDefinition:
    db.execute(
        "INSERT INTO fingerprint (server, identity, tool, hash, first_us, definition) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        row,
    )
    first: KnownDefinition = db.execute(
        "SELECT hash, definition FROM fingerprint WHERE server = ? AND identity = ? AND tool = ?",
        row[:3],
    ).fetchone()
    return first


class FingerprintRecords:
    """Keeps fingerprints in the store that the processes of a host share.

    Args:
        shared: the store.
    """

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._releases = 0
        self._work: set[asyncio.Task[None]] = set()

    async def load(self) -> dict[ToolKey, KnownDefinition]:
        """As :meth:`FingerprintStorage.load`.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        _, self._releases = await self._shared.get(RELEASES_KEY)
        rows = await self._shared.scan(TOOL_PREFIX, MAX_TOOL_RECORDS)
        return dict(_decode_tool(value) for _, value, _ in rows)

    async def has_changed(self) -> bool:
        """As :meth:`FingerprintStorage.has_changed`.

        Raises:
            StoreUnavailable: it cannot be read.
        """
        _, version = await self._shared.get(RELEASES_KEY)
        return version != self._releases

    async def insert(self, place: ToolKey, known: KnownDefinition) -> KnownDefinition:
        """As :meth:`FingerprintStorage.insert`.

        Raises:
            StoreUnavailable: it is not known to be kept.
        """

        def keep(value: bytes | None) -> tuple[bytes | None, KnownDefinition]:
            if value is not None:
                return None, _decode_tool(value)[1]
            return _encode_tool(place, known), known

        return await self._shared.update(_make_tool_key(place), keep)

    def post(self, place: ToolKey, known: KnownDefinition, then: TakeFirst) -> None:
        """As :meth:`FingerprintStorage.post`."""
        task = asyncio.get_running_loop().create_task(self._insert_soon(place, known, then))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _insert_soon(self, place: ToolKey, known: KnownDefinition, then: TakeFirst) -> None:
        try:
            then(await self.insert(place, known))
        except IsthmusError as error:
            log_failure("the fingerprint of a tool", error)
            then(None)

    async def replace(self, place: ToolKey, known: KnownDefinition) -> None:
        """As :meth:`FingerprintStorage.replace`.

        Raises:
            StoreUnavailable: it is not known to be kept.
        """
        await self._shared.put(_make_tool_key(place), _encode_tool(place, known))
        await self._shared.put(RELEASES_KEY, b"")  # its version says that there was one


def _make_tool_key(place: ToolKey) -> str:
    return TOOL_PREFIX + hashlib.sha256(msgspec.json.encode(place)).hexdigest()


def _encode_tool(place: ToolKey, known: KnownDefinition) -> bytes:
    return msgspec.msgpack.encode((place, known))


_tool_decoder = msgspec.msgpack.Decoder(tuple[ToolKey, KnownDefinition])


def _decode_tool(value: bytes) -> tuple[ToolKey, KnownDefinition]:
    return _tool_decoder.decode(value)
