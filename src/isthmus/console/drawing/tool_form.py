"""Form of a tool: fields made from its JSON Schema, and the arguments that a filled form means.

What has no field of its own (objects, lists of objects, choices between types) becomes a box for JSON, and so
does a tool with too many parameters. An empty field leaves its parameter out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from isthmus.cards.drafts import read_json
from isthmus.cards.markup import Markup, element
from isthmus.client.model.schema_validation import SchemaValidator
from isthmus.core.encoding import is_same_json
from isthmus.core.text import show_invisible
from isthmus.errors import Misbehaved

FieldKind: TypeAlias = Literal["text", "long", "number", "boolean", "choice", "lines", "json"]

MAX_FIELDS = 40
MAX_CHOICES = 200
MAX_REFERENCES = 8  # that lead from one to the next
LONG_TEXT_CHARS = 120  # a parameter that may be longer than this gets several lines
LONG_NAMES = frozenset(
    {"body", "code", "content", "description", "html", "markdown", "message", "patch", "prompt"}
    | {"query", "script", "sql", "text", "new_string", "old_string", "new_text", "old_text"}
)
JSON_FIELD = "arguments"  # the whole as JSON, in place of all fields
FIELD_PREFIX = "argument-"
BOX_KINDS = frozenset({"long", "lines", "json"})  # that have a box of several lines
YES, NO = "true", "false"


class ToolField(Struct, frozen=True, kw_only=True):
    """One parameter of a tool, as a form asks for it.

    Attributes:
        number: its place; the form calls it by that, since names are somebody else's.
        name: the parameter.
        kind: how it is asked for.
        schema: its schema, references resolved.
        required: whether the tool wants it.
        choices: the values of a choice.
    """

    number: int
    name: str
    kind: FieldKind
    schema: Mapping[str, Any]
    required: bool = False
    choices: tuple[Any, ...] = ()

    @property
    def key(self) -> str:
        """The name of its field in the form."""
        return f"{FIELD_PREFIX}{self.number}"


class FormValues(Struct, frozen=True):
    """A filled form, read.

    Attributes:
        arguments: of the call.
        faults: what is wrong, by the name of the field; empty where the call can be made.
    """

    arguments: Mapping[str, Any] = {}
    faults: Mapping[str, str] = {}


def list_tool_fields(schema: Mapping[str, Any]) -> list[ToolField]:
    """The fields for a tool's input schema, those that it requires first; none where there are too many."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or len(properties) > MAX_FIELDS:
        return []
    required = schema.get("required")
    wanted = set(map(str, required)) if isinstance(required, list) else set[str]()
    fields = [
        _make_field(number, name, _resolve_schema(part, schema), required=name in wanted)
        for number, (name, part) in enumerate(properties.items())
    ]
    return sorted(fields, key=lambda one: not one.required)


def _make_field(number: int, name: str, schema: Mapping[str, Any], *, required: bool) -> ToolField:
    choices = schema.get("enum")
    if isinstance(choices, list) and 0 < len(choices) <= MAX_CHOICES:
        kind: FieldKind = "choice"
    else:
        choices, kind = [], _find_kind(name, schema)
    return ToolField(
        number=number,
        name=name,
        kind=kind,
        schema=schema,
        required=required,
        choices=tuple(choices),
    )


def _find_kind(name: str, schema: Mapping[str, Any]) -> FieldKind:
    kind = schema.get("type")
    if kind == "string":
        longest = schema.get("maxLength")
        long = name.lower() in LONG_NAMES or (
            isinstance(longest, int) and longest > LONG_TEXT_CHARS
        )
        return "long" if long else "text"
    if kind in ("integer", "number"):  # no set: a server may write anything there
        return "number"
    if kind == "boolean":
        return "boolean"
    if kind == "array":
        items = schema.get("items")
        plain = isinstance(items, Mapping) and items.get("type") == "string"
        return "lines" if plain else "json"
    return "json"


