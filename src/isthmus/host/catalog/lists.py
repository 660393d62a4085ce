"""Lists of one server: fetched, merged with earlier ones, renewed on announcements, kept between runs."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from msgspec import Struct, structs

from isthmus.client.model.list_hints import collect_hints
from isthmus.errors import (
    CallTimedOut,
    CapabilityMissing,
    ConnectionLost,
    HttpRefused,
    IsthmusError,
    MethodNotFound,
    Refused,
)
from isthmus.store.meter import MemoryMeter, Rate
from isthmus.wire import Prompt, Resource, ResourceTemplate, Tool

if TYPE_CHECKING:
    import sqlite3

    from isthmus.host.state.database import HostState

MAX_LIST_ITEMS = 10_000
MAX_LIST_BYTES = 64 * 1024 * 1024  # written as JSON
LIST_TIMEOUT_S = 60.0  # whatever its pages take
T = TypeVar("T")


ListMethods = Mapping[str, tuple[str, str]]
# the client's method of each list, and the field that tells its items apart
LIST_KINDS: ListMethods = {
    "tools": ("list_tools", "name"),
    "prompts": ("list_prompts", "name"),
    "resources": ("list_resources", "uri"),
    "templates": ("list_resource_templates", "uri_template"),
}
# the lists to fetch anew for each kind of change that servers announce
LISTS_BY_CHANGE = {
    "tools": ("tools",),
    "prompts": ("prompts",),
    "resources": ("resources", "templates"),
}
# a server whose every list is followed by another has its pauses
RENEWAL_RATE = Rate(30, seconds=60)
LIST_LIFE_S = 7 * 24 * 3600.0
MAX_KEPT_BYTES = 4 * 1024 * 1024  # larger ones are fetched in every run
MAX_KEPT_SERVERS = 500  # those not seen for the longest time make room


class ServerLists(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lists of one server.

    Attributes:
        tools: as the server gave them, whole; so are the other three.
        prompts: see there.
        resources: see there.
        templates: see there.
        instructions: how to use the server, in its words; empty where it says nothing.
        fetched: when, in seconds since the epoch.
        cached: whether they are from an earlier run, the server not being asked yet in this one.
        faults: what was wrong with a list, a sentence by its kind; what is said of there is
            missing above, or is the list before it.
        missing: kinds whose list did not come, and may at another time; the last one that came
            stands above.
        heard: kinds that the server has listed, or said that it has none of. What is kept from an
            earlier run without all of them was cut short.
        ttls: milliseconds for which each list may be kept, as the server says; kinds that it does not
            have are missing.
    """

    tools: tuple[Tool, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    resources: tuple[Resource, ...] = ()
    templates: tuple[ResourceTemplate, ...] = ()
    instructions: str = ""
    fetched: float = 0.0
    cached: bool = False
    faults: Mapping[str, str] = {}
    missing: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()
    ttls: Mapping[str, int] = {}

    @property
    def whole(self) -> bool:
        """Whether each kind was listed, now or before."""
        return len(self.heard) == len(LIST_KINDS)

    @property
    def settled(self) -> bool:
        """Whether each kind was listed, or is known to be missing: the first listing is over."""
        return len({*self.heard, *self.missing}) == len(LIST_KINDS)


class ListingClient(Protocol):
    """The part of a client that lists what its server has."""

    @property
    def instructions(self) -> str | None:
        """Instructions for the use of the server."""
        ...

    async def list_tools(self, *, fresh: bool = False) -> list[Tool]:
        """Every tool."""
        ...

    async def list_prompts(self, *, fresh: bool = False) -> list[Prompt]:
        """Every prompt."""
        ...

    async def list_resources(self, *, fresh: bool = False) -> list[Resource]:
        """Every resource."""
        ...

    async def list_resource_templates(self, *, fresh: bool = False) -> list[ResourceTemplate]:
        """Every template."""
        ...


class FetchedLists(Struct, frozen=True, kw_only=True):
    """The lists that a server has just given.

    Attributes:
        lists: the items by kind; None for a list that did not come.
        faults: what was wrong, a sentence by kind.
        instructions: how to use the server, in its words.
        ttls: milliseconds for which each list may be kept; kinds that the server does not have are missing.
    """

    lists: Mapping[str, tuple[Any, ...] | None]
    faults: Mapping[str, str] = {}
    instructions: str = ""
    ttls: Mapping[str, int] = {}


async def fetch_lists(
    client: ListingClient,
    kinds: Sequence[str] = tuple(LIST_KINDS),
    *,
    patience: float = LIST_TIMEOUT_S,
) -> FetchedLists:
    """Ask a server for its lists; a fault in one of them costs none of the others.

    Raises:
        ConnectionLost: nobody can know what the server has.
    """
    got = await asyncio.gather(*(_fetch_list(client, kind, patience) for kind in kinds))
    answers = dict(zip(kinds, got, strict=True))
    return FetchedLists(
        lists={kind: items for kind, (items, _, _) in answers.items()},
        faults={kind: fault for kind, (_, fault, _) in answers.items() if fault},
        instructions=client.instructions or "",
        ttls={kind: ttl for kind, (_, _, ttl) in answers.items() if ttl is not None},
    )


def merge_lists(
    before: ServerLists | None, fetched: FetchedLists, kinds: Collection[str], now: float
) -> ServerLists:
    """Merge fetched lists of some kinds into those known; all others stay as they are.

    Args:
        before: what is known at this moment, whatever it was when the lists were asked for.
        fetched: what came.
        kinds: the kinds of it that count.
        now: the seconds since the epoch.
    """
    known = before or ServerLists()
    came = {kind: items for kind in kinds if (items := fetched.lists[kind]) is not None}
    faults = {kind: text for kind, text in known.faults.items() if kind not in kinds}
    changes: dict[str, Any] = {
        kind: standing if is_identical(items, standing := getattr(known, kind)) else items
        for kind, items in came.items()
    }
    return structs.replace(
        known,
        **changes,
        instructions=fetched.instructions,
        fetched=now,
        cached=False,
        faults=faults | {kind: text for kind, text in fetched.faults.items() if kind in kinds},
        missing=tuple(
            kind
            for kind in LIST_KINDS
            if (kind in kinds or kind in known.missing) and kind not in came
        ),
        heard=tuple(kind for kind in LIST_KINDS if kind in came or kind in known.heard),
        ttls={kind: ttl for kind, ttl in known.ttls.items() if kind not in kinds}
        | {kind: ttl for kind, ttl in fetched.ttls.items() if kind in kinds},
    )


def is_identical(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether two lists are the same to the letter: for Python, 1 and true are equal."""
    return len(some) == len(others) and all(
        msgspec.json.encode(one) == msgspec.json.encode(other)
        for one, other in zip(some, others, strict=True)
    )


async def _fetch_list(
    client: ListingClient, kind: str, patience: float
) -> tuple[tuple[Any, ...] | None, str, int | None]:
    """Fetch a list, its fault, and for how long it may be kept; None for a list that did not come."""
    method, key = LIST_KINDS[kind]
    ask: Callable[..., Awaitable[list[Any]]] = getattr(client, method)
    try:
        with collect_hints() as hints:
            async with asyncio.timeout(patience):
                found = await ask(fresh=True)
    except CapabilityMissing:
        return (), "", None
    except ConnectionLost:
        raise
    except MethodNotFound as error:
        return (), f"the list of {kind} cannot be had: {error}", None
    except (CallTimedOut, Refused, HttpRefused) as error:
        return None, f"the list of {kind} did not come: {error}", 0
    except TimeoutError:
        return None, f"the list of {kind} did not end within {patience:g} seconds", 0
    except IsthmusError as error:
        return (), f"the list of {kind} cannot be had: {error}", 0
    return (*_select_items(kind, found, key), hints.ttl_ms)


def _select_items(kind: str, items: list[T], key: str) -> tuple[tuple[T, ...], str]:
    """Select the usable items: none that is listed twice, and no more than the limits."""
    fault = ""
    if len(items) > MAX_LIST_ITEMS:
        fault = (
            f"{len(items) - MAX_LIST_ITEMS} {kind} beyond the first {MAX_LIST_ITEMS} are left out"
        )
        items = items[:MAX_LIST_ITEMS]
    size = sum(len(msgspec.json.encode(item)) for item in items)
    if size > MAX_LIST_BYTES:
        return (), f"the list of {kind} has {size} bytes, and {MAX_LIST_BYTES} are the most"
    often = Counter(getattr(item, key) for item in items)
    if len(often) < len(items):
        # Which of two is meant nobody can say, and a second one may be there to be mistaken.
        twice = sorted(name for name, times in often.items() if times > 1)
        named = ", ".join(repr(name[:100]) for name in twice[:5])
        fault = f"{kind} that stand in the list twice are left out: {named}"
        items = [item for item in items if often[getattr(item, key)] == 1]
    return tuple(items), fault


class ListRenewal:
    """Renewal of one connection's lists: fetched in rounds, and not too often.

    Args:
        fetch: fetches the lists of these kinds.
        clock: gives seconds that never go back; the event loop's by default.

    Attributes:
        wanted: kinds of lists that the next round fetches.
        fetching: kinds that the round under way fetches.
    """

    def __init__(
        self, fetch: Callable[[set[str]], Awaitable[None]], clock: Callable[[], float] | None = None
    ) -> None:
        self.wanted: set[str] = set()
        self.fetching: set[str] = set()
        self._fetch = fetch
        clock = clock or asyncio.get_running_loop().time
        self._meter = MemoryMeter(RENEWAL_RATE, clock=clock)
        self._next: asyncio.Future[None] | None = None
        self._now: asyncio.Future[None] | None = None
        self._work: asyncio.Task[None] | None = None

    async def renew(self, *kinds: str) -> None:
        """Fetch these lists; returns when lists that were asked for after this call are there.

        Whoever gives up stops nobody else.

        Raises:
            IsthmusError: they cannot be had.
        """
        await asyncio.shield(self.want(*kinds))

    def want(self, *kinds: str) -> "asyncio.Future[None]":
        """Fetch these lists in the next round, without waiting for them.

        Returns:
            What is done when they are there.
        """
        self.wanted.update(kinds)
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        ended = self._next
        if self._work is None or self._work.done():
            self._work = asyncio.ensure_future(self._run_rounds())
        return ended

    async def settle(self, *kinds: str) -> None:
        """Wait for these lists where they are out of date, and not at all where they are not.

        Raises:
            IsthmusError: they cannot be had.
        """
        if self._next is not None and self.wanted.intersection(kinds):
            await asyncio.shield(self._next)
        elif self._now is not None and self.fetching.intersection(kinds):
            await asyncio.shield(self._now)

    async def close(self) -> None:
        """Stop fetching."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        if self._next is not None:
            self._next.cancel()

    async def _run_rounds(self) -> None:
        while self._next is not None:
            wait = self._meter.spend("")
            if wait:
                await asyncio.sleep(wait)
                self._meter.spend("")
            # from here on what changes is for the next round: it may have been listed already
            ended, self._next = self._next, None
            wanted, self.wanted = self.wanted, set()
            self._now, self.fetching = ended, wanted
            try:
                await self._fetch(wanted)
            except asyncio.CancelledError:
                ended.cancel()
                raise
            except Exception as error:  # noqa: BLE001 - it is for those who wait for it
                ended.set_exception(error)
                ended.exception()  # perhaps nobody does
            else:
                ended.set_result(None)
            finally:
                self._now, self.fetching = None, set()


class ListCache:
    """Lists of earlier runs, by the server's identity.

    Args:
        state: the store.
        lasts: seconds that lists are good for.
        clock: says the seconds since the epoch.
    """

    def __init__(
        self,
        state: "HostState",
        *,
        lasts: float = LIST_LIFE_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._lasts = lasts
        self._clock = clock

    async def find(self, identity: str) -> ServerLists | None:
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
            listed = msgspec.msgpack.decode(row[0], type=ServerLists)
        except (msgspec.MsgspecError, RecursionError):  # an earlier version wrote it
            return None
        # one that does not say of each kind that it has come may lack what the server has
        return structs.replace(listed, cached=True) if listed.whole else None

    async def keep(self, identity: str, listed: ServerLists) -> None:
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
        if listed.faults or len(data) > MAX_KEPT_BYTES:
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
                (MAX_KEPT_SERVERS,),
            )

        await self._state.write(write)

    async def forget(self, identity: str) -> None:
        """Remove the lists of a server."""

        def drop(connection: "sqlite3.Connection") -> None:
            connection.execute("DELETE FROM catalog_list WHERE identity = ?", (identity,))

        await self._state.write(drop)
