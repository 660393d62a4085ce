"""Globs: ``*`` is any text, ``?`` one character, everything else is itself."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

__all__ = ["Globs", "literal_prefix", "overlaps", "weight"]

_WILD = re.compile(r"[*?]")


def literal_prefix(glob: str) -> str:
    """What every text begins with that the glob fits."""
    return _WILD.split(glob, maxsplit=1)[0]


def weight(glob: str) -> int:
    """How much a glob says: the length of its literal prefix, and one more for a whole text."""
    prefix = literal_prefix(glob)
    return len(prefix) + (prefix == glob)


@lru_cache(maxsize=4096)
def _compiled(glob: str) -> Callable[[str], object]:
    """What says whether the whole of a text fits, in time that grows with both lengths' product.

    Each part after a ``*`` is taken at its first place and not tried again, which is enough for
    globs: a later place leaves less text for what follows.
    """
    first, *parts = re.sub(r"\*+", "*", glob).split("*")
    if not parts and "?" not in first:
        return first.__eq__
    *middle, last = [_literal(part) for part in parts] or [""]
    pattern = _literal(first)
    if parts:
        pattern += "".join(f"(?>.*?{part})" for part in middle) + f".*{last}"
    return re.compile(pattern, re.DOTALL).fullmatch


def _literal(part: str) -> str:
    return "".join("." if c == "?" else re.escape(c) for c in part)


class Globs:
    """Several globs, any of which may fit.

    Args:
        globs: the one that says most counts, where several fit.
    """

    __slots__ = ("_tests",)

    def __init__(self, globs: Sequence[str]) -> None:
        self._tests = tuple(
            (weight(glob), _compiled(glob)) for glob in sorted(globs, key=weight, reverse=True)
        )

    def fits(self, text: str) -> bool:
        """Whether one of them does."""
        return any(test(text) for _, test in self._tests)

    def weigh(self, text: str) -> int:
        """How much the glob says that fits; -1 where none does."""
        return next((weight for weight, test in self._tests if test(text)), -1)


def overlaps(one: str, other: str) -> bool:
    """Whether every text that ``other`` fits is one that ``one`` fits, as far as can be told.

    It is never said wrongly; of two with wild cards in the middle it may not be said at all.
    """
    if one in {"*", other}:
        return True
    if not _WILD.search(other):
        return bool(_compiled(one)(other))
    body = one.removesuffix("*")
    return one.endswith("*") and not _WILD.search(body) and literal_prefix(other).startswith(body)
