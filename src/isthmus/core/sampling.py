"""Rules of sampling: what a request to a model, and the model's message, must look like.

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

MISSING_RESULT = "Tool result missing in request"
MIXED_RESULTS = "Tool results mixed with other content"


def list_blocks(content: Any) -> list[Any]:
    """The content of a message as a list, whichever of its two forms it has."""
    return content if isinstance(content, list) else [content]


def find_unbalanced_tools(messages: Sequence[SamplingMessage]) -> str | None:
    """Find a use of a tool without its result in a conversation; None where all have theirs.

    Args:
        messages: the conversation, oldest message first.
    """
    # spec 2025-11-25 client/sampling#tool-use-and-result-balance: each message with tool uses
    # MUST be followed by one that consists of their results, before any other
    awaited: set[str] = set()
    for number, message in enumerate(messages):
        parts = list_blocks(message.content)
        uses = [part for part in parts if type(part) is ToolUseContent]
        results = [part for part in parts if type(part) is ToolResultContent]
        wrong = _find_results_flaw(message, parts, results, awaited) or _find_uses_flaw(
            message, uses
        )
        if wrong:
            return f"{wrong} (messages[{number}])"
        awaited = {use.id for use in uses}
    return f"{MISSING_RESULT}: {_list_ids(awaited)}" if awaited else None


def _find_results_flaw(
    message: SamplingMessage,
    parts: list[Any],
    results: list[ToolResultContent],
    awaited: set[str],
) -> str | None:
    if not results:
        return f"{MISSING_RESULT}: {_list_ids(awaited)}" if awaited else None
    # spec 2025-11-25 client/sampling#tool-result-messages: such a message MUST hold nothing else
    if len(results) != len(parts):
        return MIXED_RESULTS
    if message.role != "user":
        return "Tool results are the user's to give"
    found = [result.tool_use_id for result in results]
    if awaited - set(found):
        return f"{MISSING_RESULT}: {_list_ids(awaited - set(found))}"
    if set(found) - awaited:
        return f"Tool result without a tool use: {_list_ids(set(found) - awaited)}"
    return "Tool result given twice" if len(found) != len(awaited) else None


def _find_uses_flaw(message: SamplingMessage, uses: list[ToolUseContent]) -> str | None:
    if uses and message.role != "assistant":
        return "Tool uses are the assistant's to ask for"
    return "Tool use id given twice" if len({use.id for use in uses}) != len(uses) else None


def _list_ids(ids: set[str]) -> str:
    return ", ".join(sorted(ids))


def find_request_flaw(params: CreateMessageParams) -> str | None:
    """Find what is wrong with a sampling request; None for one that a model may be given.

    Args:
        params: the request, in the newest shape.
    """
    preferences = params.model_preferences
    wrong = _find_priorities_flaw(preferences) if preferences else None
    return wrong or find_unbalanced_tools(params.messages) or _find_media_flaw(params.messages)


def _find_priorities_flaw(preferences: ModelPreferences) -> str | None:
    # spec 2025-11-25 client/sampling#capability-priorities: three normalised values, 0 to 1
    for name in ("cost_priority", "speed_priority", "intelligence_priority"):
        value = getattr(preferences, name)
        if isinstance(value, int | float) and not 0 <= value <= 1:
            return f"modelPreferences.{_to_camel_case(name)} is {value}, and goes from 0 to 1"
    return None


def _to_camel_case(name: str) -> str:
    first, _, rest = name.partition("_")
    return first + rest.capitalize()


def _find_media_flaw(messages: Sequence[SamplingMessage]) -> str | None:
    # spec 2025-11-25 client/sampling#security-considerations: both parties SHOULD validate
    # message content
    for number, message in enumerate(messages):
        for part in list_blocks(message.content):
            if isinstance(part, ImageContent | AudioContent) and not _is_base64(part.data):
                return f"messages[{number}] holds {part.mime_type} that is no base64"
    return None


def _is_base64(data: str) -> bool:
    try:
        a2b_base64(data, strict_mode=True)
    except (NoBase64, ValueError):
        return False
    return True


def find_result_flaw(params: CreateMessageParams, result: CreateMessageResult) -> str | None:
    """Find what a model's message may not hold, given what it was asked; None where all is well.

    Args:
        params: the request.
        result: what the model wrote.
    """
    used = [part for part in list_blocks(result.content) if type(part) is ToolUseContent]
    if any(type(part) is ToolResultContent for part in list_blocks(result.content)):
        return "a model asks for tools, and gives no results of theirs"
    if not used:
        return None
    choice = params.tool_choice
    if not params.tools or (choice and choice.mode == "none"):
        # spec 2025-11-25 client/sampling#tool-choice-modes: none means that it MUST NOT
        return f"the model wants {used[0].name!r} called, and was given no tools to use"
    return _find_uses_flaw(SamplingMessage(role="assistant", content=result.content), used)
