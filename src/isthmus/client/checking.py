"""Values against JSON Schemas that came from elsewhere: compiled once, never fetching anything."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from isthmus.errors import Misbehaved
from isthmus.wire import CallToolResult, Tool

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["OutputCheck", "compiled", "complaint"]


def compiled(schema: Mapping[str, Any], what: str) -> "jsonschema_rs.Validator":
    """A validator for a schema of the other side's.

    Args:
        schema: the schema; 2020-12 unless it names its dialect.
        what: whose schema it is, for messages.

    Raises:
        Misbehaved: it is no valid schema, or refers to something outside itself.
    """
    import jsonschema_rs

    try:
        # spec 2026-07-28 basic#ref-resolution: implementations MUST NOT dereference network URIs
        return jsonschema_rs.validator_for(dict(schema), offline=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise Misbehaved(f"{what} cannot be used: {first_line(error)}") from error


def complaint(validator: "jsonschema_rs.Validator", value: Any) -> str | None:
    """The first thing wrong with a value, and where; None for a value that fits."""
    for error in validator.iter_errors(value):
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.instance_path)
        return f"{error.message} - at `${where}`"
    return None


def first_line(error: Exception) -> str:
    """The part of a long explanation that matters."""
    return str(error).strip().partition("\n")[0]


class OutputCheck:
    """Checks the structured results of one tool.

    Args:
        tool: the tool as the server lists it.
    """

    __slots__ = ("_name", "_schema", "_validator")

    def __init__(self, tool: Tool) -> None:
        self._name = tool.name
        self._schema = tool.output_schema
        self._validator: jsonschema_rs.Validator | None = None

    def check(self, result: CallToolResult) -> None:
        """Hold a result against the tool's output schema, where it has one.

        Raises:
            Misbehaved: it does not fit, or is missing; the message has the JSON path.
        """
        # spec 2026-07-28 server/tools#output-schema: servers MUST conform, clients SHOULD check
        if self._schema is UNSET or result.is_error:
            return
        if result.structured_content is UNSET:
            raise Misbehaved(
                f"tool {self._name!r} has an output schema but gave no structured content"
            )
        if self._validator is None:
            self._validator = compiled(self._schema, f"the output schema of tool {self._name!r}")
        wrong = complaint(self._validator, result.structured_content)
        if wrong:
            raise Misbehaved(f"the result of tool {self._name!r} breaks its schema: {wrong}")
