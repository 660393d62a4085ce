"""Decoders that do not lose a message over one block of content of an unknown ``type``.

msgspec refuses a tag that is not in a union. The fast path is msgspec's own decoder, untouched;
only when it refuses a message, the blocks it may have stumbled over are taken out, the rest is
decoded, and the blocks are put back as :class:`~isthmus.wire.content.UnknownContent`.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec.structs import force_setattr

from isthmus.wire.content import UnknownContent
from isthmus.wire.prompts import GetPromptResult, ListPromptsResult, Prompt, PromptMessage
from isthmus.wire.resources import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    Resource,
    ResourceTemplate,
)
from isthmus.wire.sampling import (
    CreateMessageParams,
    CreateMessageResult,
    SamplingMessage,
    ToolResultContent,
)
from isthmus.wire.tools import CallToolResult, ListToolsResult, Tool

T = TypeVar("T")
Path: TypeAlias = tuple[str | int, ...]
Tags: TypeAlias = frozenset[str]

_CONTENT_TAGS: Tags = frozenset({"text", "image", "audio", "resource_link", "resource"})
_SAMPLING_TAGS: Tags = frozenset({"text", "image", "audio", "tool_use", "tool_result"})

# The tags known in the content of each type, or of its messages.
_KNOWN_TAGS: dict[Any, Tags] = {
    CallToolResult: _CONTENT_TAGS,
    GetPromptResult: _CONTENT_TAGS,
    PromptMessage: _CONTENT_TAGS,
    ToolResultContent: _CONTENT_TAGS,
    CreateMessageParams: _SAMPLING_TAGS,
    CreateMessageResult: _SAMPLING_TAGS,
    SamplingMessage: _SAMPLING_TAGS,
}

# The member of a list's result that holds the items, and their type.
_LIST_ITEMS: dict[Any, tuple[str, Any]] = {
    ListToolsResult: ("tools", Tool),
    ListPromptsResult: ("prompts", Prompt),
    ListResourcesResult: ("resources", Resource),
    ListResourceTemplatesResult: ("resourceTemplates", ResourceTemplate),
}


class UnreadableItem(NamedTuple):
    """An item of a list that could not be read.

    Attributes:
        place: where it stands in the list, with its name where it has one.
        why: what is wrong with it.
    """

    place: str
    why: str


def reader(shape: type[T]) -> Callable[[bytes | msgspec.Raw], T]:
    """A function that decodes JSON as ``shape``.

    It raises what msgspec's decoders raise: ``msgspec.ValidationError`` with the JSON path where
    the JSON does not fit, ``msgspec.DecodeError`` where it is none.

    Args:
        shape: the type to decode as.
    """
    fast = msgspec.json.Decoder(shape).decode
    known = _KNOWN_TAGS.get(shape)
    if known is None:
        return fast

    def read(data: bytes | msgspec.Raw) -> T:
        try:
            return fast(data)
        except msgspec.ValidationError:
            plain = msgspec.json.decode(data)
            taken = list(_take_unknown(plain, known, ()))
            if not taken:
                raise
        value = fast(msgspec.json.encode(plain))
        for path, block in taken:
            _put(value, path, UnknownContent(block))
        return value

    return read


def forgiving_reader(shape: type[T]) -> Callable[[bytes | msgspec.Raw], T]:
    """As :func:`reader`, for what others wrote who write null where they mean nothing.

    Some programs write ``"nextCursor": null`` or ``"content": null``, which no schema has. It is
    taken for the member's absence, and only where the JSON could not be read otherwise.
    """
    read = reader(shape)

    def decode(data: bytes | msgspec.Raw) -> T:
        try:
            return read(data)
        except msgspec.ValidationError:
            less = drop_nulls(data)
            if less is None:
                raise
        return read(less)

    return decode


def read_well_formed_items(
    shape: type[T], data: bytes | msgspec.Raw
) -> tuple[T, list[UnreadableItem]] | None:
    """A list's result without the items that cannot be read, and what was left out.

    Returns:
        None where ``shape`` is no list's result, or where something else is wrong with it.
    """
    member, kind = _LIST_ITEMS.get(shape, ("", None))
    whole = msgspec.json.decode(data)
    items = whole.get(member) if isinstance(whole, dict) else None
    if not isinstance(items, list):
        return None
    kept: list[Any] = []
    left_out: list[UnreadableItem] = []
    for index, item in enumerate(items):
        encoded = msgspec.json.encode(item)
        try:
            forgiving_reader(kind)(encoded)
        except msgspec.ValidationError as error:
            name = item.get("name") if isinstance(item, dict) else None
            said = f" {name!r:.100}" if isinstance(name, str) else ""
            left_out.append(UnreadableItem(f"{member}[{index}]{said}", str(error)))
        else:
            less = drop_nulls(encoded)
            kept.append(msgspec.Raw(encoded if less is None else less))
    whole[member] = kept
    try:
        return forgiving_reader(shape)(msgspec.json.encode(whole)), left_out
    except msgspec.ValidationError:
        return None


def drop_nulls(data: bytes | msgspec.Raw) -> bytes | None:
    """An object without its members that are null; None where there are none.

    What a user left blank in a form is looked for, too: in ``content``, if that is an object.
    """
    plain = msgspec.json.decode(data)
    if not isinstance(plain, dict):
        return None
    kept = {key: value for key, value in plain.items() if value is not None}
    form = kept.get("content")
    if isinstance(form, dict):
        kept["content"] = {key: value for key, value in form.items() if value is not None}
    return None if kept == plain else msgspec.json.encode(kept)


def _take_unknown(owner: Any, known: Tags, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Put an empty text in the place of every unknown block; give the blocks and their places."""
    if not isinstance(owner, dict):
        return
    messages = owner.get("messages")
    for i, message in enumerate(messages if isinstance(messages, list) else ()):
        yield from _take_unknown(message, known, (*path, "messages", i))
    content = owner.get("content")
    if isinstance(content, list):
        for i in range(len(content)):
            yield from _take_block(content, i, known, (*path, "content", i))
    elif isinstance(content, dict):
        yield from _take_block(owner, "content", known, (*path, "content"))


def _take_block(
    owner: Any, key: str | int, known: Tags, path: Path
) -> Iterator[tuple[Path, dict[str, Any]]]:
    block = owner[key]
    tag = block.get("type") if isinstance(block, dict) else None
    if tag == "tool_result" and tag in known:
        yield from _take_unknown(block, _CONTENT_TAGS, path)
    elif isinstance(tag, str) and tag not in known:
        owner[key] = {"type": "text", "text": ""}
        yield path, block


def _put(value: Any, path: Path, block: UnknownContent) -> None:
    """Set what lies at ``path`` inside a value that nobody else has seen yet."""
    *way, last = path
    for step in way:
        value = value[step] if isinstance(step, int) else getattr(value, step)
    if isinstance(last, int):
        value[last] = block
    else:
        force_setattr(value, last, block)
