r"""Patterns of rules: globs, and regular expressions in linear time.

In a glob ``*`` is any text, ``?`` one character, everything else is itself.

An argument comes from a model or a server, and a regular expression that tries one way after another
can be kept busy for hours by forty characters. Here all ways are followed at once (Thompson's
automaton, its sets of states kept as they are met), so that each character is looked at once. There
are: characters, ``.``, classes ``[a-z]``, ``[^a-z]``, ``\\d \\w \\s \\D \\W \\S`` (ASCII), groups, ``|``,
``* + ? {m} {m,} {m,n}``, and ``(?i)`` at the beginning. What cannot be had in that time (references
back, looking around) is refused, and so is ``^`` or ``$`` elsewhere than at the ends, where they say
what holds anyway: the whole text has to fit.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

_WILD = re.compile(r"[*?]")
MAX_STATES = 200  # of an automaton, so that a character costs a bounded time, too
MAX_PIECES = 5_000  # repetitions of repetitions of nothing are many
MAX_PATTERN_CHARS = 1_000
MAX_CACHED_STEPS = 20_000  # of one expression
MAX_TEXT_CHARS = 16_384  # a longer text that fits so far cannot be judged
MAX_GROUP_DEPTH = 50
CharRanges: TypeAlias = tuple[tuple[str, str], ...]
_DIGIT: CharRanges = (("0", "9"),)
_WORD: CharRanges = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
_SPACE: CharRanges = (("\t", "\r"), (" ", " "))
_SHORT = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
_ANY: CharRanges = (("\0", "\U0010ffff"),)


def get_literal_prefix(glob: str) -> str:
    """The text before the first wild card of a glob."""
    return _WILD.split(glob, maxsplit=1)[0]


def weigh_glob(glob: str) -> int:
    """Weigh a glob: the length of its literal prefix, and one more for a whole text."""
    prefix = get_literal_prefix(glob)
    return len(prefix) + (prefix == glob)


@lru_cache(maxsize=4096)
def _compile_glob(glob: str) -> Callable[[str], object]:
    """Compile a glob into a full match that takes the product of both lengths at most.

    Each part after a ``*`` is taken at its first place and not tried again, which is enough for
    globs: a later place leaves less text for what follows.
    """
    first, *parts = re.sub(r"\*+", "*", glob).split("*")
    if not parts and "?" not in first:
        return first.__eq__
    *middle, last = [_escape_literal(part) for part in parts] or [""]
    pattern = _escape_literal(first)
    if parts:
        pattern += "".join(f"(?>.*?{part})" for part in middle) + f".*{last}"
    return re.compile(pattern, re.DOTALL).fullmatch


def _escape_literal(part: str) -> str:
    return "".join("." if c == "?" else re.escape(c) for c in part)


class Globs:
    """Several globs, any of which may match.

    Args:
        globs: the one that says most counts, where several fit.
    """

    __slots__ = ("_tests",)

    def __init__(self, globs: Sequence[str]) -> None:
        self._tests = tuple(
            (weigh_glob(glob), _compile_glob(glob))
            for glob in sorted(globs, key=weigh_glob, reverse=True)
        )

    def fits(self, text: str) -> bool:
        """Whether one of them matches."""
        return any(test(text) for _, test in self._tests)

    def weigh(self, text: str) -> int:
        """The weight of the glob that matches; -1 where none does."""
        return next((weight for weight, test in self._tests if test(text)), -1)


def covers_glob(one: str, other: str) -> bool:
    """Whether ``one`` surely matches every text that ``other`` matches.

    It is never said wrongly; of two with wild cards in the middle it may not be said at all.
    """
    if one in {"*", other}:
        return True
    if not _WILD.search(other):
        return bool(_compile_glob(one)(other))
    body = one.removesuffix("*")
    return (
        one.endswith("*") and not _WILD.search(body) and get_literal_prefix(other).startswith(body)
    )


class BadPattern(ValueError):
    """The expression cannot be read, or cannot be matched in linear time."""


def _invert_ranges(ranges: CharRanges) -> CharRanges:
    gaps: list[tuple[str, str]] = []
    low = 0
    for first, last in sorted(ranges):
        if ord(first) > low:
            gaps.append((chr(low), chr(ord(first) - 1)))
        low = max(low, ord(last) + 1)
    if low <= 0x10FFFF:
        gaps.append((chr(low), "\U0010ffff"))
    return tuple(gaps)


class LinearRegex:
    """A regular expression that has to match the whole of a text.

    Args:
        pattern: as described above.

    Raises:
        BadPattern: it holds what is not there; the message says what, and what to write.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        if len(pattern) > MAX_PATTERN_CHARS:
            raise BadPattern(f"it has more than {MAX_PATTERN_CHARS} characters")
        reader = _RegexParser(pattern)
        self._pieces = 0
        # A state is either a choice between states, or a character and the state after it.
        self._ways: list[tuple[int, ...]] = []
        self._takes: list[tuple[CharRanges, int] | None] = []
        piece = reader.whole()
        self._folds = reader.folds
        self._end = self._state((), None)
        self._first = self._reach({piece(self, self._end)})
        self._steps: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def fits(self, text: str) -> bool | None:
        """Whether the whole text matches; None where it matches so far and is too long."""
        now = self._first
        for character in text[:MAX_TEXT_CHARS]:
            after = self._steps.get((now, character))
            if after is None:
                after = self._step(now, character)
            if not after:
                return False
            now = after
        return None if len(text) > MAX_TEXT_CHARS else self._end in now

    def _step(self, now: frozenset[int], character: str) -> frozenset[int]:
        forms = {character}
        if self._folds:
            forms |= {character.lower(), character.upper()}
        reached = {
            takes[1]
            for state in now
            if (takes := self._takes[state])
            and any(low <= form <= high for form in forms for low, high in takes[0])
        }
        after = self._reach(reached)
        if len(self._steps) >= MAX_CACHED_STEPS:
            self._steps.clear()
        self._steps[now, character] = after
        return after

    def _reach(self, states: set[int]) -> frozenset[int]:
        reached: set[int] = set()
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            if state not in reached:
                reached.add(state)
                waiting.extend(self._ways[state])
        return frozenset(reached)

    def _state(self, ways: tuple[int, ...], takes: tuple[CharRanges, int] | None) -> int:
        if len(self._ways) >= MAX_STATES:
            raise BadPattern(
                f"it needs more than {MAX_STATES} states: make it shorter, or its {{m,n}} smaller"
            )
        self._ways.append(ways)
        self._takes.append(takes)
        return len(self._ways) - 1

    def count(self) -> None:
        """Count one more piece."""
        self._pieces += 1
        if self._pieces > MAX_PIECES:
            raise BadPattern("it repeats what is repeated, too often: make its {m,n} smaller")

    def take(self, ranges: CharRanges, after: int) -> int:
        """Add a state that takes one character."""
        return self._state((), (ranges, after))

    def choose(self, *ways: int) -> int:
        """Add a state from which each of these is reached at once."""
        return self._state(ways, None)

    def loop(self, body: "StateBuilder", after: int) -> int:
        """Add a state from which the body is gone through any number of times."""
        state = self._state((), None)
        self._ways[state] = (body(self, state), after)
        return state


