"""Audit pages: search, one row with its trace and the rows of its call, the chain verified, export."""

import json
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, get_args

import msgspec

from isthmus.cards.markup import Markup, element
from isthmus.console.drawing.page_parts import (
    INLINE,
    NOTHING,
    TableColumn,
    draw_badge,
    draw_choice,
    draw_code,
    draw_facts,
    draw_field,
    draw_fold,
    draw_link,
    draw_notice,
    draw_search,
    draw_section,
    draw_table,
    draw_time,
    draw_value,
)
from isthmus.console.drawing.plots import format_seconds
from isthmus.console.pages.servers import make_missing
from isthmus.console.requests import ConsoleReply, ConsoleRequest, Download, PageReply
from isthmus.host.model.row import RowKind
from isthmus.host.model.view import AuditLine, AuditQuery, AuditVerdict

PAGE_ROWS = 100
EXPORT_ROWS = 500  # of one request to the host
MAX_EXPORT_ROWS = 100_000
MAX_FILTER_CHARS = 200
WORD = re.compile(r"\w")
KINDS: tuple[str, ...] = get_args(RowKind)
EFFECTS = ("allow", "ask", "deny")
TEXT_FILTERS = ("text", "principal", "server", "call")
ROW_COLUMNS = (
    TableColumn("row", "number"),
    TableColumn("time", "at"),
    TableColumn("kind"),
    TableColumn("what", "name"),
    TableColumn("server"),
    TableColumn("for", "who"),
    TableColumn("effect"),
    TableColumn("by"),
    TableColumn("took", "number"),
)
VERDICT_WORDS = {
    "proved": "All rows are there and unchanged: the chain and its head agree.",
    "unproved": "No row was changed, but nothing outside the log confirms which row is the last one.",
    "broken": "The chain is broken: rows were changed or removed.",
}
VERDICT_LOOKS = {"proved": "good", "unproved": "warn", "broken": "bad"}


async def show_audit(request: ConsoleRequest) -> PageReply:
    """The rows of the audit log, newest first."""
    try:
        query = read_query(request, PAGE_ROWS)
    except ValueError as error:
        body = element("div", {}, draw_notice(str(error), "bad"), draw_filters(request))
        return PageReply(title="Audit", body=body, status=400, section="audit")
    rows = await request.view.audit_rows(query)
    body = element(
        "div",
        {},
        _draw_chain_form(request) if request.visitor.operator else NOTHING,
        draw_filters(request),
        draw_rows(request, rows),
        _draw_pager(request, rows),
        _draw_export(request),
    )
    return PageReply(title="Audit", body=body, section="audit")


def read_query(request: ConsoleRequest, count: int) -> AuditQuery:
    """The filters of a request.

    Raises:
        ValueError: a time in it is none, or a number, or what is searched for has no word.
    """
    fields = request.fields
    given = {key: fields.get(key, "").strip()[:MAX_FILTER_CHARS] for key in TEXT_FILTERS}
    if given["text"] and not WORD.search(given["text"]):
        raise ValueError(f"{given['text'][:30]!r} is no word to search for")
    kind, effect = fields.get("kind", ""), fields.get("effect", "")
    return AuditQuery(
        **given,
        kind=kind if kind in KINDS else "",
        effect=effect if effect in EFFECTS else "",
        since=_read_moment(fields.get("since", "")),
        until=_read_moment(fields.get("until", "")),
        before=_read_number(fields.get("before", "")),
        count=count,
    )


def _read_moment(text: str) -> float | None:
    """A moment as browsers write it in a field of date and time, in local time."""
    if not text.strip():
        return None
    for form in ("%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"):
        try:
            return time.mktime(time.strptime(text.strip()[:30], form))
        except (ValueError, OverflowError):
            continue
    raise ValueError(f"{text[:30]!r} is not a time: write 2026-11-21T08:00")


