"""Rules of elicitation: which JSON Schemas can be forms, and which URLs a user may be sent to.

A form is an object of blanks, and a blank is text, a number, a box to tick, or a choice. What lies
outside is refused, since no dialog for users can be made of it. Pure, and used by either side.
"""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

# Keywords that make more of a schema than a blank or a list of blanks
STRUCTURAL_KEYWORDS = (
    *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "not", "if", "then", "else"),
    *("patternProperties", "dependentSchemas", "dependentRequired", "dependencies"),
    *("propertyNames", "unevaluatedProperties", "prefixItems", "contains", "unevaluatedItems"),
)

CHOICE_KEYWORDS = ("anyOf", "oneOf")
PRIMITIVE_TYPES = ("string", "number", "integer", "boolean")
FIELD_KINDS = "a blank is text, a number, yes or no, or a choice"


def find_form_flaw(schema: Any) -> str | None:
    """Why no form can be made of a schema; None where one can.

    Args:
        schema: a ``requestedSchema``, decoded.
    """
    # spec 2026-07-28 client/elicitation#requested-schema: flat objects with primitive properties
    if not isinstance(schema, Mapping):
        return "requestedSchema is no object"
    if schema.get("type") != "object":
        return 'requestedSchema needs "type": "object"'
    for keyword in (*STRUCTURAL_KEYWORDS, *CHOICE_KEYWORDS):
        if keyword in schema:
            return f"requestedSchema has {keyword!r}: a form is a flat list of blanks"
    blanks = schema.get("properties", {})
    if not isinstance(blanks, Mapping):
        return "requestedSchema.properties is no object"
    for name, blank in blanks.items():
        wrong = _find_field_flaw(blank)
        if wrong:
            return f"requestedSchema.properties.{name} {wrong}"
    return _find_required_flaw(schema.get("required", []))


def _find_required_flaw(required: Any) -> str | None:
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return "requestedSchema.required is no list of names"
    return None


def _find_field_flaw(blank: Any) -> str | None:
    if not isinstance(blank, Mapping):
        return "is no schema"
    for keyword in (*STRUCTURAL_KEYWORDS, "properties"):
        if keyword in blank:
            return f"has {keyword!r}: {FIELD_KINDS}"
    kind = blank.get("type")
    if kind == "array":
        return _find_choices_flaw(blank)
    if not _is_plain(kind if isinstance(kind, list) else [kind]) and not _is_nullable(blank):
        return f"is of type {kind!r}: {FIELD_KINDS}"
    return _find_options_flaw(blank, "oneOf")


def _is_nullable(blank: Schema) -> bool:
    """Whether it is a blank that may be null: outside the letter, and what several servers send."""
    ways = blank.get("anyOf", blank.get("oneOf"))
    if not isinstance(ways, list):
        return False
    kinds = [way.get("type") if isinstance(way, Mapping) else None for way in ways]
    return (
        "null" in kinds
        and _is_plain(kinds)
        and not any(_find_field_flaw(w) for w in ways if w["type"] != "null")
    )


def _is_plain(kinds: list[Any]) -> bool:
    named = [kind for kind in kinds if kind != "null"]
    return len(named) == 1 and named[0] in PRIMITIVE_TYPES


def _find_choices_flaw(blank: Schema) -> str | None:
    items = blank.get("items")
    if not isinstance(items, Mapping):
        return "is a list without items: only choices among strings may be several"
    if "anyOf" in items:
        return _find_options_flaw(items, "anyOf")
    if isinstance(items.get("enum"), list) and items.get("type", "string") == "string":
        return None
    return "is a list of something else than choices"


def _find_options_flaw(blank: Schema, keyword: str) -> str | None:
    """Find what is wrong with named choices, where there are any."""
    options = blank.get(keyword)
    if options is None or _is_nullable(blank):
        return None
    if isinstance(options, list) and all(
        isinstance(option, Mapping) and isinstance(option.get("const"), str) for option in options
    ):
        return None
    return f"has {keyword!r} of something else than choices: each has a const and a title"


def fill_defaults(schema: Schema) -> dict[str, Any]:
    """The defaults of a form: what its fields hold where the user leaves them alone."""
    blanks = schema.get("properties")
    if not isinstance(blanks, Mapping):
        return {}
    return {
        name: blank["default"]
        for name, blank in blanks.items()
        if isinstance(blank, Mapping) and "default" in blank
    }


def find_page_flaw(url: Any) -> str | None:
    """Why nobody should be sent to a URL; None for a page on the web."""
    from urllib.parse import urlsplit  # not needed until a page is to be opened

    try:
        parts = urlsplit(url if isinstance(url, str) else "")
    except ValueError:
        parts = urlsplit("")
    # spec 2026-07-28 client/elicitation#url-mode-elicitation-requests: MUST be a valid URL
    if not parts.hostname:
        return "url is no URL"
    if parts.scheme not in {"https", "http"}:
        return f"url is no page on the web but {parts.scheme}:"
    if any(c.isspace() or not c.isprintable() for c in url):
        return "url holds blanks or control characters"
    # Browsers take it for a slash, and the page would be on another host than the one shown.
    if "\\" in url:
        return "url holds a backslash"
    # It is shown where a host is expected (https://bank.example@evil.example), and would log in.
    if "@" in parts.netloc:
        return "url has a user or a password before its host"
    return None


def spell_host(host: str) -> str:
    """A host as browsers show it: without percent signs, and Punycode in its letters.

    Example:
        >>> spell_host("p%61y.xn--bcher-kva.example")
        'pay.bücher.example'
    """
    from urllib.parse import unquote

    return ".".join(map(_to_unicode, unquote(host).lower().split(".")))


def _to_unicode(label: str) -> str:
    try:
        return label[4:].encode().decode("punycode") if label.startswith("xn--") else label
    except UnicodeError:
        return label
