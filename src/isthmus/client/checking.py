"""Values against JSON Schemas that came from elsewhere: compiled once, never fetching anything."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from isthmus.client.costs import Costs
from isthmus.core.schema_bounds import Bounds, flaw
from isthmus.errors import Misbehaved
from isthmus.wire import CallToolResult, Tool

__all__ = ["Checker", "OutputCheck"]

BACKTRACKS = 10_000
"""Steps back that one look at one text may take: some tenths of a millisecond."""

COMPILED = 1024 * 1024
"""Bytes that one regular expression may take when it is compiled."""


class Checker:
    """Checks values against a schema of the other side's.

    Args:
        schema: the schema; 2020-12 unless it names its dialect.
        what: whose schema it is, for messages.
        formats: whether ``format`` is a rule, and no mere remark.

    Raises:
        Misbehaved: it is no valid schema, of a dialect unknown here, or refers to something
            outside itself.
    """

    __slots__ = ("_costs", "_validator", "_what")

    def __init__(self, schema: Mapping[str, Any], what: str, *, formats: bool = False) -> None:
        import jsonschema_rs

        self._what = what
        wrong = flaw(schema, Bounds())
        if wrong:
            raise Misbehaved(f"{what} cannot be used: it {wrong}")
        try:
            # spec 2026-07-28 basic#ref-resolution: implementations MUST NOT dereference network
            # URIs
            self._validator = jsonschema_rs.validator_for(
                dict(schema),
                offline=True,
                validate_formats=formats or None,
                pattern_options=jsonschema_rs.FancyRegexOptions(
                    backtrack_limit=BACKTRACKS, size_limit=COMPILED
                ),
            )
            self._costs = Costs(schema)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise Misbehaved(f"{what} cannot be used: {first_line(error)}") from error
        except RecursionError:
            raise self._too_much() from None

    def complaint(self, value: Any) -> str | None:
        """The first thing wrong with a value: member, rule and place; None for one that fits.

        Raises:
            Misbehaved: to check it would take for ever.
        """
        try:
            # spec 2026-07-28 basic#composition-keyword-resource-use: SHOULD apply bounds
            if self._costs.too_much(value):
                raise self._too_much()
        except RecursionError:
            raise self._too_much() from None
        for error in self._validator.iter_errors(value):
            where = "".join(
                f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.instance_path
            )
            return f"{named(error)}: {error.message} - at `${where}`"
        return None

    def _too_much(self) -> Misbehaved:
        return Misbehaved(f"{self._what} is not checked: it would take too long")


def named(error: Any) -> str:
    """Which member breaks which rule, in words."""
    rule = next((str(p) for p in reversed(error.schema_path) if isinstance(p, str)), "schema")
    path = [*map(str, error.instance_path)]
    if rule == "required":
        path.append(str(error.kind.as_dict().get("property", "")))
    return f"{'.'.join(path) or 'it'!r} breaks {rule!r}"


def first_line(error: Exception) -> str:
    """The part of a long explanation that matters."""
    return str(error).strip().partition("\n")[0]


class OutputCheck:
    """Checks the structured results of one tool.

    Args:
        tool: the tool as the server lists it.
    """

    __slots__ = ("_checker", "_name", "_schema")

    def __init__(self, tool: Tool) -> None:
        self._name = tool.name
        self._schema = tool.output_schema
        self._checker: Checker | None = None

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
        if self._checker is None:
            self._checker = Checker(self._schema, f"the output schema of tool {self._name!r}")
        wrong = self._checker.complaint(result.structured_content)
        if wrong:
            raise Misbehaved(f"the result of tool {self._name!r} breaks its schema: {wrong}")
