"""JSON Schema validation with schemas of the other side: bounded in time, never fetching anything.

A schema of a few lines can have a validator look at one value more often than there are atoms:
it only has to apply a subschema twice, which applies the next one twice, and so on. The validator
cannot be interrupted. But how often it would look is found quickly, since every pair of a
subschema and a part of the value needs to be counted once only.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET

from isthmus.core.schema_bounds import Bounds, find_bounds_flaw
from isthmus.errors import Misbehaved
from isthmus.wire import CallToolResult, Tool

# Steps back that one look at one text may take: some tenths of a millisecond.
MAX_BACKTRACKS = 10_000

MAX_REGEX_BYTES = 1024 * 1024  # bytes that one regular expression may take when it is compiled


class SchemaValidator:
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
        wrong = find_bounds_flaw(schema, Bounds())
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
                    backtrack_limit=MAX_BACKTRACKS, size_limit=MAX_REGEX_BYTES
                ),
            )
            self._costs = ValidationCost(schema)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise Misbehaved(f"{what} cannot be used: {first_line(error)}") from error
        except RecursionError:
            raise self._too_much() from None

    def complaint(self, value: Any) -> str | None:
        """The first thing wrong with a value: member, rule and place; None for one that fits.

        Raises:
            Misbehaved: to check it would take for ever.
        """
        error = self._find_error(value)
        if error is None:
            return None
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.instance_path)
        return f"{describe_violation(error)}: {error.message} - at `${where}`"

    def find_fault(self, value: Any) -> tuple[list[str | int], str] | None:
        """The place of the first thing wrong with a value, and what it is; None for one that fits.

        Raises:
            Misbehaved: to check it would take for ever.
        """
        error = self._find_error(value)
        return None if error is None else (list(error.instance_path), str(error.message))

    def _find_error(self, value: Any) -> Any:
        try:
            # spec 2026-07-28 basic#composition-keyword-resource-use: SHOULD apply bounds
            if self._costs.too_much(value):
                raise self._too_much()
        except RecursionError:
            raise self._too_much() from None
        try:
            return next(iter(self._validator.iter_errors(value)), None)
        except ValueError:  # nested more deeply than it goes
            raise self._too_much() from None

    def _too_much(self) -> Misbehaved:
        return Misbehaved(f"{self._what} is not checked: it would take too long")


def describe_violation(error: Any) -> str:
    """The member and the rule that it breaks, in words."""
    rule = next((str(p) for p in reversed(error.schema_path) if isinstance(p, str)), "schema")
    path = [*map(str, error.instance_path)]
    if rule == "required":
        path.append(str(error.kind.as_dict().get("property", "")))
    return f"{'.'.join(path) or 'it'!r} breaks {rule!r}"


def first_line(error: Exception) -> str:
    """The part of a long explanation that matters."""
    return str(error).strip().partition("\n")[0]


class OutputValidator:
    """Checks the structured results of one tool.

    Args:
        tool: the tool as the server lists it.
    """

    __slots__ = ("_checker", "_name", "_schema")

    def __init__(self, tool: Tool) -> None:
        self._name = tool.name
        self._schema = tool.output_schema
        self._checker: SchemaValidator | None = None

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
            self._checker = SchemaValidator(
                self._schema, f"the output schema of tool {self._name!r}"
            )
        wrong = self._checker.complaint(result.structured_content)
        if wrong:
            raise Misbehaved(f"the result of tool {self._name!r} breaks its schema: {wrong}")


# Looks that a validator may take at the parts of one value; some tenths of a second.
MAX_LOOKS = 5_000_000

# Subschemas, counted along every path to them, that no value makes expensive.
HARMLESS_SUBSCHEMAS = 1000

# What regular expressions have that are matched by trying: looks around, references back.
BACKTRACKING_PATTERN = re.compile(r"\(\?<?[=!]|\\[1-9k]")

LOOKS_PER_PATTERN = 500  # looks that a text costs which is matched by trying

COMBINATOR_KEYWORDS = ("allOf", "anyOf", "oneOf")
SINGLE_SCHEMA_KEYWORDS = ("not", "if", "then", "else")
DEPENDENCY_KEYWORDS = ("dependentSchemas", "dependencies")
REFERENCE_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")
EVERY_MEMBER_KEYWORDS = ("additionalProperties", "unevaluatedProperties")
EVERY_ITEM_KEYWORDS = ("items", "contains", "additionalItems", "unevaluatedItems")
ITEM_LIST_KEYWORDS = ("prefixItems", "items")
PROPERTY_NAMES_KEYWORD = "propertyNames"
CHILD_KEYWORDS = (*EVERY_MEMBER_KEYWORDS, *EVERY_ITEM_KEYWORDS, PROPERTY_NAMES_KEYWORD)

JsonSchema = Mapping[str, Any]


class ValidationCost:
    """Counts the looks that checking against one schema takes.

    Args:
        schema: the whole schema; all that is not understood here counts for nothing.

    Raises:
        RecursionError: it is nested too deeply to be counted.
    """

    def __init__(self, schema: JsonSchema) -> None:
        self._roots: list[JsonSchema] = [schema]
        self._anchors: dict[str, list[JsonSchema]] = {}
        self._ids: dict[str, JsonSchema] = {}
        self._index(schema)
        self._branching = self._circular = self._trying = False
        large = self._size(schema, {}) > HARMLESS_SUBSCHEMAS
        self._risky = large or self._trying or (self._branching and self._circular)

    def too_much(self, value: Any) -> bool:
        """Whether a value takes more than ``MAX_LOOKS`` looks.

        Raises:
            RecursionError: it is nested too deeply to be counted.
        """
        return self._risky and self._looks(self._roots[0], value, {}) > MAX_LOOKS

    # The schema alone

    def _index(self, part: Any) -> None:
        """Note whatever a reference may name."""
        if isinstance(part, dict):
            for key in ("$anchor", "$dynamicAnchor"):
                if isinstance(part.get(key), str):
                    self._anchors.setdefault(part[key], []).append(part)
            if isinstance(part.get("$id"), str):
                self._ids[part["$id"].partition("#")[0]] = part
                self._roots.append(part)
        for inner in _iter_parts(part):
            self._index(inner)

    def _size(self, schema: JsonSchema, known: dict[int, int]) -> int:
        """How many subschemas there are, counted along every path, each circle once."""
        if id(schema) in known:
            self._circular = self._circular or not known[id(schema)]
            return known[id(schema)]
        known[id(schema)] = 0
        here = [*_in_place_subschemas(schema), *self._iter_references(schema)]
        self._trying = self._trying or any(map(BACKTRACKING_PATTERN.search, _iter_patterns(schema)))
        self._branching = self._branching or len(here) > 1
        size = 1 + sum(self._size(each, known) for each in (*here, *_child_subschemas(schema)))
        known[id(schema)] = size
        return size

    def _iter_references(self, schema: JsonSchema) -> Iterator[JsonSchema]:
        for key in REFERENCE_KEYWORDS:
            reference = schema.get(key)
            if isinstance(reference, str):
                yield from self._targets(reference)

    def _targets(self, reference: str) -> Iterator[JsonSchema]:
        """All that a reference may mean; more than one only where schemas lie in schemas."""
        base, _, fragment = reference.partition("#")
        roots = self._roots
        if base:
            roots = [s for key, s in self._ids.items() if key.endswith(base) or base.endswith(key)]
        if fragment and not fragment.startswith("/"):
            yield from self._anchors.get(fragment, ())
            return
        found = {
            id(t): t for root in roots for t in [_resolve_pointer(root, fragment)] if t is not None
        }
        yield from found.values()

    # With a value

    def _looks(self, schema: JsonSchema, value: Any, known: dict[tuple[int, int], int]) -> int:
        """How often a validator looks at a value and its parts, if nothing makes it stop."""
        pair = id(schema), id(value)
        if pair in known:
            return known[pair]
        known[pair] = 0  # a circle that stays at one value ends by itself
        looks = 1 + (_count_pattern_looks(schema, value) if self._trying else 0)
        for each in (*_in_place_subschemas(schema), *self._iter_references(schema)):
            looks += self._looks(each, value, known)
        for each, part in _apply_to_children(schema, value):
            looks += self._looks(each, part, known)
        known[pair] = looks
        return looks


def _iter_patterns(schema: JsonSchema) -> Iterator[str]:
    """The regular expressions of a schema itself."""
    named = schema.get("patternProperties")
    for pattern in (schema.get("pattern"), *(named if isinstance(named, dict) else ())):
        if isinstance(pattern, str):
            yield pattern


def _count_pattern_looks(schema: JsonSchema, value: Any) -> int:
    """The looks that a schema's regular expressions take at a text, or at the names of members."""
    if not isinstance(value, str | dict):
        return 0
    texts = 1 if isinstance(value, str) else len(value)
    return (
        LOOKS_PER_PATTERN
        * texts
        * sum(BACKTRACKING_PATTERN.search(p) is not None for p in _iter_patterns(schema))
    )


