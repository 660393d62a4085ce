"""Parts that several pages are made of: tables, facts, badges, times, buttons that are forms."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from isthmus.cards.markup import Markup, element

MAX_VALUE_CHARS = 64 * 1024  # of one value that is shown as JSON
MAX_FACT_CHARS = 80  # of a fact that shares its line with others
NOTHING = Markup("")
INLINE: Mapping[str, str] = {"class": "inline"}  # the looks of a form that is one button

# The look of a word that says how something is or went. A badge always has its word: colours only help.
BADGE_LOOKS = {
    **dict.fromkeys(("ready", "ok", "allow", "proved", "connected", "known", "allowed"), "good"),
    **dict.fromkeys(("failed", "deny", "denied", "broken", "problem", "refused"), "bad"),
    **dict.fromkeys(("quarantined", "changed", "error"), "bad"),
    **dict.fromkeys(("ask", "backoff", "degraded", "needs_auth"), "warn"),
    **dict.fromkeys(("warning", "expired", "unproved", "new"), "warn"),
    **dict.fromkeys(("running", "connecting", "draining"), "busy"),
}


def name_actor(name: str) -> str:
    """The name of a person at the console, as the audit log has it.

    Args:
        name: of the visitor.
    """
    return f"console ({name})"


class TableColumn(Struct, frozen=True):
    """A column of a table: its headline, and the class of its cells."""

    title: str
    look: str = ""


def draw_table(
    caption: str,
    columns: Sequence[TableColumn],
    rows: Iterable[Sequence[Markup | str]],
    *,
    empty: str,
) -> Markup:
    """A table whose first column names the row; a sentence where there are no rows.

    Args:
        caption: what it holds, for who cannot see it.
        columns: its headlines.
        rows: a cell for each column.
        empty: what is said in place of an empty table.
    """
    body = [_draw_row(columns, row) for row in rows]
    if not body:
        return draw_empty(empty)
    head = [element("th", {"scope": "col", **_name_look(one.look)}, one.title) for one in columns]
    table = element(
        "table",
        {"class": "rows"},
        element("caption", {"class": "unseen"}, caption),
        element("thead", {}, element("tr", {}, *head)),
        element("tbody", {}, *body),
    )
    frame = {"class": "table-frame", "role": "region", "aria-label": caption, "tabindex": "0"}
    return element("div", frame, table)


def _draw_row(columns: Sequence[TableColumn], row: Sequence[Markup | str]) -> Markup:
    cells = [
        element(
            "td" if at else "th",
            {
                "data-title": column.title,
                **({} if at else {"scope": "row"}),
                **_name_look(column.look),
            },
            cell,
        )
        for at, (column, cell) in enumerate(zip(columns, row, strict=True))
    ]
    return element("tr", {}, *cells)


def _name_look(look: str) -> dict[str, str]:
    return {"class": look} if look else {}


def draw_empty(text: str) -> Markup:
    """A sentence in place of what is not there."""
    return element("p", {"class": "empty"}, text)


def draw_facts(facts: Iterable[tuple[str, Markup | str]]) -> Markup:
    """Facts with their labels; those that are empty are left out."""
    rows = [
        element(
            "div",
            {"class": "fact fact-long" if _is_long(value) else "fact"},
            element("dt", {}, label),
            element("dd", {}, value),
        )
        for label, value in facts
        if value
    ]
    return element("dl", {"class": "fact-list"}, *rows)


def _is_long(value: Markup | str) -> bool:
    return not isinstance(value, Markup) and len(value) > MAX_FACT_CHARS


def draw_badge(word: str, look: str = "") -> Markup:
    """A word that says how something is."""
    kind = look or BADGE_LOOKS.get(word, "plain")
    return element("span", {"class": f"badge badge-{kind}"}, word)


def draw_code(text: str) -> Markup:
    """A name of somebody else, as it is spelled."""
    return element("code", {}, text) if text else NOTHING


def draw_link(path: str, *children: Markup | str) -> Markup:
    """A link to a page of ours."""
    return element("a", {"href": path}, *children)


def draw_block(text: str, look: str = "") -> Markup:
    """A text of several lines, as it is."""
    return element("pre", {"class": f"block {look}".rstrip(), "tabindex": "0"}, text)


def draw_value(value: Any) -> Markup:
    """Plain data as indented JSON; what is too long is cut, and says so."""
    return draw_block(format_value(value))


def format_value(value: Any) -> str:
    """Plain data as indented JSON, cut at a bound."""
    text = json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=False, default=str)
    if len(text) > MAX_VALUE_CHARS:
        return f"{text[:MAX_VALUE_CHARS]}\n… {len(text) - MAX_VALUE_CHARS:,} more characters"
    return text


def draw_command(key: str, line: str) -> Markup:
    """A command line to be copied: selected by a click, and by a button where there are scripts."""
    button = element("button", {"type": "button", "class": "copy small", "data-copy": key}, "Copy")
    code = element("code", {"id": key, "class": "command"}, line)
    return element("div", {"class": "block command-line"}, code, button)


def draw_fold(
    title: Markup | str, *children: Markup | str, opened: bool = False, key: str = ""
) -> Markup:
    """What is shown when it is opened.

    Args:
        title: what it is opened by.
        *children: what is shown then.
        opened: whether it is open from the beginning.
        key: its id, by which it stays open when the page is loaded again.
    """
    state = ({"id": key} if key else {}) | ({"open": "open"} if opened else {})
    return element("details", {"class": "fold", **state}, element("summary", {}, title), *children)


def draw_section(title: str, *children: Markup | str, key: str = "", note: str = "") -> Markup:
    """A part of a page under its headline."""
    head = element("h2", {"id": key} if key else {}, title)
    said = element("p", {"class": "note"}, note) if note else NOTHING
    return element("section", {"class": "page-part"}, head, said, *children)


def draw_notice(text: str, look: str = "note") -> Markup:
    """A sentence about what has just been done, or went wrong."""
    role = "alert" if look == "bad" else "status"
    return element("p", {"class": f"notice notice-{look}", "role": role}, text)


def draw_time(at: float | None, *, now: float | None = None) -> Markup:
    """A moment: the time of a day, and the date where it is another day."""
    if not at:
        return Markup("")
    moment, today = time.localtime(at), time.localtime(time.time() if now is None else now)
    form = "%H:%M:%S" if moment[:3] == today[:3] else "%Y-%m-%d %H:%M"
    machine = time.strftime("%Y-%m-%dT%H:%M:%S%z", moment)
    whole = time.strftime("%Y-%m-%d %H:%M:%S %Z", moment)
    return element("time", {"datetime": machine, "title": whole}, time.strftime(form, moment))


def format_span(seconds: float) -> str:
    """A long time as people say it."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def format_bytes(size: int) -> str:
    """A size as people say it."""
    if size < 1024:
        return f"{size} bytes"
    return f"{size / 1024:,.0f} KiB" if size < 1024 * 1024 else f"{size / 1024 / 1024:,.1f} MiB"


