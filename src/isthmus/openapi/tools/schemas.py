"""Schemas of a document as JSON Schema 2020-12: one self-contained schema for each use.

What is referred to stands under ``$defs``, so that cycles stay what they are. Converted parts are
shared between all operations: a thousand of them take the memory of one.

Only what has a meaning for who fills in a value, or checks one, is taken over; a keyword with a value
that it cannot have is left out, since documents are written by people.
"""

import re
from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from isthmus.core.text import clean_text
from isthmus.openapi.document import Document, Place

Side: TypeAlias = Literal["request", "response"]
Schema: TypeAlias = dict[str, Any]

MAX_SCHEMA_DEPTH = 48  # levels of schemas in one; what is deeper says nothing
# bytes of the definitions that one schema takes along; of a request they are for a model to read
MAX_DEFS_BYTES: Mapping[Side, int] = {"request": 32 * 1024, "response": 128 * 1024}
TOO_LARGE: dict[str, Any] = {"description": "Anything: its description would be too large."}
MAX_ENUM = 500
MAX_TEXT_CHARS = 1_000  # of a description
MAX_EXAMPLE_CHARS = 200
TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
DEF_NAME = re.compile(r"[^A-Za-z0-9_.\-]+")
BINARY: Schema = {"type": "string", "contentEncoding": "base64"}


class Converted(Struct, frozen=True):
    """A converted schema.

    Attributes:
        schema: the schema; references in it lead to ``#/$defs/…``.
        uses: the definitions that it refers to itself.
    """

    schema: Schema
    uses: frozenset[str]


