"""Python types as JSON Schema 2020-12, in a profile every host understands.

An **input** schema is what the function accepts, an **output** schema what its result looks
like: a member with a default may be absent from input and is always there in output. Two
promises, both held by property tests: *what an input schema admits, the function accepts* (it
may accept more, never less), and *what the function returns, its output schema admits*.
``format`` is read as an assertion, a number as one a double can hold, and a date and time as ones
that Python has: no schema knows the calendar, and leap seconds are none of Python's.

The profile: an object, no titles made up from names, ``enum`` rather than ``const``, everything
inlined except what is recursive or used more than once. A member that may be left out and whose
default is None is described without its ``null``: leaving it out says the same, and hosts trip
over ``anyOf`` with ``null``. (null itself is still accepted.)
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias, get_args, get_origin

import msgspec
from msgspec import NODEFAULT
from msgspec import inspect as mi

from isthmus.errors import UsageError
from isthmus.server.schema import patterns, pydantic_types
from isthmus.server.schema.annotations import unwrap_annotation, walk_annotation
from isthmus.server.schema.custom_types import UnionChoice, is_path, make_expressible, write_json
from isthmus.server.schema.signatures import parse_docstring

Schema: TypeAlias = dict[str, Any]
Mode: TypeAlias = Literal["input", "output"]

PLAIN_SCHEMAS: dict[Any, Schema] = {  # as a builder makes them of PLAIN_TYPES, in both modes
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
}

DEFINITIONS_PREFIX = "#/$defs/"
NULL_SCHEMA = {"type": "null"}


def make_schema(annotation: Any, mode: Mode) -> Schema:
    """The schema of one type, complete with its definitions.

    Raises:
        UsageError: the type has no JSON form; the message says which part of it.
    """
    builder = SchemaBuilder(mode)
    return builder.finish(builder.of(make_expressible(annotation)))


class SchemaMember(msgspec.Struct, frozen=True):
    """A member of an object: a parameter, or a field of a class.

    Attributes:
        name: as it is on the wire.
        schema: of its type, in the builder's mode.
        required: whether input must have it.
        always: whether output always has it.
        default: what it is when absent; NODEFAULT when that cannot be told.
        description: what is said about it, unless its schema says it already.
    """

    name: str
    schema: dict[str, Any]
    required: bool
    always: bool = True
    # NODEFAULT itself means "no default" to msgspec, so a field that holds it needs a factory.
    default: Any = msgspec.field(default_factory=lambda: NODEFAULT)
    description: str | None = None


class SchemaBuilder:
    """Builds schemas that share definitions.

    Args:
        mode: "input" for what is accepted, "output" for what is written.
    """

    def __init__(self, mode: Mode) -> None:
        self.mode: Mode = mode
        self.definitions: dict[str, Schema] = {}
        self._names: dict[Any, str] = {}
        self._written: dict[frozenset[tuple[type, Any]], tuple[Any, ...]] = {}

    def of(self, annotation: Any) -> Schema:
        """The schema of an annotation; classes in it are references to definitions.

        Args:
            annotation: one that `make_expressible` has let pass.

        Raises:
            UsageError: a part of it has no JSON form.
        """
        for part in walk_annotation(annotation):
            if get_origin(part := unwrap_annotation(part)) is Literal:
                values = get_args(part)
                self._written.setdefault(_make_unordered_key(values), values)
        try:
            info = mi.type_info(annotation)
        except (TypeError, NameError) as refusal:
            raise UsageError(str(refusal)) from refusal
        return self.visit(info)

    def of_pydantic(self, annotation: Any) -> Schema:
        """The schema of an annotation that pydantic validates and writes."""
        schema = pydantic_types.make_pydantic_schema(annotation, self.mode)
        definitions = schema.pop("$defs", {})
        names = {name: self._take_name(name) for name in definitions}
        for name, definition in definitions.items():
            self.definitions[names[name]] = self._adopt(_drop_title(definition), names)
        return self._adopt(_drop_title(schema), names)  # type: ignore[no-any-return]  # as deep as JSON

    def visit(self, info: mi.Type) -> Schema:
        """The schema of a type as msgspec describes it."""
        said: Schema = {}
        while isinstance(info, mi.Metadata):
            said = {**said, **(info.extra_json_schema or {})}
            info = info.type
        form = FORMS_BY_TYPE.get(type(info))
        if form is None:
            raise UsageError(f"{type(info).__name__.removesuffix('Type')} has no JSON form")
        return {**form(self, info), **said}

    def restore_order(self, values: Iterable[Any]) -> Iterable[Any]:
        """The values of a ``Literal`` as its author wrote them; msgspec has sorted them."""
        return self._written.get(_make_unordered_key(values), values)

    def refer_to(self, kind: Any, make: Callable[[], Schema]) -> Schema:
        """A reference to the definition of a class, which is made once."""
        name = self._names.get(kind)
        if name is None:
            name = self._names[kind] = self._take_name(_make_class_name(kind))
            self.definitions[name] = make()  # the name is taken: a recursive type finds itself
        return {"$ref": DEFINITIONS_PREFIX + name}

    def record(self, members: Iterable[SchemaMember], *, closed: bool) -> Schema:
        """An object with these members; a closed one has no others."""
        properties = {}
        required = []
        for member in members:
            properties[member.name] = self._make_property(member)
            if member.always if self.mode == "output" else member.required:
                required.append(member.name)
        schema: Schema = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        if closed:
            schema["additionalProperties"] = False
        return schema

    def finish(self, root: Schema) -> Schema:
        """The schema on its own, with those definitions that are shared or recursive."""
        return inline_definitions(root, self.definitions)

    def _make_property(self, member: SchemaMember) -> Schema:
        schema = dict(member.schema)
        if member.description:
            schema.setdefault("description", member.description)
        if self.mode == "output":
            return schema
        if member.default is None:
            return drop_null(schema)
        if (
            member.default is not NODEFAULT
            and (written := _write_default(member.default)) is not NODEFAULT
        ):
            schema["default"] = written
        return schema

    def _take_name(self, name: str) -> str:
        """A name for a definition that no other has; it is taken from now on."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("_")
        free, n = name, 2
        while free in self.definitions:
            free, n = f"{name}_{n}", n + 1
        self.definitions[free] = {}
        return free

    def _adopt(self, schema: Any, names: dict[str, str]) -> Any:
        """Pydantic's schema with our names for its definitions, in our profile."""
        if isinstance(schema, list):
            return [self._adopt(item, names) for item in schema]
        if not isinstance(schema, dict):
            return schema
        adopted = {key: self._adopt(value, names) for key, value in schema.items()}
        if isinstance(reference := adopted.get("$ref"), str):
            adopted["$ref"] = DEFINITIONS_PREFIX + names[reference.removeprefix(DEFINITIONS_PREFIX)]
        if "type" in adopted:  # first, where people and models look for it
            adopted = {"type": adopted["type"], **adopted}
        properties = adopted.get("properties")
        if isinstance(properties, dict) and adopted.get("type") == "object":
            adopted["properties"] = {n: self._adopt_property(p) for n, p in properties.items()}
        return adopted

    def _adopt_property(self, schema: Any) -> Any:
        default = schema.get("default", NODEFAULT)
        rest = {key: value for key, value in schema.items() if key != "default"}
        if self.mode == "output":
            return rest
        return drop_null(rest) if default is None else schema


