"""Usage of models by servers, a day at a time: in the state of a host, or in a store that hosts share."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import msgspec

from isthmus.errors import IsthmusError
from isthmus.runtime.failures import log_failure

if TYPE_CHECKING:
    import sqlite3

    from isthmus.host.state.database import HostState
    from isthmus.host.state.shared_state import SharedState

T = TypeVar("T")
Usage: TypeAlias = tuple[int, int, int]  # requests, tokens, micro-dollars
UsageKey: TypeAlias = tuple[str, int]  # server, day

NO_USAGE: Usage = (0, 0, 0)
USAGE_PREFIX = "usage/"
KEPT_DAYS = 90
DAY_S = 86_400

_decoder = msgspec.json.Decoder(tuple[int, int, int])


class UsageStorage(Protocol):
    """Keeps what servers have used."""

    async def read(self, account: UsageKey) -> Usage:
        """What was used so far."""
        ...

    async def change(self, account: UsageKey, work: Callable[[Usage], tuple[Usage, T]]) -> T:
        """Add what ``work`` says of what was used so far; nothing where it raises."""
        ...

    def change_soon(self, account: UsageKey, more: Usage) -> None:
        """Add something within milliseconds."""
        ...


class UsageTable:
    """Keeps it in the state of a host.

    Args:
        state: where.
    """

    def __init__(self, state: "HostState") -> None:
        self._state = state

    async def read(self, account: UsageKey) -> Usage:
        """As :meth:`UsageStorage.read`."""
        return await self._state.read(lambda db: _read_row(db, account))

    async def change(self, account: UsageKey, work: Callable[[Usage], tuple[Usage, T]]) -> T:
        """As :meth:`UsageStorage.change`."""

        def whole(db: "sqlite3.Connection") -> T:
            more, result = work(_read_row(db, account))
            _add_row(db, account, more)
            return result

        return await self._state.write(whole)

    def change_soon(self, account: UsageKey, more: Usage) -> None:
        """As :meth:`UsageStorage.change_soon`."""
        self._state.post(lambda db: _add_row(db, account, more))


class UsageRecords:
    """Keeps it in the store that the processes of a host share.

    Args:
        shared: the store.
    """

    def __init__(self, shared: "SharedState") -> None:
        self._shared = shared
        self._work: set[asyncio.Task[None]] = set()

    async def read(self, account: UsageKey) -> Usage:
        """As :meth:`UsageStorage.read`."""
        value, _ = await self._shared.get(_make_key(account))
        return NO_USAGE if value is None else _decoder.decode(value)

    async def change(self, account: UsageKey, work: Callable[[Usage], tuple[Usage, T]]) -> T:
        """As :meth:`UsageStorage.change`."""

        def whole(value: bytes | None) -> tuple[bytes, T]:
            before = NO_USAGE if value is None else _decoder.decode(value)
            more, result = work(before)
            return msgspec.json.encode(add_usage(before, more)), result

        return await self._shared.update(_make_key(account), whole, KEPT_DAYS * DAY_S)

    def change_soon(self, account: UsageKey, more: Usage) -> None:
        """As :meth:`UsageStorage.change_soon`."""
        task = asyncio.get_running_loop().create_task(self._change_soon(account, more))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _change_soon(self, account: UsageKey, more: Usage) -> None:
        try:
            await self.change(account, lambda _before: (more, None))
        except IsthmusError as error:  # what was charged at most stays charged
            log_failure("the usage of a model", error)


def add_usage(before: Usage, more: Usage) -> Usage:
    """Usage and more of it, or less; never below nothing."""
    return before[0] + more[0], max(before[1] + more[1], 0), max(before[2] + more[2], 0)


def _make_key(account: UsageKey) -> str:
    return f"{USAGE_PREFIX}{account[1]}/{account[0]}"


def _read_row(db: "sqlite3.Connection", account: UsageKey) -> Usage:
    row: Usage | None = db.execute(
        "SELECT requests, tokens, cost_micro FROM sampling_usage WHERE server = ? AND day = ?",
        account,
    ).fetchone()
    return row or NO_USAGE


def _add_row(db: "sqlite3.Connection", account: UsageKey, more: Usage) -> None:
    db.execute(
        "INSERT INTO sampling_usage "
        "VALUES (:server, :day, :requests, max(:tokens, 0), max(:cost_micro, 0)) "
        "ON CONFLICT (server, day) DO UPDATE SET requests = requests + :requests, "
        "tokens = max(tokens + :tokens, 0), cost_micro = max(cost_micro + :cost_micro, 0)",
        dict(
            zip(
                ("server", "day", "requests", "tokens", "cost_micro"),
                (*account, *more),
                strict=True,
            )
        ),
    )
