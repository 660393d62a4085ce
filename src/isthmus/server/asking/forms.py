"""Forms of an elicitation: from a Python type, or from a schema written by hand.

A form is a flat object of blanks (spec 2026-07-28 client/elicitation#requested-schema): text, a
number, a box to tick, one of several, any of several. What the type says beyond that is checked
when the answer comes back.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from isthmus.core.answers import Accepted
from isthmus.core.elicitation import find_form_flaw
from isthmus.core.encoding import make_encodable
from isthmus.errors import Misbehaved, UsageError
from isthmus.server.schema.custom_types import decode_custom, make_expressible
from isthmus.server.schema.defaults import copy_value, make_unsharer
from isthmus.server.schema.json_schema import Schema, make_schema
from isthmus.server.schema.validation import Validator

CONSENT_SCHEMA: Schema = {"type": "object", "properties": {}}
FORM_FORMATS = ("email", "uri", "date", "date-time")
DESCRIBING_KEYWORDS = ("title", "description", "default")

# of a blank; ``format`` and ``items`` are looked at closer
KEYWORDS_BY_TYPE: Mapping[str, tuple[str, ...]] = {
    "string": (*DESCRIBING_KEYWORDS, "minLength", "maxLength", "enum", "enumNames", "oneOf"),
    "number": (*DESCRIBING_KEYWORDS, "minimum", "maximum"),
    "integer": (*DESCRIBING_KEYWORDS, "minimum", "maximum"),
    "boolean": DESCRIBING_KEYWORDS,
    "array": (*DESCRIBING_KEYWORDS, "minItems", "maxItems"),
}

SINGLE_BLANK = "value"  # the name of the only blank of a form


class ElicitationForm:
    """The form of a question, and a reader of what comes back.

    Args:
        schema: the ``requestedSchema``.
        convert: makes a value of the content; it raises ValueError where that does not fit.
        content: the type that content without mistakes is of, if reading that alone is enough.
        single: it is the type of the only blank.
    """

    __slots__ = ("_convert", "_decode", "_single", "schema")

    def __init__(
        self,
        schema: Schema,
        convert: Callable[[dict[str, Any]], Any],
        content: Any = None,
        *,
        single: bool = False,
    ) -> None:
        self.schema = schema
        self._convert = convert
        self._single = single
        if single and content is not None:
            content = msgspec.defstruct("SingleBlank", [(SINGLE_BLANK, content)])
        self._decode = None if content is None else _make_plain_reader(content)

    def read_plain(self, raw: bytes) -> "Accepted[Any] | None":
        """The value of an answer that accepts and fits to the letter, read in one go.

        A tool that asks often reads its earlier answers in every round. None says nothing of what
        is wrong, or whether anything is: `read` does, and they never differ in a value.

        Args:
            raw: the JSON of the whole answer.
        """
        # Null may stand for absence, and what is nested is in none of these forms.
        if self._decode is None or b"null" in raw or b"[" in raw or raw.count(b"{") != 2:
            return None
        try:
            content = self._decode(raw).content
        except (ValueError, TypeError):
            return None
        return Accepted(getattr(content, SINGLE_BLANK) if self._single else content)

    def read(self, content: dict[str, Any]) -> Any:
        """The value a filled-in form stands for.

        Raises:
            Misbehaved: it does not fit the form; the message says where.
        """
        try:
            return self._convert(content)
        except (ValueError, TypeError) as error:
            said = str(error)
        from isthmus.server.schema.faults import find_faults

        faults = find_faults(self.schema, content, nulls=True)
        listed = "; ".join(f"{path[2:] or 'it'}: {what}" for path, what in faults)
        raise Misbehaved(f"the client's answer does not fit the form: {listed or said}")


def _make_plain_reader(content: Any) -> Callable[[bytes], Any]:
    members = [("action", Literal["accept"]), ("content", content)]
    accepting = msgspec.defstruct("AcceptingAnswer", members, forbid_unknown_fields=True)
    return msgspec.json.Decoder(accepting, dec_hook=decode_custom).decode


_forms_by_type: dict[Any, ElicitationForm] = {}


def make_form(shape: Any) -> ElicitationForm:
    """The form for a type, a schema, or None where only consent is asked for.

    Args:
        shape: a class with fields (msgspec, dataclass, TypedDict, attrs, pydantic); or ``bool``,
            ``str``, a number, an enum, a ``Literal`` or a list of one, for a single blank; or a
            JSON Schema, which is sent as it is.

    Raises:
        UsageError: it has parts that no form can have.
    """
    if shape is None:
        return ElicitationForm(CONSENT_SCHEMA, lambda _: None)
    if isinstance(shape, dict):
        return _make_form_from_schema(shape)
    try:
        return _forms_by_type[shape]
    except KeyError:
        form = _forms_by_type[shape] = _make_form_from_type(shape)
        return form
    except TypeError:  # a Literal of something unhashable
        return _make_form_from_type(shape)


def _make_form_from_type(shape: Any) -> ElicitationForm:
    schema = make_schema(shape, "input")
    definitions = schema.pop("$defs", {})
    target = make_expressible(shape)
    unshare = make_unsharer(shape)

    def convert(value: Any) -> Any:
        made = _convert_content(value, target)
        return made if unshare is None else unshare(made)

    if schema.get("type") == "object" and "properties" in schema:
        blanks = {
            name: _make_blank(name, member, definitions)
            for name, member in schema["properties"].items()
        }
        flat: Schema = {"type": "object", "properties": blanks}
        if schema.get("required"):
            flat["required"] = schema["required"]
        plain = target if unshare is None and _has_no_numbers(blanks) else None
        return ElicitationForm(flat, convert, plain)
    blank = _make_blank(SINGLE_BLANK, schema, definitions)
    flat = {"type": "object", "properties": {SINGLE_BLANK: blank}, "required": [SINGLE_BLANK]}
    plain = target if unshare is None and _has_no_numbers(flat["properties"]) else None
    return ElicitationForm(
        flat, lambda content: convert(content.get(SINGLE_BLANK)), plain, single=True
    )


def _has_no_numbers(blanks: Mapping[str, Schema]) -> bool:
    """Whether no blank takes fractions: of these, JSON says less than Python makes of them."""
    return all(blank["type"] != "number" for blank in blanks.values())


def _convert_content(value: Any, target: Any) -> Any:
    return msgspec.convert(_to_whole_numbers(value), target, dec_hook=decode_custom)


def _to_whole_numbers(value: Any) -> Any:
    """JavaScript writes no difference between 3 and 3.0; an integer blank takes both."""
    if isinstance(value, dict):
        return {key: _to_whole_numbers(member) for key, member in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _make_blank(name: str, schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Make one property of a form, with nothing in it that a form cannot have."""
    schema = _drop_null_type(_resolve_reference(schema, definitions))
    kind = schema.get("type")
    kept = KEYWORDS_BY_TYPE.get(kind) if isinstance(kind, str) else None
    if kept is None or not _is_choice(kind, schema, definitions):
        raise UsageError(
            f"{name!r} cannot be asked for in a form: forms are flat, of text, numbers, yes or "
            f"no, and choices among strings"
        )
    blank = {"type": kind, **{key: schema[key] for key in kept if key in schema}}
    if kind == "integer":
        _include_bounds(schema, blank)
    if kind == "array":
        blank["items"] = _resolve_reference(schema["items"], definitions)
    if schema.get("format") in FORM_FORMATS:
        blank["format"] = schema["format"]
    return blank