def _read_number(text: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise ValueError(f"{text[:30]!r} is not the number of a row")
    return int(text)


def draw_filters(request: ConsoleRequest) -> Markup:
    """The form that searches."""
    fields = request.fields
    kinds = [("", "all kinds"), *((kind, kind) for kind in KINDS)]
    effects = [("", "all effects"), *((effect, effect) for effect in EFFECTS)]
    parts = [
        draw_field("text", "Words", fields.get("text", ""), kind="search"),
        draw_choice("kind", "Kind", kinds, fields.get("kind", "")),
        draw_choice("effect", "Effect", effects, fields.get("effect", "")),
        draw_field("server", "Server", fields.get("server", "")),
        draw_field("since", "From", fields.get("since", ""), kind="datetime-local"),
        draw_field("until", "Until", fields.get("until", ""), kind="datetime-local"),
    ]
    if fields.get("call"):  # a link has led here: whoever searches on sees that it narrows, too
        parts.insert(0, draw_field("call", "Call", fields["call"]))
    if request.visitor.operator:
        parts.insert(4, draw_field("principal", "Principal", fields.get("principal", "")))
    return draw_search(request.link("audit"), *parts, label="Search of the audit log")


def draw_rows(request: ConsoleRequest, rows: Sequence[AuditLine]) -> Markup:
    """Rows as a table."""
    return draw_table(
        "Rows of the audit log, newest first",
        ROW_COLUMNS,
        [_list_cells(request, row) for row in rows],
        empty="No row matches.",
    )


def _list_cells(request: ConsoleRequest, row: AuditLine) -> list[Markup | str]:
    failed = draw_badge("failed") if row.failed else NOTHING
    return [
        draw_link(request.link("audit", str(row.seq)), str(row.seq)),
        draw_time(row.at),
        row.kind,
        element(
            "div",
            {},
            row.object or row.action,
            " ",
            failed,
            element("div", {"class": "why"}, row.error) if row.error else NOTHING,
        ),
        row.server,
        row.principal,
        draw_badge(row.effect) if row.effect else "",
        draw_code(row.approver or row.rule or row.grant),
        format_seconds(row.seconds) if row.seconds is not None else "",
    ]


def _list_filters(request: ConsoleRequest) -> dict[str, str]:
    keys = (*TEXT_FILTERS, "kind", "effect", "since", "until")
    given = {key: request.fields.get(key, "")[:MAX_FILTER_CHARS] for key in keys}
    return {key: text for key, text in given.items() if text}


def _draw_pager(request: ConsoleRequest, rows: Sequence[AuditLine]) -> Markup:
    links = []
    if request.fields.get("before"):
        links.append(draw_link(request.link("audit", **_list_filters(request)), "Newest"))
    if len(rows) == PAGE_ROWS:
        older = request.link("audit", **_list_filters(request), before=str(rows[-1].seq))
        links.append(draw_link(older, "Older rows"))
    return (
        element("nav", {"class": "pager", "aria-label": "Pages of rows"}, *links)
        if links
        else NOTHING
    )


def _draw_export(request: ConsoleRequest) -> Markup:
    link = request.link("audit", "export", **_list_filters(request))
    note = f" one JSON object per line, newest first, at most {MAX_EXPORT_ROWS:,} rows."
    return element(
        "p",
        {"class": "note"},
        element("a", {"href": link, "download": "audit.jsonl"}, "Export these rows"),
        note,
    )


async def export_audit(request: ConsoleRequest) -> ConsoleReply:
    """The rows that a search finds, as a file of JSON Lines."""
    try:
        query = read_query(request, EXPORT_ROWS)
    except ValueError as error:
        return PageReply(
            title="Audit", body=draw_notice(str(error), "bad"), status=400, section="audit"
        )
    return Download(
        content=_encode_rows(request, query), kind="application/x-ndjson", name="audit.jsonl"
    )


async def _encode_rows(request: ConsoleRequest, query: AuditQuery) -> AsyncGenerator[bytes, None]:
    """The rows of a query, newest first, in pieces; never all of them at once."""
    left = MAX_EXPORT_ROWS
    while left > 0:
        rows = (await request.view.audit_rows(query))[:left]
        left -= len(rows)
        yield b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        if len(rows) < EXPORT_ROWS:
            return
        query = msgspec.structs.replace(query, before=rows[-1].seq)


# The chain


def _draw_chain_form(request: ConsoleRequest) -> Markup:
    button = element("button", {"type": "submit"}, "Verify the chain")
    note = element("span", {"class": "note"}, "Each row contains the hash of the row before it.")
    return request.make_form(request.link("audit", "verify"), button, note, attributes=INLINE)


async def verify_chain(request: ConsoleRequest) -> PageReply:
    """Verify the whole chain, and say what that proves."""
    verdict = await request.view.verify_audit()
    back = draw_link(request.link("audit"), "Back to the rows")
    return PageReply(
        title="Audit chain", body=element("div", {}, draw_verdict(verdict), back), section="audit"
    )


def draw_verdict(verdict: AuditVerdict) -> Markup:
    """A verdict in words."""
    words = VERDICT_WORDS.get(verdict.verdict, "")
    look = VERDICT_LOOKS.get(verdict.verdict, "note")
    return element(
        "div",
        {},
        element(
            "div",
            {"class": f"notice notice-{look}", "role": "status"},
            draw_badge(verdict.verdict, look),
            " ",
            words,
        ),
        draw_facts(
            [
                ("rows", f"{verdict.rows:,}"),
                ("head", draw_code(verdict.head)),
                ("in detail", verdict.text),
            ]
        ),
    )


# One row


async def show_row(request: ConsoleRequest) -> PageReply:
    """One row, with the rows of the same call."""
    text = request.parameters["seq"]
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
    row = await request.view.audit_row(number)
    if row is None:
        return make_missing("There is no such row.")
    beside = await request.view.call_rows(row.call) if row.call else []
    return PageReply(title=f"Row {row.seq}", body=draw_row(request, row, beside), section="audit")


def draw_row(request: ConsoleRequest, row: AuditLine, beside: Sequence[AuditLine]) -> Markup:
    """A row whole, and what else was written about its call."""
    plain: dict[str, Any] = msgspec.to_builtins(row)
    shown = {
        key: value
        for key, value in plain.items()
        if key not in ROW_BLOCKS and value not in ("", None, (), [])
    }
    facts = [
        (ROW_WORDS.get(key, key), _draw_member(request, key, value)) for key, value in shown.items()
    ]
    older = (
        draw_link(request.link("audit", str(row.seq - 1)), "← row before")
        if row.seq > 1
        else NOTHING
    )
    newer = draw_link(request.link("audit", str(row.seq + 1)), "row after →")
    return element(
        "div",
        {},
        element("nav", {"class": "pager", "aria-label": "Neighbouring rows"}, older, newer),
        draw_facts(facts),
        draw_section("Arguments", draw_value(row.arguments))
        if row.arguments is not None
        else NOTHING,
        draw_section("Trace and details", draw_value(row.detail))
        if row.detail is not None
        else NOTHING,
        draw_section("Rows of the same call", draw_rows(request, beside))
        if len(beside) > 1
        else NOTHING,
        draw_fold("The whole row as JSON", draw_value(plain)),
    )


ROW_BLOCKS = frozenset({"arguments", "detail"})
ROW_WORDS = {
    "seq": "row",
    "call": "call",
    "object": "what",
    "principal": "for",
    "approver": "decided by",
    "assurance": "assurance",
    "wait": "time to decide",
    "era": "revision",
    "arguments_hash": "digest of arguments",
    "result_hash": "digest of result",
    "result_bytes": "size of result",
    "policy": "policy version",
    "prev": "hash of the row before",
}


def _draw_member(request: ConsoleRequest, key: str, value: Any) -> Markup | str:
    if key in MEMBER_FORMS:
        return MEMBER_FORMS[key](value)
    if key in MEMBER_PAGES:
        return draw_link(request.link(MEMBER_PAGES[key], value), draw_code(value))
    if isinstance(value, str):
        return draw_code(value) if key in CODE_MEMBERS else value
    return json.dumps(value, default=str)


MEMBER_FORMS: Mapping[str, Callable[[Any], Markup | str]] = {
    "at": draw_time,
    "wait": format_seconds,
    "seconds": format_seconds,
    "effect": draw_badge,
}
MEMBER_PAGES = {"call": "traffic", "server": "servers"}
CODE_MEMBERS = frozenset(
    {
        "hash",
        "prev",
        "arguments_hash",
        "result_hash",
        "policy",
        "fingerprint",
        "rule",
        "identity",
        "run",
        "parent",
        "grant",
        "node",
    }
)
