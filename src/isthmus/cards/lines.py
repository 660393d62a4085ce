"""Styled lines, and how names, texts and arguments of others become such lines.

Nothing is cut. Whatever comes from others is made visible first, and a text of several lines stands
behind a bar, so that no line of it can pass for one of ours.
"""

import difflib
import json
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from isthmus.core.encoding import is_same_json
from isthmus.core.text import show_invisible
from isthmus.host.model.interaction import CallAsked, Interaction, PromptAsked
from isthmus.host.model.view import AuditLine

Role: TypeAlias = Literal["title", "head", "text", "dim", "warn", "added", "removed"]

QUOTE_BAR = "  | "


class StyledLine(Struct, frozen=True):
    """A line with a role; it may be longer than the screen is wide.

    Attributes:
        text: what it says, safe for a terminal.
        role: what it is, for who has colours; its text says the same without.
    """

    text: str
    role: Role = "text"


def head_line(text: str) -> StyledLine:
    """The headline of a part."""
    return StyledLine(f"-- {text} --", "head")


def warning_line(text: str) -> StyledLine:
    """A warning; it may hold words of others."""
    return StyledLine(f"  ! {show_invisible(text, line=True)}", "warn")


def error_lines(text: str) -> Iterator[StyledLine]:
    """An error as lines: its sentence, and behind a bar what a program wrote about it."""
    first, _, rest = text.partition("\n")
    yield warning_line(first)
    if rest:
        yield from quote_block("\n".join(part.removeprefix(QUOTE_BAR) for part in rest.split("\n")))


def first_sentence(text: str) -> str:
    """The first sentence of an error, where there is one line for it."""
    return display_name(text.partition("\n")[0])


def display_name(text: str) -> str:
    """A name that somebody else has given, on one line."""
    return show_invisible(text, line=True)


def field_line(label: str, value: object) -> StyledLine:
    """A fact with its label, on one line."""
    return StyledLine(f"  {label}: {show_invisible(str(value), line=True)}")


def quote_block(text: str) -> Iterator[StyledLine]:
    """A text of somebody else, each line behind a bar."""
    for part in show_invisible(text.replace("\r\n", "\n")).split("\n"):
        yield StyledLine(f"{QUOTE_BAR}{part}")


def format_json(value: Any) -> str:
    """Plain data as indented JSON in which every unusual character can be seen."""
    plain = msgspec.to_builtins(value)
    return show_invisible(json.dumps(plain, indent=2, ensure_ascii=False, default=str))


def diff_values(before: Any, after: Any) -> Iterator[StyledLine]:
    """The lines in which two values differ, as JSON."""
    yield from diff_texts(format_json(before).split("\n"), format_json(after).split("\n"))


def diff_texts(before: Sequence[str], after: Sequence[str]) -> Iterator[StyledLine]:
    """The lines that differ, those around them beside."""
    found = difflib.unified_diff(before, after, lineterm="", n=2)
    yield from style_diff(part for part in found if not part.startswith(("---", "+++", "@@")))


def style_diff(parts: Iterable[str]) -> Iterator[StyledLine]:
    """Lines of a diff: each begins with ``-``, ``+`` or a blank."""
    roles: dict[str, Role] = {"-": "removed", "+": "added"}
    for part in parts:
        yield StyledLine(f"  {show_invisible(part, line=True)}", roles.get(part[:1], "text"))


def join_lines(lines: Iterable[StyledLine]) -> str:
    """Lines as one text."""
    return "\n".join(line.text for line in lines)


def format_audit_line(row: AuditLine) -> StyledLine:
    """A row of the audit log in a line."""
    at = time.strftime("%H:%M:%S", time.localtime(row.at))
    who = f" by {display_name(row.approver or row.rule)}" if row.approver or row.rule else ""
    effect = f" {row.effect}{who}" if row.effect else ""
    failed = " failed" if row.failed else ""
    what = f"{row.action} {display_name(row.server)}: {display_name(row.object)}"
    return StyledLine(f"{at} {row.kind:8} {what}{effect}{failed}", "dim")


# names of arguments that say most about a call, the first of them most
TELLING_NAMES = (
    *("path", "file_path", "filename", "file", "uri", "url", "command", "cmd", "query", "sql"),
    *("to", "name", "title", "id", "key", "message", "text"),
)

# names under which tools take the text before and after an edit
EDIT_PAIRS = (
    *(("old_string", "new_string"), ("old_str", "new_str"), ("old_text", "new_text")),
    *(("oldText", "newText"), ("oldString", "newString"), ("old", "new")),
    *(("before", "after"), ("search", "replace"), ("find", "replace")),
)

MAX_TABLE_WIDTH = 76
MAX_DIFF_LINES = 2_000


def read_arguments(interaction: Interaction) -> Mapping[str, Any]:
    """The arguments of a call or a prompt; none for everything else."""
    payload = interaction.payload
    if isinstance(payload, CallAsked | PromptAsked):
        return payload.arguments
    return {}


def pick_telling_argument(interaction: Interaction, others: Iterable[Interaction] = ()) -> str:
    """The argument that says most about a call, on one line; empty where there is none.

    Args:
        interaction: the call.
        others: calls that stand beside it: what differs from those of the same tool says most.
    """
    given = read_arguments(interaction)
    if not given:
        return ""
    attempt = interaction.attempt
    beside = [
        read_arguments(one)
        for one in others
        if (one.attempt.server, one.attempt.object) == (attempt.server, attempt.object)
    ]
    differing = [key for key in given if not all(_is_in(one, key, given) for one in beside)]
    keys = differing or list(given)
    key = next((known for known in TELLING_NAMES if known in keys), keys[0])
    return f"{display_name(key)}={format_value(given[key])}"