def _make_unordered_key(values: Iterable[Any]) -> frozenset[tuple[type, Any]]:
    """Make a key of what a ``Literal`` allows, whatever its order; 1 and True are two things."""
    return frozenset((type(value), value) for value in values)


def admits_string(schema: Schema, definitions: Schema | None = None) -> bool:
    """Whether a string can be valid, so that one is taken for what it says.

    Args:
        schema: a schema, or a part of one.
        definitions: the ``$defs`` it may refer to.
    """
    if "anyOf" in schema:
        return any(admits_string(branch, definitions) for branch in schema["anyOf"])
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(DEFINITIONS_PREFIX)
        return admits_string((definitions or {}).get(name, {}), definitions)
    if "enum" in schema:
        return any(isinstance(value, str) for value in schema["enum"])
    kinds = schema.get("type", "string")
    return "string" in ([kinds] if isinstance(kinds, str) else kinds)


def _drop_title(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key != "title"}


def _write_default(default: Any) -> Any:
    """A default value as JSON data; NODEFAULT where it has no JSON form."""
    try:
        return msgspec.json.decode(write_json(default))
    except (TypeError, ValueError):
        return NODEFAULT


def _make_class_name(kind: Any) -> str:
    name = getattr(kind, "__name__", None) or str(kind)
    return "_".join(
        [name, *(_make_class_name(argument) for argument in getattr(kind, "__args__", ()))]
    )


