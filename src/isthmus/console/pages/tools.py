"""Page of a tool: its claims, definition, fingerprint and quarantine, and a form to try it."""

from collections.abc import Mapping, Sequence

import msgspec

from isthmus.cards.markup import Markup, element
from isthmus.console.drawing.call_line import write_call_line
from isthmus.console.drawing.page_parts import (
    INLINE,
    NOTHING,
    draw_badge,
    draw_block,
    draw_code,
    draw_command,
    draw_empty,
    draw_facts,
    draw_fold,
    draw_link,
    draw_notice,
    draw_section,
    draw_time,
    draw_value,
    name_actor,
)
from isthmus.console.drawing.tool_form import (
    JSON_FIELD,
    ToolField,
    draw_tool_form_fields,
    fill_tool_form,
    list_tool_fields,
    read_tool_form,
)
from isthmus.console.drawing.tool_results import draw_result
from isthmus.console.pages.servers import draw_claims, make_missing
from isthmus.console.pages.tool_tries import (
    ToolTries,
    ToolTry,
    TooManyTries,
    find_waiting,
    make_try,
)
from isthmus.console.requests import ConsoleReply, ConsoleRequest, PageRedirect, PageReply
from isthmus.errors import IsthmusError
from isthmus.host.catalog.names import make_name
from isthmus.host.model.errors import Denied
from isthmus.host.model.view import ToolState

NO_TOOL_TEXT = (
    "There is no such tool, or its server was not asked for its tools yet: start the server."
)
DIFF_LOOKS = {"+": "added", "-": "removed"}


async def show_tool(request: ConsoleRequest) -> PageReply:
    """A tool, its form, and the call that was made from it last."""
    found = await find_tool(request)
    if found is None:
        return make_missing(NO_TOOL_TEXT)
    made = request.find_state(ToolTries).find(
        request.fields.get("try", ""), request.visitor.session
    )
    body = draw_tool(request, found, {}, {}, made)
    running = made is not None and made.seconds is None
    live = ("inbox", "traffic") if running else ()
    return PageReply(title=found.tool.name, body=body, section="servers", live=live)


async def use_tool(request: ConsoleRequest) -> ConsoleReply:
    """Call a tool as the person at the browser, stop such a call, or release a tool."""
    found = await find_tool(request)
    if found is None:
        return make_missing(NO_TOOL_TEXT)
    server, path = request.parameters["name"], make_tool_path(request)
    what = request.fields.get("what", "")
    if what == "release":
        return await _release_tool(request, found)
    if what == "stop":
        made = request.find_state(ToolTries).find(
            request.fields.get("try", ""), request.visitor.session
        )
        if made is not None:
            request.find_state(ToolTries).stop(made.id)
        return PageRedirect(path)
    return await _try_tool(request, found, server)


async def _release_tool(request: ConsoleRequest, found: ToolState) -> ConsoleReply:
    """Release a tool as it was shown: one that has changed since stays where it is."""
    why_not, status = "Nothing was released: the definition has changed again. Read it first.", 409
    try:
        released = await request.view.release_tool(
            request.parameters["name"],
            found.tool.name,
            fingerprint=request.fields.get("fingerprint", ""),
            by=name_actor(request.visitor.name),
        )
    except Denied as denied:
        released, why_not, status = False, str(denied), 403
    if released:
        return PageRedirect(make_tool_path(request))
    body = element(
        "div",
        {},
        draw_notice(why_not, "bad"),
        draw_tool(request, found, {}, {}),
    )
    return PageReply(title=found.tool.name, body=body, status=status, section="servers")


async def _try_tool(request: ConsoleRequest, found: ToolState, server: str) -> ConsoleReply:
    schema = found.tool.input_schema
    fields = list_tool_fields(schema)
    values = read_tool_form(fields, schema, request.fields)
    if values.faults:
        body = draw_tool(request, found, request.fields, values.faults)
        return PageReply(title=found.tool.name, body=body, status=400, section="servers")
    made = make_try(
        session=request.visitor.session,
        server=server,
        tool=found.tool.name,
        name=make_name(server, found.tool.name),
        principal=request.visitor.principal,
        arguments=values.arguments,
    )
    try:
        await request.find_state(ToolTries).begin(request.view, made)
    except TooManyTries:
        faults = {
            JSON_FIELD: "many calls from this console are under way: wait until one has ended"
        }
        body = draw_tool(request, found, request.fields, faults)
        return PageReply(title=found.tool.name, body=body, status=429, section="servers")
    return PageRedirect(make_tool_path(request, made.id) + "#result")


async def find_tool(request: ConsoleRequest) -> ToolState | None:
    """The tool that an address names; None where there is none."""
    server, tool = request.parameters["name"], request.parameters["tool"]
    if all(one.name != server for one in request.view.servers()):
        return None
    try:
        tools = await request.view.server_tools(server)
    except IsthmusError:
        return None
    return next((one for one in tools if one.tool.name == tool), None)


def make_tool_path(request: ConsoleRequest, made: str = "") -> str:
    """The address of a tool's page, with a call that was made from it."""
    parts = request.parameters
    query = {"try": made} if made else {}
    return request.link("servers", parts["name"], "tools", parts["tool"], **query)