def format_value(value: Any) -> str:
    """A value on one line; a text without its quotes."""
    plain = value if isinstance(value, str) else json.dumps(msgspec.to_builtins(value), default=str)
    return show_invisible(plain, line=True)


def compare_arguments(several: Sequence[Interaction]) -> Iterator[StyledLine]:
    """The arguments that differ between calls, as a table, and those that are the same in all."""
    given = [read_arguments(one) for one in several]
    keys = list(dict.fromkeys(key for one in given for key in one))
    same = {key: given[0][key] for key in keys if all(_is_in(one, key, given[0]) for one in given)}
    differing = [key for key in keys if key not in same]
    if differing:
        yield head_line("what differs")
        yield from _make_table(differing, given)
    if same:
        yield head_line("the same in all")
        yield from list_arguments(same)


def _is_in(one: Mapping[str, Any], key: str, other: Mapping[str, Any]) -> bool:
    return key in one and key in other and is_same_json(one[key], other[key])


def _make_table(keys: Sequence[str], given: Sequence[Mapping[str, Any]]) -> Iterator[StyledLine]:
    """A row for each call; where that would be too wide, a line for each argument."""
    from rich.cells import cell_len  # slow to import

    rows = [["", *map(display_name, keys)]]
    for number, one in enumerate(given, 1):
        shown = (format_value(one[key]) if key in one else "-" for key in keys)
        rows.append([str(number), *shown])
    widths = [max(cell_len(row[at]) for row in rows) for at in range(len(rows[0]))]
    if sum(widths) + 3 * len(widths) <= MAX_TABLE_WIDTH:
        for row in rows:
            cells = (
                text + " " * (width - cell_len(text))
                for text, width in zip(row, widths, strict=True)
            )
            yield StyledLine(f"  | {' | '.join(cells)}".rstrip())
        return
    for row in rows[1:]:
        for key, value in zip(rows[0][1:], row[1:], strict=True):
            yield StyledLine(f"  | {row[0]}. {key}: {value}")


class UnfoldedText(Struct):
    """A text of several lines that stands below the JSON that it belongs to.

    Attributes:
        place: where in the JSON it is.
        lines: its lines, safe for a terminal.
        title: what they are.
        size: what the JSON says of them.
    """

    place: str
    lines: list[StyledLine]
    title: str
    size: str


def list_arguments(arguments: Any) -> Iterator[StyledLine]:
    """Arguments as JSON, whole; texts of several lines stand below, line by line, and edits as diffs."""
    # Nobody can write the mark into their arguments beforehand.
    mark, below = secrets.token_hex(8), list[UnfoldedText]()
    plain = msgspec.to_builtins(arguments)
    try:
        text = format_json(_fold_texts(plain, "", mark, below))
    except RecursionError:  # it has to be seen all the same, and be decided
        below.clear()
        text = format_json(plain)
    for at, one in enumerate(below):
        text = text.replace(f'"{mark}:{at}"', f"({one.size}: below)")
    yield from quote_block(text)
    for one in below:
        yield field_line(one.title, one.place)
        yield from one.lines


def _fold_texts(value: Any, place: str, mark: str, below: list[UnfoldedText]) -> Any:
    """The value with a mark in place of each text of several lines, which is put below."""
    if isinstance(value, str) and "\n" in value:
        lines = [_label_part(part) for part in value.split("\n")]
        below.append(UnfoldedText(place, lines, "line by line", f"{len(lines)} lines"))
        return f"{mark}:{len(below) - 1}"
    if isinstance(value, list):
        return [_fold_texts(one, f"{place}[{at}]", mark, below) for at, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    edit = next((pair for pair in EDIT_PAIRS if _is_edit(value, pair, below)), None)
    if edit is not None:
        below.append(_diff_edit(value[edit[0]], value[edit[1]], place, edit))
    placed = f"{mark}:{len(below) - 1}"
    found = {}
    for key, one in value.items():
        if edit is not None and key in edit and "\n" in one:
            found[key] = placed
        else:
            inside = display_name(str(key))
            found[key] = _fold_texts(one, f"{place}.{inside}" if place else inside, mark, below)
    return found


def _label_part(text: str, sign: str = "", role: Role = "text") -> StyledLine:
    return StyledLine(f"  | {sign}{show_invisible(text, line=True)}", role)


def _is_edit(
    value: Mapping[str, Any], pair: tuple[str, str], below: Sequence[UnfoldedText]
) -> bool:
    """Whether these are a text before and after a change, and not too long to be compared."""
    before, after = (value.get(key) for key in pair)
    if not (isinstance(before, str) and isinstance(after, str)) or before == after:
        return False
    compared = sum(len(one.lines) for one in below)
    return compared + before.count("\n") + after.count("\n") <= MAX_DIFF_LINES


def _diff_edit(before: str, after: str, place: str, pair: tuple[str, str]) -> UnfoldedText:
    """Both texts whole: the lines that stay, those that go and those that come."""
    old, new = before.split("\n"), after.split("\n")
    found = list(difflib.unified_diff(old, new, lineterm="", n=len(old) + len(new)))[3:]
    roles: dict[str, Role] = {"-": "removed", "+": "added"}
    lines = [_label_part(part[1:], f"{part[0]} ", roles.get(part[0], "text")) for part in found]
    where = ", ".join(f"{place}.{key}" if place else key for key in pair)
    return UnfoldedText(where, lines, "before (-) and after (+)", "an edit")
