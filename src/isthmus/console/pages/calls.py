"""Page of a call: its timeline, conversation and arguments; copy it, make a rule of it, stop it."""

from isthmus.cards.markup import Markup, Verbatim, element
from isthmus.console.drawing.call_line import write_call_line
from isthmus.console.drawing.call_timeline import draw_conversation, draw_timeline
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
from isthmus.console.drawing.plots import format_seconds
from isthmus.console.drawing.rule_text import write_rule
from isthmus.console.pages.servers import make_missing
from isthmus.console.requests import ConsoleReply, ConsoleRequest, PageRedirect, PageReply
from isthmus.host.catalog.names import make_name
from isthmus.host.model.trace import Effect
from isthmus.host.model.view import CallRecord

RULE_EFFECTS: tuple[Effect, ...] = ("allow", "ask", "deny")


async def show_call(request: ConsoleRequest) -> PageReply:
    """One call, as it went."""
    record = await find_call(request)
    if record is None:
        return make_missing(
            "There is no such call, or it is no longer kept here: search the audit log."
        )
    wire = NOTHING
    if request.fields.get("wire"):
        messages = await request.view.wire_messages(record.id)
        wire = draw_conversation(record, messages)
    body = draw_call(request, record, wire)
    running = record.outcome == "running"
    return PageReply(
        title=record.object or record.action,
        body=body,
        section="traffic",
        live=(f"call:{record.id}", "inbox") if running else (),
    )


async def find_call(request: ConsoleRequest) -> CallRecord | None:
    """The call that an address names; None where there is none, or it is none of the visitor's."""
    visitor = request.visitor
    record = await request.view.call_record(request.parameters["call"])
    if record is None or (not visitor.operator and record.owner != visitor.principal):
        return None
    return record


async def stop_call(request: ConsoleRequest) -> ConsoleReply:
    """Stop a call that is under way."""
    id = request.parameters["call"]
    if await find_call(request) is None:
        return make_missing("There is no such call.")
    if not await request.view.stop_call(id, by=name_actor(request.visitor.name)):
        notice = draw_notice("The call has ended already: nothing was stopped.")
        return PageReply(title="Not stopped", body=notice, status=409, section="traffic")
    return PageRedirect(request.link("traffic", id))


def draw_call(request: ConsoleRequest, record: CallRecord, wire: Markup) -> Markup:
    """The page of a call.

    Args:
        request: of the browser.
        record: the call.
        wire: its conversation, where that was asked for.
    """
    return element(
        "div",
        {},
        element(
            "div",
            {},
            _draw_head(request, record),
            draw_timeline(record),
        ),
        draw_section(
            "Arguments",
            draw_value(record.arguments) if record.arguments else draw_empty("It has none."),
        ),
        draw_section("Conversation", wire or _draw_wire_link(request, record), key="wire"),
        draw_section("Repeat the call", _draw_copy(record), key="copy"),
        draw_section("Make a rule", _draw_rules(request, record), key="rule")
        if request.visitor.operator
        else NOTHING,
    )


def _draw_head(request: ConsoleRequest, record: CallRecord) -> Markup:
    stop, operator = NOTHING, request.visitor.operator
    if record.outcome == "running":
        button = element("button", {"type": "submit", "class": "danger"}, "Stop it")
        stop = request.make_form(request.link("traffic", record.id), button, attributes=INLINE)
    waiting = [
        draw_link(request.link("inbox", one), "Question that the call waits for")
        for one in record.questions
        if record.outcome == "running"
    ]
    error = draw_notice(record.error, "bad") if record.error else NOTHING
    client = " ".join(part for part in (record.client, record.client_revision) if part)
    decided = (
        element("span", {}, draw_badge(record.effect), " ", draw_code(record.rule))
        if record.effect
        else ""
    )
    facts = draw_facts(
        [
            ("outcome", draw_badge(record.outcome)),
            ("took", format_seconds(record.seconds) if record.seconds is not None else ""),
            ("at", draw_time(record.at)),
            (
                "server",
                draw_link(request.link("servers", record.server), record.server)
                if record.server and operator
                else record.server,
            ),
            ("action", record.action),
            ("for", record.principal),
            ("asker", record.asker),
            ("client", client),
            ("came through", record.origin),
            ("server speaks", record.revision),
            ("decided", decided),
            ("because", record.reason),
            ("waits", element("span", {}, waiting) if waiting else ""),
            ("tokens", f"{record.tokens:,}" if record.tokens else ""),
            (
                "audit",
                draw_link(request.link("audit", call=record.id), "rows of this call")
                if operator
                else "",
            ),
        ]
    )
    return element("div", {}, error, facts, stop)


def _draw_wire_link(request: ConsoleRequest, record: CallRecord) -> Markup:
    link = draw_link(
        request.link("traffic", record.id, wire="1") + "#wire", "Show the messages on the wire"
    )
    return element("p", {}, link, ", without secrets.")


def _draw_copy(record: CallRecord) -> Markup:
    if record.action != "tool.call":
        return draw_empty("Only tool calls can be repeated by a command.")
    arguments = record.arguments
    if not isinstance(arguments, dict):
        return draw_empty("The arguments were too large to be kept: no command repeats this call.")
    line = write_call_line(make_name(record.server, record.object), arguments)
    note = ""
    if "[redacted]" in line:
        note = "Secrets are not kept: write them in place of [redacted]."
    said = element("p", {"class": "note"}, note) if note else NOTHING
    return element("div", {}, draw_command("command", line), said)


def _draw_rules(request: ConsoleRequest, record: CallRecord) -> Markup:
    offers = []
    for effect in RULE_EFFECTS:
        text = write_rule(
            effect,
            action=record.action,
            server=record.server,
            object=record.object,
            principal=record.principal,
            arguments=record.arguments,
        )
        button = element("button", {"type": "submit"}, "Test it on past calls")
        form = request.make_form(
            request.link("access", "policy", "replay"),
            element("input", {"type": "hidden", "name": "text", "value": Verbatim(text)}),
            button,
        )
        offers.append(
            draw_fold(f"{effect} such calls", draw_block(text), form, key=f"rule-{effect}")
        )
    note = element(
        "p",
        {"class": "note"},
        "Remove the conditions that should not matter, and add the rule to your policy file.",
    )
    return element("div", {}, note, *offers)
