"""Structs of isthmus.wire and the definitions of the official schemas they stand for, by member."""

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import FieldInfo, fields

from isthmus import wire
from isthmus.revisions import METHODS
from support.schemas import official

# Definitions with a struct of another name.
RENAMED = {
    "ElicitRequestParams": wire.ElicitParams,
    "EnumSchema": wire.LegacyTitledEnumSchema,
    "LoggingMessageNotificationParams": wire.LogMessageParams,
    "RequestMetaObject": wire.RequestMeta,
    "ResourceReference": wire.ResourceTemplateReference,
    "SubscriptionsAcknowledgedNotificationParams": wire.AcknowledgedParams,
    "SubscriptionsListenRequestParams": wire.ListenParams,
    "SubscriptionsListenResult": wire.ListenResult,
}

# Definitions that have no struct, and why.
WITHOUT_STRUCT = {
    "Annotated": "something with annotations, which are compared where they occur",
    "BaseMetadata": "inherited by what has a name and a title",
    "ElicitRequestFormParams": "one struct for both modes, compared as ElicitRequestParams",
    "ElicitRequestURLParams": "the same",
    "GetTaskPayloadResult": "raw JSON: the result of the request behind the task",
    "Icons": "inherited by what has icons",
    "InputResponseRequestParams": "inherited by params of methods that may ask",
    "MetaObject": "a dictionary",
    "NotificationMetaObject": "a dictionary",
    "NotificationParams": "inherited; compared where a notification has just these",
    "PaginatedRequestParams": "inherited; compared where a request has just these",
    "PaginatedResult": "inherited by results that are lists",
    "RequestParams": "inherited; compared where a request has just these",
    "ResourceContents": "inherited by both kinds of contents; the struct is their union",
    "ResourceRequestParams": "inherited by params with a uri",
    "ResultMetaObject": "a dictionary",
    "SubscriptionsListenResultMetaObject": "a dictionary",
    "TaskAugmentedRequestParams": "inherited by params with a task",
}

# Structs that stand for a union of definitions, which JSON does not tell apart.
MERGED = {wire.ResourceContents: ("TextResourceContents", "BlobResourceContents")}


@dataclass(frozen=True)
class Shape:
    """A struct and the object schema it stands for in one revision."""

    struct: type[msgspec.Struct]
    where: str
    properties: dict[str, Any]
    required: frozenset[str]

    def members(self) -> dict[str, FieldInfo]:
        """The struct's fields by their name on the wire."""
        return {field.encode_name: field for field in fields(self.struct)}


def struct_of(name: str) -> type[msgspec.Struct] | None:
    """The struct that stands for a definition, if any."""
    if name in WITHOUT_STRUCT:
        return None
    short = name.replace("RequestParams", "Params").replace("NotificationParams", "Params")
    found = RENAMED.get(name) or getattr(wire, short, None)
    return found if isinstance(found, type) and issubclass(found, msgspec.Struct) else None


def shapes(revision: str) -> Iterator[Shape]:
    """Every struct's shape in a revision, wherever its schema writes it."""
    known = official.definitions(revision)
    for name in known:
        struct = struct_of(name)
        if struct is not None and not is_choice(known[name], name):
            yield from _shape(revision, struct, known[name], name)
    for struct, names in MERGED.items():
        yield from _shape(
            revision, struct, {"anyOf": [known[name] for name in names]}, "+".join(names)
        )
    for name, definition in known.items():
        method = official.method_of(revision, name)
        params = definition.get("properties", {}).get("params", {})
        if method is not None:
            # Params written in place are open, and any of them may have _meta.
            inline = {"_meta": {"type": "object"}} if "properties" in params else {}
            yield from _shape(revision, METHODS[method].params, params, f"{name}.params", inline)


def is_choice(definition: dict[str, Any], name: str) -> bool:
    """Whether a definition is a union, a scalar or an enumeration, and so no struct."""
    if "anyOf" in definition:
        return name != "ElicitRequestParams"
    return definition.get("type", "object") != "object"


