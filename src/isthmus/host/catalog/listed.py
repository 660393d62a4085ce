"""What one server says that it has, as it was fetched last."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct, structs

from isthmus.errors import CallTimedOut, CapabilityMissing, ConnectionLost, IsthmusError
from isthmus.wire import Prompt, Resource, ResourceTemplate, Tool

__all__ = ["CHANGED", "KINDS", "Listed", "Lister", "Lists", "fetch"]

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
            missing above.
        missing: kinds whose list did not come in time, and may at another.
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


async def fetch(
    client: Lister,
    now: Callable[[], float],
    *,
    before: Listed | None = None,
    only: tuple[str, ...] = tuple(KINDS),
    patience: float = PATIENCE,
) -> Listed:
    """The lists of a server; what is wrong with one of them costs none of the others.

    Args:
        client: is open.
        now: says the seconds since the epoch.
        before: what was known; it stays for the kinds that are not fetched.
        only: which kinds to fetch.
        patience: seconds that one list may take in all.

    Raises:
        ConnectionLost: nobody can know what the server has.
    """
    known = before or Listed()
    got = await asyncio.gather(*(_one(client, kind, patience) for kind in only))
    changes: dict[str, Any] = {}
    faults = {kind: text for kind, text in known.faults.items() if kind not in only}
    missing = [kind for kind in known.missing if kind not in only]
    for kind, (items, fault) in zip(only, got, strict=True):
        changes[kind] = () if items is None else items
        if items is None:
            missing.append(kind)
        if fault:
            faults[kind] = fault
    return structs.replace(
        known,
        **changes,
        instructions=client.instructions or "",
        fetched=now(),
        cached=False,
        faults=faults,
        missing=tuple(missing),
    )


async def _one(client: Lister, kind: str, patience: float) -> tuple[tuple[Any, ...] | None, str]:
    """A list, and what is wrong with it; None for one that did not come in time."""
    method, key = KINDS[kind]
    ask: Callable[..., Awaitable[list[Any]]] = getattr(client, method)
    try:
        async with asyncio.timeout(patience):
            found = await ask(fresh=True)
    except CapabilityMissing:
        return (), ""
    except ConnectionLost:
        raise
    except CallTimedOut as error:
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