def _resolve_schema(given: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with its reference followed, and without the ``null`` that leaves it open."""
    part: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    for _ in range(MAX_REFERENCES):
        reference = part.get("$ref")
        if isinstance(reference, str):
            part = {**_find_definition(reference, root), **_drop_keys(part, "$ref")}
            continue
        ways = part.get("anyOf") or part.get("oneOf")
        known = [way for way in ways if way != {"type": "null"}] if isinstance(ways, list) else []
        if len(known) == 1 and isinstance(known[0], Mapping):
            part = {**known[0], **_drop_keys(part, "anyOf", "oneOf")}
            continue
        kinds = part.get("type")
        if isinstance(kinds, list):
            named = [kind for kind in kinds if kind != "null"]
            part = {**part, "type": named[0] if len(named) == 1 else "any"}
        return part
    return {}


def _drop_keys(part: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in keys}


def _find_definition(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a reference within the same document leads to; nothing for others."""
    if not reference.startswith("#/"):
        return {}
    found: Any = root
    for step in reference[2:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


# Reading


def read_tool_form(
    fields: Sequence[ToolField], schema: Mapping[str, Any], filled: Mapping[str, str]
) -> FormValues:
    """The arguments that a filled form means, and what is wrong with it.

    Args:
        fields: those of :func:`list_tool_fields`.
        schema: the tool's input schema, which the whole is held against.
        filled: the form, by the names of its fields.
    """
    whole = filled.get(JSON_FIELD, "").strip()
    if whole:
        arguments, fault = _parse_object(whole)
        faults = {JSON_FIELD: fault} if fault else {}
    else:
        arguments, faults = _read_fields(fields, filled)
    if not faults:
        faults = _check_whole(fields, schema, arguments, as_json=bool(whole) or not fields)
    return FormValues(arguments, faults)


def _parse_object(text: str) -> tuple[dict[str, Any], str]:
    try:
        value = read_json(text)
    except ValueError as error:
        return {}, str(error)
    if not isinstance(value, dict):
        return {}, 'arguments are a JSON object: write {"name": value}'
    return value, ""


def _read_fields(
    fields: Sequence[ToolField], filled: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    arguments: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for field in fields:
        text = filled.get(field.key, "").replace("\r\n", "\n")
        if not text.strip():
            if field.required and field.kind in {"text", "long"} and "enum" not in field.schema:
                arguments[field.name] = text
            elif field.required:
                faults[field.key] = "the tool requires a value here"
            continue
        try:
            arguments[field.name] = _read_value(field, text)
        except ValueError as error:
            faults[field.key] = str(error)
    return arguments, faults


def _read_value(field: ToolField, text: str) -> Any:
    match field.kind:
        case "text" | "long":
            return text
        case "lines":
            return [line for line in text.split("\n") if line]
        case "number":
            return _parse_number(text.strip(), whole=field.schema.get("type") == "integer")
        case "boolean":
            if text not in {YES, NO}:
                raise ValueError("choose yes or no")
            return text == YES
        case "choice":
            if not text.isdecimal() or len(text) > 4 or int(text) >= len(field.choices):
                raise ValueError("choose one of the values in the list")
            return field.choices[int(text)]
        case "json":
            try:
                return read_json(text)
            except ValueError as error:
                raise ValueError(f'{error}; put a text in quotes: "text"') from None


def _parse_number(text: str, *, whole: bool) -> int | float:
    try:
        value = read_json(text)
    except ValueError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(  # noqa: TRY004 - the text is wrong, not a type of ours
            f"{text[:40]!r} is not {'a whole' if whole else 'a'} number"
        )
    if whole and isinstance(value, float):
        if not value.is_integer():
            raise ValueError(f"{text[:40]!r} is not a whole number")
        return int(value)
    return value


def _check_whole(
    fields: Sequence[ToolField],
    schema: Mapping[str, Any],
    arguments: Mapping[str, Any],
    *,
    as_json: bool,
) -> dict[str, str]:
    """Hold arguments against the schema; the first fault, at the field that it concerns."""
    try:
        fault = SchemaValidator(schema, "the tool's schema").find_fault(arguments)
    except Misbehaved:
        return {}  # the host, and the server, look for themselves
    if fault is None:
        return {}
    place, message = fault
    if not as_json:
        for field in fields:
            if place and place[0] == field.name:
                return {field.key: message}
    return {JSON_FIELD: message}


# Filling


def fill_tool_form(fields: Sequence[ToolField], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The form that means these arguments: fields where they can, and JSON of the whole where not."""
    filled = {}
    for field in fields:
        if field.name in arguments:
            text = _write_value(field, arguments[field.name])
            if text is not None and text.strip() and _can_show(field, text):
                filled[field.key] = text
    if len(filled) == len(arguments):
        return filled
    return {JSON_FIELD: json.dumps(msgspec.to_builtins(arguments), indent=2)}


def _can_show(field: ToolField, text: str) -> bool:
    """Whether a field shows a text as it is: none shows what is invisible, and an input has one line."""
    return show_invisible(text, line=field.kind not in BOX_KINDS) == text


def _write_value(field: ToolField, value: Any) -> str | None:
    """The text that a field means a value by; None where it cannot."""
    if field.kind in {"text", "long"}:
        return value if isinstance(value, str) else None
    if field.kind == "lines":
        plain = isinstance(value, list) and all(
            isinstance(one, str) and one and "\n" not in one for one in value
        )
        return "\n".join(value) if plain else None
    if field.kind == "choice":
        found = [n for n, one in enumerate(field.choices) if is_same_json(one, value)]
        return str(found[0]) if found else None
    return json.dumps(value)


# Markup


def draw_tool_form_fields(
    fields: Sequence[ToolField],
    filled: Mapping[str, str],
    faults: Mapping[str, str],
) -> Iterator[Markup]:
    """The fields of a form, filled as they were, each with what is wrong with it."""
    for field in fields:
        text = filled.get(field.key, "")
        fault = faults.get(field.key, "")
        if not fault and not _can_show(field, text):
            fault = "invisible characters are shown as <U+…> here: write them as JSON below"
        yield _draw_field(field, text, fault)
    text, fault = filled.get(JSON_FIELD, ""), faults.get(JSON_FIELD, "")
    label = "All arguments as one JSON object" if fields else "Arguments as one JSON object"
    box = _draw_box(
        JSON_FIELD, text or ("" if fields else "{}"), fault, rows=8 if not fields else 5
    )
    body = _draw_labelled(JSON_FIELD, label, "", box, fault)
    if not fields:
        yield body
        return
    opened = {"open": "open"} if text or fault else {}
    summary = element("summary", {}, "As JSON instead")
    yield element("details", {"class": "as-json", **opened}, summary, body)


def _draw_field(field: ToolField, text: str, fault: str) -> Markup:
    label = element(
        "span",
        {},
        element("code", {}, field.name),
        element("span", {"class": "wants"}, " " + _describe_wants(field)),
    )
    description = field.schema.get("description")
    hint = description if isinstance(description, str) else ""
    return _draw_labelled(field.key, label, hint, _draw_control(field, text, fault), fault)


def _draw_labelled(key: str, label: Markup | str, hint: str, control: Markup, fault: str) -> Markup:
    parts = [element("label", {"for": key}, label)]
    if hint:
        parts.append(element("p", {"class": "hint", "id": f"{key}-hint"}, hint))
    parts.append(control)
    if fault:
        parts.append(element("p", {"class": "fault", "id": f"{key}-fault"}, fault))
    return element("div", {"class": "field"}, *parts)


def _describe_wants(field: ToolField) -> str:
    """The type of a parameter, whether it is required, and its bounds, in a few words."""
    schema = field.schema
    kind = "choice" if field.kind == "choice" else str(schema.get("type", "any"))
    if field.kind == "lines":
        kind = "texts, one per line"
    elif field.kind == "json":
        kind = f"{kind}, as JSON"
    words = [kind, "required" if field.required else "optional"]
    words += [
        f"{name} {schema[key]}"
        for key, name in BOUND_WORDS
        if isinstance(schema.get(key), int | float | str)
    ]
    if "default" in schema:
        words.append(f"by default {json.dumps(msgspec.to_builtins(schema['default']))[:80]}")
    return ", ".join(words)


BOUND_WORDS = (
    ("minimum", "at least"),
    ("exclusiveMinimum", "more than"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "less than"),
    ("minLength", "min length"),
    ("maxLength", "max length"),
    ("pattern", "like"),
    ("format", "format"),
)


def _draw_control(field: ToolField, text: str, fault: str) -> Markup:
    if field.kind == "boolean":
        options = [("", "(left out)"), (YES, "yes"), (NO, "no")]
        return _draw_select(field, options, text, fault)
    if field.kind == "choice":
        options = [
            ("", "(left out)"),
            *((str(n), _write_choice(v)) for n, v in enumerate(field.choices)),
        ]
        return _draw_select(field, options, text, fault)
    if field.kind in BOX_KINDS:
        return _draw_box(field.key, text, fault, rows=4 if field.kind == "long" else 3)
    attributes = _describe_control(field.key, fault) | {
        "type": "text",
        "inputmode": "decimal" if field.kind == "number" else "text",
        "value": text,
        "autocomplete": "off",
        "spellcheck": "false",
    }
    return element("input", attributes)


def _write_choice(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _draw_select(
    field: ToolField, options: Sequence[tuple[str, str]], chosen: str, fault: str
) -> Markup:
    drawn = [
        element(
            "option",
            {"value": value, **({"selected": "selected"} if value == chosen else {})},
            name,
        )
        for value, name in options
    ]
    return element("select", _describe_control(field.key, fault), *drawn)


def _draw_box(key: str, text: str, fault: str, *, rows: int) -> Markup:
    size = {"rows": str(rows), "autocomplete": "off", "spellcheck": "false"}
    return element("textarea", _describe_control(key, fault) | size, text)


def _describe_control(key: str, fault: str) -> dict[str, str]:
    """The attributes that tie a control to its label, and to what is wrong with it."""
    described = {"aria-invalid": "true", "aria-describedby": f"{key}-fault"} if fault else {}
    return {"id": key, "name": key, **described}
