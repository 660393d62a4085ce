"""The lists of several servers put together as one."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from isthmus.host.catalog.names import Naming, Table
from isthmus.host.config.entries import ServerEntry, ToolChoice
from isthmus.wire import Prompt, Tool

__all__ = ["Isolation", "Item", "View", "Viewer", "bound_to", "chosen", "items"]

T = TypeVar("T")


class Item(Struct, Generic[T], frozen=True):
    """One thing that a server has.

    Attributes:
        name: what it is called here: ``server__tool``; for a resource ``server+uri``.
        server: whose it is.
        what: as the server gave it.
    """

    name: str
    server: str
    what: T


class Viewer(Struct, frozen=True):
    """Somebody who sees what servers have: of each server, on the connection that is theirs.

    Attributes:
        principal: who it is, for servers that have a connection for each user.
        run: the run, for servers that have one for each session.
    """

    principal: str
    run: str = ""


Isolation: TypeAlias = str | Viewer
"""Whose connections are meant: those of one isolation key, or those of somebody."""


class View(Struct, frozen=True):
    """Everything that one isolation key sees, put together once for each change."""

    tools: tuple[Item[Tool], ...]
    prompts: tuple[Item[Prompt], ...]
    tool_names: Table
    prompt_names: Table
    definitions: Mapping[tuple[str, str], Tool]


def items(things: Iterable[tuple[Naming, T]], table: Table) -> tuple[Item[T], ...]:
    """Those of the things that have a name."""
    return tuple(
        Item(table.names[key], naming.server, what)
        for naming, what in things
        if (key := (naming.server, naming.own)) in table.names
    )


def chosen(choice: ToolChoice, name: str) -> bool:
    """Whether the configuration has this tool at all."""
    if any(fnmatchcase(name, glob) for glob in choice.exclude):
        return False
    return not choice.include or any(fnmatchcase(name, glob) for glob in choice.include)


def bound_to(entry: ServerEntry) -> str:
    """What tells one server from another: what is launched where and with which variables, or where it is."""
    import json
    from hashlib import sha256

    said: list[Any] = [entry.command, entry.cwd, sorted(entry.env), entry.url, entry.kind]
    return sha256(json.dumps(said).encode()).hexdigest()
