"""Servers pages: the list, one server, and how servers are added and removed."""

import json
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from isthmus.cards.markup import Markup, element
from isthmus.console.drawing.page_parts import (
    INLINE,
    NOTHING,
    TableColumn,
    draw_badge,
    draw_block,
    draw_code,
    draw_empty,
    draw_facts,
    draw_field,
    draw_fold,
    draw_link,
    draw_notice,
    draw_section,
    draw_table,
    draw_time,
    format_span,
    name_actor,
)
from isthmus.console.pages.traffic import draw_calls
from isthmus.console.requests import ConsoleReply, ConsoleRequest, PageRedirect, PageReply
from isthmus.core.text import format_count
from isthmus.errors import IsthmusError
from isthmus.host.model.view import ServerDo, ServerStatus, ToolState, TrafficQuery

SERVER_COLUMNS = (
    TableColumn("server", "name"),
    TableColumn("state"),
    TableColumn("era", "era"),
    TableColumn("tools", "number"),
    TableColumn("resources", "number"),
    TableColumn("prompts", "number"),
    TableColumn("running", "number"),
    TableColumn("restarts", "number"),
    TableColumn("since", "number"),
    TableColumn("where", "where"),
    TableColumn("do", "do"),
)
TOOL_COLUMNS = (
    TableColumn("tool", "name"),
    TableColumn("state"),
    TableColumn("annotations"),
    TableColumn("description", "wide"),
    TableColumn("fingerprint", "digest"),
)
ACTIONS: tuple[ServerDo, ...] = get_args(ServerDo)
RUNNING_STATES = frozenset({"ready", "degraded", "connecting", "draining"})
LATEST_CALLS = 10
TRUSTED_NOTE = "The annotations of this server's tools are trusted."
UNTRUSTED_NOTE = "The annotations of this server's tools are not trusted: nobody has checked them."
HINTS = (
    ("read_only_hint", True, "read-only"),
    ("destructive_hint", True, "destructive"),
    ("idempotent_hint", True, "idempotent"),
    ("open_world_hint", True, "open world"),
)


# The list


async def show_servers(request: ConsoleRequest) -> PageReply:
    """The list of servers, with what can be done with each."""
    servers = draw_servers(request, request.view.servers())
    body = element("div", {}, servers, draw_add_forms(request, {}, {}))
    return PageReply(title="Servers", body=body, section="servers", live=("servers",))


def draw_servers(request: ConsoleRequest, servers: Sequence[ServerStatus]) -> Markup:
    """The servers and how many there are of each state."""
    counts: dict[str, int] = {}
    for one in servers:
        counts[one.state] = counts.get(one.state, 0) + 1
    words = [element("span", {}, draw_badge(state), f" {count}") for state, count in counts.items()]
    table = draw_table(
        "Servers of this host",
        SERVER_COLUMNS,
        [_list_cells(request, one) for one in servers],
        empty="There are no servers yet: add one below.",
    )
    return element(
        "div", {}, element("p", {"class": "counts"}, *words) if words else NOTHING, table
    )


def _list_cells(request: ConsoleRequest, one: ServerStatus) -> list[Markup | str]:
    state = [draw_badge(one.state)]
    if one.retry_at is not None:
        state.append(
            element(
                "span", {"class": "beside"}, f"again in {format_span(one.retry_at - time.time())}"
            )
        )
    where = [draw_code(one.where)]
    if one.error:
        where.append(element("div", {"class": "why"}, one.error.partition("\n")[0]))
    return [
        draw_link(request.link("servers", one.name), one.name),
        element("div", {}, *state),
        one.revision,
        *(_write_count(count) for count in (one.tools, one.resources, one.prompts)),
        str(one.in_flight or ""),
        str(one.restarts or ""),
        format_span(time.time() - one.since) if one.since else "",
        element("div", {}, *where),
        element(
            "div", {"class": "buttons"}, *_draw_actions(request, one, ("start", "stop", "restart"))
        ),
    ]


def _write_count(count: int | None) -> str:
    return "" if count is None else str(count)


