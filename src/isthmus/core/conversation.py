"""Conversations with a model: what a sampling request must look like before anybody acts on it.

Both sides ask here: a server before it sends a request, a client before it hands one to a model.
Pure: nothing is raised, each function says in words what is wrong.
"""

from binascii import Error as NoBase64
from binascii import a2b_base64
from collections.abc import Sequence
from typing import Any

from isthmus.wire import (
    AudioContent,
    CreateMessageParams,
    CreateMessageResult,
    ImageContent,
    ModelPreferences,
    SamplingMessage,
    ToolResultContent,
    ToolUseContent,
)

__all__ = ["blocks", "overstepped", "senseless", "unbalanced"]

MISSING = "Tool result missing in request"
MIXED = "Tool results mixed with other content"


def blocks(content: Any) -> list[Any]:
    """The content of a message as a list, whichever of its two forms it has."""
    return content if isinstance(content, list) else [content]


def unbalanced(messages: Sequence[SamplingMessage]) -> str | None:
    """What is wrong with the uses of tools in a conversation; None where each has its result.

    Args:
        messages: the conversation, oldest message first.
    """
    # spec 2025-11-25 client/sampling#tool-use-and-result-balance: each message with tool uses
    # MUST be followed by one that consists of their results, before any other
    awaited: set[str] = set()
    for number, message in enumerate(messages):
        parts = blocks(message.content)
        uses = [part for part in parts if type(part) is ToolUseContent]
        results = [part for part in parts if type(part) is ToolResultContent]
        wrong = _results_wrong(message, parts, results, awaited) or _uses_wrong(message, uses)
        if wrong:
            return f"{wrong} (messages[{number}])"
        awaited = {use.id for use in uses}
    return f"{MISSING}: {_listed(awaited)}" if awaited else None


def _results_wrong(
    message: SamplingMessage,
    parts: list[Any],
    results: list[ToolResultContent],
    awaited: set[str],
) -> str | None:
    if not results:
        return f"{MISSING}: {_listed(awaited)}" if awaited else None
    # spec 2025-11-25 client/sampling#tool-result-messages: such a message MUST hold nothing else
    if len(results) != len(parts):
        return MIXED
    if message.role != "user":
        return "Tool results are the user's to give"
    found = [result.tool_use_id for result in results]
    if awaited - set(found):
        return f"{MISSING}: {_listed(awaited - set(found))}"
    if set(found) - awaited:
        return f"Tool result without a tool use: {_listed(set(found) - awaited)}"
    return "Tool result given twice" if len(found) != len(awaited) else None


def _uses_wrong(message: SamplingMessage, uses: list[ToolUseContent]) -> str | None:
    if uses and message.role != "assistant":
        return "Tool uses are the assistant's to ask for"
    return "Tool use id given twice" if len({use.id for use in uses}) != len(uses) else None


def _listed(ids: set[str]) -> str:
    return ", ".join(sorted(ids))


def senseless(params: CreateMessageParams) -> str | None:
    """What is wrong with a sampling request; None for one that a model may be given.

    Args:
        params: the request, in the newest shape.
    """
    preferences = params.model_preferences
    wrong = _priorities_wrong(preferences) if preferences else None
    return wrong or unbalanced(params.messages) or _media_wrong(params.messages)


def _priorities_wrong(preferences: ModelPreferences) -> str | None:
    # spec 2025-11-25 client/sampling#capability-priorities: three normalised values, 0 to 1
    for name in ("cost_priority", "speed_priority", "intelligence_priority"):
        value = getattr(preferences, name)
        if isinstance(value, int | float) and not 0 <= value <= 1:
            return f"modelPreferences.{_camel(name)} is {value}, and goes from 0 to 1"
    return None


def _camel(name: str) -> str:
    first, _, rest = name.partition("_")
    return first + rest.capitalize()


def _media_wrong(messages: Sequence[SamplingMessage]) -> str | None:
    # spec 2025-11-25 client/sampling#security-considerations: both parties SHOULD validate
    # message content
    for number, message in enumerate(messages):
        for part in blocks(message.content):
            if isinstance(part, ImageContent | AudioContent) and not _is_base64(part.data):
                return f"messages[{number}] holds {part.mime_type} that is no base64"
    return None


def _is_base64(data: str) -> bool:
    try:
        a2b_base64(data, strict_mode=True)
    except (NoBase64, ValueError):
        return False
    return True


def overstepped(params: CreateMessageParams, result: CreateMessageResult) -> str | None:
    """What a model's message may not hold, given what it was asked; None where all is well.

    Args:
        params: the request.
        result: what the model wrote.
    """
    used = [part for part in blocks(result.content) if type(part) is ToolUseContent]
    if any(type(part) is ToolResultContent for part in blocks(result.content)):
        return "a model asks for tools, and gives no results of theirs"
    if not used:
        return None
    choice = params.tool_choice
    if not params.tools or (choice and choice.mode == "none"):
        # spec 2025-11-25 client/sampling#tool-choice-modes: none means that it MUST NOT
        return f"the model wants {used[0].name!r} called, and was given no tools to use"
    return _uses_wrong(SamplingMessage(role="assistant", content=result.content), used)