class SchemaConverter:
    """Converts the schemas of one document.

    Args:
        document: the document.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._old = document.version in {"2.0", "3.0"}  # with nullable, and flags for bounds
        self._defs: dict[Side, dict[str, Converted]] = {"request": {}, "response": {}}
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._pending: list[tuple[str, Place, Side]] = []
        self._sizes: dict[tuple[str, Side], int] = {}

    def convert(self, place: Place, side: Side) -> Converted:
        """Convert a schema; what it refers to is converted, too.

        Raises:
            DocumentError: a reference leads nowhere or outside.
        """
        uses: set[str] = set()
        schema = self._convert(place, side, uses, 0)
        while self._pending:
            name, meant, at = self._pending.pop()
            below: set[str] = set()
            shell = self._convert(meant, at, below, 0)
            self._defs[at][name] = Converted(shell, frozenset(below))
        return Converted(schema, frozenset(uses))

    def complete(self, schema: Schema, uses: frozenset[str], side: Side) -> Schema:
        """A schema with all definitions that it needs, directly or not."""
        found = self.collect_defs(uses, side)
        return {**schema, "$defs": found} if found else schema

    def collect_defs(self, uses: frozenset[str], side: Side) -> dict[str, Schema]:
        """The definitions that are needed, directly or not, the nearest first.

        What would make them too large together is described as anything.
        """
        defs, todo = self._defs[side], deque(sorted(uses))
        found: dict[str, Schema] = {}
        left = MAX_DEFS_BYTES[side]
        while todo:
            name = todo.popleft()
            if name in found:
                continue
            left -= self._measure(name, side)
            if left < 0:
                found[name] = TOO_LARGE
                continue
            found[name] = defs[name].schema
            todo += sorted(defs[name].uses)
        return found

    def _measure(self, name: str, side: Side) -> int:
        """The bytes of a definition."""
        size = self._sizes.get((name, side))
        if size is None:
            size = len(msgspec.json.encode(self._defs[side][name].schema))
            self._sizes[name, side] = size
        return size

    def resolve(self, place: Place) -> Place:
        """A schema without the references that stand before it."""
        return self._document.follow(place)

    # Inside

    def _convert(self, place: Place, side: Side, uses: set[str], depth: int) -> Schema:
        node = place.node
        if not isinstance(node, Mapping) or depth > MAX_SCHEMA_DEPTH:
            return {"not": {}} if node is False else {}
        reference = node.get("$ref")
        if isinstance(reference, str):
            return self._convert_reference(place, reference, side, uses, depth)
        schema: Schema = {}
        for key, value in node.items():
            write = KEYWORDS.get(key)
            if write is not None and write(value):
                schema[key] = value
            elif key in BRANCHES:
                convert = partial(self._convert, side=side, uses=uses, depth=depth + 1)
                _convert_branch(schema, place.member(key), key, convert)
        if isinstance(schema.get("properties"), dict):
            _hide_members(schema, node, side, self.resolve, place)
        if side == "request" and "oneOf" in schema and "anyOf" not in schema:
            # what fits two branches is no mistake of who calls: the API knows which one it takes
            schema["anyOf"] = schema.pop("oneOf")
        self._adapt(schema, node)
        return schema

    def _convert_reference(
        self, place: Place, reference: str, side: Side, uses: set[str], depth: int
    ) -> Schema:
        name = self._define(self._document.find(reference, place), side)
        uses.add(name)
        schema: Schema = {"$ref": f"#/$defs/{name}"}
        text = place.node.get("description")
        if isinstance(text, str) and text:
            schema["description"] = shorten(text)
        rest = {} if self._old else {k: v for k, v in place.node.items() if k not in REF_SIBLINGS}
        if rest:  # since 3.1 what stands beside a reference counts, too
            more = self._convert(Place(rest, place.pointer), side, uses, depth + 1)
            schema = {**more, **schema}
        if self._old and place.node.get("nullable") is True:
            return {"anyOf": [schema, {"type": "null"}]}
        return schema

    def _define(self, place: Place, side: Side) -> str:
        """The name of a definition, which is converted later on if it was not."""
        name = self._names.get(place.pointer) or self._name(place.pointer)
        if name not in self._defs[side]:
            self._defs[side][name] = Converted({}, frozenset())  # a cycle comes back to it
            self._pending.append((name, place, side))
        return name

    def _name(self, pointer: str) -> str:
        """A name for a definition: the last step of its pointer."""
        last = pointer.rsplit("/", 1)[-1].replace("~1", "_").replace("~0", "_")
        plain = DEF_NAME.sub("_", last).strip("_") or "schema"
        name, number = plain, self._numbers.get(plain, 2)
        while name in self._taken:
            name, number = f"{plain}_{number}", number + 1
        self._numbers[plain] = number  # where the next one begins: they may be thousands
        self._taken.add(name)
        self._names[pointer] = name
        return name

    def _adapt(self, schema: Schema, node: Mapping[str, Any]) -> None:
        """Take over what is said in another way than in JSON Schema 2020-12."""
        text = node.get("description")
        if isinstance(text, str) and text.strip():
            schema["description"] = shorten(text)
        _adapt_type(schema, node)
        _adapt_bounds(schema, node)
        _adapt_bytes(schema, node)
        example = node.get("example")
        if isinstance(example, str | int | float) and len(str(example)) <= MAX_EXAMPLE_CHARS:
            schema.setdefault("examples", [example])
        discriminator = node.get("discriminator")
        if isinstance(discriminator, Mapping) and isinstance(
            discriminator.get("propertyName"), str
        ):
            schema["discriminator"] = {"propertyName": discriminator["propertyName"]}
        if self._old and node.get("nullable") is True:
            _admit_null(schema)


REF_SIBLINGS = frozenset({"$ref", "description", "summary"})


def shorten(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """A description without what nobody sees, and of a bounded length."""
    text = clean_text(text[: 4 * most]).strip()
    return text if len(text) <= most else f"{text[:most].rstrip()}…"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


@lru_cache(maxsize=4096)
def is_pattern(text: str) -> bool:
    """Whether a regular expression is one that the validator knows: others are left out."""
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for({"pattern": text})
    except ValueError:
        return False
    return True


# The keywords that are taken over as they are, and which values they may have
KEYWORDS: Mapping[str, Callable[[Any], bool]] = {
    "title": lambda v: isinstance(v, str) and len(v) <= MAX_EXAMPLE_CHARS and clean_text(v) == v,
    "format": lambda v: isinstance(v, str) and v != "binary",
    "pattern": lambda v: isinstance(v, str) and is_pattern(v),
    "enum": lambda v: isinstance(v, list) and 0 < len(v) <= MAX_ENUM,
    "const": lambda _: True,
    "default": lambda v: len(repr(v)) <= MAX_TEXT_CHARS,
    "minimum": _is_number,
    "maximum": _is_number,
    "multipleOf": lambda v: _is_number(v) and v > 0,
    "minLength": _is_count,
    "maxLength": _is_count,
    "minItems": _is_count,
    "maxItems": _is_count,
    "minProperties": _is_count,
    "maxProperties": _is_count,
    "minContains": _is_count,
    "maxContains": _is_count,
    "uniqueItems": lambda v: isinstance(v, bool),
    "deprecated": lambda v: v is True,
    "readOnly": lambda v: v is True,
    "writeOnly": lambda v: v is True,
    "required": _is_names,
    "contentEncoding": lambda v: isinstance(v, str),
    "dependentRequired": lambda v: isinstance(v, Mapping) and all(map(_is_names, v.values())),
}  # fmt: skip

BRANCHES: Mapping[str, str] = {
    "properties": "map",
    "patternProperties": "map",
    "dependentSchemas": "map",
    "allOf": "list",
    "anyOf": "list",
    "oneOf": "list",
    "prefixItems": "list",
    "items": "one",
    "additionalProperties": "one",
    "unevaluatedProperties": "one",
    "unevaluatedItems": "one",
    "propertyNames": "one",
    "contains": "one",
    "not": "one",
    "if": "one",
    "then": "one",
    "else": "one",
}


def _convert_branch(
    schema: Schema, member: Place, key: str, convert: Callable[[Place], Schema]
) -> None:
    """Convert what a keyword has below it: one schema, a list or a mapping of them."""
    value, kind = member.node, BRANCHES[key]
    if kind == "map" and isinstance(value, Mapping):
        schema[key] = {str(name): convert(member.member(name)) for name in value}
    elif kind == "list" and isinstance(value, list) and value:
        schema[key] = [convert(member.member(at)) for at in range(len(value))]
    elif kind == "one" and isinstance(value, Mapping | bool):
        schema[key] = value if isinstance(value, bool) else convert(member)
    elif key == "items" and isinstance(value, list):  # a tuple of older drafts
        schema["prefixItems"] = [convert(member.member(at)) for at in range(len(value))]


def _hide_members(
    schema: Schema,
    node: Mapping[str, Any],
    side: Side,
    resolve: Callable[[Place], Place],
    place: Place,
) -> None:
    """Leave out members that are not for this side: ``readOnly`` of requests, ``writeOnly`` of responses."""
    flag = "readOnly" if side == "request" else "writeOnly"
    hidden = set()
    members = node["properties"]
    for name in members:
        found = resolve(Place(members[name], f"{place.pointer}/properties/{name}")).node
        own = members[name]
        if any(isinstance(one, Mapping) and one.get(flag) is True for one in (own, found)):
            hidden.add(str(name))
    required: Any = node.get("required")
    if hidden:
        schema["properties"] = {k: v for k, v in schema["properties"].items() if k not in hidden}
    if _is_names(required):
        schema["required"] = [one for one in required if one not in hidden]
        if not schema["required"]:
            del schema["required"]


def _adapt_type(schema: Schema, node: Mapping[str, Any]) -> None:
    kind = node.get("type")
    if isinstance(kind, str) and kind in TYPES:
        schema["type"] = kind
    elif isinstance(kind, list):
        kinds = [one for one in kind if isinstance(one, str) and one in TYPES]
        if kinds:
            schema["type"] = kinds[0] if len(kinds) == 1 else kinds
    elif kind is None and "properties" in schema:
        schema["type"] = "object"
    if (
        kind == "string"
        and "enum" in schema
        and not any(isinstance(v, str) for v in schema["enum"])
    ):
        del schema["type"]  # numbers that were meant as texts, or the other way round: nothing fits


def _adapt_bounds(schema: Schema, node: Mapping[str, Any]) -> None:
    """Bounds that are exclusive by a flag, as until 3.0, or by themselves."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        value = node.get(exclusive)
        if value is True and bound in schema:
            schema[exclusive] = schema.pop(bound)
        elif _is_number(value):
            schema[exclusive] = value


