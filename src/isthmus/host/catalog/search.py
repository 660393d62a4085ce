"""Tools found by what they are for: one full-text index over all servers.

The index is SQLite's FTS5, in memory. What a tool is called counts most, then its title, its server,
its description, and the names of its parameters. Which tools somebody may see is asked at the time
of the search, so that one index serves everybody.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from isthmus.host.catalog.synonyms import GROUPS, STOPWORDS
from isthmus.wire import Tool

if TYPE_CHECKING:
    import sqlite3

__all__ = ["Found", "ToolIndex"]

CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
WORD = re.compile(r"[^\W_]+")
MOST_WORDS = 24
"""Words of a query that are looked for."""

MOST_TEXT = 4_000
"""Characters of a description that are indexed: a longer one is not better found for it."""

ENDINGS = ("s", "es", "ed", "ing", "d")
CLOSE = 0.78
"""How alike a word must be to one that is there, to be taken for a slip of the keyboard."""

DEPTH = 20
SYNONYM = 0.6
"""How much a tool gains from its rank among all, and how much less from words of like meaning."""

WEIGHTS = "INSERT INTO tools(tools, rank) VALUES ('rank', 'bm25(10.0, 5.0, 3.0, 2.0, 1.0)')"
"""How much a word counts in each column: name, title, server, description, parameters."""


class Found(Struct, frozen=True):
    """What a search came to.

    Attributes:
        names: the best, best first.
        total: how many there were.
        instead: words that were taken for others: what was asked for, and what was looked for.
    """

    names: tuple[str, ...]
    total: int
    instead: Mapping[str, str] = {}


class ToolIndex:
    """The index; it lives as long as this object, and is used from one thread."""

    def __init__(self) -> None:
        self._db: sqlite3.Connection | None = None
        self._names: dict[int, tuple[str, str]] = {}
        self._rows: dict[str, list[int]] = {}
        self._known: dict[str, int] = {}
        self._next = 1

    def __len__(self) -> int:
        return len(self._names)

    def close(self) -> None:
        """Let go of it."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def replace(self, server: str, tools: Iterable[tuple[str, Tool]]) -> None:
        """Put the tools of a server in place of those that it had.

        Args:
            server: whose they are.
            tools: the name that each is found under, and its definition.
        """
        db = self._open()
        self.remove(server)
        rows = self._rows[server] = []
        for name, tool in tools:
            texts = (*texts_of(name, tool), words(server))
            self._names[self._next] = (name, server)
            rows.append(self._next)
            sql = "INSERT INTO tools(rowid, name, title, description, params, server) VALUES (?,?,?,?,?,?)"
            db.execute(sql, (self._next, *texts))
            for word in {word for text in texts for word in WORD.findall(text.lower())}:
                self._known[word] = self._known.get(word, 0) + 1
            self._next += 1

    def remove(self, server: str) -> None:
        """Forget the tools of a server."""
        db = self._open()
        for row in self._rows.pop(server, ()):
            found = db.execute("SELECT * FROM tools WHERE rowid = ?", (row,)).fetchone()
            for word in {word for text in found for word in WORD.findall(text.lower())}:
                self._known[word] -= 1
                if not self._known[word]:
                    del self._known[word]
            db.execute("DELETE FROM tools WHERE rowid = ?", (row,))
            del self._names[row]

    def search(
        self,
        query: str,
        *,
        server: str | None = None,
        limit: int = 5,
        visible: Callable[[str], bool] = lambda _name: True,
    ) -> Found:
        """The tools that fit a query best.

        Args:
            query: what one wants to do, in words.
            server: only those of this one.
            limit: how many at most.
            visible: whether somebody may know of a tool, by its name.
        """
        asked = [word for word in WORD.findall(words(query).lower()) if word not in STOPWORDS]
        asked = list(dict.fromkeys(asked))[:MOST_WORDS]
        instead = {word: other for word in asked if (other := self._slip(word)) is not None}
        asked = [instead.get(word, word) for word in asked]
        if not asked:
            return Found((), 0)
        allowed: dict[int, bool] = {}

        def may(row: int) -> bool:
            name, of = self._names[row]
            if row not in allowed:
                allowed[row] = (server is None or of == server) and visible(name)
            return allowed[row]

        plain = [row for row in self._match([[word] for word in asked]) if may(row)]
        wide = [row for row in self._match([alike(word) for word in asked]) if may(row)]
        score: dict[int, float] = dict.fromkeys(wide, 0.0)
        for weight, rows in ((1.0, plain), (SYNONYM, wide)):
            for rank, row in enumerate(rows):
                score[row] = score.get(row, 0.0) + weight / (DEPTH + rank)
        best = sorted(score, key=lambda row: (-score[row], self._names[row]))
        return Found(tuple(self._names[row][0] for row in best[:limit]), len(best), instead)

    def _match(self, groups: list[list[str]]) -> list[int]:
        """The rows that have a word of some group, the best first."""
        query = " OR ".join(f'"{word}"' for group in groups for word in group)
        sql = "SELECT rowid FROM tools WHERE tools MATCH ? ORDER BY rank"
        return [row for (row,) in self._open().execute(sql, (query,))]

    def _slip(self, word: str) -> str | None:
        """The word that was meant, where nothing has this one; None where it is as it should be."""
        if any(form in self._known for one in alike(word) for form in forms(one)) or len(word) < 4:
            return None
        near = [known for known in self._known if abs(len(known) - len(word)) <= 2]
        return next(iter(get_close_matches(word, near, n=1, cutoff=CLOSE)), None)

    def _open(self) -> "sqlite3.Connection":
        if self._db is None:
            import sqlite3  # not needed until there is something to search

            self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            self._db.execute(
                "CREATE VIRTUAL TABLE tools USING fts5(name, title, server, description, params, "
                "tokenize = 'porter unicode61')"
            )
            self._db.execute(WEIGHTS)
        return self._db


def words(text: str) -> str:
    """Text in which the words of ``camelCase`` and ``snake_case`` stand alone."""
    return CAMEL.sub(" ", text).replace("_", " ")


def texts_of(name: str, tool: Tool) -> tuple[str, str, str, str]:
    """What is indexed of a tool: its name, title, description and parameters."""
    annotations = tool.annotations
    title = tool.title or (annotations.title if annotations is not UNSET else UNSET) or ""
    own = f"{name.partition('__')[2] or name} {tool.name}"
    return (
        words(own[:MOST_TEXT]),
        words(title[:MOST_TEXT]),
        words((tool.description or "")[:MOST_TEXT]),
        words(parameters(tool.input_schema)[:MOST_TEXT]),
    )


def parameters(schema: Any) -> str:
    """The names of a tool's parameters, and what is said of them."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return ""
    said = []
    for name, one in properties.items():
        about = one.get("description") if isinstance(one, Mapping) else None
        said.append(f"{name} {about[:200]}" if isinstance(about, str) else str(name))
    return " ".join(said)


def forms(word: str) -> list[str]:
    """A word, and what it may be without its ending."""
    cut = [
        word.removesuffix(end) for end in ENDINGS if word.endswith(end) and len(word) > len(end) + 2
    ]
    return [word, *cut, *(f"{one}e" for one in cut)]


def alike(word: str) -> list[str]:
    """A word and those of like meaning."""
    for form in forms(word):
        group = ALIKE.get(form)
        if group is not None:
            return list(dict.fromkeys((word, *group)))
    return [word]


ALIKE: Mapping[str, tuple[str, ...]] = {
    word: tuple(dict.fromkeys(other for group in GROUPS if word in group for other in group))
    for word in {word for group in GROUPS for word in group}
}
