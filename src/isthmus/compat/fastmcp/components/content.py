"""Content of results: what functions return, as blocks on the wire and as structured content."""

import base64
from functools import cache
from types import ModuleType
from typing import Any

import msgspec
from pydantic import PydanticSchemaGenerationError, TypeAdapter

from isthmus.compat.fastmcp.components.component import dump_model
from isthmus.compat.fastmcp.utilities.types import Audio, File, Image
from isthmus.wire import ContentBlock, TextContent

MEDIA = (Image, Audio, File)


@cache
def load_types() -> ModuleType:
    """The types of ``mcp.types``, which are slow to import."""
    import isthmus.compat.types as mcp_types

    return mcp_types


@cache
def content_classes() -> tuple[type, ...]:
    """The classes of content blocks."""
    types = load_types()
    names = ("TextContent", "ImageContent", "AudioContent", "EmbeddedResource", "ResourceLink")
    return tuple(getattr(types, name) for name in names)


@cache
def make_adapter(annotation: Any) -> "TypeAdapter[Any]":
    """Pydantic's adapter for an annotation that can be a key."""
    return TypeAdapter(annotation)


def write_value(value: Any) -> str:
    """A value as JSON text; whatever has no form in JSON is written as ``str`` has it."""
    return make_adapter(Any).dump_json(value, fallback=str).decode()


def to_jsonable(value: Any, annotation: Any = Any) -> Any:
    """A value as plain data, by its annotation where pydantic knows it.

    Raises:
        PydanticSerializationError: it has no form in JSON.
    """
    plain = annotation in (None, ..., Any) or isinstance(annotation, str)
    try:
        adapter = make_adapter(Any if plain else annotation)
    except PydanticSchemaGenerationError:
        adapter = make_adapter(Any)
    except TypeError:  # it cannot be a key
        adapter = TypeAdapter(annotation)
    return adapter.dump_python(value, mode="json")


def is_content(value: Any) -> bool:
    """Whether a value is a content block."""
    return not isinstance(value, str | int | float | dict | list) and isinstance(
        value, content_classes()
    )


def make_text(text: str) -> Any:
    """A block of text."""
    return load_types().TextContent(type="text", text=text)


def to_blocks(value: Any) -> list[Any]:
    """What a function returned as content blocks."""
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        return [to_block(value)]
    if any(is_content(one) or isinstance(one, MEDIA) for one in value):
        return [to_block(one) for one in value]
    return [make_text(write_value(value))] if value else list(value)


def to_block(value: Any) -> Any:
    """A value as one content block."""
    if isinstance(value, str):
        return make_text(value)
    if isinstance(value, bytes):
        try:
            return make_text(value.decode())
        except UnicodeDecodeError:
            return make_text(base64.b64encode(value).decode("ascii"))
    if isinstance(value, MEDIA):
        return value.to_content()
    return value if is_content(value) else make_text(write_value(value))


def to_wire_block(block: Any) -> ContentBlock:
    """A content block as isthmus sends it."""
    if isinstance(block, msgspec.Struct):
        return block  # type: ignore[return-value]  # one of ours
    if type(block).__name__ == "TextContent" and block.annotations is None and block.meta is None:
        return TextContent(text=block.text)
    written: ContentBlock = msgspec.convert(dump_model(block), ContentBlock)
    return written
