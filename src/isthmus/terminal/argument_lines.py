"""Arguments of calls as lines: in a row, in a table of several calls, and whole on a card."""

import difflib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from rich.cells import cell_len

from isthmus.core.plain_text import visible
from isthmus.host.interaction import CallAsked, Interaction, PromptAsked
from isthmus.terminal.lines import Line, Role, block, field, head, name, pretty

__all__ = ["arguments_of", "compare_arguments", "list_arguments", "telling_argument"]

TELLING = (
    *("path", "file_path", "filename", "file", "uri", "url", "command", "cmd", "query", "sql"),
    *("to", "name", "title", "id", "key", "message", "text"),
)
"""Names of arguments that say most about a call, the first of them most."""

EDITS = (
    *(("old_string", "new_string"), ("old_str", "new_str"), ("old_text", "new_text")),
    *(("oldText", "newText"), ("oldString", "newString"), ("old", "new")),
    *(("before", "after"), ("search", "replace"), ("find", "replace")),
)
"""Names under which tools take what a text was and what it becomes."""

MAX_TABLE_WIDTH = 76
MAX_DIFF_LINES = 2_000


def arguments_of(interaction: Interaction) -> Mapping[str, Any]:
    """The arguments of a call or a prompt; none for everything else."""
    payload = interaction.payload
    if isinstance(payload, CallAsked | PromptAsked):
        return payload.arguments
    return {}


def telling_argument(interaction: Interaction, others: Iterable[Interaction] = ()) -> str:
    """The argument that says most about a call, on one line; empty where there is none.

    Args:
        interaction: the call.
        others: calls that stand beside it: what differs from those of the same tool says most.
    """
    given = arguments_of(interaction)
    if not given:
        return ""
    attempt = interaction.attempt
    beside = [
        arguments_of(one)
        for one in others
        if (one.attempt.server, one.attempt.object) == (attempt.server, attempt.object)
    ]
    differing = [key for key in given if any(one.get(key) != given[key] for one in beside)]
    keys = differing or list(given)
    key = next((known for known in TELLING if known in keys), keys[0])
    return f"{name(key)}={show_value(given[key])}"


def show_value(value: Any) -> str:
    """A value on one line; a text without its quotes."""
    plain = value if isinstance(value, str) else json.dumps(msgspec.to_builtins(value), default=str)
    return visible(plain, line=True)


def compare_arguments(several: Sequence[Interaction]) -> Iterator[Line]:
    """What differs between calls of one kind, as a table, and what is the same in all of them."""
    given = [arguments_of(one) for one in several]
    keys = list(dict.fromkeys(key for one in given for key in one))
    same = {key: given[0][key] for key in keys if all(_is_in(one, key, given[0]) for one in given)}
    differing = [key for key in keys if key not in same]
    if differing:
        yield head("what differs")
        yield from _table(differing, given)
    if same:
        yield head("the same in all")
        yield from list_arguments(same)


def _is_in(one: Mapping[str, Any], key: str, other: Mapping[str, Any]) -> bool:
    return key in one and key in other and one[key] == other[key]


def _table(keys: Sequence[str], given: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    """A row for each call; where that would be too wide, a line for each argument."""
    rows = [["", *map(name, keys)]]
    for number, one in enumerate(given, 1):
        shown = (show_value(one[key]) if key in one else "-" for key in keys)
        rows.append([str(number), *shown])
    widths = [max(cell_len(row[at]) for row in rows) for at in range(len(rows[0]))]
    if sum(widths) + 3 * len(widths) <= MAX_TABLE_WIDTH:
        for row in rows:
            cells = (
                text + " " * (width - cell_len(text))
                for text, width in zip(row, widths, strict=True)
            )
            yield Line(f"  | {' | '.join(cells)}".rstrip())
        return
    for row in rows[1:]:
        for key, value in zip(rows[0][1:], row[1:], strict=True):
            yield Line(f"  | {row[0]}. {key}: {value}")


class Unfolded(Struct):
    """A text of several lines that stands below the JSON that it belongs to.

    Attributes:
        place: where in the JSON it is.
        lines: its lines, safe for a terminal.
        title: what they are.
        size: what the JSON says of them.
    """

    place: str
    lines: list[Line]
    title: str
    size: str


def list_arguments(arguments: Any) -> Iterator[Line]:
    """Arguments as JSON, whole; texts of several lines stand below, line by line, and edits as diffs."""
    # Nobody can write the mark into their arguments beforehand.
    mark, below = secrets.token_hex(8), list[Unfolded]()
    text = pretty(_unfold(msgspec.to_builtins(arguments), "", mark, below))
    for at, one in enumerate(below):
        text = text.replace(f'"{mark}:{at}"', f"({one.size}: below)")
    yield from block(text)
    for one in below:
        yield field(one.title, one.place)
        yield from one.lines


def _unfold(value: Any, place: str, mark: str, below: list[Unfolded]) -> Any:
    """The value with a mark in place of each text of several lines, which is put below."""
    if isinstance(value, str) and "\n" in value:
        lines = [_part(part) for part in value.split("\n")]
        below.append(Unfolded(place, lines, "line by line", f"{len(lines)} lines"))
        return f"{mark}:{len(below) - 1}"
    if isinstance(value, list):
        return [_unfold(one, f"{place}[{at}]", mark, below) for at, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    edit = next((pair for pair in EDITS if _is_edit(value, pair, below)), None)
    if edit is not None:
        below.append(_diff(value[edit[0]], value[edit[1]], place, edit))
    placed = f"{mark}:{len(below) - 1}"
    found = {}
    for key, one in value.items():
        if edit is not None and key in edit and "\n" in one:
            found[key] = placed
        else:
            inside = name(str(key))
            found[key] = _unfold(one, f"{place}.{inside}" if place else inside, mark, below)
    return found


def _part(text: str, sign: str = "", role: Role = "text") -> Line:
    return Line(f"  | {sign}{visible(text, line=True)}", role)


def _is_edit(value: Mapping[str, Any], pair: tuple[str, str], below: Sequence[Unfolded]) -> bool:
    """Whether these are a text before and after a change, and not too long to be compared."""
    before, after = (value.get(key) for key in pair)
    if not (isinstance(before, str) and isinstance(after, str)) or before == after:
        return False
    compared = sum(len(one.lines) for one in below)
    return compared + before.count("\n") + after.count("\n") <= MAX_DIFF_LINES


def _diff(before: str, after: str, place: str, pair: tuple[str, str]) -> Unfolded:
    """Both texts whole: the lines that stay, those that go and those that come."""
    old, new = before.split("\n"), after.split("\n")
    found = list(difflib.unified_diff(old, new, lineterm="", n=len(old) + len(new)))[3:]
    roles: dict[str, Role] = {"-": "removed", "+": "added"}
    lines = [_part(part[1:], f"{part[0]} ", roles.get(part[0], "text")) for part in found]
    where = ", ".join(f"{place}.{key}" if place else key for key in pair)
    return Unfolded(where, lines, "before (-) and after (+)", "an edit")
