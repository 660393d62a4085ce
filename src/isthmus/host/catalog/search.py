"""Tools found by what they are for: one full-text index over all servers.

The index is SQLite's FTS5, in memory. What a tool is called counts most, then its title, its server,
its description, and the names of its parameters. Each word of a query counts once, by itself or by
one of like meaning, and rare words count more than common ones. Which tools somebody may see is asked
at the time of the search, so that one index serves everybody.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher
from heapq import nsmallest
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

UNLIKELY = 0.1
"""How much less alike two words are that begin otherwise: few people mistype a first letter."""

SHORT, LONG, LONGEST = 4, 8, 30
"""Letters from which on a word can have slips, can have two, and has none that are looked for."""

OTHER_WORD = 0.55
"""How much a word of like meaning counts, beside the word itself."""

OF_A_WORD = 150
"""Tools that one word finds, at most: the best of those that have it."""

MOST_KEPT = 4_000
"""Words whose tools are kept between searches."""

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


class Entry(Struct, frozen=True):
    """One tool of the index: its name, its server, and whose connection it was learned on."""

    name: str
    server: str
    isolation: str


class ToolIndex:
    """The index; it lives as long as this object, and is used from one thread."""

    def __init__(self) -> None:
        self._db: sqlite3.Connection | None = None
        self._entries: dict[int, Entry] = {}
        self._rows: dict[tuple[str, str], list[int]] = {}
        self._known: dict[str, int] = {}
        self._slips: dict[str, set[str]] = {}
        self._scores: dict[str, dict[int, float]] = {}
        self._next = 1

    def __len__(self) -> int:
        return len(self._entries)

    def close(self) -> None:
        """Let go of it."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def replace(
        self, server: str, tools: Iterable[tuple[str, Tool]], *, isolation: str = ""
    ) -> None:
        """Put the tools of a server in place of those that it had.

        Args:
            server: whose they are.
            tools: the name that each is found under, and its definition.
            isolation: whose connection they were learned on.
        """
        db = self._open()
        self.remove(server, isolation=isolation)
        rows = self._rows[server, isolation] = []
        sql = "INSERT INTO tools(rowid, name, title, description, params, server) VALUES (?,?,?,?,?,?)"
        db.execute("BEGIN")
        for name, tool in tools:
            texts = (*texts_of(name, tool), words(server))
            self._entries[self._next] = Entry(name, server, isolation)
            rows.append(self._next)
            db.execute(sql, (self._next, *texts))
            for word in told(texts):
                self._learn(word)
            self._next += 1
        db.execute("COMMIT")

    def remove(self, server: str, *, isolation: str = "") -> None:
        """Forget the tools of a server."""
        self._scores.clear()
        db = self._open()
        for row in self._rows.pop((server, isolation), ()):
            found = db.execute("SELECT * FROM tools WHERE rowid = ?", (row,)).fetchone()
            for word in told(found):
                self._forget(word)
            db.execute("DELETE FROM tools WHERE rowid = ?", (row,))
            del self._entries[row]

    def search(
        self,
        query: str,
        *,
        server: str | None = None,
        limit: int = 5,
        visible: Callable[[str], bool] = lambda _name: True,
        isolations: Mapping[str, str] | None = None,
    ) -> Found:
        """The tools that fit a query best.

        Args:
            query: what one wants to do, in words.
            server: only those of this one.
            limit: how many at most.
            visible: whether somebody may know of a tool, by its name.
            isolations: whose connection to use, by server; None for the shared ones of all.
        """
        asked = [word for word in WORD.findall(words(query).lower()) if word not in STOPWORDS]
        asked = list(dict.fromkeys(asked))[:MOST_WORDS]
        instead = {word: other for word in asked if (other := self._slip(word)) is not None}
        score: dict[int, float] = {}
        for word in asked:
            for row, much in self._found(instead.get(word, word)).items():
                score[row] = score.get(row, 0.0) + much
        entries = self._entries
        rows = []
        for row in score:
            entry = entries[row]
            mine = "" if isolations is None else isolations.get(entry.server)
            if mine != entry.isolation or (server is not None and entry.server != server):
                continue
            if visible(entry.name):
                rows.append(row)
        best = nsmallest(max(0, limit), rows, key=lambda row: (-score[row], entries[row].name))
        return Found(tuple(entries[row].name for row in best), len(rows), instead)

    def _found(self, word: str) -> dict[int, float]:
        """How well each tool fits a word, by itself or by the best of those of like meaning."""
        own, *others = alike(word)
        found = dict(self._scored(own))
        for other in others:
            for row, much in self._scored(other).items():
                if much * OTHER_WORD > found.get(row, 0.0):
                    found[row] = much * OTHER_WORD
        return found

    def _scored(self, word: str) -> dict[int, float]:
        """How well each tool fits just this word; two words in one are next to one another."""
        found = self._scores.get(word)
        if found is None:
            if len(self._scores) >= MOST_KEPT:
                self._scores.clear()
            sql = "SELECT rowid, -rank FROM tools WHERE tools MATCH ? ORDER BY rank LIMIT ?"
            rows = self._open().execute(sql, (f'"{word}"', OF_A_WORD))
            found = self._scores[word] = dict(rows.fetchall())
        return found

    # Slips of the keyboard

    def _learn(self, word: str) -> None:
        times = self._known[word] = self._known.get(word, 0) + 1
        if times == 1:
            for slip in shorter(word):
                self._slips.setdefault(slip, set()).add(word)

    def _forget(self, word: str) -> None:
        self._known[word] -= 1
        if self._known[word]:
            return
        del self._known[word]
        for slip in shorter(word):
            self._slips[slip].discard(word)
            if not self._slips[slip]:
                del self._slips[slip]

    def _slip(self, word: str) -> str | None:
        """The word that was meant, where nothing has this one; None where it is as it should be."""
        if any(form in self._known for one in alike(word) for form in forms(one)):
            return None
        near: set[str] = set()
        for slip in shorter(word):
            near |= self._slips.get(slip, set())
            if len(word) >= LONG:
                near.update(one for less in shorter(slip) for one in self._slips.get(less, ()))
        matcher = SequenceMatcher(b=word, autojunk=False)
        best, found = CLOSE, None
        for one in sorted(near):
            matcher.set_seq1(one)
            ratio = matcher.ratio() - (UNLIKELY if one[0] != word[0] else 0.0)
            if ratio > best:
                best, found = ratio, one
        return found

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


def told(texts: Iterable[str]) -> set[str]:
    """The words of some texts."""
    return {word for text in texts for word in WORD.findall(text.lower())}


def shorter(word: str) -> set[str]:
    """A word, and the same without one of its letters: two that differ by a slip share one of these."""
    if not SHORT <= len(word) <= LONGEST:
        return set()
    return {word, *(word[:place] + word[place + 1 :] for place in range(len(word)))}


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