def draw_field(
    key: str,
    label: str,
    value: str = "",
    *,
    hint: str = "",
    kind: str = "text",
    rows: int = 0,
    fault: str = "",
    attributes: Mapping[str, str] | None = None,
) -> Markup:
    """A labelled field of a form, with what is wrong with it.

    Args:
        key: its name in the form; each once in a page.
        label: what is asked for.
        value: what it is filled with.
        hint: how to write it.
        kind: the type of the input.
        rows: lines of a box; 0 for one line.
        fault: what is wrong with the value.
        attributes: further ones of the control.
    """
    tied = " ".join(name for name, told in ((f"{key}-hint", hint), (f"{key}-fault", fault)) if told)
    told = {"id": key, "name": key, "autocomplete": "off", **(attributes or {})}
    told |= ({"aria-describedby": tied} if tied else {}) | (
        {"aria-invalid": "true"} if fault else {}
    )
    if rows:
        control = element("textarea", told | {"rows": str(rows), "spellcheck": "false"}, value)
    else:
        control = element("input", told | {"type": kind, "value": value})
    parts = [element("label", {"for": key}, label), control]
    if hint:
        parts.append(element("p", {"class": "hint", "id": f"{key}-hint"}, hint))
    if fault:
        parts.append(element("p", {"class": "fault", "id": f"{key}-fault"}, fault))
    return element("div", {"class": "field"}, *parts)


def draw_choice(
    key: str, label: str, options: Sequence[tuple[str, str]], chosen: str = ""
) -> Markup:
    """A labelled list of which one value is chosen."""
    drawn = [
        element(
            "option",
            {"value": value, **({"selected": "selected"} if value == chosen else {})},
            name,
        )
        for value, name in options
    ]
    control = element("select", {"id": key, "name": key}, *drawn)
    return element("div", {"class": "field"}, element("label", {"for": key}, label), control)


def draw_search(path: str, *fields: Markup, label: str) -> Markup:
    """A form that only looks: its fields stand in the address, so that a search can be kept."""
    button = element("button", {"type": "submit"}, "Show")
    clear = element("a", {"class": "quiet", "href": path}, "Clear")
    return element(
        "form",
        {"class": "search", "method": "get", "action": path, "role": "search", "aria-label": label},
        *fields,
        element("div", {"class": "search-do"}, button, clear),
    )