def draw_tool(
    request: ConsoleRequest,
    found: ToolState,
    filled: Mapping[str, str],
    faults: Mapping[str, str],
    made: ToolTry | None = None,
) -> Markup:
    """The page of a tool.

    Args:
        request: of the browser.
        found: the tool.
        filled: the form as it was sent.
        faults: what is wrong with it.
        made: the call made from this page that is shown.
    """
    tool = found.tool
    fields = list_tool_fields(tool.input_schema)
    if made is not None and not filled:
        filled = fill_tool_form(fields, made.arguments)
    form = _draw_try_form(request, fields, filled, faults)
    left = element(
        "div",
        {},
        draw_section("Description", draw_block(tool.description or "(none)", "said")),
        draw_section("Try it", form, key="try"),
    )
    right = element(
        "div",
        {},
        _draw_try(request, made) if made is not None else NOTHING,
        draw_section("Definition", *_draw_definition(found), key="definition"),
    )
    return element(
        "div", {}, _draw_state(request, found), element("div", {"class": "tool"}, left, right)
    )


def _draw_state(request: ConsoleRequest, found: ToolState) -> Markup:
    server = request.parameters["name"]
    facts = draw_facts(
        [
            ("server", draw_link(request.link("servers", server), server)),
            ("name in this host", draw_code(make_name(server, found.tool.name))),
            ("title", found.tool.title or ""),
            ("state", draw_badge(found.state)),
            ("annotations", draw_claims(found)),
            ("fingerprint", element("code", {"class": "digest"}, found.fingerprint)),
        ]
    )
    if found.state not in {"quarantined", "changed"}:
        return facts
    shown = element("input", {"type": "hidden", "name": "fingerprint", "value": found.fingerprint})
    button = element(
        "button",
        {"type": "submit", "name": "what", "value": "release", "class": "danger"},
        "Release this definition",
    )
    return element(
        "div",
        {},
        facts,
        draw_section(
            "Quarantine",
            draw_notice(
                "The definition of this tool has changed since it was allowed. Nobody can call the tool until it is released.",
                "bad",
            ),
            draw_diff(found.diff),
            request.make_form(make_tool_path(request), shown, button),
            key="quarantine",
        ),
    )


def draw_diff(lines: Sequence[str]) -> Markup:
    """The lines of a diff: a sign before each, and a colour besides."""
    if not lines:
        return draw_empty("The earlier definition is unknown.")
    drawn = [
        element(
            "span", {"class": f"line line-{DIFF_LOOKS.get(line.lstrip()[:1], 'same')}"}, line + "\n"
        )
        for line in lines
    ]
    return element("pre", {"class": "block diff", "tabindex": "0"}, *drawn)


def _draw_definition(found: ToolState) -> list[Markup]:
    tool = found.tool
    parts = [draw_fold("Input schema", draw_value(tool.input_schema), opened=True)]
    if isinstance(tool.output_schema, Mapping):
        parts.append(draw_fold("Output schema", draw_value(tool.output_schema)))
    parts.append(draw_fold("Whole definition", draw_value(msgspec.to_builtins(tool))))
    return parts


def _draw_try_form(
    request: ConsoleRequest,
    fields: Sequence[ToolField],
    filled: Mapping[str, str],
    faults: Mapping[str, str],
) -> Markup:
    button = element(
        "button", {"type": "submit", "name": "what", "value": "try", "class": "main"}, "Call it"
    )
    note = element(
        "p",
        {"class": "note"},
        f"The call goes through policy, approval and audit as {request.visitor.principal}, like any other.",
    )
    return request.make_form(
        make_tool_path(request),
        note,
        *draw_tool_form_fields(fields, filled, faults),
        button,
        attributes={"class": "stack tool-form"},
    )


def _draw_try(request: ConsoleRequest, made: ToolTry) -> Markup:
    told: list[Markup] = [
        draw_facts(
            [
                ("called", draw_time(made.begun)),
                ("arguments", draw_value(made.arguments) if made.arguments else "(none)"),
                ("again", draw_command("command", write_call_line(made.name, made.arguments))),
            ]
        )
    ]
    if made.seconds is None:
        told.append(_draw_waiting(request, made))
    elif made.result is not None:
        told.append(draw_result(made.result, made.seconds))
    else:
        told.append(draw_notice(f"The call was not completed: {made.error}", "bad"))
    return draw_section("Result", *told, key="result")


def _draw_waiting(request: ConsoleRequest, made: ToolTry) -> Markup:
    asked = find_waiting(made, request.view.pending())
    hidden = element("input", {"type": "hidden", "name": "try", "value": made.id})
    stop = element("button", {"type": "submit", "name": "what", "value": "stop"}, "Stop it")
    again = draw_link(make_tool_path(request, made.id) + "#result", "Look again")
    if asked is None:
        said = draw_notice("The call is running.")
    else:
        link = draw_link(request.link("inbox", asked.id), "Decide in the Inbox")
        said = element(
            "p",
            {"class": "notice notice-warn", "role": "status"},
            "The call waits for approval. ",
            link,
        )
    return element(
        "div",
        {},
        said,
        element(
            "div",
            {"class": "buttons"},
            again,
            request.make_form(make_tool_path(request), hidden, stop, attributes=INLINE),
        ),
    )
