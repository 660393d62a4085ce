"""Forms: the flat part of JSON Schema that elicitation may ask with.

A form is an object of blanks, and a blank is text, a number, a box to tick, or a choice. What lies
outside is refused, since no dialog for users can be made of it. Pure, and used by either side.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["defaults", "unfit"]

Schema = Mapping[str, Any]

STRUCTURAL = (
    *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "not", "if", "then", "else"),
    *("patternProperties", "dependentSchemas", "dependentRequired", "dependencies"),
    *("propertyNames", "unevaluatedProperties", "prefixItems", "contains", "unevaluatedItems"),
)
"""Keywords that make more of a schema than a blank or a list of blanks."""

CHOICES = ("anyOf", "oneOf")
PLAIN = ("string", "number", "integer", "boolean")
A_BLANK = "a blank is text, a number, yes or no, or a choice"


def unfit(schema: Any) -> str | None:
    """Why no form can be made of a schema; None where one can.

    Args:
        schema: a ``requestedSchema``, decoded.
    """
    # spec 2026-07-28 client/elicitation#requested-schema: flat objects with primitive properties
    if not isinstance(schema, Mapping):
        return "requestedSchema is no object"
    if schema.get("type") != "object":
        return 'requestedSchema needs "type": "object"'
    for keyword in (*STRUCTURAL, *CHOICES):
        if keyword in schema:
            return f"requestedSchema has {keyword!r}: a form is a flat list of blanks"
    blanks = schema.get("properties", {})
    if not isinstance(blanks, Mapping):
        return "requestedSchema.properties is no object"
    for name, blank in blanks.items():
        wrong = _blank_unfit(blank)
        if wrong:
            return f"requestedSchema.properties.{name} {wrong}"
    return _required_unfit(schema.get("required", []))


def _required_unfit(required: Any) -> str | None:
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return "requestedSchema.required is no list of names"
    return None


def _blank_unfit(blank: Any) -> str | None:
    if not isinstance(blank, Mapping):
        return "is no schema"
    for keyword in (*STRUCTURAL, "properties"):
        if keyword in blank:
            return f"has {keyword!r}: {A_BLANK}"
    kind = blank.get("type")
    if kind == "array":
        return _choices_unfit(blank)
    if not _is_plain(kind if isinstance(kind, list) else [kind]) and not _is_nullable(blank):
        return f"is of type {kind!r}: {A_BLANK}"
    return _options_unfit(blank, "oneOf")


def _is_nullable(blank: Schema) -> bool:
    """Whether it is a blank that may be null: outside the letter, and what several servers send."""
    ways = blank.get("anyOf", blank.get("oneOf"))
    if not isinstance(ways, list):
        return False
    kinds = [way.get("type") if isinstance(way, Mapping) else None for way in ways]
    return (
        "null" in kinds
        and _is_plain(kinds)
        and not any(_blank_unfit(w) for w in ways if w["type"] != "null")
    )


def _is_plain(kinds: list[Any]) -> bool:
    named = [kind for kind in kinds if kind != "null"]
    return len(named) == 1 and named[0] in PLAIN


def _choices_unfit(blank: Schema) -> str | None:
    items = blank.get("items")
    if not isinstance(items, Mapping):
        return "is a list without items: only choices among strings may be several"
    if "anyOf" in items:
        return _options_unfit(items, "anyOf")
    if isinstance(items.get("enum"), list) and items.get("type", "string") == "string":
        return None
    return "is a list of something else than choices"


def _options_unfit(blank: Schema, keyword: str) -> str | None:
    """What is wrong with named choices, where there are any."""
    options = blank.get(keyword)
    if options is None or _is_nullable(blank):
        return None
    if isinstance(options, list) and all(
        isinstance(option, Mapping) and isinstance(option.get("const"), str) for option in options
    ):
        return None
    return f"has {keyword!r} of something else than choices: each has a const and a title"


def defaults(schema: Schema) -> dict[str, Any]:
    """What the blanks of a form hold where the user leaves them alone."""
    blanks = schema.get("properties")
    if not isinstance(blanks, Mapping):
        return {}
    return {
        name: blank["default"]
        for name, blank in blanks.items()
        if isinstance(blank, Mapping) and "default" in blank
    }
