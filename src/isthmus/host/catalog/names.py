"""What a model calls the tools and prompts of all servers: ``server__tool``.

A name is made of the server's and the tool's name alone, so that it is the same in every run and
whatever else is there. It is legal for the protocol and for every provider of models: letters,
digits, ``_`` and ``-``, at most 64. Whatever does not fit into that is replaced, and a hash of the
name as the server spells it tells it from its likes.

The part before the first ``__`` names the server and no other: a server's tools can be mistaken for
one another's at worst, never for those of somebody else.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256

from msgspec import Struct

from isthmus.host.errors import Unknown

__all__ = [
    "Clash",
    "Naming",
    "Table",
    "is_server_name",
    "joined",
    "namespace",
    "printable",
    "split",
]

LONGEST = 64
"""Characters that every provider of models allows in the name of a tool."""

SERVER = re.compile(r"[a-z0-9][a-z0-9.-]{0,30}")
CONFIGURED = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
"""What a configuration may call a server; other programs' files have upper case and ``_``, too."""

PLAIN = re.compile(r"[A-Za-z0-9_-]+")
MARKED = re.compile(r"(?:.*_)?[0-9a-f]{8}", re.DOTALL)
ODD = re.compile(r"[^A-Za-z0-9_-]+")
APPS = "ui://"


def is_server_name(name: str) -> bool:
    """Whether a server may be called so: lower case, digits, ``.`` and ``-``, 31 at most.

    Such a name has no ``__``, at whose first place the names made here are taken apart.
    """
    return SERVER.fullmatch(name) is not None


def namespace(server: str) -> str:
    """What stands before the ``__`` for a server; other servers have another one.

    It has at most 31 characters, no ``__``, and does not end in ``_``.
    """
    if is_server_name(server) and ".." not in server and not server.endswith("."):
        return server.replace(".", "_")
    # Upper case tells it from all of the above.
    kept = re.sub(r"[^a-z0-9]+", "-", server.lower()).strip("-")[:20].rstrip("-")
    return f"{kept}_H{_digest(server)}" if kept else f"H{_digest(server)}"


def joined(server: str, own: str) -> str:
    """The name of a tool or prompt for everybody but its server.

    Args:
        server: the server's name here.
        own: the tool's or prompt's name there; any text.
    """
    before = f"{namespace(server)}__"
    room = LONGEST - len(before)
    if len(own) <= room and PLAIN.fullmatch(own) and not MARKED.fullmatch(own):
        return before + own
    # Every name that ends like a hash carries one, so that no plain name looks like a replaced one.
    kept = ODD.sub("_", own).strip("_")[: room - 9].rstrip("_")
    return f"{before}{kept}_{_digest(own)}" if kept else before + _digest(own)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def printable(server: str, uri: str) -> str:
    """A resource of a server in one word: ``server+uri``; pages of apps keep their ``ui://``."""
    if uri.startswith(APPS):
        return f"{APPS}{server}+{uri.removeprefix(APPS)}"
    return f"{server}+{uri}"


def split(text: str) -> tuple[str, str] | None:
    """The server and the URI that :func:`printable` made one word of; None for other text."""
    scheme = APPS if text.startswith(APPS) else ""
    server, plus, rest = text.removeprefix(scheme).partition("+")
    named = is_server_name(server) or CONFIGURED.fullmatch(server)
    return (server, scheme + rest) if plus and named else None


class Naming(Struct, frozen=True):
    """One thing to be named.

    Attributes:
        server: whose it is.
        own: what the server calls it.
        shown: what it is called instead, where the configuration renames it; else empty.
    """

    server: str
    own: str
    shown: str = ""


class Clash(Struct, frozen=True):
    """Things that would have the same name, none of which has it now.

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


class Table:
    """Names in both directions.

    Two things that would have the same name have none: nothing stands in for something else.

    Args:
        things: in their order, which is kept.
    """

    def __init__(self, things: Iterable[Naming]) -> None:
        found: dict[str, list[tuple[str, str]]] = {}
        for thing in things:
            name = joined(thing.server, thing.shown or thing.own)
            found.setdefault(name, []).append((thing.server, thing.own))
        self.owners: Mapping[str, tuple[str, str]] = {
            name: of[0] for name, of in found.items() if len(of) == 1
        }
        self.names: Mapping[tuple[str, str], str] = {of: name for name, of in self.owners.items()}
        self.clashes: tuple[Clash, ...] = tuple(
            Clash(name, tuple(of)) for name, of in found.items() if len(of) > 1
        )

    def owner(self, name: str, what: str) -> tuple[str, str]:
        """The server and its own name of what is called so; ``what`` it is, for the error.

        Raises:
            Unknown: nothing is; the message has the nearest names.
        """
        found = self.owners.get(name)
        if found is not None:
            return found
        import difflib  # only for those who mistype

        near = ", ".join(difflib.get_close_matches(name[:LONGEST], self.owners, 3, 0.5))
        raise Unknown(f"there is no {what} {name!r}" + (f"; near it: {near}" if near else ""))