def _iter_parts(part: Any) -> Iterator[Any]:
    if isinstance(part, dict):
        yield from part.values()
    elif isinstance(part, list):
        yield from part


def _in_place_subschemas(schema: JsonSchema) -> Iterator[JsonSchema]:
    """The subschemas that look at the same value as the schema they are part of."""
    for key in COMBINATOR_KEYWORDS:
        yield from _schemas(schema.get(key))
    yield from _schemas([schema.get(key) for key in SINGLE_SCHEMA_KEYWORDS])
    for key in DEPENDENCY_KEYWORDS:
        yield from _schemas(_values(schema.get(key)))


def _child_subschemas(schema: JsonSchema) -> Iterator[JsonSchema]:
    """The subschemas that look at parts of the value."""
    for key in ("properties", "patternProperties"):
        yield from _schemas(_values(schema.get(key)))
    for key in ITEM_LIST_KEYWORDS:
        yield from _schemas(schema.get(key))
    yield from _schemas([schema.get(key) for key in CHILD_KEYWORDS])


def _apply_to_children(schema: JsonSchema, value: Any) -> Iterator[tuple[JsonSchema, Any]]:
    """The subschemas that look at parts of this value, and the parts."""
    if isinstance(value, dict):
        properties = schema.get("properties")
        everywhere = [
            *_schemas(_values(schema.get("patternProperties"))),
            *_schemas([schema.get(key) for key in EVERY_MEMBER_KEYWORDS]),
        ]
        for name, part in value.items():
            own = properties.get(name) if isinstance(properties, dict) else None
            for each in (*_schemas([own]), *everywhere):
                yield each, part
            for each in _schemas([schema.get(PROPERTY_NAMES_KEYWORD)]):
                yield each, name
    elif isinstance(value, list):
        everywhere = list(_schemas([schema.get(key) for key in EVERY_ITEM_KEYWORDS]))
        for part in value:
            for each in everywhere:
                yield each, part
        for key in ITEM_LIST_KEYWORDS:
            listed = schema.get(key)
            if isinstance(listed, list):
                yield from ((e, p) for e, p in zip(listed, value, strict=False) if _is_schema(e))


def _values(part: Any) -> list[Any]:
    return list(part.values()) if isinstance(part, dict) else []


def _is_schema(part: Any) -> bool:
    return isinstance(part, dict)


def _schemas(parts: Any) -> Iterator[JsonSchema]:
    """Those of several that are schemas; true and false cost nothing."""
    if isinstance(parts, list):
        yield from (part for part in parts if _is_schema(part))


def _resolve_pointer(root: JsonSchema, pointer: str) -> JsonSchema | None:
    """The schema that a JSON pointer leads to, or None."""
    from urllib.parse import unquote  # not needed until a schema refers to something

    part: Any = root
    for step in unquote(pointer).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, list) and key.isdecimal() and int(key) < len(part):
            part = part[int(key)]
        elif isinstance(part, dict):
            part = part.get(key)
        else:
            return None
    return part if _is_schema(part) else None
