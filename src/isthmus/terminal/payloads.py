"""What there is to be seen of each kind of question, and what of it may be edited."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import UNSET, structs

from isthmus.core.blanks import Blank, blanks, shown
from isthmus.host.interaction import (
    CallAsked,
    Changed,
    Connecting,
    FormAsked,
    Installing,
    Interaction,
    PageAsked,
    Payload,
    PromptAsked,
    ReadAsked,
    RootsAsked,
    SamplingAsked,
    SamplingWritten,
    Sharing,
)
from isthmus.host.sampling.asked import EDITABLE as SAMPLING
from isthmus.terminal.argument_lines import list_arguments
from isthmus.terminal.lines import Line, block, diff, field, head, pretty, warning
from isthmus.wire import (
    AudioContent,
    CreateMessageParams,
    ImageContent,
    TextContent,
    Tool,
    ToolAnnotations,
)

__all__ = ["body", "definition", "editable"]

HINTS = (
    # what it says, what holds where it says nothing
    ("read_only_hint", "changes nothing", False),
    ("destructive_hint", "may destroy", True),
    ("idempotent_hint", "twice is as once", False),
    ("open_world_hint", "reaches the outside", True),
)


def body(payload: Payload) -> Iterator[Line]:
    """What a person has to see before they decide."""
    yield from BODIES[type(payload)](payload)


def definition(payload: Payload) -> Iterator[Line]:
    """What a server defines of the tool that would be called, whole: for who wants to know more."""
    if isinstance(payload, CallAsked):
        rest = structs.replace(payload.tool, description=UNSET, title=UNSET, annotations=UNSET)
        yield head("the definition of the tool")
        yield from block(pretty(rest))


def editable(interaction: Interaction) -> Any:
    """What of a question may be changed, as plain data; unset where nothing may."""
    payload = interaction.payload
    edit = EDITABLE.get(type(payload))
    return UNSET if edit is None else msgspec.to_builtins(edit(payload))


def _call(payload: CallAsked) -> Iterator[Line]:
    yield head("arguments")
    yield from list_arguments(payload.arguments)
    yield head("the tool, as the server describes it")
    yield from _tool(payload.tool, trusted=payload.trusted)


def _tool(tool: Tool, *, trusted: bool) -> Iterator[Line]:
    if tool.title:
        yield field("title", tool.title)
    yield from block(tool.description or "(no description)")
    given = tool.annotations or ToolAnnotations()
    word = "trusted" if trusted else "claimed, and not counted"
    for member, meaning, default in HINTS:
        says = getattr(given, member)
        told = f"{_yes(default)} (not said)" if says is UNSET else f"{_yes(says)} ({word})"
        yield field(meaning, told)


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _read(payload: ReadAsked) -> Iterator[Line]:
    yield head("resource")
    yield from block(payload.uri)


def _prompt(payload: PromptAsked) -> Iterator[Line]:
    yield field("prompt", payload.name)
    yield head("arguments")
    yield from list_arguments(payload.arguments)


def _sampling(payload: SamplingAsked) -> Iterator[Line]:
    yield head("model")
    yield field("selected", payload.model)
    for step in payload.selection:
        yield field("because", step)
    if payload.models:
        yield field("may also be", ", ".join(payload.models))
    yield field("prompt", f"about {payload.tokens} tokens")
    yield field("at most written", f"{payload.params.max_tokens} tokens")
    yield field("cost", _money(payload.cost))
    yield from _conversation(payload.params)


def _conversation(params: CreateMessageParams) -> Iterator[Line]:
    if params.system_prompt is not UNSET:
        yield head("system prompt")
        yield from block(params.system_prompt)
    for message in params.messages:
        yield head(f"message of the {message.role}")
        yield from _content(message.content)
    if params.tools:
        yield head("tools that the model may ask for")
        for tool in params.tools:
            yield field("tool", tool.name)
            yield from block(tool.description or "(no description)")
            yield from block(pretty(tool.input_schema))
    rest = structs.replace(params, messages=[], system_prompt=UNSET, tools=UNSET)
    plain = {k: v for k, v in msgspec.to_builtins(rest).items() if k not in {"messages", "tools"}}
    yield head("everything else")
    yield from block(pretty(plain))


def _content(content: Any) -> Iterator[Line]:
    """Text as it is, pictures and sound by their kind and size, all else as JSON."""
    for part in content if isinstance(content, list) else [content]:
        match part:
            case TextContent():
                yield from block(part.text)
            case ImageContent() | AudioContent():
                yield field(part.mime_type, f"{len(part.data) * 3 // 4} bytes")
            case _:
                yield from block(pretty(part))


def _written(payload: SamplingWritten) -> Iterator[Line]:
    yield head("what the model wrote")
    yield from _content(payload.result.content)
    yield field("model", payload.result.model)
    yield field("it stopped because", payload.result.stop_reason or "(not said)")
    yield field("tokens", f"{payload.tokens_in} read, {payload.tokens_out} written")
    yield field("cost", _money(payload.cost))
    yield head("what it was asked")
    yield from _conversation(payload.params)


def _money(micro: int | None) -> str:
    return "not known" if micro is None else f"about ${micro / 1_000_000:.6f}"


def _form(payload: FormAsked) -> Iterator[Line]:
    yield from map(warning, payload.concerns)
    yield head("the question")
    yield from block(payload.params.message)
    yield head("the form")
    for blank in blanks(payload.params.requested_schema or {}):
        yield from _blank(blank)


def _blank(blank: Blank) -> Iterator[Line]:
    needed = "needed" if blank.required else "may be left out"
    yield field(blank.name, f"{blank.title} ({', '.join(map(str, blank.wanted()))}; {needed})")
    for text in blank.explanation():
        yield from block(text)
    if blank.default is not None:
        yield field("filled in with", shown(blank.default))


def _page(payload: PageAsked) -> Iterator[Line]:
    # spec 2026-07-28 client/elicitation#safe-url-handling: show the full URL, with its host
    yield field("host", payload.host)
    yield from map(warning, payload.concerns)
    yield head("the whole address")
    yield from block(payload.params.url or "")
    yield head("the question")
    yield from block(payload.params.message)
    yield Line("  Nothing has fetched this page. It is opened when you allow it.", "dim")


def _roots(payload: RootsAsked) -> Iterator[Line]:
    yield head("folders")
    for root in payload.roots:
        yield field(root.name or "folder", unquote(root.uri))
        yield from block(root.uri)


def _install(payload: Installing) -> Iterator[Line]:
    yield from map(warning, payload.warnings)
    yield head("the exact command, an argument a line")
    yield from (field(str(number), part) for number, part in enumerate(payload.argv))
    yield field("program", payload.resolved or "not found")
    yield field("folder", payload.cwd or "where the host runs")
    yield field("variables", ", ".join(payload.env) or "only the usual ones")
    yield from _confinement(payload.sandbox)
    yield field("written in", payload.source or "the program that uses this host")


def _confinement(sandbox: Iterable[str]) -> Iterator[Line]:
    found = [field("confined", line) for line in sandbox]
    yield from found or [warning("it runs with your rights")]


def _connect(payload: Connecting) -> Iterator[Line]:
    yield from map(warning, payload.warnings)
    yield field("where", payload.where)
    yield field("headers", ", ".join(payload.headers) or "only the usual ones")
    yield field("written in", payload.source or "the program that uses this host")
    yield Line("  Nothing has been sent there.", "dim")


def _changed(payload: Changed) -> Iterator[Line]:
    yield head("what is different (- before, + after)")
    yield from diff(payload.diff)
    yield head("the definition as it is now")
    yield from block(pretty(msgspec.json.decode(payload.after)))
    yield head("the definition that was approved")
    yield from block(pretty(msgspec.json.decode(payload.before)))


def _sharing(payload: Sharing) -> Iterator[Line]:
    yield field("with", payload.to)
    yield head("what")
    yield from (line for what in payload.what for line in block(what))


BODIES: Mapping[type, Callable[[Any], Iterator[Line]]] = {
    CallAsked: _call,
    ReadAsked: _read,
    PromptAsked: _prompt,
    SamplingAsked: _sampling,
    SamplingWritten: _written,
    FormAsked: _form,
    PageAsked: _page,
    RootsAsked: _roots,
    Installing: _install,
    Connecting: _connect,
    Changed: _changed,
    Sharing: _sharing,
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