def list_actions(one: ServerStatus) -> tuple[ServerDo, ...]:
    """What can be done with a server in its state."""
    if one.state == "disabled":
        return ("enable",)
    if one.state in RUNNING_STATES:
        return ("stop", "restart", "disable")
    return ("start", "disable")


def _draw_actions(
    request: ConsoleRequest, one: ServerStatus, wanted: Sequence[ServerDo]
) -> Iterator[Markup]:
    for what in list_actions(one):
        if what in wanted or what == "enable":
            button = element(
                "button",
                {
                    "type": "submit",
                    "name": "what",
                    "value": what,
                    "class": "small",
                    "aria-label": f"{what} {one.name}",
                },
                what,
            )
            yield request.make_form(request.link("servers", one.name), button, attributes=INLINE)


# One server


async def show_server(request: ConsoleRequest) -> PageReply:
    """One server: its state, its tools, what it wrote, and what can be done with it."""
    name = request.parameters["name"]
    status = find_server(request, name)
    if status is None:
        return make_missing(f"There is no server {name!r}.")
    try:
        tools: Sequence[ToolState] = await request.view.server_tools(name)
        unknown = ""
    except IsthmusError as error:
        tools, unknown = (), str(error)
    tail = await request.view.log_tail(name)
    query = TrafficQuery(server=name, count=LATEST_CALLS)
    calls = draw_calls(request, query, await request.view.traffic(query))
    body = element(
        "div",
        {},
        draw_server(request, status),
        _draw_tools_part(request, status, tools, unknown),
        draw_section("Latest calls", calls, key="calls"),
        draw_section("Standard error", _draw_log(tail), key="log"),
        draw_section("Remove it", _draw_removal(request, status), key="remove"),
    )
    return PageReply(title=name, body=body, section="servers", live=(f"server:{name}",))


def find_server(request: ConsoleRequest, name: str) -> ServerStatus | None:
    """The status of a server; None where there is none of this name."""
    return next((one for one in request.view.servers() if one.name == name), None)


def make_missing(text: str) -> PageReply:
    """The reply about something that is not there."""
    return PageReply(title="Not found", body=draw_empty(text), status=404, section="servers")


def draw_server(request: ConsoleRequest, status: ServerStatus) -> Markup:
    """The state of a server, and what can be done with it."""
    return element("div", {}, _draw_head(request, status), _draw_status(status))


def _draw_tools_part(
    request: ConsoleRequest, status: ServerStatus, tools: Sequence[ToolState], unknown: str
) -> Markup:
    counts = status.trust in {"annotations", "full"}
    return draw_section(
        f"Tools ({len(tools)})" if tools else "Tools",
        draw_notice(unknown, "bad") if unknown else draw_tools(request, status.name, tools),
        key="tools",
        note=TRUSTED_NOTE if counts else UNTRUSTED_NOTE,
    )


def _draw_log(tail: Sequence[str]) -> Markup:
    if not tail:
        return draw_empty("The server wrote nothing to standard error.")
    return draw_block("\n".join(tail), "log")


def _draw_head(request: ConsoleRequest, status: ServerStatus) -> Markup:
    links = (
        draw_link(request.link("traffic", server=status.name), "Its calls"),
        draw_link(request.link("audit", server=status.name), "Its audit rows"),
        draw_link(request.link("doctor", status.name), "Examine it"),
    )
    return element(
        "div",
        {"class": "page-head"},
        element(
            "div",
            {"class": "buttons"},
            draw_badge(status.state),
            *_draw_actions(request, status, ACTIONS),
        ),
        element("div", {"class": "links"}, *links),
    )


def _draw_status(status: ServerStatus) -> Markup:
    first, _, rest = status.error.partition("\n")
    error = NOTHING
    if first:
        error = element(
            "div",
            {"class": "notice notice-bad"},
            element("p", {}, first),
            draw_block(rest) if rest else NOTHING,
        )
    has = ", ".join(
        format_count(count, what)
        for what, count in (
            ("tool", status.tools),
            ("resource", status.resources),
            ("prompt", status.prompts),
        )
        if count is not None
    )
    facts = [
        ("where", draw_code(status.where)),
        ("calls itself", status.said),
        ("speaks", status.revision),
        ("has", has),
        ("running calls", str(status.in_flight)),
        ("connections", str(status.connections or "")),
        ("restarted", format_count(status.restarts, "time") if status.restarts else ""),
        ("violations", format_count(status.strikes, "time") if status.strikes else ""),
        ("trust", status.trust),
        ("process", str(status.pid or "")),
        ("since", draw_time(status.since)),
        ("next attempt", draw_time(status.retry_at)),
        ("configured in", draw_code(status.source)),
    ]
    return element("div", {}, error, draw_facts(facts))


