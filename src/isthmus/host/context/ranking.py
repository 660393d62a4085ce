"""Which of many candidates comes first: the same answer every time, whatever the budget."""

from collections.abc import Sequence
from math import log10
from typing import Any

from isthmus.host.catalog.search import WORD, words
from isthmus.host.catalog.synonyms import STOPWORDS
from isthmus.host.context.piece import Piece

__all__ = ["ranked", "relevance"]

PINNED = 100.0
PRIORITY, RELEVANCE, RECENCY, SIZE = 4.0, 3.0, 1.0, 0.5
"""How much each counts: what the server says, the words of the query, how new it is, how long."""

UNSAID = 0.5
"""The priority of what no server said anything about."""

MOST_WORDS = 24
LARGE = 100_000
"""Characters at which the penalty for length is whole."""


def ranked(pieces: Sequence[Piece], query: str) -> list[tuple[Piece, float]]:
    """The candidates with their scores, the best first.

    What is pinned comes before all else, then the best piece of each server, so that none is left
    without, then the others. The budget has no part in it: a larger one never reorders anything.
    """
    fit = relevance([piece.text for piece in pieces], query)
    new = recency(pieces)
    scored = [(piece, score(piece, fit[place], new[place])) for place, piece in enumerate(pieces)]
    scored.sort(key=lambda one: (-one[1], one[0].server, one[0].uri, one[0].text))
    first: list[tuple[Piece, float]] = []
    rest: list[tuple[Piece, float]] = []
    served: set[str] = set()
    for one in scored:
        pinned, server = one[0].kind == "pinned", one[0].server
        (first if pinned or server not in served else rest).append(one)
        served.add(server)
    first.sort(key=lambda one: one[0].kind != "pinned")
    return first + rest


def score(piece: Piece, fit: float, new: float) -> float:
    """How much one would want a piece to be read."""
    priority = UNSAID if piece.priority is None else min(1.0, max(0.0, piece.priority))
    length = min(1.0, log10(1 + len(piece.text)) / log10(LARGE))
    said = PRIORITY * priority + RELEVANCE * fit + RECENCY * new - SIZE * length
    return round(said + (PINNED if piece.kind == "pinned" else 0.0), 6)


def recency(pieces: Sequence[Piece]) -> list[float]:
    """How new each is among those that say it: from 0 for the oldest to 1 for the newest."""
    known = [piece.modified for piece in pieces if piece.modified is not None]
    if not known:
        return [0.0] * len(pieces)
    oldest, newest = min(known), max(known)
    span = newest - oldest
    return [
        0.0 if one.modified is None else 1.0 if not span else (one.modified - oldest) / span
        for one in pieces
    ]


def relevance(texts: Sequence[str], query: str) -> list[float]:
    """How well each text fits a query, from 0 for not at all to 1 for the best of them."""
    asked = [word for word in WORD.findall(words(query).lower()) if word not in STOPWORDS]
    asked = list(dict.fromkeys(asked))[:MOST_WORDS]
    if not asked or not texts:
        return [0.0] * len(texts)
    import sqlite3  # not needed unless there is a query

    db: Any = sqlite3.connect(":memory:")
    try:
        db.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'porter unicode61')")
        rows = ((number, words(text)) for number, text in enumerate(texts))
        db.executemany("INSERT INTO texts(rowid, text) VALUES (?, ?)", rows)
        sql = "SELECT rowid, bm25(texts) FROM texts WHERE texts MATCH ?"
        found = dict(db.execute(sql, (" OR ".join(f'"{word}"' for word in asked),)).fetchall())
    finally:
        db.close()
    best = min(found.values(), default=0.0)  # bm25 of SQLite is the better the lower
    return [found[place] / best if place in found and best else 0.0 for place in range(len(texts))]