# Forms: one for each kind of type that msgspec knows. Each takes the builder and msgspec's
# description of a type and returns a schema. Where msgspec and JSON Schema would disagree about a
# value, the form says what msgspec does.


def strip_metadata(info: mi.Type) -> mi.Type:
    """The type without its metadata."""
    while isinstance(info, mi.Metadata):
        info = info.type
    return info


def _list_keywords(info: Any, **names: str) -> Schema:
    """The constraints of a type that are set, under their names in JSON Schema."""
    values = {keyword: getattr(info, name) for name, keyword in names.items()}
    return {keyword: value for keyword, value in values.items() if value is not None}


def _build_number(_: SchemaBuilder, info: Any) -> Schema:
    bounds = _list_keywords(
        info,
        ge="minimum",
        gt="exclusiveMinimum",
        le="maximum",
        lt="exclusiveMaximum",
        multiple_of="multipleOf",
    )
    # msgspec computes remainders in binary, validators in decimal: 0.3 is a multiple of 0.1 only
    # to the latter. A step that is exact in binary means the same to both.
    step = bounds.get("multipleOf", 1)
    if step * 1024 != int(step * 1024):
        raise UsageError(
            f"multiple_of={step} is not exact in binary, so hosts would disagree about it; "
            "use a multiple of 1/1024, or an integer count of a smaller unit"
        )
    return {"type": "integer" if isinstance(info, mi.IntType) else "number", **bounds}


def _build_string(_: SchemaBuilder, info: Any) -> Schema:
    schema = {
        "type": "string",
        **_list_keywords(info, min_length="minLength", max_length="maxLength"),
    }
    if info.pattern is not None:
        schema["pattern"] = patterns.translate_pattern(info.pattern)
    return schema


def _build_bytes(_: SchemaBuilder, info: Any) -> Schema:
    pattern = patterns.make_base64_pattern(info.min_length or 0, info.max_length)
    return {"type": "string", "contentEncoding": "base64", "pattern": pattern}


def _build_datetime(builder: SchemaBuilder, info: Any) -> Schema:
    if info.tz is False:
        return {"type": "string", "pattern": patterns.LOCAL_DATETIME}
    if builder.mode == "output" and info.tz is None:
        # One without a zone may come out, which "date-time" (RFC 3339) does not admit.
        return {"type": "string", "pattern": patterns.DATETIME}
    return {"type": "string", "format": "date-time"}


def _build_time(_: SchemaBuilder, info: Any) -> Schema:
    return {"type": "string", "pattern": patterns.TIMES_BY_ZONE[info.tz]}


def _build_timedelta(builder: SchemaBuilder, _: Any) -> Schema:
    # "duration" (RFC 3339) has no sign, and a negative one may come out.
    if builder.mode == "output":
        return {"type": "string", "pattern": patterns.DURATION_WRITTEN}
    return {"type": "string", "format": "duration", "pattern": patterns.DURATION_ACCEPTED}


def _build_decimal(builder: SchemaBuilder, _: Any) -> Schema:
    # A decimal may come out as "1E+5" or "NaN"; going in, the plain form is what models write.
    written = builder.mode == "output"
    return {"type": "string"} if written else {"type": "string", "pattern": patterns.DECIMAL}


