"""What a model reads of the tools that it wanted called, whatever became of the calls."""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, structs

from isthmus.core.conversation import blocks
from isthmus.errors import IsthmusError
from isthmus.host.catalog.metatools import META_TOOLS, REST
from isthmus.host.catalog.offer import Offer
from isthmus.host.errors import Denied, OutcomeUnknown, UserDeclined
from isthmus.host.results import SCHEME
from isthmus.host.turns import ToolDone
from isthmus.wire import (
    CallToolResult,
    ResourceLink,
    SamplingMessage,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)

__all__ = ["answered", "distinct", "found", "refusal", "told", "with_rest"]

LONGEST = 8_000
"""Characters of an error that a model reads."""


def distinct(parts: Sequence[Any]) -> list[Any]:
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


def found(use: ToolUseContent) -> tuple[str, dict[str, Any]]:
    """The tool that a model means, and with what: also where it calls one that it has found."""
    name, arguments = use.input.get("name"), use.input.get("arguments", {})
    if use.name == "call_tool" and isinstance(name, str) and isinstance(arguments, dict):
        return name, arguments
    return use.name, use.input


def answered(use: ToolUseContent, result: CallToolResult) -> ToolResultContent:
    """What a tool gave, for the model."""
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


def with_rest(offer: Offer, messages: Sequence[SamplingMessage]) -> Offer:
    """The tools, with the one that reads on where some result in the history was cut."""
    cut = any(
        isinstance(block, ResourceLink) and block.uri.startswith(f"{SCHEME}://results/")
        for message in messages
        for part in blocks(message.content)
        if isinstance(part, ToolResultContent)
        for block in part.content
    )
    if not cut or any(tool.name == REST for tool in offer.tools):
        return offer
    rest = next(tool for tool in META_TOOLS if tool.name == REST)
    return structs.replace(offer, tools=(*offer.tools, rest))


def refusal(use: ToolUseContent, text: str, error: str = "Exhausted") -> ToolDone:
    """A call that came to nothing, as the model reads it."""
    result = ToolResultContent(tool_use_id=use.id, content=[TextContent(text=text)], is_error=True)
    return ToolDone(id=use.id, name=use.name, result=result, failed=True, error=error)


def told(error: IsthmusError) -> str:
    """An error as a model should read it: what it means for what it does next."""
    said = str(error)
    if len(said) > LONGEST:
        said = f"{said[:LONGEST]} [… {len(said) - LONGEST} more characters are left out]"
    match error:
        case Denied():
            return f"this call was not allowed: {said}. Do not try it again in another way."
        case UserDeclined():
            return f"the user refused what the server asked for in the course of it: {said}"
        case OutcomeUnknown():
            return f"nobody knows whether it was done: {said}. Do not repeat it without asking."
        case _:
            return said
