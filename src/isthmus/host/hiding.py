"""Results without what a rule says nobody is to see."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, structs

from isthmus.host.audit.redaction import Redactor
from isthmus.wire import (
    CallToolResult,
    EmbeddedResource,
    ReadResourceResult,
    TextContent,
    TextResourceContents,
)

__all__ = ["read_without", "without"]


def without(result: CallToolResult, pointers: Sequence[str]) -> CallToolResult:
    """A tool's result without what pointers hide, in both its forms.

    Args:
        result: the whole of it: of what was cut off nobody can say what it is.
        pointers: JSON pointers into the structured content, and into texts that are JSON.
    """
    hide, structured = Redactor(secrets=tuple), result.structured_content
    if structured is not UNSET:
        structured = hide.strip(structured, pointers)
    content = [block_without(hide, block, pointers) for block in result.content]
    return structs.replace(result, structured_content=structured, content=content)


def read_without(result: ReadResourceResult, pointers: Sequence[str]) -> ReadResourceResult:
    """A resource without what pointers hide, where it is JSON."""
    hide = Redactor(secrets=tuple)
    contents = [contents_without(hide, one, pointers) for one in result.contents]
    return structs.replace(result, contents=contents)


def block_without(hide: Redactor, block: Any, pointers: Sequence[str]) -> Any:
    """One block of a result."""
    match block:
        case TextContent():
            return structs.replace(block, text=stripped(hide, block.text, pointers))
        case EmbeddedResource():
            resource = contents_without(hide, block.resource, pointers)
            return structs.replace(block, resource=resource)
        case _:
            return block


def contents_without(hide: Redactor, contents: Any, pointers: Sequence[str]) -> Any:
    """What one resource holds."""
    if not isinstance(contents, TextResourceContents):
        return contents
    return structs.replace(contents, text=stripped(hide, contents.text, pointers))


def stripped(hide: Redactor, text: str, pointers: Sequence[str]) -> str:
    """A text without what pointers hide in it, where it is JSON."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    if not isinstance(value, dict | list):
        return text
    return msgspec.json.encode(hide.strip(value, pointers)).decode()
