"""What checking a value against somebody else's schema costs, found out before it is done.

A schema of a few lines can have a validator look at one value more often than there are atoms:
it only has to apply a subschema twice, which applies the next one twice, and so on. The validator
cannot be interrupted. But how often it would look is found quickly, since every pair of a
subschema and a part of the value needs to be counted once only.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["MOST", "Costs"]

MOST = 5_000_000
"""Looks that a validator may take at the parts of one value; some tenths of a second."""

HARMLESS = 1000
"""Subschemas, counted along every path to them, that no value makes expensive."""

BACKTRACKING = re.compile(r"\(\?<?[=!]|\\[1-9k]")
"""What regular expressions have that are matched by trying: looks around, references back."""

TRIES = 500
"""Looks that a text costs which is matched by trying."""

TOGETHER = ("allOf", "anyOf", "oneOf")
ALONE = ("not", "if", "then", "else")
NAMED = ("dependentSchemas", "dependencies")
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
MEMBERS = ("properties", "patternProperties", *NAMED)
EVERY_MEMBER = ("additionalProperties", "unevaluatedProperties")
EVERY_ITEM = ("items", "contains", "additionalItems", "unevaluatedItems")
OF_ITEMS = ("prefixItems", "items")
NAMES = "propertyNames"
CHILDREN = (*EVERY_MEMBER, *EVERY_ITEM, NAMES)

Schema = Mapping[str, Any]


class Costs:
    """Counts the looks that checking against one schema takes.

    Args:
        schema: the whole schema; all that is not understood here counts for nothing.

    Raises:
        RecursionError: it is nested too deeply to be counted.
    """

    def __init__(self, schema: Schema) -> None:
        self._roots: list[Schema] = [schema]
        self._anchors: dict[str, list[Schema]] = {}
        self._ids: dict[str, Schema] = {}
        self._index(schema)
        self._branching = self._circular = self._trying = False
        large = self._size(schema, {}) > HARMLESS
        self._risky = large or self._trying or (self._branching and self._circular)

    def too_much(self, value: Any) -> bool:
        """Whether a value takes more than ``MOST`` looks.

        Raises:
            RecursionError: it is nested too deeply to be counted.
        """
        return self._risky and self._looks(self._roots[0], value, {}) > MOST

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
        for inner in _inside(part):
            self._index(inner)

    def _size(self, schema: Schema, known: dict[int, int]) -> int:
        """How many subschemas there are, counted along every path, each circle once."""
        if id(schema) in known:
            self._circular = self._circular or not known[id(schema)]
            return known[id(schema)]
        known[id(schema)] = 0
        here = [*_here(schema), *self._referred(schema)]
        self._trying = self._trying or any(map(BACKTRACKING.search, _patterns(schema)))
        self._branching = self._branching or len(here) > 1
        size = 1 + sum(self._size(each, known) for each in (*here, *_below(schema)))
        known[id(schema)] = size
        return size

    def _referred(self, schema: Schema) -> Iterator[Schema]:
        for key in REFERENCES:
            reference = schema.get(key)
            if isinstance(reference, str):
                yield from self._targets(reference)

    def _targets(self, reference: str) -> Iterator[Schema]:
        """All that a reference may mean; more than one only where schemas lie in schemas."""
        base, _, fragment = reference.partition("#")
        roots = self._roots
        if base:
            roots = [s for id, s in self._ids.items() if id.endswith(base) or base.endswith(id)]
        if fragment and not fragment.startswith("/"):
            yield from self._anchors.get(fragment, ())
            return
        found = {id(t): t for root in roots for t in [_at(root, fragment)] if t is not None}
        yield from found.values()

    # With a value

    def _looks(self, schema: Schema, value: Any, known: dict[tuple[int, int], int]) -> int:
        """How often a validator looks at a value and its parts, if nothing makes it stop."""
        pair = id(schema), id(value)
        if pair in known:
            return known[pair]
        known[pair] = 0  # a circle that stays at one value ends by itself
        looks = 1 + (_tries(schema, value) if self._trying else 0)
        for each in (*_here(schema), *self._referred(schema)):
            looks += self._looks(each, value, known)
        for each, part in _applied(schema, value):
            looks += self._looks(each, part, known)
        known[pair] = looks
        return looks


def _patterns(schema: Schema) -> Iterator[str]:
    """The regular expressions of a schema itself."""
    named = schema.get("patternProperties")
    for pattern in (schema.get("pattern"), *(named if isinstance(named, dict) else ())):
        if isinstance(pattern, str):
            yield pattern


def _tries(schema: Schema, value: Any) -> int:
    """The looks that a schema's regular expressions take at a text, or at the names of members."""
    if not isinstance(value, str | dict):
        return 0
    texts = 1 if isinstance(value, str) else len(value)
    return TRIES * texts * sum(BACKTRACKING.search(p) is not None for p in _patterns(schema))


def _inside(part: Any) -> Iterator[Any]:
    if isinstance(part, dict):
        yield from part.values()
    elif isinstance(part, list):
        yield from part


def _here(schema: Schema) -> Iterator[Schema]:
    """The subschemas that look at the same value as the schema they are part of."""
    for key in TOGETHER:
        yield from _schemas(schema.get(key))
    yield from _schemas([schema.get(key) for key in ALONE])
    for key in NAMED:
        yield from _schemas(_values(schema.get(key)))


def _below(schema: Schema) -> Iterator[Schema]:
    """The subschemas that look at parts of the value."""
    for key in ("properties", "patternProperties"):
        yield from _schemas(_values(schema.get(key)))
    for key in OF_ITEMS:
        yield from _schemas(schema.get(key))
    yield from _schemas([schema.get(key) for key in CHILDREN])


def _applied(schema: Schema, value: Any) -> Iterator[tuple[Schema, Any]]:
    """The subschemas that look at parts of this value, and the parts."""
    if isinstance(value, dict):
        properties = schema.get("properties")
        everywhere = [
            *_schemas(_values(schema.get("patternProperties"))),
            *_schemas([schema.get(key) for key in EVERY_MEMBER]),
        ]
        for name, part in value.items():
            own = properties.get(name) if isinstance(properties, dict) else None
            for each in (*_schemas([own]), *everywhere):
                yield each, part
            for each in _schemas([schema.get(NAMES)]):
                yield each, name
    elif isinstance(value, list):
        everywhere = list(_schemas([schema.get(key) for key in EVERY_ITEM]))
        for part in value:
            for each in everywhere:
                yield each, part
        for key in OF_ITEMS:
            listed = schema.get(key)
            if isinstance(listed, list):
                yield from ((e, p) for e, p in zip(listed, value, strict=False) if _is(e))


def _values(part: Any) -> list[Any]:
    return list(part.values()) if isinstance(part, dict) else []


def _is(part: Any) -> bool:
    return isinstance(part, dict)


def _schemas(parts: Any) -> Iterator[Schema]:
    """Those of several that are schemas; true and false cost nothing."""
    if isinstance(parts, list):
        yield from (part for part in parts if _is(part))


def _at(root: Schema, pointer: str) -> Schema | None:
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
    return part if _is(part) else None
