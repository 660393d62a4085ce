"""Context pieces, which a model may be given to read: their ranking, and the manifest of what became of them."""

from collections.abc import Sequence
from math import log10
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from isthmus.search.synonyms import STOPWORDS
from isthmus.search.tool_index import WORD, split_words

# pinned by the user, a server's instructions, a resource, a prompt, a link that a tool gave, or
# what an app wants the model to know
PieceKind: TypeAlias = Literal["pinned", "instructions", "resource", "prompt", "link", "app"]


PINNED_SCORE = 100.0
# of the server's priority, the words of the query, the age, the length
PRIORITY_WEIGHT, RELEVANCE_WEIGHT, RECENCY_WEIGHT, SIZE_WEIGHT = 4.0, 3.0, 1.0, 0.5
DEFAULT_PRIORITY = 0.5  # of a piece without a priority
MAX_QUERY_WORDS = 24
LARGE_TEXT_CHARS = 100_000  # the penalty for length is whole from here on


class ContextPiece(Struct, frozen=True, kw_only=True):
    """A piece that a context may include.

    Attributes:
        server: whose it is.
        uri: what it is called there; for instructions and prompts their own word.
        text: what there is to read.
        kind: where it comes from; what is pinned comes first.
        title: for people.
        mime_type: what kind of text, or of other data.
        media: whether it is a picture or sound, whose ``text`` is base64.
        priority: what the server says of its importance, from 0 to 1; None where it says nothing.
        audience: whom the server means it for; empty for anybody.
        modified: when it changed, in seconds since the epoch; None where nobody says.
    """

    server: str
    uri: str
    text: str
    kind: PieceKind = "resource"
    title: str = ""
    mime_type: str = "text/plain"
    media: bool = False
    priority: float | None = None
    audience: tuple[str, ...] = ()
    modified: float | None = None


class PlacedPiece(Struct, frozen=True, kw_only=True):
    """The outcome of one piece.

    Attributes:
        server, uri, title, kind: which it is.
        state: whole, in part, or not at all.
        tokens: what it takes with its frame.
        of: what it would have taken whole; 0 where that was not counted.
        reason: why.
        score: what it was ranked by.
    """

    server: str
    uri: str
    title: str
    kind: PieceKind
    state: Literal["included", "truncated", "dropped"]
    tokens: int = 0
    of: int = 0
    reason: str = ""
    score: float = 0.0


class ContextManifest(Struct, frozen=True, kw_only=True):
    """A list of every piece and its outcome, in the order of rank.

    Attributes:
        placed: every candidate.
        tokens: what is included takes in all.
        budget: what there was.
        counter: how tokens were counted.
    """

    placed: tuple[PlacedPiece, ...]
    tokens: int
    budget: int
    counter: str

    def __str__(self) -> str:
        lines = [f"{self.tokens} of {self.budget} tokens ({self.counter})"]
        lines += [
            f"{one.state:9} {one.tokens:6}  {one.server} {one.uri}: {one.reason}"
            for one in self.placed
        ]
        return "\n".join(lines)


def rank_pieces(pieces: Sequence[ContextPiece], query: str) -> list[tuple[ContextPiece, float]]:
    """Rank the pieces, the best first, with their scores.

    What is pinned comes before all else, then the best piece of each server, so that none is left
    without, then the others. The budget has no part in it: a larger one never reorders anything.
    """
    fit = compute_relevance([piece.text for piece in pieces], query)
    new = compute_recency(pieces)
    scored = [
        (piece, score_piece(piece, fit[place], new[place])) for place, piece in enumerate(pieces)
    ]
    scored.sort(key=lambda one: (-one[1], one[0].server, one[0].uri, one[0].text))
    first: list[tuple[ContextPiece, float]] = []
    rest: list[tuple[ContextPiece, float]] = []
    served: set[str] = set()
    for one in scored:
        pinned, server = one[0].kind == "pinned", one[0].server
        (first if pinned or server not in served else rest).append(one)
        served.add(server)
    first.sort(key=lambda one: one[0].kind != "pinned")
    return first + rest


def score_piece(piece: ContextPiece, fit: float, new: float) -> float:
    """Score a piece by its priority, relevance, age and length."""
    priority = DEFAULT_PRIORITY if piece.priority is None else min(1.0, max(0.0, piece.priority))
    length = min(1.0, log10(1 + len(piece.text)) / log10(LARGE_TEXT_CHARS))
    said = (
        PRIORITY_WEIGHT * priority
        + RELEVANCE_WEIGHT * fit
        + RECENCY_WEIGHT * new
        - SIZE_WEIGHT * length
    )
    return round(said + (PINNED_SCORE if piece.kind == "pinned" else 0.0), 6)


def compute_recency(pieces: Sequence[ContextPiece]) -> list[float]:
    """Compute how new each piece is, from 0 for the oldest to 1 for the newest."""
    known = [piece.modified for piece in pieces if piece.modified is not None]
    if not known:
        return [0.0] * len(pieces)
    oldest, newest = min(known), max(known)
    span = newest - oldest
    return [
        0.0 if one.modified is None else 1.0 if not span else (one.modified - oldest) / span
        for one in pieces
    ]


def compute_relevance(texts: Sequence[str], query: str) -> list[float]:
    """Compute how well each text fits a query, from 0 for not at all to 1 for the best."""
    asked = [word for word in WORD.findall(split_words(query).lower()) if word not in STOPWORDS]
    asked = list(dict.fromkeys(asked))[:MAX_QUERY_WORDS]
    if not asked or not texts:
        return [0.0] * len(texts)
    import sqlite3  # not needed unless there is a query

    db: Any = sqlite3.connect(":memory:")
    try:
        db.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'porter unicode61')")
        rows = ((number, split_words(text)) for number, text in enumerate(texts))
        db.executemany("INSERT INTO texts(rowid, text) VALUES (?, ?)", rows)
        sql = "SELECT rowid, bm25(texts) FROM texts WHERE texts MATCH ?"
        found = dict(db.execute(sql, (" OR ".join(f'"{word}"' for word in asked),)).fetchall())
    finally:
        db.close()
    best = min(found.values(), default=0.0)  # bm25 of SQLite is the better the lower
    return [found[place] / best if place in found and best else 0.0 for place in range(len(texts))]
