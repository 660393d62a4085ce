"""Whatever a function returns, as the result its caller is owed."""

import base64
from typing import Any

import msgspec
from msgspec import Raw

from isthmus.core.surrogates import without_surrogates
from isthmus.errors import UsageError
from isthmus.server.custom_types import encode, plain
from isthmus.server.media import Audio, Image
from isthmus.server.returns import CONTENT, Returns, WrongReturn, returned_none, wrong_return
from isthmus.server.sanitise import Sanitise
from isthmus.wire import (
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    InputRequiredResult,
    PromptMessage,
    ResourceContents,
    Role,
    TextContent,
    TextResourceContents,
)

__all__ = ["to_call_result", "to_content", "to_prompt_messages", "to_resource_contents"]


def to_call_result(
    value: Any, plan: Returns, clean: Sanitise | None = None
) -> CallToolResult | InputRequiredResult:
    """The result of a tool.

    Structured content is kept as the JSON it travels as (`msgspec.Raw`), written once for both
    its forms.

    Args:
        value: what the function returned.
        plan: what its annotation promised.
        clean: makes it safe to show, or None.

    Raises:
        UsageError: the value is not what was promised, or has no JSON form.
    """
    if isinstance(value, CallToolResult | InputRequiredResult):
        return value if clean is None else clean.result(value)
    if plan.write is None:
        if value is None and plan.never_none:
            raise returned_none(plan.never_none)
        result = CallToolResult(content=to_content(value))
        return result if clean is None else clean.result(result)
    try:
        data = plan.write(value)
    except (UsageError, UnicodeEncodeError) as problem:
        if not _has_surrogates(problem):
            raise
        value = _encodable(value)
        data = plan.write(value)
    content: list[ContentBlock] = []
    harmless = True
    if plan.text:  # the value itself: a model has no use for the wrapping, nor for more quotes
        text = value if isinstance(value, str) else data.decode()
        content.append(TextContent(text=text))
        harmless = text.isprintable()
    structured = b'{"result":%b}' % data if plan.wrapped else data
    result = CallToolResult(content=content, structured_content=Raw(structured))
    if clean is None or (harmless and (clean.most is None or 2 * len(structured) <= clean.most)):
        return result
    return clean.result(result)


def _has_surrogates(problem: Exception) -> bool:
    """Whether halves of surrogates are what kept a value from being written."""
    cause = problem if isinstance(problem, UnicodeEncodeError) else problem.__cause__
    return isinstance(cause, UnicodeEncodeError)


def _encodable(value: Any) -> Any:
    """The value without the halves of surrogates that kept it from being written."""
    return without_surrogates(msgspec.to_builtins(value, str_keys=True, enc_hook=plain))


def to_content(value: Any) -> list[ContentBlock]:
    """A value as content blocks for a model.

    None is no content, text is text, blocks are themselves, a list with blocks in it is each of
    its items; anything else is JSON.

    Raises:
        UsageError: the value has no such form.
    """
    if value is None:
        return []
    if isinstance(value, list | tuple) and any(isinstance(item, CONTENT) for item in value):
        return [_block(item) for item in value]
    return [_block(value)]


def _block(value: Any) -> ContentBlock:
    if isinstance(value, str):
        return TextContent(text=value)
    if isinstance(value, Image | Audio):
        return value.to_content()
    if isinstance(value, CONTENT):
        return value  # type: ignore[return-value]  # the two that are not blocks have gone
    return TextContent(text=_json(value))


def _json(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        raise WrongReturn(
            "bytes are no content by themselves: return Image(data), Audio(data) or "
            "an EmbeddedResource"
        )
    try:
        return encode(value).decode()
    except UnicodeEncodeError:
        return encode(_encodable(value)).decode()
    except (TypeError, ValueError) as problem:
        told = f"it returned a value of type {type(value).__name__}, which has no JSON form"
        raise wrong_return(value, problem, told) from problem


def to_resource_contents(
    value: Any, uri: str, mime_type: str | None = None
) -> list[ResourceContents]:
    """What was read of a resource.

    Args:
        value: text, bytes, wire contents, a list with wire contents, or anything with a JSON form.
        uri: the resource's.
        mime_type: its declared type; otherwise ``text/plain``, ``application/octet-stream`` or
            ``application/json``, by what the value is.

    Raises:
        UsageError: the value has no such form.
    """
    if isinstance(value, list | tuple) and any(isinstance(v, ResourceContents) for v in value):
        return [_contents(item, uri, mime_type) for item in value]
    return [_contents(value, uri, mime_type)]


def _contents(value: Any, uri: str, mime_type: str | None) -> ResourceContents:
    if isinstance(value, ResourceContents):
        return value
    if isinstance(value, Image | Audio):
        return BlobResourceContents(uri=uri, mime_type=value.mime_type, blob=value.base64)
    if isinstance(value, bytes | bytearray | memoryview):
        blob = base64.b64encode(value).decode("ascii")
        kind = mime_type or "application/octet-stream"
        return BlobResourceContents(uri=uri, mime_type=kind, blob=blob)
    if isinstance(value, str):
        return TextResourceContents(uri=uri, mime_type=mime_type or "text/plain", text=value)
    return TextResourceContents(
        uri=uri, mime_type=mime_type or "application/json", text=_json(value)
    )


def to_prompt_messages(value: Any) -> list[PromptMessage]:
    """A prompt's messages.

    Args:
        value: text, a content block, a message, a ``(role, text or block)`` pair, or a list of
            these; who is not named speaks as the user.

    Raises:
        UsageError: the value has no such form.
    """
    if isinstance(value, list) or (isinstance(value, tuple) and not _is_pair(value)):
        return [message for item in value for message in to_prompt_messages(item)]
    if isinstance(value, PromptMessage):
        return [value]
    role: Role
    role, said = value if _is_pair(value) else ("user", value)
    return [PromptMessage(role=role, content=block) for block in to_content(said)]


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and value[0] in ("user", "assistant")