def _adapt_bytes(schema: Schema, node: Mapping[str, Any]) -> None:
    if node.get("type") == "file" or node.get("format") == "binary":
        schema.setdefault("type", "string")
        schema["contentEncoding"] = "base64"
    if node.get("format") == "byte":
        schema.setdefault("contentEncoding", "base64")


def _admit_null(schema: Schema) -> None:
    """Admit null beside what a schema admits (``nullable``)."""
    kind = schema.get("type")
    if isinstance(kind, str):
        schema["type"] = [kind, "null"]
        if "enum" in schema and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
    elif kind is None:
        text = schema.pop("description", None)
        rest = dict(schema)
        schema.clear()
        schema["anyOf"] = [rest, {"type": "null"}]
        if text:
            schema["description"] = text


def list_object_parts(
    place: Place,
    resolve: Callable[[Place], Place],
    depth: int = 0,
    room: list[int] | None = None,
) -> list[Place] | None:
    """The objects that a schema is made of by references and ``allOf``; None where it is no plain one.

    A plain object has members that are all known: it is the same as arguments. Of each part only
    what it says of its members is left.
    """
    place = resolve(place)
    node = place.node
    room = [MAX_MERGED_PARTS] if room is None else room
    room[0] -= 1  # of all that is looked at: branches of branches may be one and the same
    if not isinstance(node, Mapping) or depth > MAX_MERGE_DEPTH or room[0] < 0:
        return None
    if any(key in node for key in CHOICES) or _is_open(node) or node.get("nullable") is True:
        return None
    branches = node.get("allOf", [])
    if node.get("type", "object") != "object" or not isinstance(branches, list):
        return None
    own = {key: node[key] for key in ("properties", "required") if key in node}
    found = [Place(own, place.pointer)] if isinstance(own.get("properties"), Mapping) else []
    for at, branch in enumerate(branches):
        part = Place(branch, f"{place.pointer}/allOf/{at}")
        below = list_object_parts(part, resolve, depth + 1, room)
        if below is None:
            return None
        found += below
    if not found and "required" in own:
        found = [Place(own, place.pointer)]
    return found if found or depth else None


MAX_MERGE_DEPTH, MAX_MERGED_PARTS = 8, 64
CHOICES = ("oneOf", "anyOf", "not", "if", "patternProperties", "dependentSchemas", "discriminator",
           "propertyNames", "minProperties", "maxProperties")  # fmt: skip


def _is_open(node: Mapping[str, Any]) -> bool:
    """Whether an object may have members that are not named."""
    more = node.get("additionalProperties")
    return more is True or isinstance(more, Mapping)
