"""What a card is made of: lines with a role, and how somebody else's words become such lines.

Nothing is cut. Whatever comes from others is made visible first, and a text of several lines stands
behind a bar, so that no line of it can pass for one of ours.
"""

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from isthmus.core.plain_text import visible

__all__ = [
    "Line",
    "Role",
    "block",
    "brief",
    "changes",
    "field",
    "head",
    "name",
    "pretty",
    "text_of",
    "trouble",
    "warning",
]

Role: TypeAlias = Literal["title", "head", "text", "dim", "warn", "added", "removed"]

BAR = "  | "


class Line(Struct, frozen=True):
    """One line of a card; it may be longer than the screen is wide.

    Attributes:
        text: what it says, safe for a terminal.
        role: what it is, for who has colours; its text says the same without.
    """

    text: str
    role: Role = "text"


def head(text: str) -> Line:
    """The headline of a part."""
    return Line(f"-- {text} --", "head")


def warning(text: str) -> Line:
    """What one should be warned of; may hold words of others."""
    return Line(f"  ! {visible(text, line=True)}", "warn")


def trouble(text: str) -> Iterator[Line]:
    """What went wrong: its sentence, and behind a bar what a program said of it, line by line."""
    first, _, rest = text.partition("\n")
    yield warning(first)
    if rest:
        yield from block("\n".join(part.removeprefix(BAR) for part in rest.split("\n")))


def brief(text: str) -> str:
    """What went wrong, in its first sentence: where there is one line for it."""
    return name(text.partition("\n")[0])


def name(text: str) -> str:
    """A name that somebody else has given, on one line."""
    return visible(text, line=True)


def field(label: str, value: object) -> Line:
    """One fact, on one line."""
    return Line(f"  {label}: {visible(str(value), line=True)}")


def block(text: str) -> Iterator[Line]:
    """A text of somebody else, each line behind a bar."""
    for part in visible(text.replace("\r\n", "\n")).split("\n"):
        yield Line(f"{BAR}{part}")


def pretty(value: Any) -> str:
    """Plain data as indented JSON in which every unusual character can be seen."""
    plain = msgspec.to_builtins(value)
    return visible(json.dumps(plain, indent=2, ensure_ascii=False, default=str))


def changes(before: Any, after: Any) -> Iterator[Line]:
    """The lines in which two values differ, as JSON."""
    yield from text_changes(pretty(before).split("\n"), pretty(after).split("\n"))


def text_changes(before: Sequence[str], after: Sequence[str]) -> Iterator[Line]:
    """The lines that differ, those around them beside."""
    found = difflib.unified_diff(before, after, lineterm="", n=2)
    yield from diff(part for part in found if not part.startswith(("---", "+++", "@@")))


def diff(parts: Iterable[str]) -> Iterator[Line]:
    """Lines of a diff: each begins with ``-``, ``+`` or a blank."""
    roles: dict[str, Role] = {"-": "removed", "+": "added"}
    for part in parts:
        yield Line(f"  {visible(part, line=True)}", roles.get(part[:1], "text"))


def text_of(lines: Iterable[Line]) -> str:
    """Lines as one text."""
    return "\n".join(line.text for line in lines)
