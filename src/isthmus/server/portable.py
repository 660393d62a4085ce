"""Schemas in the form hosts read best: everything inlined but what is shared or recursive."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

__all__ = ["PREFIX", "inlined", "without_null"]

PREFIX = "#/$defs/"
NULL = {"type": "null"}


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without its ``null`` alternative."""
    schema = dict(schema)
    if "anyOf" in schema:
        rest = [branch for branch in schema.pop("anyOf") if branch != NULL]
        return {**rest[0], **schema} if len(rest) == 1 else {"anyOf": rest, **schema}
    if None in schema.get("enum", ()):
        schema["enum"] = [value for value in schema["enum"] if value is not None]
    return schema


def inlined(root: dict[str, Any], definitions: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The schema on its own feet: what is used once is put in place, the rest into ``$defs``."""
    uses = _uses(root, definitions)
    kept = {
        name
        for name, count in uses.items()
        if _is_recursive(name, definitions) or (count > 1 and "properties" in definitions[name])
    }
    schema: dict[str, Any] = _placed(root, definitions, kept)
    if "$ref" in schema:  # hosts want to see `type: object` at the root
        name = schema.pop("$ref").removeprefix(PREFIX)
        schema = {**_placed(definitions[name], definitions, kept), **schema}
    if kept:
        schema["$defs"] = {
            name: _placed(definitions[name], definitions, kept) for name in sorted(kept)
        }
    return schema


def _references(schema: Any) -> Iterator[str]:
    """The definitions a schema refers to, in order, as often as it does."""
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.removeprefix(PREFIX)
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _references(item)


def _uses(root: dict[str, Any], definitions: dict[str, dict[str, Any]]) -> Counter[str]:
    """How often each definition is referred to from what is reachable."""
    uses: Counter[str] = Counter()
    pending: list[Any] = [root]
    while pending:
        for name in _references(pending.pop()):
            if name not in uses:
                pending.append(definitions[name])
            uses[name] += 1
    return uses


def _is_recursive(name: str, definitions: dict[str, dict[str, Any]]) -> bool:
    """Whether a definition leads back to itself."""
    seen: set[str] = set()
    pending = [name]
    while pending:
        for reference in _references(definitions[pending.pop()]):
            if reference == name:
                return True
            if reference not in seen:
                seen.add(reference)
                pending.append(reference)
    return False


def _placed(schema: Any, definitions: dict[str, dict[str, Any]], kept: set[str]) -> Any:
    """A copy of the schema in which every reference that is not kept is replaced."""
    if isinstance(schema, list):
        return [_placed(item, definitions, kept) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and (name := reference.removeprefix(PREFIX)) not in kept:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**definitions[name], **beside}
        return _placed(schema, definitions, kept)
    return {key: _placed(value, definitions, kept) for key, value in schema.items()}
