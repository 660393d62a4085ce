"""JSON Schemas as fastmcp lists them: without made-up titles, without unused definitions."""

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

METADATA_KEYS = frozenset({"title", "description", "deprecated", "readOnly", "writeOnly"})
STRUCTURE_KEYS = frozenset(
    {"type", "properties", "$ref", "items", "allOf", "oneOf", "anyOf", "required"}
)
LITERAL_KEYS = frozenset({"default", "const", "examples", "example", "enum"})
MAP_KEYS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
SCHEMA_KEYS = frozenset(
    {
        *("items", "additionalProperties", "not", "if", "then", "else", "contains"),
        *("propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems"),
        *("allOf", "anyOf", "oneOf", "prefixItems"),
    }
)

DEFINITIONS_START = "#/$defs/"

MAX_SCHEMA_DEPTH = 50


def compress_schema(schema: Schema, prune_titles: bool = False, **_: Any) -> Schema:
    """Copy a schema without what a model has no use for.

    Args:
        schema: the schema, which stays as it is.
        prune_titles: leave titles out.
        **_: other options of fastmcp, which change nothing in schemas of pydantic.
    """
    compressed: Schema = _copy_schema(resolve_root_ref(schema), prune_titles, 0)
    definitions = compressed.get("$defs")
    if isinstance(definitions, dict):
        used = _find_used_definitions(compressed, definitions)
        kept = {name: one for name, one in definitions.items() if name in used}
        if kept:
            compressed["$defs"] = kept
        else:
            del compressed["$defs"]
    return compressed


def resolve_root_ref(schema: Schema) -> Schema:
    """Put what the root refers to in its place: MCP wants ``type`` there."""
    seen: set[str] = set()
    while isinstance(ref := schema.get("$ref"), str) and "type" not in schema:
        name = ref.removeprefix(DEFINITIONS_START)
        target = schema.get("$defs", {}).get(name)
        if name in seen or not isinstance(target, dict):
            return schema
        seen.add(name)
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def dereference_refs(schema: Schema) -> Schema:
    """Put definitions where they are referred to; a schema that refers to itself keeps them."""
    definitions = schema.get("$defs")
    if not isinstance(definitions, dict):
        return schema
    try:
        inlined = _inline_refs({k: v for k, v in schema.items() if k != "$defs"}, definitions, ())
    except RecursionError:
        return resolve_root_ref(schema)
    return inlined if isinstance(inlined, dict) else schema


def is_object_schema(schema: Any, root: Schema | None = None) -> bool:
    """Whether a schema describes an object."""
    if not isinstance(schema, dict):
        return False
    if schema.get("type") == "object" or "properties" in schema:
        return True
    name = str(schema.get("$ref", "")).removeprefix(DEFINITIONS_START)
    target = (root or schema).get("$defs", {}).get(name)
    return target is not schema and target is not None and is_object_schema(target, {})


def _copy_schema(node: Any, prune_titles: bool, depth: int) -> Any:
    """Copy what is known to be a schema."""
    if depth > MAX_SCHEMA_DEPTH or not isinstance(node, dict):
        return [_copy_schema(one, prune_titles, depth + 1) for one in node] if isinstance(
            node, list
        ) else node  # fmt: skip
    copied: Schema = {}
    for key, value in node.items():
        if key in MAP_KEYS and isinstance(value, dict):
            copied[key] = {
                name: _copy_schema(one, prune_titles, depth + 1) for name, one in value.items()
            }
        elif key in SCHEMA_KEYS:
            copied[key] = _copy_schema(value, prune_titles, depth + 1)
        else:
            copied[key] = value
    if prune_titles and isinstance(copied.get("title"), str) and _is_plain_schema(copied):
        del copied["title"]
    return copied


def _is_plain_schema(schema: Schema) -> bool:
    return not STRUCTURE_KEYS.isdisjoint(schema) or METADATA_KEYS.issuperset(schema)


def _find_used_definitions(schema: Schema, definitions: Schema) -> set[str]:
    used: set[str] = set()
    waiting = [*_list_refs({key: one for key, one in schema.items() if key != "$defs"})]
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += _list_refs(definitions.get(name))
    return used


def _list_refs(node: Any) -> Iterator[str]:
    """The definitions that a schema refers to, however deep."""
    if isinstance(node, dict):
        ref = node.get("$ref")
        if isinstance(ref, str) and ref.startswith(DEFINITIONS_START):
            yield ref.removeprefix(DEFINITIONS_START)
        for key, value in node.items():
            if key not in LITERAL_KEYS:
                yield from _list_refs(value)
    elif isinstance(node, list):
        for one in node:
            yield from _list_refs(one)


def _inline_refs(node: Any, definitions: Schema, inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inline_refs(one, definitions, inside) for one in node]
    if not isinstance(node, dict):
        return node
    ref = node.get("$ref")
    if isinstance(ref, str) and ref.startswith(DEFINITIONS_START):
        name = ref.removeprefix(DEFINITIONS_START)
        if name in inside or name not in definitions:
            raise RecursionError(name)
        target = _inline_refs(definitions[name], definitions, (*inside, name))
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return {**target, **beside} if isinstance(target, dict) else target
    inlined = {
        key: value if key in LITERAL_KEYS else _inline_refs(value, definitions, inside)
        for key, value in node.items()
    }
    if "discriminator" in inlined and ("anyOf" in inlined or "oneOf" in inlined):
        _drop_discriminator(inlined)
    return inlined


def _drop_discriminator(schema: Schema) -> None:
    """Take out OpenAPI's ``discriminator``, which points at definitions; what it names is required."""
    tag = schema.pop("discriminator")
    name = tag.get("propertyName") if isinstance(tag, dict) else None
    for key in ("anyOf", "oneOf"):
        for variant in schema.get(key, ()) if name else ():
            required = variant.get("required", []) if isinstance(variant, dict) else [name]
            if name not in required:
                variant["required"] = [*required, name]
