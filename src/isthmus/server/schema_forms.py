"""The JSON form of each kind of type msgspec knows, as rows of one table.

Every function takes the builder and msgspec's description of a type and returns a schema.
Where msgspec and JSON Schema would disagree about a value, the form says what msgspec does.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import NODEFAULT
from msgspec import inspect as mi

from isthmus.errors import UsageError
from isthmus.server import patterns, pydantic_types
from isthmus.server.custom_types import Choice, is_path
from isthmus.server.docstrings import parse_docstring

if TYPE_CHECKING:
    from isthmus.server.schemas import Schema, SchemaBuilder

__all__ = ["FORMS", "Member"]


class Member(msgspec.Struct, frozen=True):
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


def bare(info: mi.Type) -> mi.Type:
    """The type without its metadata."""
    while isinstance(info, mi.Metadata):
        info = info.type
    return info


def _keywords(info: Any, **names: str) -> "Schema":
    """The constraints of a type that are set, under their names in JSON Schema."""
    values = {keyword: getattr(info, name) for name, keyword in names.items()}
    return {keyword: value for keyword, value in values.items() if value is not None}


def _number(_: "SchemaBuilder", info: Any) -> "Schema":
    bounds = _keywords(
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


def _string(_: "SchemaBuilder", info: Any) -> "Schema":
    schema = {"type": "string", **_keywords(info, min_length="minLength", max_length="maxLength")}
    if info.pattern is not None:
        schema["pattern"] = patterns.portable_pattern(info.pattern)
    return schema


def _bytes(_: "SchemaBuilder", info: Any) -> "Schema":
    pattern = patterns.base64(info.min_length or 0, info.max_length)
    return {"type": "string", "contentEncoding": "base64", "pattern": pattern}


def _datetime(builder: "SchemaBuilder", info: Any) -> "Schema":
    if info.tz is False:
        return {"type": "string", "pattern": patterns.LOCAL_DATETIME}
    if builder.mode == "output" and info.tz is None:
        # One without a zone may come out, which "date-time" (RFC 3339) does not admit.
        return {"type": "string", "pattern": patterns.DATETIME}
    return {"type": "string", "format": "date-time"}


def _time(_: "SchemaBuilder", info: Any) -> "Schema":
    return {"type": "string", "pattern": patterns.TIMES[info.tz]}


def _timedelta(builder: "SchemaBuilder", _: Any) -> "Schema":
    # "duration" (RFC 3339) has no sign, and a negative one may come out.
    if builder.mode == "output":
        return {"type": "string", "pattern": patterns.DURATION_WRITTEN}
    return {"type": "string", "format": "duration", "pattern": patterns.DURATION_ACCEPTED}


def _decimal(builder: "SchemaBuilder", _: Any) -> "Schema":
    # A decimal may come out as "1E+5" or "NaN"; going in, the plain form is what models write.
    written = builder.mode == "output"
    return {"type": "string"} if written else {"type": "string", "pattern": patterns.DECIMAL}


JSON_TYPES = {str: "string", bool: "boolean", int: "integer", type(None): "null"}


def _enumeration(values: Iterable[Any]) -> "Schema":
    values = list(values)
    kinds = {JSON_TYPES.get(type(value)) for value in values}
    return {"type": kinds.pop(), "enum": values} if len(kinds) == 1 else {"enum": values}


def _literal(builder: "SchemaBuilder", info: Any) -> "Schema":
    return _enumeration(builder.ordered(info.values))


def _enum(_: "SchemaBuilder", info: Any) -> "Schema":
    schema = _enumeration(member.value for member in info.cls)
    if text := parse_docstring(class_doc(info.cls)).text:
        schema["description"] = text
    return schema


def _array(builder: "SchemaBuilder", info: Any) -> "Schema":
    schema: Schema = {"type": "array"}
    if items := builder.visit(info.item_type):
        schema["items"] = items
    return {**schema, **_keywords(info, min_length="minItems", max_length="maxItems")}


def _set(builder: "SchemaBuilder", info: Any) -> "Schema":
    schema = _array(builder, info)
    item = bare(info.item_type)
    if isinstance(item, mi.AnyType):
        schema["items"] = {"type": ["string", "number", "null"]}
    elif not _hashable(item):
        raise UsageError("a set's items must be hashable: strings, numbers, frozen classes")
    return {**schema, "uniqueItems": True}


UNHASHABLE = (mi.AnyType, mi.ListType, mi.DictType, mi.SetType, mi.TypedDictType, mi.RawType)


def _hashable(info: mi.Type) -> bool:
    """Whether what is decoded can be put into a set."""
    if isinstance(info, mi.StructType) and info.cls.__struct_config__.frozen is False:
        return info.cls.__struct_config__.eq is False
    if isinstance(info, mi.DataclassType) and getattr(info.cls, "__hash__", None) is None:
        return False
    parts = [*getattr(info, "types", ()), *getattr(info, "item_types", ())]
    parts += [field.type for field in getattr(info, "fields", ())]
    if isinstance(info, mi.VarTupleType | mi.FrozenSetType):
        parts.append(info.item_type)
    return not isinstance(info, UNHASHABLE) and all(_hashable(bare(part)) for part in parts)


def _tuple(builder: "SchemaBuilder", info: Any) -> "Schema":
    items = [builder.visit(t) for t in info.item_types]
    return _positions(items, least=len(items), closed=True)


def _positions(items: "list[Schema]", *, least: int, closed: bool) -> "Schema":
    schema: Schema = {"type": "array", "minItems": least}
    if items:
        schema["prefixItems"] = items
    return {**schema, "maxItems": len(items)} if closed else schema


KEYS: dict[type[mi.Type], str] = {
    mi.IntType: patterns.INTEGER_KEY,
    mi.FloatType: patterns.FLOAT_KEY,
}


def _mapping(builder: "SchemaBuilder", info: Any) -> "Schema":
    schema: Schema = {"type": "object"}
    if values := builder.visit(info.value_type):
        schema["additionalProperties"] = values
    if names := _property_names(builder, info.key_type):
        schema["propertyNames"] = names
    return {**schema, **_keywords(info, min_length="minProperties", max_length="maxProperties")}


def _property_names(builder: "SchemaBuilder", key: mi.Type) -> "Schema":
    """What a mapping's keys look like as JSON strings."""
    schema = builder.visit(key)
    if pattern := KEYS.get(type(bare(key))):
        if schema.keys() - {"type", "description", "title", "examples"}:
            raise UsageError("constraints on numeric dictionary keys have no JSON form")
        return {"pattern": pattern} if builder.mode == "input" else {}
    if "enum" in schema:
        return {"enum": [str(value) for value in schema["enum"]]}
    if schema and schema.pop("type", None) != "string":
        raise UsageError("a dictionary's keys must be strings, numbers or enumerations")
    return schema


