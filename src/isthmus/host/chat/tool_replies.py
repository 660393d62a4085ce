"""Tool results as a model reads them, also for calls that were refused or failed."""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, structs

from isthmus.core.sampling import list_blocks
from isthmus.errors import IsthmusError
from isthmus.host.catalog.offer import ToolOffer
from isthmus.host.chat.turn_events import ToolDone
from isthmus.host.model.errors import Denied, OutcomeUnknown, UserDeclined
from isthmus.host.pipeline.results import RESULT_SCHEME
from isthmus.search.metatools import META_TOOLS, READ_REST_TOOL
from isthmus.wire import (
    CallToolResult,
    ResourceLink,
    SamplingMessage,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)

MAX_ERROR_CHARS = 8_000


def assign_distinct_ids(parts: Sequence[Any]) -> list[Any]:
    """The blocks of a model's message, each use of a tool with an id of its own."""
    seen: set[str] = set()
    found: list[Any] = []
    for number, part in enumerate(parts):
        if type(part) is ToolUseContent:
            id = f"{part.id}_{number}" if not part.id or part.id in seen else part.id
            seen.add(id)
            found.append(structs.replace(part, id=id))
        else:
            found.append(part)
    return found or [TextContent(text="[no answer]")]


def resolve_tool_use(use: ToolUseContent) -> tuple[str, dict[str, Any]]:
    """The tool that a model means, and with what: also where it calls one that it has found."""
    name, arguments = use.input.get("name"), use.input.get("arguments", {})
    if use.name == "call_tool" and isinstance(name, str) and isinstance(arguments, dict):
        return name, arguments
    return use.name, use.input


def make_tool_result(use: ToolUseContent, result: CallToolResult) -> ToolResultContent:
    """Make the result of a tool for the model."""
    content = result.content
    if not content and result.structured_content is not UNSET:
        import json

        content = [TextContent(text=json.dumps(result.structured_content, ensure_ascii=False))]
    return ToolResultContent(
        tool_use_id=use.id,
        content=content,
        structured_content=result.structured_content,
        is_error=result.is_error,
    )


def add_rest_tool(offer: ToolOffer, messages: Sequence[SamplingMessage]) -> ToolOffer:
    """The tools, with the one that reads on where some result in the history was cut."""
    cut = any(
        isinstance(block, ResourceLink) and block.uri.startswith(f"{RESULT_SCHEME}://results/")
        for message in messages
        for part in list_blocks(message.content)
        if isinstance(part, ToolResultContent)
        for block in part.content
    )
    if not cut or any(tool.name == READ_REST_TOOL for tool in offer.tools):
        return offer
    rest = next(tool for tool in META_TOOLS if tool.name == READ_REST_TOOL)
    return structs.replace(offer, tools=(*offer.tools, rest))


def make_refusal(use: ToolUseContent, text: str, error: str = "Exhausted") -> ToolDone:
    """A call that came to nothing, as the model reads it."""
    result = ToolResultContent(tool_use_id=use.id, content=[TextContent(text=text)], is_error=True)
    return ToolDone(id=use.id, name=use.name, result=result, failed=True, error=error)


def explain_error(error: IsthmusError) -> str:
    """An error as a model should read it: what it means for what it does next."""
    said = str(error)
    if len(said) > MAX_ERROR_CHARS:
        said = f"{said[:MAX_ERROR_CHARS]} [… {len(said) - MAX_ERROR_CHARS} more characters are left out]"
    match error:
        case Denied():
            return f"this call was not allowed: {said}. Do not try it again in another way."
        case UserDeclined():
            return f"the user refused what the server asked for in the course of it: {said}"
        case OutcomeUnknown():
            return f"nobody knows whether it was done: {said}. Do not repeat it without asking."
        case _:
            return said
