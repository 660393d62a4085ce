"""Cards of questions: everything that concerns a decision, as lines, never cut.

The full screen, the plain prompt and the conversation show the same card. It tells what there is to
be seen of each kind of question, and what of it may be edited.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, structs

from isthmus.cards.lines import (
    StyledLine,
    diff_values,
    display_name,
    field_line,
    format_json,
    head_line,
    join_lines,
    list_arguments,
    quote_block,
    style_diff,
    warning_line,
)
from isthmus.core.form_fields import FormField, format_answer, list_fields
from isthmus.core.text import find_mixed_scripts
from isthmus.host.model.interaction import (
    CallAsked,
    ChangeAsked,
    ConnectAsked,
    FormAsked,
    InstallAsked,
    Interaction,
    PageAsked,
    Payload,
    PromptAsked,
    ReadAsked,
    RootsAsked,
    SamplingAsked,
    SamplingWritten,
    ShareAsked,
)
from isthmus.host.model.trace import Trace
from isthmus.host.sampling.request import EDITABLE_MEMBERS as SAMPLING
from isthmus.wire import (
    AudioContent,
    CreateMessageParams,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    Tool,
    ToolAnnotations,
)

QUESTION_TEXTS: Mapping[str, str] = {
    "server.install": "May the server {server} be run on this machine?",
    "server.connect": "May the server {server} be connected to?",
    "tool.call": "May the tool {object} of {server} be called?",
    "tool.change": "The tool {object} of {server} has changed. May the new one be used?",
    "resource.read": "May {object} of {server} be read?",
    "resource.subscribe": "May changes of {object} of {server} be watched?",
    "prompt.get": "May the prompt {object} of {server} be fetched?",
    "completion": "May {server} be asked how to complete {object}?",
    "task.cancel": "May the task {object} of {server} be cancelled?",
    "sampling.request": "{server} asks a model to write something. Send the request?",
    "sampling.respond": "The model has answered. Send its answer to {server}?",
    "elicit.form": "{server} asks you to fill in a form.",
    "elicit.url": "{server} asks you to open a page.",
    "roots.expose": "May {server} know of these folders?",
    "context.share": "May this be shared with somebody else?",
}

ORIGIN_TEXTS: Mapping[str, str] = {
    "local": "a program that uses this host",
    "attached": "a program that is attached to this host",
    "gateway": "a client of the gateway",
    "request": "a request by the server",
    "result": "the server, in answer to a call",
    "task": "a task of the server",
    "search": "the search tools",
    "app": "an app of the server",
    "code": "code that a model wrote",
}

RISK_TEXTS: Mapping[str, str] = {
    "low": "low",
    "medium": "medium",
    "high": "HIGH: to allow it, confirm it twice",
}


class Card(Struct, frozen=True):
    """A question, ready to be shown.

    Attributes:
        title: the question in one line.
        lines: everything about it.
    """

    title: str
    lines: tuple[StyledLine, ...]

    def text(self) -> str:
        """All of it as plain text."""
        return join_lines((StyledLine(self.title, "title"), *self.lines))


def format_question(interaction: Interaction) -> str:
    """The question in one line."""
    attempt = interaction.attempt
    form = QUESTION_TEXTS.get(attempt.action, "May {server} do {object}?")
    server, object = display_name(attempt.server), display_name(attempt.object) or "something"
    return form.format(server=server or "a server", object=object)


def make_card(interaction: Interaction, edited: Any = UNSET) -> Card:
    """The card of a question.

    Args:
        interaction: the question.
        edited: what would stand in place of what was asked; unset where nothing was changed.
    """
    return Card(format_question(interaction), tuple(_list_card_lines(interaction, edited)))


def _list_card_lines(interaction: Interaction, edited: Any) -> Iterator[StyledLine]:
    yield from _describe_origin(interaction)
    if edited is not UNSET:
        yield head_line("your changes")
        yield from diff_values(list_editable(interaction), edited)
    yield from describe_payload(interaction.payload)
    yield head_line("why you are asked")
    yield from explain_trace(interaction.trace, brief=True)
    yield from describe_definition(interaction.payload)


def _describe_origin(interaction: Interaction) -> Iterator[StyledLine]:
    """Server and origin stand on every card, at its top."""
    attempt = interaction.attempt
    # spec 2026-07-28 client/elicitation#security-considerations: MUST indicate which server asks
    yield field_line("server", attempt.server or "none")
    asker = f"{attempt.asker}, for {attempt.principal}" if attempt.asker else attempt.principal
    yield field_line("asked by", f"{asker}, through {ORIGIN_TEXTS[attempt.origin]}")
    if attempt.parent:
        yield field_line("during", f"{attempt.course} ({attempt.parent})".strip())
    if attempt.run:
        yield field_line("run", attempt.run)
    yield StyledLine(
        f"  risk: {RISK_TEXTS[interaction.risk]}", "warn" if interaction.risk == "high" else "dim"
    )
    for what in (attempt.server, attempt.object):
        scripts = find_mixed_scripts(what)
        if scripts:
            yield warning_line(f"the name {what} has letters of {scripts}, which can look alike")


def explain_trace(trace: Trace, *, brief: bool = False) -> Iterator[StyledLine]:
    """The decision of policy as lines: effect, rule, reason, obligations.

    Args:
        trace: its answer.
        brief: the reason, the rule and the flow of data only.
    """
    layer = trace.matches[0].layer if trace.matches else ""
    yield field_line("reason", trace.reason or "the policy asks")
    yield field_line("rule", f"{trace.rule} ({layer})" if layer else trace.rule)
    for step in trace.chain:
        yield warning_line(step)
    if brief:
        return
    yield field_line("effect", trace.effect)
    if trace.grant:
        yield field_line("grant", trace.grant)
    for match in trace.matches:
        yield field_line("matching rule", f"{match.rule} ({match.layer}): {match.effect}")
    yield from _list_obligations(trace)
    yield field_line("policy", trace.policy or "not named")


def _list_obligations(trace: Trace) -> Iterator[StyledLine]:
    demanded = trace.obligations
    yield field_line("required assurance", demanded.assurance)
    yield field_line("can be remembered for", ", ".join(demanded.remember))
    if demanded.timeout is not None:
        yield field_line("time to answer", f"{demanded.timeout:g} s")
    if demanded.max_calls is not None:
        yield field_line("calls per run", demanded.max_calls)
    if demanded.redact:
        yield field_line("redacted", ", ".join(demanded.redact))


TOOL_HINTS = (
    # what it says, what holds where it says nothing
    ("read_only_hint", "read-only", False),
    ("destructive_hint", "destructive", True),
    ("idempotent_hint", "idempotent", False),
    ("open_world_hint", "open world", True),
)


def describe_payload(payload: Payload) -> Iterator[StyledLine]:
    """The payload of a question as lines: all that a person has to see before they decide."""
    yield from DESCRIBERS[type(payload)](payload)


def describe_definition(payload: Payload) -> Iterator[StyledLine]:
    """The whole definition of the tool that would be called, as lines."""
    if isinstance(payload, CallAsked):
        rest = structs.replace(payload.tool, description=UNSET, title=UNSET, annotations=UNSET)
        yield head_line("definition of the tool")
        yield from quote_block(format_json(rest))


def list_editable(interaction: Interaction) -> Any:
    """The part of a question that may be edited, as plain data; unset where nothing may."""
    payload = interaction.payload
    edit = EDITABLE.get(type(payload))
    return UNSET if edit is None else msgspec.to_builtins(edit(payload))


def _describe_call(payload: CallAsked) -> Iterator[StyledLine]:
    yield head_line("arguments")
    yield from list_arguments(payload.arguments)
    yield head_line("description by the server")
    yield from _describe_tool(payload.tool, trusted=payload.trusted)


def _describe_tool(tool: Tool, *, trusted: bool) -> Iterator[StyledLine]:
    if tool.title:
        yield field_line("title", tool.title)
    yield from quote_block(tool.description or "(no description)")
    given = tool.annotations or ToolAnnotations()
    word = "trusted" if trusted else "claimed, not trusted"
    for member, meaning, default in TOOL_HINTS:
        says = getattr(given, member)
        told = (
            f"{_format_bool(default)} (default)"
            if says is UNSET
            else f"{_format_bool(says)} ({word})"
        )
        yield field_line(meaning, told)


def _format_bool(value: object) -> str:
    return "yes" if value else "no"


def _describe_read(payload: ReadAsked) -> Iterator[StyledLine]:
    yield head_line("skill" if payload.skill else "resource")
    yield from quote_block(payload.uri)
    if payload.skill:
        yield field_line("name", payload.skill)
        yield head_line("purpose, according to the server")
        yield from quote_block(payload.description)
        yield head_line("files")
        yield from quote_block("\n".join(payload.files))


def _describe_prompt(payload: PromptAsked) -> Iterator[StyledLine]:
    yield field_line("prompt", payload.name)
    yield head_line("arguments")
    yield from list_arguments(payload.arguments)


def _describe_sampling(payload: SamplingAsked) -> Iterator[StyledLine]:
    yield head_line("model")
    yield field_line("selected", payload.model)
    for step in payload.selection:
        yield field_line("because", step)
    if payload.models:
        yield field_line("other models", ", ".join(payload.models))
    yield field_line("prompt", f"about {payload.tokens} tokens")
    yield field_line("output limit", f"{payload.params.max_tokens} tokens")
    yield field_line("cost", _format_money(payload.cost))
    yield from _describe_messages(payload.params)


def _describe_messages(params: CreateMessageParams) -> Iterator[StyledLine]:
    if params.system_prompt is not UNSET:
        yield head_line("system prompt")
        yield from quote_block(params.system_prompt)
    for message in params.messages:
        yield head_line(f"message of the {message.role}")
        yield from _describe_content(message.content)
    if params.tools:
        yield head_line("tools the model may call")
        for tool in params.tools:
            yield field_line("tool", tool.name)
            yield from quote_block(tool.description or "(no description)")
            yield from quote_block(format_json(tool.input_schema))
    rest = structs.replace(params, messages=[], system_prompt=UNSET, tools=UNSET)
    plain = {k: v for k, v in msgspec.to_builtins(rest).items() if k not in {"messages", "tools"}}
    yield head_line("other parameters")
    yield from quote_block(format_json(plain))


def _describe_content(content: Any) -> Iterator[StyledLine]:
    """Text as it is, pictures and sound by their kind and size, all else as JSON."""
    for part in content if isinstance(content, list) else [content]:
        match part:
            case TextContent():
                yield from quote_block(part.text)
            case ImageContent() | AudioContent():
                yield field_line(part.mime_type, f"{len(part.data) * 3 // 4} bytes")
            case _:
                yield from quote_block(format_json(part))


def _describe_written(payload: SamplingWritten) -> Iterator[StyledLine]:
    yield head_line("the model's answer")
    yield from _describe_content(payload.result.content)
    yield field_line("model", payload.result.model)
    yield field_line("stop reason", payload.result.stop_reason or "none")
    yield field_line("tokens", f"{payload.tokens_in} input, {payload.tokens_out} output")
    yield field_line("cost", _format_money(payload.cost))
    yield head_line("the request to the model")
    yield from _describe_messages(payload.params)


def _format_money(micro: int | None) -> str:
    return "not known" if micro is None else f"about ${micro / 1_000_000:.6f}"


def _describe_form(payload: FormAsked) -> Iterator[StyledLine]:
    yield from map(warning_line, payload.concerns)
    yield head_line("the question")
    yield from quote_block(payload.params.message)
    yield head_line("the form")
    for blank in list_fields(payload.params.requested_schema or {}):
        yield from _describe_blank(blank)


def _describe_blank(blank: FormField) -> Iterator[StyledLine]:
    needed = "required" if blank.required else "optional"
    yield field_line(
        blank.name, f"{blank.title} ({', '.join(map(str, blank.describe_value()))}; {needed})"
    )
    for text in blank.explanation():
        yield from quote_block(text)
    if blank.default is not None:
        yield field_line("default", format_answer(blank.default))


def _describe_page(payload: PageAsked) -> Iterator[StyledLine]:
    # spec 2026-07-28 client/elicitation#safe-url-handling: show the full URL, with its host
    yield field_line("host", payload.host)
    yield from map(warning_line, payload.concerns)
    yield head_line("full URL")
    yield from quote_block(payload.params.url or "")
    yield head_line("the question")
    yield from quote_block(payload.params.message)
    yield StyledLine(
        "  isthmus has not fetched this page. Your browser opens it if you allow it.", "dim"
    )


def _describe_roots(payload: RootsAsked) -> Iterator[StyledLine]:
    from urllib.parse import unquote  # slow to import

    yield head_line("folders")
    for root in payload.roots:
        yield field_line(root.name or "folder", unquote(root.uri))
        yield from quote_block(root.uri)


def _describe_install(payload: InstallAsked) -> Iterator[StyledLine]:
    yield from map(warning_line, payload.warnings)
    yield head_line("exact command, one argument per line")
    yield from (field_line(str(number), part) for number, part in enumerate(payload.argv))
    yield field_line("program", payload.resolved or "not found")
    yield field_line("folder", payload.cwd or "where the host runs")
    yield field_line("variables", ", ".join(payload.env) or "only the usual ones")
    yield from _describe_confinement(payload.sandbox)
    yield field_line("configured in", payload.source or "the program that uses this host")


def _describe_confinement(sandbox: Iterable[str]) -> Iterator[StyledLine]:
    found = [field_line("confined", line) for line in sandbox]
    yield from found or [warning_line("it runs with your permissions")]


def _describe_connect(payload: ConnectAsked) -> Iterator[StyledLine]:
    yield from map(warning_line, payload.warnings)
    yield field_line("where", payload.where)
    yield field_line("headers", ", ".join(payload.headers) or "only the usual ones")
    yield field_line("configured in", payload.source or "the program that uses this host")
    yield StyledLine("  isthmus has not sent anything to it yet.", "dim")


def _describe_changed(payload: ChangeAsked) -> Iterator[StyledLine]:
    yield head_line("changes (- before, + after)")
    yield from style_diff(payload.diff)
    yield head_line("current definition")
    yield from quote_block(format_json(msgspec.json.decode(payload.after)))
    yield head_line("approved definition")
    yield from quote_block(format_json(msgspec.json.decode(payload.before)))


def _describe_sharing(payload: ShareAsked) -> Iterator[StyledLine]:
    yield field_line("with", payload.to)
    yield head_line("what")
    yield from (line for what in payload.what for line in quote_block(what))


DESCRIBERS: Mapping[type, Callable[[Any], Iterator[StyledLine]]] = {
    CallAsked: _describe_call,
    ReadAsked: _describe_read,
    PromptAsked: _describe_prompt,
    SamplingAsked: _describe_sampling,
    SamplingWritten: _describe_written,
    FormAsked: _describe_form,
    PageAsked: _describe_page,
    RootsAsked: _describe_roots,
    InstallAsked: _describe_install,
    ConnectAsked: _describe_connect,
    ChangeAsked: _describe_changed,
    ShareAsked: _describe_sharing,
}


def _editable_sampling(payload: SamplingAsked) -> dict[str, Any]:
    plain = msgspec.to_builtins(payload.params)
    return {"model": payload.model, **{k: plain[k] for k in SAMPLING if k in plain}}


EDITABLE: Mapping[type, Callable[[Any], Any]] = {
    CallAsked: lambda payload: payload.arguments,
    PromptAsked: lambda payload: payload.arguments,
    SamplingAsked: _editable_sampling,
    SamplingWritten: lambda payload: payload.result,
    RootsAsked: lambda payload: payload.roots,
}


def describe_blocks(content: Iterable[Any]) -> Iterator[StyledLine]:
    """Blocks of content, whole."""
    for part in content:
        match part:
            case TextContent():
                yield from quote_block(part.text)
            case ImageContent() | AudioContent():
                yield StyledLine(
                    f"  | [{display_name(part.mime_type)}, {len(part.data) * 3 // 4} bytes]"
                )
            case ResourceLink():
                yield StyledLine(f"  | [resource {display_name(part.uri)}]")
            case EmbeddedResource():
                yield from quote_block(part.resource.text or f"[{part.resource.uri}]")
            case _:
                yield from quote_block(json.dumps(part))
