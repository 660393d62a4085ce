"""What is looked at before a tool is offered: its name, its schemas, and what it mirrors."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from isthmus.core.http_params import ANNOTATION, HeaderParam
from isthmus.core.schema_bounds import Bounds, flaw
from isthmus.errors import UsageError
from isthmus.server.redaction import is_secret_name
from isthmus.wire import Tool

__all__ = ["check_definition", "mirrored", "warn_of"]

NAME = r"[A-Za-z0-9_.-]{1,128}"


def mirrored(header: str) -> msgspec.Meta:
    """Have an argument travel in an HTTP header, too, for proxies to route by (since 2026-07-28).

    ``region: Annotated[str, mirrored("Region")]`` travels in ``Mcp-Param-Region``. It must be a
    string, an integer or a boolean, and none that must stay between the two sides.

    Args:
        header: the end of the header's name.
    """
    return msgspec.Meta(extra_json_schema={ANNOTATION: header})


def check_definition(tool: Tool, given: tuple[bool, bool], bounds: Bounds | None) -> None:
    """See to it that a tool can be offered.

    Args:
        tool: how it is listed.
        given: whether an author wrote its schemas by hand: (input, output).
        bounds: how much such a schema may be, or None.

    Raises:
        UsageError: a schema cannot be that of a tool; the message says why.
    """
    if not tool.name:
        raise UsageError("a tool needs a name")
    schemas = (("input", tool.input_schema), ("output", tool.output_schema))
    for (side, schema), by_hand in zip(schemas, given, strict=True):
        wrong = flaw(schema, bounds) if by_hand and bounds and schema is not UNSET else None
        if wrong:
            raise UsageError(f"tool {tool.name!r}: its {side} schema {wrong}")
    if tool.input_schema.get("type") != "object":
        # spec 2026-07-28 server/tools#tool: arguments are an object
        raise UsageError(f'tool {tool.name!r}: its input schema needs "type": "object"')


def warn_of(name: str, mirrored: Iterable[HeaderParam]) -> None:
    """Log what is allowed and yet unwise."""
    if not re.fullmatch(NAME, name):
        # spec 2026-07-28 server/tools#tool-names: SHOULD be of these, and of 1 to 128
        _warn(
            "tool %r: some clients take only names of up to 128 letters, digits, '_', '-' and '.'",
            name,
        )
    for param in mirrored:
        if is_secret_name(param.path[-1]):
            # spec 2026-07-28 server/tools#x-mcp-header: SHOULD NOT mark sensitive parameters
            _warn(
                "tool %r: %s travels in the header %s, which every proxy on the way reads",
                name,
                ".".join(param.path),
                param.header,
            )


def _warn(message: str, *values: Any) -> None:
    import logging  # not needed until something is unwise

    logging.getLogger("isthmus").warning(message, *values)
