"""Some four hundred tools of forty servers, and what people who want one of them might say."""

from pathlib import Path

from msgspec import UNSET

from isthmus.host.catalog.names import joined
from isthmus.wire import Tool

__all__ = ["asked", "held_out", "misses", "shelf", "tuned"]

FOLDER = Path(__file__).parent / "host" / "catalog" / "shelf"


def lines(name):
    """The lines of a file that say something."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("# ")]


def shelf():
    """The tools of each server, under the names that they have in a catalog."""
    servers = {}
    for line in lines("tools.txt"):
        if line.startswith("## "):
            server, tools = line.removeprefix("## "), []
            servers[server] = tools
        else:
            name, description, parameters = (part.strip() for part in line.split("|"))
            tools.append((joined(server, name), tool(name, description, parameters)))
    return servers


def tool(name, description, parameters):
    """One tool as its line says."""
    members, needed = {}, []
    for part in filter(None, (part.strip() for part in parameters.split(", "))):
        word, _, about = part.partition(": ")
        own = word.rstrip("*")
        members[own] = {"type": "string", **({"description": about} if about else {})}
        if word.endswith("*"):
            needed.append(own)
    schema = {"type": "object", "properties": members, "required": needed}
    return Tool(name=name, description=description or UNSET, input_schema=schema)


def asked():
    """What somebody says, and the tools that would do."""
    found = []
    for line in lines("queries.txt"):
        query, names = line.split(" => ")
        found.append((query, tuple(names.split(" / "))))
    return found


def held_out():
    """A third of it, at which nobody looked while words and weights were chosen."""
    return asked()[2::3]


def tuned():
    """The rest."""
    return [one for place, one in enumerate(asked()) if place % 3 != 2]


def misses(index, queries, limit=5):
    """The queries for which none of the right tools is among the first five, with what is."""
    found = []
    for query, right in queries:
        names = index.search(query, limit=limit).names
        if not set(names) & set(right):
            found.append((query, right, names))
    return found