# builds a part of an automaton before a state, and returns its first state
StateBuilder: TypeAlias = Callable[[LinearRegex, int], int]


class _RegexParser:
    """Reads an expression from left to right."""

    def __init__(self, pattern: str) -> None:
        self.folds = pattern.startswith("(?i)")
        body = pattern[4:] if self.folds else pattern
        self._text = body.removeprefix("^")
        if self._text.endswith("$") and not self._text.endswith("\\$"):
            self._text = self._text[:-1]
        self._at = 0
        self._depth = 0

    def whole(self) -> StateBuilder:
        piece = self._either()
        if self._at < len(self._text):
            raise BadPattern("there is a ) without its (; write \\) for the character")
        return piece

    def _next(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else ""

    def _take(self) -> str:
        character = self._next()
        if not character:
            raise BadPattern("it ends in the middle of something")
        self._at += 1
        return character

    def _either(self) -> StateBuilder:
        choices = [self._sequence()]
        while self._next() == "|":
            self._take()
            choices.append(self._sequence())
        if len(choices) == 1:
            return choices[0]
        return lambda e, after: e.choose(*(choice(e, after) for choice in choices))

    def _sequence(self) -> StateBuilder:
        pieces: list[StateBuilder] = []
        while self._next() not in {"", "|", ")"}:
            pieces.append(self._repeated(self._atom()))
        pieces.reverse()

        def build(e: LinearRegex, after: int) -> int:
            e.count()
            for piece in pieces:
                after = piece(e, after)
            return after

        return build

    def _repeated(self, piece: StateBuilder) -> StateBuilder:
        sign = self._next()
        if sign not in {"*", "+", "?", "{"}:
            return piece
        least, most = self._counts(self._take())
        if self._next() in {"*", "+", "?", "{"}:
            raise BadPattern("one repetition follows another: put a group around the first")

        def build(e: LinearRegex, after: int) -> int:
            if most is None:
                after = e.loop(piece, after)
            else:
                end = after
                for _ in range(most - least):
                    after = e.choose(piece(e, after), end)
            for _ in range(least):
                after = piece(e, after)
            return after

        return build

    def _counts(self, sign: str) -> tuple[int, int | None]:
        if sign != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        text, closed, _ = self._text[self._at :].partition("}")
        least, comma, most = text.partition(",")
        if not closed or not least.isdecimal() or (most and not most.isdecimal()) or len(text) > 9:
            raise BadPattern("{ begins a count such as {2,5}; write \\{ for the character")
        self._at += len(text) + 1
        low, high = int(least), int(most) if most else None if comma else int(least)
        if max(low, high or 0) > MAX_STATES or (high is not None and high < low):
            raise BadPattern(f"{{{text}}} is no count up to {MAX_STATES}, the smaller first")
        return low, high

    def _atom(self) -> StateBuilder:
        character = self._take()
        if character == "(":
            return self._group()
        if character in "*+?{":
            raise BadPattern(f"{character} repeats nothing; write \\{character} for the character")
        if character in "^$":
            raise BadPattern(
                f"{character} stands at an end only, where it says what holds anyway; "
                f"write \\{character} for the character"
            )
        ranges = {".": lambda: _ANY, "[": self._class, "\\": self._escaped}.get(
            character, lambda: ((character, character),)
        )()
        return lambda e, after: e.take(ranges, after)

    def _group(self) -> StateBuilder:
        if self._next() == "?":
            if not self._text.startswith("?:", self._at):
                raise BadPattern(
                    "(? begins what cannot be had in linear time; there are ( ) and (?: ), and "
                    "(?i) at the beginning"
                )
            self._at += 2
        self._depth += 1
        if self._depth > MAX_GROUP_DEPTH:
            raise BadPattern(f"more than {MAX_GROUP_DEPTH} groups stand in one another")
        piece = self._either()
        if self._next() != ")":
            raise BadPattern("there is a ( without its ); write \\( for the character")
        self._at += 1
        self._depth -= 1
        return piece

    def _escaped(self) -> CharRanges:
        character = self._take()
        if character in _SHORT:
            return _SHORT[character]
        if character.lower() in _SHORT:
            return _invert_ranges(_SHORT[character.lower()])
        if character in _CONTROL:
            return ((_CONTROL[character], _CONTROL[character]),)
        if character.isalnum():
            raise BadPattern(f"\\{character} is not there: it has no place in linear time")
        return ((character, character),)

    def _class(self) -> CharRanges:
        negated = self._next() == "^"
        if negated:
            self._at += 1
        ranges: list[tuple[str, str]] = []
        while self._next() != "]" or not ranges:
            ranges.extend(self._member())
        self._at += 1
        return _invert_ranges(tuple(ranges)) if negated else tuple(ranges)

    def _member(self) -> CharRanges:
        character = self._take()
        if character == "\\":
            found = self._escaped()
            if len(found) > 1 or found[0][0] != found[0][1]:
                return found
            character = found[0][0]
        if self._next() != "-" or self._text.startswith("-]", self._at):
            return ((character, character),)
        self._at += 1
        last = self._take()
        if last == "\\":
            last = self._escaped()[0][0]
        if last < character:
            raise BadPattern(f"[{character}-{last}] runs backwards")
        return ((character, last),)
