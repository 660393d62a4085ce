"""In which lines two definitions of a tool differ, for a person who has to see what was slipped in.

A description is read by a model, and what a person does not see the model reads all the same. So
characters without a shape are written out, lines are shown one by one, and a definition of ten
megabytes takes no longer than its beginning deserves.
"""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

__all__ = ["difference", "visible"]

WIDTH = 160
"""Characters after which a line goes on in the next."""

LONGEST = 256 * 1024
"""Characters of each side that are looked at, from the first difference on."""

MOST_COMPARED = 300
"""Lines on each side that are compared one with another."""

MOST_SHOWN = 120
"""Lines shown of each side of one member."""

_SHAPELESS = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}
_FILLERS = {"\u115f", "\u1160", "\u17b4", "\u17b5", "\u2800", "\u3164", "\uffa0", "\u034f"}


def visible(text: str) -> str:
    """Text in which every character that has no shape, or turns the direction, is written out.

    Tabs are written out as well; line ends are not.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in " \n":
        return character
    selector = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    if selector or character in _FILLERS or unicodedata.category(character) in _SHAPELESS:
        return f"⟨U+{ord(character):04X}⟩"
    return character


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """The lines in which they differ, member by member.

    Args:
        before: what was known, as plain data.
        after: what there is now.

    Returns:
        For each member that differs its name, then ``- `` and a line that is gone, ``+ `` and one
        that is new, two spaces and one between them that stayed. Where lines are left out, a line
        says how many.
    """
    lines: list[str] = []
    for name in sorted(before.keys() | after.keys(), key=_first_the_text):
        old, new = before.get(name), after.get(name)
        if old != new:
            lines.append(f"{visible(name)}:")
            old, new = _text(old, name in before), _text(new, name in after)
            lines.extend(_compared(*map(_lines, _differing(old, new))))
    return tuple(lines)


def _first_the_text(name: str) -> tuple[int, str]:
    order = ("description", "title", "annotations", "inputSchema", "outputSchema")
    return (order.index(name) if name in order else len(order), name)


def _text(value: Any, there: bool) -> str:
    if not there:
        return ""
    if isinstance(value, str):
        return value
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2).decode()


def _differing(old: str, new: str) -> tuple[str, str]:
    """Both without the lines at their beginnings and ends that are the same, but for one."""
    least = min(len(old), len(new))
    same = _most(least, lambda count: old[:count] == new[:count])
    line = old.rfind("\n", 0, same)
    start = old.rfind("\n", 0, max(line, 0)) + 1
    old, new = old[start:], new[start:]
    least -= start
    same = _most(least, lambda count: old[len(old) - count :] == new[len(new) - count :])
    line = old.find("\n", len(old) - same)
    end = -1 if line < 0 else old.find("\n", line + 1)
    rest = 0 if end < 0 else len(old) - end
    return old[: len(old) - rest], new[: len(new) - rest]


def _most(upto: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to which something holds, found by halving."""
    found = 0
    while found < upto:
        half = (found + upto + 1) // 2
        if holds(half):
            found = half
        else:
            upto = half - 1
    return found


def _lines(text: str) -> list[str]:
    more = len(text) - LONGEST
    pieces: list[str] = []
    for line in text[:LONGEST].split("\n") if text else ():
        pieces.extend(line[at : at + WIDTH] for at in range(0, max(len(line), 1), WIDTH))
    if more > 0:
        pieces.append(f"… ({more:,} more characters)")
    return pieces


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    start = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        start += 1
    end = 0
    for one, other in zip(reversed(old[start:]), reversed(new[start:]), strict=False):
        if one != other:
            break
        end += 1
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    if start:
        yield f"  {visible(old[start - 1])}"
    if max(len(gone), len(come)) <= MOST_COMPARED:
        yield from _capped(_matched(gone, come))
    else:
        yield from _capped(f"- {visible(line)}" for line in _beginning(gone))
        yield from _capped(f"+ {visible(line)}" for line in _beginning(come))
        yield f"  … {len(gone):,} lines are gone and {len(come):,} are new"
    if end:
        yield f"  {visible(old[len(old) - end])}"


def _beginning(lines: Sequence[str]) -> Sequence[str]:
    return lines[:MOST_SHOWN]


def _matched(gone: Sequence[str], come: Sequence[str]) -> Iterator[str]:
    from difflib import SequenceMatcher  # only where a tool has changed

    for kind, a, b, c, d in SequenceMatcher(None, gone, come, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (f"  {visible(line)}" for line in gone[a:b])
        else:
            yield from (f"- {visible(line)}" for line in gone[a:b])
            yield from (f"+ {visible(line)}" for line in come[c:d])


def _capped(lines: Iterator[str]) -> Iterator[str]:
    left = 2 * MOST_SHOWN
    more = 0
    for line in lines:
        if left:
            left -= 1
            yield line
        else:
            more += 1
    if more:
        yield f"  … {more:,} more lines"
