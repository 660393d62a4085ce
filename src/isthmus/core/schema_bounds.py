"""Bounds of a JSON Schema, checked before it is compiled: small, shallow, and whole in itself.

A schema is a program that somebody else may have written. Before a validator sees it, it is
measured, and its references are looked at: nothing is ever fetched, so one that leads outside is
refused, and not taken for permission.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from isthmus.wire.jsonrpc import encode

# The dialects of JSON Schema that are understood; the first one is meant where none is named
DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
)

NAMED_SCHEMA_KEYWORDS = (
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
)
DATA_KEYWORDS = ("const", "default", "enum", "example", "examples")
CHOICE_KEYWORDS = ("allOf", "anyOf", "oneOf")
BRANCH_KEYWORDS = ("if", "then", "else", "not")
REFERENCE_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")
LEADING_KEYWORDS = frozenset({"$schema", *REFERENCE_KEYWORDS})
COUNTED_KEYWORDS = frozenset({*CHOICE_KEYWORDS, *BRANCH_KEYWORDS, "pattern", "patternProperties"})


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a schema.

    spec 2026-07-28 basic#composition-keyword-resource-use: implementations SHOULD apply bounds.

    Attributes:
        size: bytes of its JSON.
        depth: levels of schemas in schemas.
        parts: schemas in it, itself included.
        choices: alternatives in it: members of ``anyOf``, ``allOf`` and ``oneOf``, and each
            ``if``, ``then``, ``else`` and ``not``.
        patterns: regular expressions in it; each takes time and memory to compile.
    """

    size: int = 1024 * 1024
    depth: int = 64
    parts: int = 10_000
    choices: int = 2_000
    patterns: int = 500


def find_bounds_flaw(schema: Mapping[str, Any], bounds: Bounds) -> str | None:
    """Why a schema must not be compiled; None where it may.

    Args:
        schema: the schema, from whomever.
        bounds: how much it may be.

    Returns:
        A clause to go on with after "the schema".
    """
    try:
        size = len(encode(schema))
    except (TypeError, ValueError, RecursionError) as error:
        return f"is no JSON: {error}"
    if size > bounds.size:
        return f"has {size} bytes, more than the {bounds.size} it may have"
    return _find_flaw(schema, bounds)


def _find_flaw(schema: Any, bounds: Bounds) -> str | None:
    """Walk once through all schemas in a schema, and hold each against the bounds."""
    parts = choices = patterns = 0
    own: list[str] = []
    referring: list[dict[str, Any]] = []
    for part, depth in _list_subschemas(schema):
        parts += 1
        if depth > bounds.depth:
            return f"is more than {bounds.depth} schemas deep"
        if parts > bounds.parts:
            return f"holds more than {bounds.parts} schemas"
        if isinstance(part.get("$id"), str):
            own.append(part["$id"])
        if not LEADING_KEYWORDS.isdisjoint(part):
            referring.append(part)
        if COUNTED_KEYWORDS.isdisjoint(part):
            continue
        choices += _count_choices(part)
        if choices > bounds.choices:
            return f"holds more than {bounds.choices} alternatives (anyOf, allOf, oneOf, if)"
        patterns += _count_patterns(part)
        if patterns > bounds.patterns:
            return f"holds more than {bounds.patterns} patterns"
    flaws = (_find_foreign(part, own) for part in referring)  # now that all ids are known
    return next(filter(None, flaws), None)


def _count_choices(part: dict[str, Any]) -> int:
    """The alternatives of one schema itself."""
    count = sum(key in part for key in BRANCH_KEYWORDS)
    return count + sum(len(part[key]) for key in CHOICE_KEYWORDS if isinstance(part.get(key), list))


def _count_patterns(part: dict[str, Any]) -> int:
    """The regular expressions of one schema itself."""
    named = part.get("patternProperties")
    return ("pattern" in part) + (len(named) if isinstance(named, dict) else 0)


def _find_foreign(part: dict[str, Any], own: list[str]) -> str | None:
    """Find a reference of one schema that leads out of all of it."""
    dialect = part.get("$schema")
    if dialect is not None and not _is_known(dialect):
        # spec 2026-07-28 basic#implementation-requirements: an error that says it is the
        # dialect that is not supported
        return f"is of a dialect that is not supported, {dialect!r}: use {DIALECTS[0]!r}"
    for key in REFERENCE_KEYWORDS:
        reference = part.get(key)
        if isinstance(reference, str) and not _stays(reference, own):
            # spec 2026-07-28 basic#ref-resolution: MUST NOT dereference network URIs, and
            # SHOULD reject what cannot be resolved without
            return (
                f"refers to {reference!r}, which is outside of it, and nothing is fetched: "
                "put what is meant under $defs"
            )
    return None


def _is_known(dialect: Any) -> bool:
    return isinstance(dialect, str) and dialect.rstrip("#") in DIALECTS


def _stays(reference: str, own: list[str]) -> bool:
    """Whether a reference means a part of the schema itself, or a dialect, which is built in."""
    base = reference.partition("#")[0]
    if not base or _is_known(base):
        return True
    return any(_is_base_of(base, id.partition("#")[0]) for id in own)


def _is_base_of(base: str, id: str) -> bool:
    """Whether a reference's base may be the schema of this id, one of them being relative."""
    shorter, longer = sorted((base, id), key=len)
    return bool(shorter) and (longer == shorter or longer.endswith("/" + shorter.lstrip("./")))


def _list_subschemas(schema: Any) -> Iterator[tuple[dict[str, Any], int]]:
    """Every schema in a schema, itself first, with how deep it lies."""
    todo: list[tuple[Any, int]] = [(schema, 1)]
    while todo:  # a stack of our own: a deep schema must not exhaust Python's
        part, depth = todo.pop()
        if not isinstance(part, dict):
            continue
        yield part, depth
        for key, value in part.items():
            if isinstance(value, dict):
                if key in NAMED_SCHEMA_KEYWORDS:
                    todo += [(inner, depth + 1) for inner in value.values()]
                elif key not in DATA_KEYWORDS:
                    todo.append((value, depth + 1))
            elif isinstance(value, list) and key not in DATA_KEYWORDS:
                todo += [(inner, depth + 1) for inner in value]