JSON_TYPES = {str: "string", bool: "boolean", int: "integer", type(None): "null"}


def _build_enumeration(values: Iterable[Any]) -> Schema:
    values = list(values)
    kinds = {JSON_TYPES.get(type(value)) for value in values}
    return {"type": kinds.pop(), "enum": values} if len(kinds) == 1 else {"enum": values}


def _build_literal(builder: SchemaBuilder, info: Any) -> Schema:
    return _build_enumeration(builder.restore_order(info.values))


def _build_enum(_: SchemaBuilder, info: Any) -> Schema:
    schema = _build_enumeration(member.value for member in info.cls)
    if text := parse_docstring(read_class_doc(info.cls)).text:
        schema["description"] = text
    return schema


def _build_array(builder: SchemaBuilder, info: Any) -> Schema:
    schema: Schema = {"type": "array"}
    if items := builder.visit(info.item_type):
        schema["items"] = items
    return {**schema, **_list_keywords(info, min_length="minItems", max_length="maxItems")}


def _build_set(builder: SchemaBuilder, info: Any) -> Schema:
    schema = _build_array(builder, info)
    item = strip_metadata(info.item_type)
    if isinstance(item, mi.AnyType):
        schema["items"] = {"type": ["string", "number", "null"]}
    elif not _is_hashable(item):
        raise UsageError("a set's items must be hashable: strings, numbers, frozen classes")
    return {**schema, "uniqueItems": True}


UNHASHABLE_TYPES = (mi.AnyType, mi.ListType, mi.DictType, mi.SetType, mi.TypedDictType, mi.RawType)


def _is_hashable(info: mi.Type) -> bool:
    """Whether what is decoded can be put into a set."""
    if isinstance(info, mi.StructType) and info.cls.__struct_config__.frozen is False:
        return info.cls.__struct_config__.eq is False
    if isinstance(info, mi.DataclassType) and getattr(info.cls, "__hash__", None) is None:
        return False
    parts = [*getattr(info, "types", ()), *getattr(info, "item_types", ())]
    parts += [field.type for field in getattr(info, "fields", ())]
    if isinstance(info, mi.VarTupleType | mi.FrozenSetType):
        parts.append(info.item_type)
    return not isinstance(info, UNHASHABLE_TYPES) and all(
        _is_hashable(strip_metadata(part)) for part in parts
    )


def _build_tuple(builder: SchemaBuilder, info: Any) -> Schema:
    items = [builder.visit(t) for t in info.item_types]
    return _build_positions(items, least=len(items), closed=True)


def _build_positions(items: list[Schema], *, least: int, closed: bool) -> Schema:
    schema: Schema = {"type": "array", "minItems": least}
    if items:
        schema["prefixItems"] = items
    return {**schema, "maxItems": len(items)} if closed else schema


KEY_PATTERNS: dict[type[mi.Type], str] = {
    mi.IntType: patterns.INTEGER_KEY,
    mi.FloatType: patterns.FLOAT_KEY,
}


def _build_mapping(builder: SchemaBuilder, info: Any) -> Schema:
    schema: Schema = {"type": "object"}
    if values := builder.visit(info.value_type):
        schema["additionalProperties"] = values
    if names := _build_property_names(builder, info.key_type):
        schema["propertyNames"] = names
    return {
        **schema,
        **_list_keywords(info, min_length="minProperties", max_length="maxProperties"),
    }


def _build_property_names(builder: SchemaBuilder, key: mi.Type) -> Schema:
    schema = builder.visit(key)
    if pattern := KEY_PATTERNS.get(type(strip_metadata(key))):
        if schema.keys() - {"type", "description", "title", "examples"}:
            raise UsageError("constraints on numeric dictionary keys have no JSON form")
        return {"pattern": pattern} if builder.mode == "input" else {}
    if "enum" in schema:
        return {"enum": [str(value) for value in schema["enum"]]}
    if schema and schema.pop("type", None) != "string":
        raise UsageError("a dictionary's keys must be strings, numbers or enumerations")
    return schema


