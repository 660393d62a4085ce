"""A corpus for the search of tools: four hundred tools of forty servers, and queries for them."""

from pathlib import Path

from msgspec import UNSET

from isthmus.host.catalog.names import make_name
from isthmus.wire import Tool

__all__ = [
    "find_misses",
    "load_held_out",
    "load_queries",
    "load_real_held_out",
    "load_real_tools",
    "load_real_tuned",
    "load_tools",
    "load_tuned",
    "measure_recall",
]  # fmt: skip

FOLDER = Path(__file__).parents[2] / "host" / "catalog" / "shelf"


def lines(name):
    """The lines of a file that say something."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("# ")]


def load_tools():
    """The tools of each server, under the names that they have in a catalog."""
    servers = {}
    for line in lines("tools.txt"):
        if line.startswith("## "):
            server, tools = line.removeprefix("## "), []
            servers[server] = tools
        else:
            name, description, parameters = (part.strip() for part in line.split("|"))
            tools.append((make_name(server, name), tool(name, description, parameters)))
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


def load_queries():
    """Queries, each with the tools that would do."""
    found = []
    for line in lines("queries.txt"):
        query, names = line.split(" => ")
        found.append((query, tuple(names.split(" / "))))
    return found


def load_held_out():
    """A third of it, at which nobody looked while words and weights were chosen."""
    return load_queries()[2::3]


def load_tuned():
    """The rest."""
    return [one for place, one in enumerate(load_queries()) if place % 3 != 2]


def find_misses(index, queries, limit=5):
    """The queries for which none of the right tools is among the first five, with what is."""
    found = []
    for query, right in queries:
        names = index.search(query, limit=limit).names
        if not set(names) & set(right):
            found.append((query, right, names))
    return found


def load_real_tools(descriptions=None):
    """The tools of real servers, under the names that they have in a catalog.

    ``descriptions`` has a text by the name in a catalog, as tools/tool_facts.py writes them; without
    them a tool is its name and its parameters.
    """
    servers = {}
    for line in lines("real_tools.txt"):
        before, _, after = (part.strip() for part in line.partition("|"))
        if line.startswith("## "):
            server, tools = before.removeprefix("## "), []
            servers[server] = tools
        else:
            name = make_name(server, before)
            tools.append((name, tool(before, (descriptions or {}).get(name, ""), after)))
    return servers


def load_real_tuned():
    """Queries about some servers: words and weights are chosen by them."""
    return _real(0)


def load_real_held_out():
    """Queries about other servers."""
    return _real(1)


def _real(part):
    text = (FOLDER / "real_queries.txt").read_text(encoding="utf-8")
    parts = text.partition("# chosen by\n")[2].split("# held out\n")
    found = [line.split(" => ") for line in parts[part].splitlines() if line]
    return [(query, tuple(names.split(" / "))) for query, names in found]


def measure_recall(index, queries):
    """Recall at 1 and at 5, and the mean reciprocal rank among the first ten."""
    ranks = []
    for query, right in queries:
        names = index.search(query, limit=10).names
        ranks.append(next((place for place, name in enumerate(names, 1) if name in right), 0))
    first, five = (sum(0 < rank <= most for rank in ranks) for most in (1, 5))
    mean = sum(1 / rank for rank in ranks if rank)
    return tuple(each / len(ranks) for each in (first, five, mean))
