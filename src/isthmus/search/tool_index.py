"""Tool search: one ranked index over all servers (BM25F).

A tool is five fields: its name, its title, its server, its description and its parameters. A word counts
by the fields in which it stands and by how rare it is, each field by its own weight and length. Each
word of a query counts once, by itself or by one of like meaning; a tool that has more of the words is
ahead, and so is one whose server is about them. Which tools somebody may see is asked at the time of
the search, so that one index serves everybody.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from heapq import nlargest, nsmallest
from typing import Any, TypeAlias

from msgspec import UNSET, Struct

from isthmus.search.synonyms import SMALL_TALK, STOPWORDS, SYNONYM_GROUPS
from isthmus.wire import Tool

CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
WORD = re.compile(r"[^\W_]+")
MAX_QUERY_WORDS = 24
MAX_INDEXED_CHARS = 4_000  # a longer description is not better found for it
ENDINGS = ("s", "es", "ed", "ing", "d")
MIN_SIMILARITY = 0.78  # of a mistyped word to one in the index
FIRST_LETTER_PENALTY = 0.1  # few people mistype a first letter

# letters of a word that can have slips, that can have two, and that has none
MIN_SLIP_CHARS, MIN_TWO_SLIPS_CHARS, MAX_SLIP_CHARS = 4, 8, 30
SYNONYM_WEIGHT = 0.55  # beside 1 for the word itself
MAX_TOOLS_PER_WORD = 150  # the best of those that have it
MAX_CACHED_WORDS = 4_000
FIELD_WEIGHTS = (8.0, 3.0, 1.0, 1.0, 0.3)  # name, title, server, description, parameters
FIELD_LENGTH_WEIGHTS = (0.8, 0.8, 0.0, 0.9, 0.9)  # BM25's b: how much less a longer field counts
SATURATION = 1.2  # BM25's k1: how soon more of the same word counts no more
COVERAGE_EXPONENT = 0.75  # how much a tool loses that has few of the words
SERVER_WEIGHT = 0.5  # of a word that the server is about
COMMON_SHARE = 0.3  # share of a server's tools at which a word counts half for the server

ToolGroup: TypeAlias = tuple[str, str]  # a server, and the isolation key of the connection


class SearchResult(Struct, frozen=True):
    """The result of a search.

    Attributes:
        names: the best, best first.
        total: how many there were.
        instead: words that were taken for others: what was asked for, and what was looked for.
    """

    names: tuple[str, ...]
    total: int
    instead: Mapping[str, str] = {}


class IndexedTool(Struct, frozen=True):
    """One tool of the index: its name, its server, whose connection, and the texts of its fields."""

    name: str
    server: str
    isolation: str
    texts: tuple[str, ...]


class ToolIndex:
    """An index of tools; it lives as long as this object, and is used from one thread."""

    def __init__(self) -> None:
        self._entries: dict[int, IndexedTool] = {}
        self._rows: dict[ToolGroup, list[int]] = {}
        self._postings: dict[str, dict[int, tuple[int, ...]]] = {}
        self._spread: dict[str, dict[ToolGroup, int]] = {}
        self._lengths: dict[int, tuple[int, ...]] = {}
        self._sums = [0] * len(FIELD_WEIGHTS)
        self._known: dict[str, int] = {}
        self._slips: dict[str, set[str]] = {}
        self._scores: dict[str, dict[int, float]] = {}
        self._servers: dict[str, Mapping[ToolGroup, float]] = {}
        self._next = 1

    def __len__(self) -> int:
        return len(self._entries)

    def close(self) -> None:
        """Empty the index."""
        for held in (self._entries, self._rows, self._postings, self._spread, self._lengths):
            held.clear()
        for kept in (self._known, self._slips, self._scores, self._servers):
            kept.clear()
        self._sums = [0] * len(FIELD_WEIGHTS)

    def replace(
        self, server: str, tools: Iterable[tuple[str, Tool]], *, isolation: str = ""
    ) -> None:
        """Replace the tools of a server."""
        self.remove(server, isolation=isolation)
        rows = self._rows[server, isolation] = []
        for name, tool in tools:
            entry = IndexedTool(name, server, isolation, make_fields(name, tool, server))
            self._entries[self._next] = entry
            rows.append(self._next)
            self._add(self._next, entry)
            self._next += 1

    def _add(self, row: int, entry: IndexedTool) -> None:
        counts = [Counter(stem_words(text)) for text in entry.texts]
        self._lengths[row] = tuple(count.total() for count in counts)
        for field, length in enumerate(self._lengths[row]):
            self._sums[field] += length
        group = entry.server, entry.isolation
        for stem in set().union(*counts):
            self._postings.setdefault(stem, {})[row] = tuple(count[stem] for count in counts)
            spread = self._spread.setdefault(stem, {})
            spread[group] = spread.get(group, 0) + 1
        for word in collect_words(entry.texts):
            self._add_word(word)

    def remove(self, server: str, *, isolation: str = "") -> None:
        """Remove the tools of a server."""
        self._scores.clear()
        self._servers.clear()
        for row in self._rows.pop((server, isolation), ()):
            entry = self._entries.pop(row)
            for field, length in enumerate(self._lengths.pop(row)):
                self._sums[field] -= length
            for stem in {stem for text in entry.texts for stem in stem_words(text)}:
                self._remove_stem(stem, row, (server, isolation))
            for word in collect_words(entry.texts):
                self._remove_word(word)

    def _remove_stem(self, stem: str, row: int, group: ToolGroup) -> None:
        postings, spread = self._postings[stem], self._spread[stem]
        del postings[row]
        spread[group] -= 1
        if not spread[group]:
            del spread[group]
        if not postings:
            del self._postings[stem], self._spread[stem]

    def search(
        self,
        query: str,
        *,
        server: str | None = None,
        limit: int = 5,
        visible: Callable[[str], bool] = lambda _name: True,
        isolations: Mapping[str, str] | None = None,
    ) -> SearchResult:
        """The tools that fit a query best.

        Args:
            query: what one wants to do, in words.
            server: only those of this one.
            limit: how many at most.
            visible: whether somebody may know of a tool, by its name.
            isolations: whose connection to use, by server; None for the shared ones of all.
        """
        asked = parse_query(query)
        instead = {word: other for word in asked if (other := self._correct(word)) is not None}
        score = self._rank([instead.get(word, word) for word in asked])
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
        return SearchResult(tuple(entries[row].name for row in best), len(rows), instead)

    def _rank(self, asked: list[str]) -> dict[int, float]:
        """Score each tool by all words together."""
        score: dict[int, float] = {}
        hits: dict[int, int] = {}
        about: dict[ToolGroup, float] = {}
        for word in asked:
            for row, much in self._score_with_synonyms(word).items():
                score[row] = score.get(row, 0.0) + much
                hits[row] = hits.get(row, 0) + 1
            for group, much in self._score_servers(stem_word(word)).items():
                about[group] = about.get(group, 0.0) + much
        entries = self._entries
        for row in score:
            entry = entries[row]
            score[row] *= (hits[row] / len(asked)) ** COVERAGE_EXPONENT
            score[row] += SERVER_WEIGHT * about.get((entry.server, entry.isolation), 0.0)
        return score

    def _score_servers(self, stem: str) -> Mapping[ToolGroup, float]:
        """Score each server by how much its tools have to do with a word."""
        found = self._servers.get(stem)
        if found is None:
            spread = self._spread.get(stem, {})
            rarity, rows = compute_rarity(len(spread), len(self._rows)), self._rows
            shares = {group: times / len(rows[group]) for group, times in spread.items()}
            found = self._servers[stem] = {
                group: rarity * share / (share + COMMON_SHARE) for group, share in shares.items()
            }
        return found

    def _score_with_synonyms(self, word: str) -> dict[int, float]:
        """Score each tool by a word, or by the best of its synonyms."""
        own, *others = find_synonyms(word)
        found = dict(self._get_scores(stem_word(own)))
        for other in others:
            for row, much in self._get_scores(stem_word(other)).items():
                if much * SYNONYM_WEIGHT > found.get(row, 0.0):
                    found[row] = much * SYNONYM_WEIGHT
        return found

    def _get_scores(self, stem: str) -> dict[int, float]:
        """Score each tool by exactly this word."""
        found = self._scores.get(stem)
        if found is None:
            if len(self._scores) >= MAX_CACHED_WORDS:
                self._scores.clear()
                self._servers.clear()
            found = self._scores[stem] = self._compute_scores(stem)
        return found

    def _compute_scores(self, stem: str) -> dict[int, float]:
        postings, total = self._postings.get(stem, {}), len(self._entries)
        rarity = compute_rarity(len(postings), total)
        means = [max(1.0, of_all / max(1, total)) for of_all in self._sums]
        found: dict[int, float] = {}
        for row, times in postings.items():
            weight = 0.0
            for field, often in enumerate(times):
                if often:
                    longer = self._lengths[row][field] / means[field]
                    weight += (
                        FIELD_WEIGHTS[field]
                        * often
                        / (1 + FIELD_LENGTH_WEIGHTS[field] * (longer - 1))
                    )
            found[row] = rarity * weight / (SATURATION + weight)
        if len(found) > MAX_TOOLS_PER_WORD:
            found = dict(
                nlargest(MAX_TOOLS_PER_WORD, found.items(), key=lambda one: (one[1], -one[0]))
            )
        return found

    # Mistyped words

    def _add_word(self, word: str) -> None:
        times = self._known[word] = self._known.get(word, 0) + 1
        if times == 1:
            for slip in make_deletions(word):
                self._slips.setdefault(slip, set()).add(word)

    def _remove_word(self, word: str) -> None:
        self._known[word] -= 1
        if self._known[word]:
            return
        del self._known[word]
        for slip in make_deletions(word):
            self._slips[slip].discard(word)
            if not self._slips[slip]:
                del self._slips[slip]

    def _correct(self, word: str) -> str | None:
        """Find the word that a mistyped one means; None where it is no slip."""
        if any(form in self._known for one in find_synonyms(word) for form in strip_endings(one)):
            return None
        near: set[str] = set()
        for slip in make_deletions(word):
            near |= self._slips.get(slip, set())
            if len(word) >= MIN_TWO_SLIPS_CHARS:
                near.update(
                    one for less in make_deletions(slip) for one in self._slips.get(less, ())
                )
        matcher = SequenceMatcher(b=word, autojunk=False)
        best, found = MIN_SIMILARITY, None
        for one in sorted(near):
            matcher.set_seq1(one)
            ratio = matcher.ratio() - (FIRST_LETTER_PENALTY if one[0] != word[0] else 0.0)
            if ratio > best:
                best, found = ratio, one
        return found


def split_words(text: str) -> str:
    """Split ``camelCase`` and ``snake_case`` into words, without accents."""
    if not text.isascii():
        apart = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in apart if unicodedata.category(c) != "Mn")
    return CAMEL.sub(" ", text).replace("_", " ")


def make_fields(name: str, tool: Tool, server: str) -> tuple[str, ...]:
    """Make the indexed fields of a tool: name, title, server, description and parameters."""
    annotations = tool.annotations
    title = tool.title or (annotations.title if annotations is not UNSET else UNSET) or ""
    given = name.partition("__")[2] or name
    own = tool.name if given == tool.name else f"{given} {tool.name}"
    return (
        split_words(own[:MAX_INDEXED_CHARS]),
        split_words(title[:MAX_INDEXED_CHARS]),
        split_words(server),
        split_words((tool.description or "")[:MAX_INDEXED_CHARS]),
        split_words(describe_parameters(tool.input_schema)[:MAX_INDEXED_CHARS]),
    )


def stem_words(text: str) -> list[str]:
    """Stem the words of a text, each as often as it stands there."""
    return [stem_word(word) for word in WORD.findall(text.lower())]


@lru_cache(maxsize=20_000)
def stem_word(word: str) -> str:
    """Cut the commonest endings of English off a word: plural, past and the form in -ing."""
    if len(word) < MIN_SLIP_CHARS or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > MIN_SLIP_CHARS:
        word = f"{word[:-3]}y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        cut = word.removesuffix(ending)
        if cut != word and len(cut) > 2 and not VOWELS.isdisjoint(cut):
            word = cut[:-1] if cut[-1] == cut[-2] and cut[-1] not in "lsz" else cut
            break
    if len(word) >= MIN_SLIP_CHARS and word.endswith("e"):
        word = word[:-1]
    return f"{word[:-1]}i" if len(word) >= MIN_SLIP_CHARS and word.endswith("y") else word


def compute_rarity(having: int, total: int) -> float:
    """Compute the rarity of a word (BM25's inverse document frequency)."""
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def parse_query(query: str) -> list[str]:
    """Parse a query into its telling words; those of small talk where there are no others."""
    said = [word for word in WORD.findall(split_words(query).lower()) if word not in STOPWORDS]
    meant = [word for word in said if word not in SMALL_TALK] or said
    return list(dict.fromkeys(meant))[:MAX_QUERY_WORDS]


def collect_words(texts: Iterable[str]) -> set[str]:
    """Collect the words of some texts."""
    return {word for text in texts for word in WORD.findall(text.lower())}


def make_deletions(word: str) -> set[str]:
    """Make a word with one letter less in all ways: two words that differ by a slip share one."""
    if not MIN_SLIP_CHARS <= len(word) <= MAX_SLIP_CHARS:
        return set()
    return {word, *(word[:place] + word[place + 1 :] for place in range(len(word)))}


def describe_parameters(schema: Any) -> str:
    """Join the names and descriptions of a tool's parameters."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return ""
    said = []
    for name, one in properties.items():
        about = one.get("description") if isinstance(one, Mapping) else None
        said.append(f"{name} {about[:200]}" if isinstance(about, str) else str(name))
    return " ".join(said)


def strip_endings(word: str) -> list[str]:
    """Strip possible endings off a word."""
    cut = [
        word.removesuffix(end) for end in ENDINGS if word.endswith(end) and len(word) > len(end) + 2
    ]
    return [word, *cut, *(f"{one}e" for one in cut)]


def find_synonyms(word: str) -> list[str]:
    """Find a word's synonyms, the word first."""
    for form in strip_endings(word):
        group = SYNONYMS.get(form)
        if group is not None:
            return list(dict.fromkeys((word, *group)))
    return [word]


SYNONYMS: Mapping[str, tuple[str, ...]] = {
    word: tuple(
        dict.fromkeys(other for group in SYNONYM_GROUPS if word in group for other in group)
    )
    for word in {word for group in SYNONYM_GROUPS for word in group}
}

VOWELS = frozenset("aeiouy")