def join_alternatives(branches: Iterable[Schema]) -> Schema:
    """A schema that admits what one of these does; null comes last."""
    flat: list[Schema] = []
    for branch in branches:
        nested = branch["anyOf"] if branch.keys() == {"anyOf"} else [branch]
        flat += [schema for schema in nested if schema not in flat]
    if {} in flat:
        return {}
    flat.sort(key=lambda schema: schema == {"type": "null"})
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def _build_union(builder: SchemaBuilder, info: Any) -> Schema:
    return join_alternatives(builder.visit(t) for t in info.types)


def _build_custom(builder: SchemaBuilder, info: Any) -> Schema:
    kind = info.cls
    if isinstance(kind, type) and issubclass(kind, UnionChoice):
        return join_alternatives([builder.of(branch) for branch in kind.branches])
    if pydantic_types.is_pydantic(kind):
        return builder.of_pydantic(kind)
    if is_path(kind):
        return {"type": "string"}
    raise UsageError(
        f"{getattr(kind, '__qualname__', kind)!r} has no JSON form: use a dataclass, a msgspec "
        "Struct, a TypedDict, an attrs class or a pydantic model in its place"
    )


def read_class_doc(kind: Any) -> str:
    """The docstring its author wrote, not what dataclasses, enums and tuples make up."""
    kind = getattr(kind, "__origin__", kind)
    doc = kind.__dict__.get("__doc__") or ""
    made_up = doc.startswith(f"{kind.__name__}(") or doc == "An enumeration."
    return "" if made_up else doc


def _build_object(builder: SchemaBuilder, info: Any) -> Schema:
    return builder.refer_to(info.cls, lambda: _build_object_body(builder, info))


def _build_object_body(builder: SchemaBuilder, info: Any) -> Schema:
    members = _build_tag_members(info) + _build_members(builder, info)
    if isinstance(info, mi.NamedTupleType) or getattr(info, "array_like", False):
        least = sum(1 for m in members if m.required or builder.mode == "output")
        closed = getattr(info, "forbid_unknown_fields", True)
        return _build_positions([m.schema for m in members], least=least, closed=closed)
    schema = builder.record(members, closed=getattr(info, "forbid_unknown_fields", False))
    if text := parse_docstring(read_class_doc(info.cls)).text:
        schema["description"] = text
    return schema


def _build_tag_members(info: Any) -> list[SchemaMember]:
    """The member that tells a tagged struct from its siblings."""
    field, tag = getattr(info, "tag_field", None), getattr(info, "tag", None)
    return [] if field is None else [SchemaMember(field, _build_enumeration([tag]), required=True)]


def _build_members(builder: SchemaBuilder, info: Any) -> list[SchemaMember]:
    said = parse_docstring(read_class_doc(info.cls)).parameters
    config = getattr(info.cls, "__struct_config__", None)
    omits = getattr(config, "omit_defaults", False) or isinstance(info, mi.TypedDictType)
    return [
        SchemaMember(
            name=field.encode_name,
            schema=builder.visit(field.type),
            required=field.required,
            always=field.required or not (omits or _is_unset(field)),
            default=_read_default(field),
            description=said.get(field.name),
        )
        for field in info.fields
    ]


def _is_unset(field: mi.Field) -> bool:
    """Whether the field's default is UNSET, which msgspec does not write."""
    return (field.required, field.default, field.default_factory) == (False, NODEFAULT, NODEFAULT)


def _read_default(field: mi.Field) -> Any:
    factory = field.default_factory
    return factory() if factory in (list, dict, set, frozenset) else field.default


def _make_constant_form(**schema: Any) -> Callable[[SchemaBuilder, Any], Schema]:
    return lambda _builder, _info: dict(schema)