def _is_choice(kind: Any, schema: Schema, definitions: Mapping[str, Schema]) -> bool:
    """Whether the enumerations in a blank are of the shapes the specification has."""
    if kind == "array":
        items = _resolve_reference(schema.get("items") or {}, definitions)
        return "anyOf" in items or (items.get("type") == "string" and "enum" in items)
    return kind == "string" or "enum" not in schema


def _include_bounds(schema: Schema, blank: Schema) -> None:
    """Bounds of an integer that exclude their value, as bounds that include it."""
    for exclusive, inclusive, step in (
        ("exclusiveMinimum", "minimum", 1),
        ("exclusiveMaximum", "maximum", -1),
    ):
        if exclusive in schema and inclusive not in blank:
            blank[inclusive] = schema[exclusive] + step


def _resolve_reference(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """The schema with a reference at its top replaced by what it refers to."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    said = {key: value for key, value in schema.items() if key != "$ref"}
    return {**definitions.get(reference.rpartition("/")[2], {}), **said}


def _drop_null_type(schema: Schema) -> Schema:
    """The schema of what may be left blank: leaving it out says null."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [k for k in kind if k != "null"]
        return {**schema, "type": kinds[0] if len(kinds) == 1 else kinds}
    alternatives = [s for s in schema.get("anyOf", ()) if s.get("type") != "null"]
    if len(alternatives) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return {**alternatives[0], **rest}
    return schema


def _make_form_from_schema(schema: Schema) -> ElicitationForm:
    schema = make_encodable(schema)
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict):
        raise UsageError('the schema of a form needs "type": "object" and "properties"')
    for name, member in properties.items():
        _make_blank(name, member, {})
    wrong = find_form_flaw(schema)
    if wrong:
        raise UsageError(f"this schema cannot be asked for in a form: {wrong}")
    validator = Validator(schema)
    return ElicitationForm(schema, lambda content: _check_content(content, schema, validator))


def _check_content(content: dict[str, Any], schema: Schema, validator: Validator) -> dict[str, Any]:
    """The content with the schema's defaults filled in.

    Raises:
        ValueError: it does not fit the schema.
    """
    filled = {
        name: copy_value(member["default"])
        for name, member in schema["properties"].items()
        if "default" in member
    }
    filled.update(content)
    problems = validator.problems(filled)
    if problems:
        raise ValueError("; ".join(f"{what} - at `{path}`" for path, what in problems))
    return filled