def any_of(branches: "Iterable[Schema]") -> "Schema":
    """A schema that admits what one of these does; null comes last."""
    flat: list[Schema] = []
    for branch in branches:
        nested = branch["anyOf"] if branch.keys() == {"anyOf"} else [branch]
        flat += [schema for schema in nested if schema not in flat]
    if {} in flat:
        return {}
    flat.sort(key=lambda schema: schema == {"type": "null"})
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def _union(builder: "SchemaBuilder", info: Any) -> "Schema":
    return any_of(builder.visit(t) for t in info.types)


def _custom(builder: "SchemaBuilder", info: Any) -> "Schema":
    kind = info.cls
    if isinstance(kind, type) and issubclass(kind, Choice):
        return any_of([builder.of(branch) for branch in kind.branches])
    if pydantic_types.is_pydantic(kind):
        return builder.of_pydantic(kind)
    if is_path(kind):
        return {"type": "string"}
    raise UsageError(
        f"{getattr(kind, '__qualname__', kind)!r} has no JSON form: use a dataclass, a msgspec "
        "Struct, a TypedDict, an attrs class or a pydantic model in its place"
    )


def class_doc(kind: Any) -> str:
    """The docstring its author wrote, not what dataclasses, enums and tuples make up."""
    kind = getattr(kind, "__origin__", kind)
    doc = kind.__dict__.get("__doc__") or ""
    made_up = doc.startswith(f"{kind.__name__}(") or doc == "An enumeration."
    return "" if made_up else doc