def _draw_removal(request: ConsoleRequest, status: ServerStatus) -> Markup:
    button = element(
        "button",
        {"type": "submit", "name": "what", "value": "remove", "class": "danger"},
        f"Remove {status.name}",
    )
    form = request.make_form(request.link("servers", status.name), button)
    return draw_fold("Remove the server from the configuration, and stop it", form)


def draw_tools(request: ConsoleRequest, server: str, tools: Sequence[ToolState]) -> Markup:
    """The tools of a server: those that are quarantined first."""
    ordered = sorted(tools, key=lambda one: one.state not in {"quarantined", "changed"})
    return draw_table(
        f"Tools of {server}",
        TOOL_COLUMNS,
        [_list_tool_cells(request, server, one) for one in ordered],
        empty="The server has no tools, or was not asked for them yet.",
    )


def _list_tool_cells(request: ConsoleRequest, server: str, one: ToolState) -> list[Markup | str]:
    about = (one.tool.description or "").strip().partition("\n")[0]
    return [
        draw_link(request.link("servers", server, "tools", one.tool.name), one.tool.name),
        draw_badge(one.state),
        draw_claims(one),
        about[:240],
        draw_code(one.fingerprint[:12]),
    ]


def draw_claims(one: ToolState) -> Markup:
    """What a server says about a tool, and whether that counts."""
    hints = one.tool.annotations
    said = [words for name, value, words in HINTS if hints and getattr(hints, name, None) is value]
    if not said:
        return element("span", {"class": "beside"}, "nothing")
    look = "plain" if one.trusted else "doubted"
    return element(
        "span",
        {"class": f"claims claims-{look}"},
        ", ".join(said),
        "" if one.trusted else " (unchecked)",
    )


# What is done with servers


async def change_server(request: ConsoleRequest) -> ConsoleReply:
    """Start, stop, restart, enable, disable or remove a server."""
    name, what = request.parameters["name"], request.fields.get("what", "")
    view, by = request.view, name_actor(request.visitor.name)
    if find_server(request, name) is None:
        return make_missing(f"There is no server {name!r}.")
    action = next((one for one in ACTIONS if one == what), None)
    try:
        if what == "remove":
            await view.remove_server(name, by=by)
            return PageRedirect(request.link("servers"))
        if action is not None:
            await view.server_do(name, action, by=by)
            return PageRedirect(request.link("servers", name))
    except IsthmusError as error:
        notice = draw_notice(f"{what} did not work: {error}", "bad")
        back = draw_link(request.link("servers", name), f"Back to {name}")
        body = element("div", {}, notice, back)
        return PageReply(title=name, body=body, status=409, section="servers")
    notice = draw_notice("Choose one of the actions on this page.", "bad")
    return PageReply(title="Not done", body=notice, status=400, section="servers")


async def add_servers(request: ConsoleRequest) -> ConsoleReply:
    """Add one server by a form, or several by a piece of a configuration."""
    fields = request.fields
    try:
        if fields.get("pasted", "").strip():
            entries = read_pasted(fields["pasted"])
        else:
            entries = {fields.get("name", "").strip(): read_entry(fields)}
    except BadServerForm as error:
        return _show_faults(request, {error.field: str(error)})
    added: list[str] = []
    for name, entry in entries.items():
        try:
            await request.view.add_server(name, entry, by=name_actor(request.visitor.name))
        except IsthmusError as error:
            key = "pasted" if fields.get("pasted", "").strip() else "name"
            return _show_faults(request, {key: f"{name}: {error}"}, added)
        added.append(name)
    only = next(iter(entries)) if len(entries) == 1 else ""
    return PageRedirect(request.link("servers", *([only] if only else [])))


