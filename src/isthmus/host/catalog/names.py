"""Names of the tools and prompts of all servers, ``server__tool``, and the lists merged under them.

A name is made of the server's and the tool's name alone, so that it is the same in every run and
whatever else is there. It is legal for the protocol and for every provider of models: letters,
digits, ``_`` and ``-``, at most 64. Whatever does not fit into that is replaced, and a hash of the
name as the server spells it tells it from its likes.

The part before the first ``__`` names the server and no other: a server's tools can be mistaken for
one another's at worst, never for those of somebody else.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from isthmus.host.model.entries import ServerEntry, ToolSelection
from isthmus.host.model.errors import Unknown
from isthmus.wire import Prompt, Tool

MAX_NAME_CHARS = 64  # every provider of models allows that many in the name of a tool
SERVER_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,30}")
# other programs' files have upper case and ``_``, too
CONFIGURED_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")
HASHED_NAME = re.compile(r"(?:.*_)?[0-9a-f]{8}", re.DOTALL)
ODD_CHARS = re.compile(r"[^A-Za-z0-9_-]+")
APP_SCHEME = "ui://"
T = TypeVar("T")


def is_server_name(name: str) -> bool:
    """Whether a name is one for a server: lower case, digits, ``.`` and ``-``, 31 at most.

    Such a name has no ``__``, at whose first place the names made here are taken apart.
    """
    return SERVER_NAME.fullmatch(name) is not None


def make_namespace(server: str) -> str:
    """Make the part of a name before the ``__`` for a server; other servers have another one.

    It has at most 31 characters, no ``__``, and does not end in ``_``.
    """
    if is_server_name(server) and ".." not in server and not server.endswith("."):
        return server.replace(".", "_")
    # Upper case tells it from all of the above.
    kept = re.sub(r"[^a-z0-9]+", "-", server.lower()).strip("-")[:20].rstrip("-")
    return f"{kept}_H{_digest_name(server)}" if kept else f"H{_digest_name(server)}"


def make_name(server: str, own: str) -> str:
    """Make the name of a tool or prompt."""
    before = f"{make_namespace(server)}__"
    room = MAX_NAME_CHARS - len(before)
    if len(own) <= room and PLAIN_NAME.fullmatch(own) and not HASHED_NAME.fullmatch(own):
        return before + own
    # Every name that ends like a hash carries one, so that no plain name looks like a replaced one.
    kept = ODD_CHARS.sub("_", own).strip("_")[: room - 9].rstrip("_")
    return f"{before}{kept}_{_digest_name(own)}" if kept else before + _digest_name(own)


def _digest_name(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def join_uri(server: str, uri: str) -> str:
    """Join a server and a URI into one word: ``server+uri``; pages of apps keep their ``ui://``."""
    if uri.startswith(APP_SCHEME):
        return f"{APP_SCHEME}{server}+{uri.removeprefix(APP_SCHEME)}"
    return f"{server}+{uri}"


def split_uri(text: str) -> tuple[str, str] | None:
    """Split what :func:`join_uri` made into the server and the URI; None for other text."""
    scheme = APP_SCHEME if text.startswith(APP_SCHEME) else ""
    server, plus, rest = text.removeprefix(scheme).partition("+")
    named = is_server_name(server) or CONFIGURED_NAME.fullmatch(server)
    return (server, scheme + rest) if plus and named else None


class ItemNaming(Struct, frozen=True):
    """The naming of one tool or prompt.

    Attributes:
        server: whose it is.
        own: what the server calls it.
        shown: what it is called instead, where the configuration renames it; else empty.
    """

    server: str
    own: str
    shown: str = ""


class NameClash(Struct, frozen=True):
    """Items that would have the same name: none of them has it.

    Attributes:
        name: the name.
        of: the server and its own name, for each of them.
    """

    name: str
    of: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        whose = ", ".join(f"{own!r} of {server}" for server, own in self.of)
        return (
            f"{whose} would both be called {self.name}: none of them can be used; "
            "rename one in the server's host.tools.rename"
        )


class NameTable:
    """Table of names and their items, in both directions.

    Two things that would have the same name have none: nothing stands in for something else.

    Args:
        things: in their order, which is kept.
    """

    def __init__(self, things: Iterable[ItemNaming]) -> None:
        found: dict[str, list[tuple[str, str]]] = {}
        for thing in things:
            name = make_name(thing.server, thing.shown or thing.own)
            found.setdefault(name, []).append((thing.server, thing.own))
        self.owners: Mapping[str, tuple[str, str]] = {
            name: of[0] for name, of in found.items() if len(of) == 1
        }
        self.names: Mapping[tuple[str, str], str] = {of: name for name, of in self.owners.items()}
        self.clashes: tuple[NameClash, ...] = tuple(
            NameClash(name, tuple(of)) for name, of in found.items() if len(of) > 1
        )

    def owner(self, name: str, what: str) -> tuple[str, str]:
        """The server and its own name of a named item; ``what`` it is, for the error.

        Raises:
            Unknown: nothing is; the message has the nearest names.
        """
        found = self.owners.get(name)
        if found is not None:
            return found
        near = suggest_names(name[:MAX_NAME_CHARS], self.owners)
        raise Unknown(f"there is no {what} {name!r}{near}")


def suggest_names(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest names for a mistyped one."""
    import difflib  # only for those who mistype

    found = ", ".join(difflib.get_close_matches(name[:100], list(known), 3, 0.5))
    return f"; near it: {found}" if found else ""


class CatalogItem(Struct, Generic[T], frozen=True):
    """One tool, prompt or resource of a server.

    Attributes:
        name: what it is called here: ``server__tool``; for a resource ``server+uri``.
        server: whose it is.
        what: as the server gave it.
    """

    name: str
    server: str
    what: T


class Viewer(Struct, frozen=True):
    """A principal in a run, who sees each server on the connection that is theirs.

    Attributes:
        principal: who it is, for servers that have a connection for each user.
        run: the run, for servers that have one for each session.
    """

    principal: str
    run: str = ""


Isolation: TypeAlias = str | Viewer  # the connections of one isolation key, or those of a viewer


class CatalogView(Struct, frozen=True):
    """The merged lists that one viewer sees, made once for each change."""

    tools: tuple[CatalogItem[Tool], ...]
    prompts: tuple[CatalogItem[Prompt], ...]
    tool_names: NameTable
    prompt_names: NameTable
    definitions: Mapping[tuple[str, str], Tool]


def make_items(
    things: Iterable[tuple[ItemNaming, T]], table: NameTable
) -> tuple[CatalogItem[T], ...]:
    """Make the items that have a name."""
    return tuple(
        CatalogItem(table.names[key], naming.server, what)
        for naming, what in things
        if (key := (naming.server, naming.own)) in table.names
    )


def is_chosen(choice: ToolSelection, name: str) -> bool:
    """Whether the configuration selects a tool."""
    if any(fnmatchcase(name, glob) for glob in choice.exclude):
        return False
    return not choice.include or any(fnmatchcase(name, glob) for glob in choice.include)


def digest_target(entry: ServerEntry) -> str:
    """Digest the command or the address of an entry, which tells one server from another."""
    import json
    from hashlib import sha256

    said: list[Any] = [entry.command, entry.cwd, sorted(entry.env), entry.url, entry.kind]
    return sha256(json.dumps(said).encode()).hexdigest()