FORMS_BY_TYPE: dict[type[mi.Type], Callable[[SchemaBuilder, Any], Schema]] = {
    mi.AnyType: _make_constant_form(),
    mi.RawType: _make_constant_form(),
    mi.NoneType: _make_constant_form(type="null"),
    mi.BoolType: _make_constant_form(type="boolean"),
    mi.IntType: _build_number,
    mi.FloatType: _build_number,
    mi.StrType: _build_string,
    mi.BytesType: _build_bytes,
    mi.ByteArrayType: _build_bytes,
    mi.MemoryViewType: _build_bytes,
    mi.DateTimeType: _build_datetime,
    mi.DateType: _make_constant_form(type="string", format="date"),
    mi.TimeType: _build_time,
    mi.TimeDeltaType: _build_timedelta,
    mi.UUIDType: _make_constant_form(type="string", format="uuid"),
    mi.DecimalType: _build_decimal,
    mi.LiteralType: _build_literal,
    mi.EnumType: _build_enum,
    mi.ListType: _build_array,
    mi.VarTupleType: _build_array,
    mi.SetType: _build_set,
    mi.FrozenSetType: _build_set,
    mi.TupleType: _build_tuple,
    mi.DictType: _build_mapping,
    mi.UnionType: _build_union,
    mi.CustomType: _build_custom,
    mi.StructType: _build_object,
    mi.TypedDictType: _build_object,
    mi.DataclassType: _build_object,
    mi.NamedTupleType: _build_object,
}


# Definitions: inlined, but for those that are shared or recursive


def drop_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without its ``null`` alternative."""
    schema = dict(schema)
    if "anyOf" in schema:
        rest = [branch for branch in schema.pop("anyOf") if branch != NULL_SCHEMA]
        return {**rest[0], **schema} if len(rest) == 1 else {"anyOf": rest, **schema}
    if None in schema.get("enum", ()):
        schema["enum"] = [value for value in schema["enum"] if value is not None]
    return schema


def inline_definitions(
    root: dict[str, Any], definitions: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """The schema on its own feet: what is used once is put in place, the rest into ``$defs``."""
    uses = _count_uses(root, definitions)
    kept = {
        name
        for name, count in uses.items()
        if _is_recursive(name, definitions) or (count > 1 and "properties" in definitions[name])
    }
    schema: dict[str, Any] = _inline_references(root, definitions, kept)
    if "$ref" in schema:  # hosts want to see `type: object` at the root
        name = schema.pop("$ref").removeprefix(DEFINITIONS_PREFIX)
        schema = {**_inline_references(definitions[name], definitions, kept), **schema}
    if kept:
        schema["$defs"] = {
            name: _inline_references(definitions[name], definitions, kept) for name in sorted(kept)
        }
    return schema


def _list_references(schema: Any) -> Iterator[str]:
    """The definitions a schema refers to, in order, as often as it does."""
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.removeprefix(DEFINITIONS_PREFIX)
        for value in schema.values():
            yield from _list_references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _list_references(item)


def _count_uses(root: dict[str, Any], definitions: dict[str, dict[str, Any]]) -> Counter[str]:
    """Count how often each definition is referred to from what is reachable."""
    uses: Counter[str] = Counter()
    pending: list[Any] = [root]
    while pending:
        for name in _list_references(pending.pop()):
            if name not in uses:
                pending.append(definitions[name])
            uses[name] += 1
    return uses


def _is_recursive(name: str, definitions: dict[str, dict[str, Any]]) -> bool:
    """Whether a definition leads back to itself."""
    seen: set[str] = set()
    pending = [name]
    while pending:
        for reference in _list_references(definitions[pending.pop()]):
            if reference == name:
                return True
            if reference not in seen:
                seen.add(reference)
                pending.append(reference)
    return False


def _inline_references(schema: Any, definitions: dict[str, dict[str, Any]], kept: set[str]) -> Any:
    """A copy of the schema in which every reference that is not kept is replaced."""
    if isinstance(schema, list):
        return [_inline_references(item, definitions, kept) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if (
        isinstance(reference, str)
        and (name := reference.removeprefix(DEFINITIONS_PREFIX)) not in kept
    ):
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**definitions[name], **beside}
        return _inline_references(schema, definitions, kept)
    return {key: _inline_references(value, definitions, kept) for key, value in schema.items()}