def _show_faults(
    request: ConsoleRequest, faults: Mapping[str, str], added: Sequence[str] = ()
) -> PageReply:
    """The forms with what is wrong, and which servers were added before."""
    done = f"Only these were added: {', '.join(added)}." if added else "Nothing was added."
    body = element(
        "div",
        {},
        draw_notice(done, "bad"),
        draw_add_forms(request, request.fields, faults),
    )
    return PageReply(title="Add a server", body=body, status=400, section="servers")


class BadServerForm(Exception):
    """A form that is no server's; the message says why, and ``field`` at which field."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


def read_entry(fields: Mapping[str, str]) -> dict[str, Any]:
    """The entry of a server as a form has it.

    Raises:
        BadServerForm: it names no place, or a pair is none.
    """
    if not fields.get("name", "").strip():
        raise BadServerForm("name", "a server needs a name")
    where = fields.get("where", "").strip()
    if not where:
        raise BadServerForm("where", "write a URL, or a command with its arguments")
    pairs = _read_pairs(fields.get("pairs", ""))
    if where.startswith(("http://", "https://", "ws://", "wss://")):
        return {"url": where, **({"headers": pairs} if pairs else {})}
    try:
        command, *arguments = shlex.split(where)
    except ValueError as error:
        raise BadServerForm("where", f"the command is not quoted right: {error}") from None
    return {"command": command, "args": arguments, **({"env": pairs} if pairs else {})}


def _read_pairs(text: str) -> dict[str, str]:
    pairs = {}
    for line in text.splitlines():
        name, sign, value = line.partition("=")
        if not line.strip():
            continue
        if not sign or not name.strip():
            raise BadServerForm("pairs", f"{line.strip()[:40]!r} is not NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def read_pasted(text: str) -> dict[str, Mapping[str, Any]]:
    """The entries of a pasted piece of configuration: ``mcpServers``, ``servers``, or names alone.

    Raises:
        BadServerForm: it is no JSON, or holds no servers.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadServerForm("pasted", f"this is not JSON: {error}") from None
    if isinstance(value, dict):
        value = value.get("mcpServers", value.get("servers", value))
    if (
        not isinstance(value, dict)
        or not value
        or not all(isinstance(one, dict) for one in value.values())
    ):
        raise BadServerForm(
            "pasted", 'there are no servers in it: {"mcpServers": {"name": {"command": "…"}}}'
        )
    return value


def draw_add_forms(
    request: ConsoleRequest, filled: Mapping[str, str], faults: Mapping[str, str]
) -> Markup:
    """The forms to add servers."""
    opened = bool(faults)
    single = request.make_form(
        request.link("servers"),
        draw_field(
            "name",
            "Name",
            filled.get("name", ""),
            fault=faults.get("name", ""),
            hint="lower case, digits, . and -",
        ),
        draw_field(
            "where",
            "Command or URL",
            filled.get("where", ""),
            fault=faults.get("where", ""),
            hint="uvx mcp-server-time, or https://example.com/mcp",
        ),
        draw_field(
            "pairs",
            "Environment or headers",
            filled.get("pairs", ""),
            rows=3,
            fault=faults.get("pairs", ""),
            hint="NAME=VALUE, one per line. Write secrets as ${NAME}, and set these variables for the host.",
        ),
        element("button", {"type": "submit", "class": "main"}, "Add"),
        attributes={"class": "stack"},
    )
    pasted = request.make_form(
        request.link("servers"),
        draw_field(
            "pasted",
            "Part of an mcp.json",
            filled.get("pasted", ""),
            rows=8,
            fault=faults.get("pasted", ""),
            hint='{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}',
        ),
        element("button", {"type": "submit", "class": "main"}, "Add all"),
        attributes={"class": "stack"},
    )
    note = element(
        "p",
        {"class": "note"},
        "The Inbox asks before the first start of a program and the first connection to an address.",
    )
    both = element("div", {"class": "columns"}, single, pasted)
    return draw_fold("Add a server", note, both, opened=opened, key="add")