def _object(builder: "SchemaBuilder", info: Any) -> "Schema":
    return builder.named(info.cls, lambda: _object_body(builder, info))


def _object_body(builder: "SchemaBuilder", info: Any) -> "Schema":
    members = _tag(info) + _members(builder, info)
    if isinstance(info, mi.NamedTupleType) or getattr(info, "array_like", False):
        least = sum(1 for m in members if m.required or builder.mode == "output")
        closed = getattr(info, "forbid_unknown_fields", True)
        return _positions([m.schema for m in members], least=least, closed=closed)
    schema = builder.record(members, closed=getattr(info, "forbid_unknown_fields", False))
    if text := parse_docstring(class_doc(info.cls)).text:
        schema["description"] = text
    return schema


def _tag(info: Any) -> list[Member]:
    """The member that tells a tagged struct from its siblings."""
    field, tag = getattr(info, "tag_field", None), getattr(info, "tag", None)
    return [] if field is None else [Member(field, _enumeration([tag]), required=True)]


def _members(builder: "SchemaBuilder", info: Any) -> list[Member]:
    said = parse_docstring(class_doc(info.cls)).parameters
    config = getattr(info.cls, "__struct_config__", None)
    omits = getattr(config, "omit_defaults", False) or isinstance(info, mi.TypedDictType)
    return [
        Member(
            name=field.encode_name,
            schema=builder.visit(field.type),
            required=field.required,
            always=field.required or not (omits or _is_unset(field)),
            default=_default(field),
            description=said.get(field.name),
        )
        for field in info.fields
    ]


def _is_unset(field: mi.Field) -> bool:
    """Whether the field's default is UNSET, which msgspec does not write."""
    return (field.required, field.default, field.default_factory) == (False, NODEFAULT, NODEFAULT)


def _default(field: mi.Field) -> Any:
    factory = field.default_factory
    return factory() if factory in (list, dict, set, frozenset) else field.default


def _fixed(**schema: Any) -> "Callable[[SchemaBuilder, Any], Schema]":
    return lambda _builder, _info: dict(schema)


FORMS: "dict[type[mi.Type], Callable[[SchemaBuilder, Any], Schema]]" = {
    mi.AnyType: _fixed(),
    mi.RawType: _fixed(),
    mi.NoneType: _fixed(type="null"),
    mi.BoolType: _fixed(type="boolean"),
    mi.IntType: _number,
    mi.FloatType: _number,
    mi.StrType: _string,
    mi.BytesType: _bytes,
    mi.ByteArrayType: _bytes,
    mi.MemoryViewType: _bytes,
    mi.DateTimeType: _datetime,
    mi.DateType: _fixed(type="string", format="date"),
    mi.TimeType: _time,
    mi.TimeDeltaType: _timedelta,
    mi.UUIDType: _fixed(type="string", format="uuid"),
    mi.DecimalType: _decimal,
    mi.LiteralType: _literal,
    mi.EnumType: _enum,
    mi.ListType: _array,
    mi.VarTupleType: _array,
    mi.SetType: _set,
    mi.FrozenSetType: _set,
    mi.TupleType: _tuple,
    mi.DictType: _mapping,
    mi.UnionType: _union,
    mi.CustomType: _custom,
    mi.StructType: _object,
    mi.TypedDictType: _object,
    mi.DataclassType: _object,
    mi.NamedTupleType: _object,
}
