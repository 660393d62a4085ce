"""What one server says that it has, as it was fetched last."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct, structs

from isthmus.errors import (
    CallTimedOut,
    CapabilityMissing,
    ConnectionLost,
    HttpRefused,
    IsthmusError,
    MethodNotFound,
    Refused,
)
from isthmus.wire import Prompt, Resource, ResourceTemplate, Tool

__all__ = ["CHANGED", "KINDS", "Fetched", "Listed", "Lister", "Lists", "fetch", "merge"]

MOST_ITEMS = 10_000
"""Items of one list that are kept."""

MOST_BYTES = 64 * 1024 * 1024
"""Bytes that one list may have in all, written as JSON."""

PATIENCE = 60.0
"""Seconds that one list may take in all, whatever its pages take."""

T = TypeVar("T")


class Listed(Struct, frozen=True, kw_only=True, omit_defaults=True):
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

    @property
    def whole(self) -> bool:
        """Whether each kind has come, now or before."""
        return len(self.heard) == len(KINDS)

    @property
    def settled(self) -> bool:
        """Whether each kind has come, or is known to be missing: the first reading is over."""
        return len({*self.heard, *self.missing}) == len(KINDS)


class Lister(Protocol):
    """The part of a client that is needed to learn what its server has."""

    @property
    def instructions(self) -> str | None:
        """How to use the server."""
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


Lists = Mapping[str, tuple[str, str]]

KINDS: Lists = {
    "tools": ("list_tools", "name"),
    "prompts": ("list_prompts", "name"),
    "resources": ("list_resources", "uri"),
    "templates": ("list_resource_templates", "uri_template"),
}
"""Which method of a client gives each list, and what tells its items apart."""

CHANGED = {"tools": ("tools",), "prompts": ("prompts",), "resources": ("resources", "templates")}
"""Which lists to fetch anew for each kind of change that servers tell of."""


class Fetched(Struct, frozen=True, kw_only=True):
    """What a server has listed just now.

    Attributes:
        lists: the items by kind; None for a list that did not come.
        faults: what was wrong, a sentence by kind.
        instructions: how to use the server, in its words.
    """

    lists: Mapping[str, tuple[Any, ...] | None]
    faults: Mapping[str, str] = {}
    instructions: str = ""


async def fetch(
    client: Lister, kinds: Sequence[str] = tuple(KINDS), *, patience: float = PATIENCE
) -> Fetched:
    """Ask a server for its lists; what is wrong with one of them costs none of the others.

    Args:
        client: is open.
        kinds: which lists.
        patience: seconds that one list may take in all.

    Raises:
        ConnectionLost: nobody can know what the server has.
    """
    got = await asyncio.gather(*(_one(client, kind, patience) for kind in kinds))
    answers = dict(zip(kinds, got, strict=True))
    return Fetched(
        lists={kind: items for kind, (items, _) in answers.items()},
        faults={kind: fault for kind, (_, fault) in answers.items() if fault},
        instructions=client.instructions or "",
    )


def merge(before: Listed | None, fetched: Fetched, kinds: Collection[str], now: float) -> Listed:
    """What is known of a server once it has listed some kinds; all others stay as they are.

    Args:
        before: what is known at this moment, whatever it was when the lists were asked for.
        fetched: what came.
        kinds: the kinds of it that count.
        now: the seconds since the epoch.
    """
    known = before or Listed()
    came = {kind: items for kind in kinds if (items := fetched.lists[kind]) is not None}
    faults = {kind: text for kind, text in known.faults.items() if kind not in kinds}
    changes: dict[str, Any] = {
        kind: standing if alike(items, standing := getattr(known, kind)) else items
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
            kind for kind in KINDS if (kind in kinds or kind in known.missing) and kind not in came
        ),
        heard=tuple(kind for kind in KINDS if kind in came or kind in known.heard),
    )


def alike(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether two lists are the same to the letter: for Python, 1 and true are equal."""
    return len(some) == len(others) and all(
        msgspec.json.encode(one) == msgspec.json.encode(other)
        for one, other in zip(some, others, strict=True)
    )


async def _one(client: Lister, kind: str, patience: float) -> tuple[tuple[Any, ...] | None, str]:
    """A list, and what is wrong with it; None for one that did not come."""
    method, key = KINDS[kind]
    ask: Callable[..., Awaitable[list[Any]]] = getattr(client, method)
    try:
        async with asyncio.timeout(patience):
            found = await ask(fresh=True)
    except CapabilityMissing:
        return (), ""
    except ConnectionLost:
        raise
    except MethodNotFound as error:
        return (), f"the list of {kind} cannot be had: {error}"
    except (CallTimedOut, Refused, HttpRefused) as error:
        return None, f"the list of {kind} did not come: {error}"
    except TimeoutError:
        return None, f"the list of {kind} was not at its end after {patience:g} seconds"
    except IsthmusError as error:
        return (), f"the list of {kind} cannot be had: {error}"
    return _kept(kind, found, key)


def _kept(kind: str, found: list[T], key: str) -> tuple[tuple[T, ...], str]:
    """The items that are used: none that stands there twice, and no more than there is room for."""
    fault = ""
    if len(found) > MOST_ITEMS:
        fault = f"{len(found) - MOST_ITEMS} {kind} beyond the first {MOST_ITEMS} are left out"
        found = found[:MOST_ITEMS]
    size = sum(len(msgspec.json.encode(item)) for item in found)
    if size > MOST_BYTES:
        return (), f"the list of {kind} has {size} bytes, and {MOST_BYTES} are the most"
    often = Counter(getattr(item, key) for item in found)
    if len(often) < len(found):
        # Which of two is meant nobody can say, and a second one may be there to be mistaken.
        twice = sorted(name for name, times in often.items() if times > 1)
        named = ", ".join(repr(name[:100]) for name in twice[:5])
        fault = f"{kind} that stand in the list twice are left out: {named}"
        found = [item for item in found if often[getattr(item, key)] == 1]
    return tuple(found), fault