def _shape(
    revision: str,
    struct: type[msgspec.Struct],
    definition: dict[str, Any],
    where: str,
    more: dict[str, Any] | None = None,
) -> Iterator[Shape]:
    properties, required = flattened(revision, definition)
    yield Shape(struct, where, {**properties, **(more or {})}, required)
    by_name = {field.encode_name: field for field in fields(struct)}
    for name, inner in properties.items():
        if name not in by_name:
            continue
        structs = list(_structs(by_name[name].type))
        if len(structs) == 1:
            for written in _written_in_place(inner):
                yield from _shape(revision, structs[0], written, f"{where}.{name}")


def flattened(revision: str, definition: dict[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """The members of an object schema and those required, through its references and unions."""
    if "$ref" in definition:
        definition = official.definitions(revision)[official.refers_to(definition)]
        return flattened(revision, definition)
    for word, joined in (("anyOf", frozenset.intersection), ("allOf", frozenset.union)):
        if word in definition:
            parts = [flattened(revision, part) for part in definition[word]]
            properties = {k: v for part, _ in parts for k, v in part.items()}
            return properties, joined(*(required for _, required in parts))
    return definition.get("properties", {}), frozenset(definition.get("required", ()))


def _written_in_place(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The object schemas written inside a member, below a list too."""
    if schema.get("type") == "array":
        yield from _written_in_place(schema.get("items", {}))
    elif "anyOf" in schema:
        for part in schema["anyOf"]:
            yield from _written_in_place(part)
    elif schema.get("type") == "object":
        yield schema


def parts(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, but UNSET; the annotation itself where it is none."""
    if get_origin(annotation) in {Union, types.UnionType}:
        return tuple(a for a in get_args(annotation) if a is not UnsetType)
    return (annotation,)


def _structs(annotation: Any) -> Iterator[type[msgspec.Struct]]:
    for part in parts(annotation):
        if get_origin(part) is list:
            yield from _structs(get_args(part)[0])
        elif isinstance(part, type) and issubclass(part, msgspec.Struct):
            yield part


def admits(annotation: Any, schema: dict[str, Any], revision: str) -> bool:
    """Whether a member of this type can hold everything that the schema allows."""
    kinds = parts(annotation)
    if {Any, Raw} & set(kinds):
        return True
    if "anyOf" in schema:
        return all(admits(annotation, part, revision) for part in schema["anyOf"])
    if "$ref" in schema:
        name = official.refers_to(schema)
        struct = struct_of(name)
        referred = official.definitions(revision)[name]
        if struct is not None and not is_choice(referred, name):
            return any(
                get_origin(k) is dict or (_is_struct(k) and issubclass(struct, k)) for k in kinds
            )
        return admits(annotation, referred, revision)
    values = {schema["const"]} if "const" in schema else set(schema.get("enum", ()))
    if values:
        return str in kinds or values <= {
            v for k in kinds if get_origin(k) is Literal for v in get_args(k)
        }
    return _admits_type(kinds, schema, revision)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


SCALARS = {"string": str, "integer": int, "number": float, "boolean": bool, "null": type(None)}


def _admits_type(kinds: tuple[Any, ...], schema: dict[str, Any], revision: str) -> bool:
    if "type" not in schema:
        return False  # anything at all, which only Any can hold
    named = schema["type"]
    for name in named if isinstance(named, list) else [named]:
        if name == "array":
            lists = [get_args(k)[0] for k in kinds if get_origin(k) is list]
            fits = any(admits(k, schema.get("items", {}), revision) for k in lists)
        elif name in SCALARS:
            fits = SCALARS[name] in kinds
        else:
            fits = any(get_origin(k) is dict or k is dict or _is_struct(k) for k in kinds)
        if not fits:
            return False
    return True


def is_written(field: FieldInfo) -> bool:
    """Whether a member is always on the wire."""
    return field.default is not UNSET
