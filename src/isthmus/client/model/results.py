"""Tool results, with the ways one wants to read them."""

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from isthmus.errors import Misbehaved, ToolFailed
from isthmus.wire import CallToolResult, ContentBlock, Meta, TextContent

T = TypeVar("T")


class ToolResult:
    """The result of a tool call.

    A result with ``is_error`` is a result: the call went well, the tool did not, and its text is
    meant for the model. :meth:`parse` raises for it, reading the other attributes does not.

    Example::

        result = await client.call_tool("book", {"date": "2026-05-01"})
        print(result.text)
        booking = result.parse(Booking)

    Args:
        tool: the tool's name.
        wire: the result as it came.
    """

    __slots__ = ("tool", "wire")

    def __init__(self, tool: str, wire: CallToolResult) -> None:
        self.tool = tool
        self.wire = wire

    @property
    def content(self) -> list[ContentBlock]:
        """The blocks for a model to read."""
        return self.wire.content

    @property
    def structured(self) -> Any:
        """The structured content as plain data, or None where there is none."""
        structured = self.wire.structured_content
        return None if structured is UNSET else structured

    @property
    def structured_content(self) -> Any:
        """The same as ``structured``, by the name that it has on the wire."""
        return self.structured

    @property
    def is_error(self) -> bool:
        """Whether the tool itself failed (``isError`` of the result)."""
        return bool(self.wire.is_error)

    @property
    def text(self) -> str:
        """The text blocks, one per line."""
        return "\n".join(b.text for b in self.wire.content if isinstance(b, TextContent))

    @property
    def meta(self) -> Meta:
        """The ``_meta`` of the result; empty where there is none."""
        return self.wire.meta or {}

    def raise_for_error(self) -> None:
        """Do nothing for a tool that did well.

        Raises:
            ToolFailed: ``is_error`` is set.
        """
        if self.wire.is_error:
            raise ToolFailed(self.tool, self.text, self)

    def parse(self, shape: type[T]) -> T:
        """The structured content as a type of yours; its text where a server gave only that.

        Args:
            shape: anything msgspec can convert to (structs, dataclasses, TypedDicts, attrs,
                containers of those), a pydantic model, or ``str`` for the plain text.

        Raises:
            ToolFailed: ``is_error`` is set.
            Misbehaved: the content does not fit; the message has the JSON path.
        """
        self.raise_for_error()
        structured = self.wire.structured_content
        if structured is UNSET and shape is str:
            return self.text  # type: ignore[return-value]  # T is str here
        try:
            if structured is UNSET:
                structured = msgspec.json.decode(self.text)
            return convert_structured(structured, shape)
        except (msgspec.DecodeError, ValueError) as error:
            raise Misbehaved(
                f"the result of tool {self.tool!r} is no {name_type(shape)}: {error}"
            ) from error

    def __repr__(self) -> str:
        failed = ", is_error=True" if self.is_error else ""
        return f"ToolResult({self.tool!r}, {self.text!r}{failed})"


def convert_structured(value: Any, shape: type[T]) -> T:
    """Plain data as ``shape``.

    Up to 2025-11-25 structured content is an object, so that servers wrap any other value as
    ``{"result": value}``; it is unwrapped where only that fits.
    """
    try:
        return convert(value, shape)
    except ValueError:
        if isinstance(value, dict) and value.keys() == {"result"}:
            return convert(value["result"], shape)
        raise


def convert(value: Any, shape: type[T]) -> T:
    """Plain data as ``shape``; raises a ``ValueError`` where it does not fit."""
    validate = getattr(shape, "model_validate", None)
    if validate is not None:
        model: T = validate(value)
        return model
    return msgspec.convert(value, shape)


def name_type(shape: Any) -> str:
    """A type in words."""
    return getattr(shape, "__name__", None) or repr(shape)
