"""Differences between two definitions of a tool, in lines that show a person what was slipped in.

A description is read by a model, and what a person does not see the model reads all the same. So
characters without a shape are written out, lines are shown one by one, and a definition of ten
megabytes takes no longer than its beginning deserves.
"""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from isthmus.core.encoding import is_same_json

MAX_LINE_CHARS = 160  # then it goes on in the next line
MAX_TEXT_CHARS = 256 * 1024  # of each side, from the first difference on
MAX_COMPARED_LINES = 300  # on each side
MAX_SHOWN_LINES = 120  # of each side of one member
_SHAPELESS = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}
_FILLERS = {"\u115f", "\u1160", "\u17b4", "\u17b5", "\u2800", "\u3164", "\uffa0", "\u034f"}


def escape_invisible(text: str) -> str:
    """Text in which every character that has no shape, or turns the direction, is written out.

    Tabs are written out as well; line ends are not.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape_character(character) for character in text)


def _escape_character(character: str) -> str:
    if character in " \n":
        return character
    selector = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    if selector or character in _FILLERS or unicodedata.category(character) in _SHAPELESS:
        return f"⟨U+{ord(character):04X}⟩"
    return character


def compare_definitions(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
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
    for name in sorted(before.keys() | after.keys(), key=_sort_key):
        old, new = before.get(name), after.get(name)
        if not is_same_json(old, new):
            lines.append(f"{escape_invisible(name)}:")
            old, new = _format_value(old, name in before), _format_value(new, name in after)
            lines.extend(_compare_lines(*map(_split_lines, _trim_equal_ends(old, new))))
    return tuple(lines)


def _sort_key(name: str) -> tuple[int, str]:
    order = ("description", "title", "annotations", "inputSchema", "outputSchema")
    return (order.index(name) if name in order else len(order), name)


def _format_value(value: Any, there: bool) -> str:
    if not there:
        return ""
    if isinstance(value, str):
        return value
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2).decode()


def _trim_equal_ends(old: str, new: str) -> tuple[str, str]:
    """Both without the lines at their beginnings and ends that are the same, but for one."""
    least = min(len(old), len(new))
    same = _find_largest(least, lambda count: old[:count] == new[:count])
    line = old.rfind("\n", 0, same)
    start = old.rfind("\n", 0, max(line, 0)) + 1
    old, new = old[start:], new[start:]
    least -= start
    same = _find_largest(least, lambda count: old[len(old) - count :] == new[len(new) - count :])
    line = old.find("\n", len(old) - same)
    end = -1 if line < 0 else old.find("\n", line + 1)
    rest = 0 if end < 0 else len(old) - end
    return old[: len(old) - rest], new[: len(new) - rest]


def _find_largest(upto: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to which something holds, found by halving."""
    found = 0
    while found < upto:
        half = (found + upto + 1) // 2
        if holds(half):
            found = half
        else:
            upto = half - 1
    return found


def _split_lines(text: str) -> list[str]:
    more = len(text) - MAX_TEXT_CHARS
    pieces: list[str] = []
    for line in text[:MAX_TEXT_CHARS].split("\n") if text else ():
        pieces.extend(
            line[at : at + MAX_LINE_CHARS] for at in range(0, max(len(line), 1), MAX_LINE_CHARS)
        )
    if more > 0:
        pieces.append(f"… ({more:,} more characters)")
    return pieces


def _compare_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
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
        yield f"  {escape_invisible(old[start - 1])}"
    if max(len(gone), len(come)) <= MAX_COMPARED_LINES:
        yield from _cap_lines(_match_lines(gone, come))
    else:
        yield from _cap_lines(f"- {escape_invisible(line)}" for line in _cut_lines(gone))
        yield from _cap_lines(f"+ {escape_invisible(line)}" for line in _cut_lines(come))
        yield f"  … {len(gone):,} lines are gone and {len(come):,} are new"
    if end:
        yield f"  {escape_invisible(old[len(old) - end])}"


def _cut_lines(lines: Sequence[str]) -> Sequence[str]:
    return lines[:MAX_SHOWN_LINES]


def _match_lines(gone: Sequence[str], come: Sequence[str]) -> Iterator[str]:
    from difflib import SequenceMatcher  # only where a tool has changed

    for kind, a, b, c, d in SequenceMatcher(None, gone, come, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (f"  {escape_invisible(line)}" for line in gone[a:b])
        else:
            yield from (f"- {escape_invisible(line)}" for line in gone[a:b])
            yield from (f"+ {escape_invisible(line)}" for line in come[c:d])


def _cap_lines(lines: Iterator[str]) -> Iterator[str]:
    left = 2 * MAX_SHOWN_LINES
    more = 0
    for line in lines:
        if left:
            left -= 1
            yield line
        else:
            more += 1
    if more:
        yield f"  … {more:,} more lines"
