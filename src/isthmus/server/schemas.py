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
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, get_args, get_origin

import msgspec
from msgspec import NODEFAULT
from msgspec import inspect as mi

from isthmus.errors import UsageError
from isthmus.server import pydantic_schemas
from isthmus.server.annotations import bare, walk
from isthmus.server.custom_types import encode, expressible
from isthmus.server.portable import PREFIX, inlined, without_null
from isthmus.server.schema_forms import FORMS, Member

__all__ = ["Member", "Mode", "Schema", "SchemaBuilder", "admits_string", "schema_for"]

Schema: TypeAlias = dict[str, Any]
Mode: TypeAlias = Literal["input", "output"]


def schema_for(annotation: Any, mode: Mode) -> Schema:
    """The schema of one type, complete with its definitions.

    Raises:
        UsageError: the type has no JSON form; the message says which part of it.
    """
    builder = SchemaBuilder(mode)
    return builder.finish(builder.of(expressible(annotation)))


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
            annotation: one that `expressible` has let pass.

        Raises:
            UsageError: a part of it has no JSON form.
        """
        for part in walk(annotation):
            if get_origin(part := bare(part)) is Literal:
                values = get_args(part)
                self._written.setdefault(_unordered(values), values)
        try:
            info = mi.type_info(annotation)
        except (TypeError, NameError) as refusal:
            raise UsageError(str(refusal)) from refusal
        return self.visit(info)

    def of_pydantic(self, annotation: Any) -> Schema:
        """The schema of an annotation that pydantic validates and writes."""
        schema = pydantic_schemas.json_schema(annotation, self.mode)
        definitions = schema.pop("$defs", {})
        names = {name: self._free_name(name) for name in definitions}
        for name, definition in definitions.items():
            self.definitions[names[name]] = self._adopted(_untitled(definition), names)
        return self._adopted(_untitled(schema), names)  # type: ignore[no-any-return]  # as deep as JSON

    def visit(self, info: mi.Type) -> Schema:
        """The schema of a type as msgspec describes it."""
        said: Schema = {}
        while isinstance(info, mi.Metadata):
            said = {**said, **(info.extra_json_schema or {})}
            info = info.type
        form = FORMS.get(type(info))
        if form is None:
            raise UsageError(f"{type(info).__name__.removesuffix('Type')} has no JSON form")
        return {**form(self, info), **said}

    def ordered(self, values: Iterable[Any]) -> Iterable[Any]:
        """The values of a ``Literal`` as its author wrote them; msgspec has sorted them."""
        return self._written.get(_unordered(values), values)

    def named(self, kind: Any, make: Callable[[], Schema]) -> Schema:
        """A reference to the definition of a class, which is made once."""
        name = self._names.get(kind)
        if name is None:
            name = self._names[kind] = self._free_name(_class_name(kind))
            self.definitions[name] = make()  # the name is taken: a recursive type finds itself
        return {"$ref": PREFIX + name}

    def record(self, members: Iterable[Member], *, closed: bool) -> Schema:
        """An object with these members; a closed one has no others."""
        properties = {}
        required = []
        for member in members:
            properties[member.name] = self._property(member)
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
        return inlined(root, self.definitions)

    def _property(self, member: Member) -> Schema:
        schema = dict(member.schema)
        if member.description:
            schema.setdefault("description", member.description)
        if self.mode == "output":
            return schema
        if member.default is None:
            return without_null(schema)
        if (
            member.default is not NODEFAULT
            and (written := _written(member.default)) is not NODEFAULT
        ):
            schema["default"] = written
        return schema

    def _free_name(self, name: str) -> str:
        """A name for a definition that no other has; it is taken from now on."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("_")
        free, n = name, 2
        while free in self.definitions:
            free, n = f"{name}_{n}", n + 1
        self.definitions[free] = {}
        return free

    def _adopted(self, schema: Any, names: dict[str, str]) -> Any:
        """Pydantic's schema with our names for its definitions, in our profile."""
        if isinstance(schema, list):
            return [self._adopted(item, names) for item in schema]
        if not isinstance(schema, dict):
            return schema
        adopted = {key: self._adopted(value, names) for key, value in schema.items()}
        if isinstance(reference := adopted.get("$ref"), str):
            adopted["$ref"] = PREFIX + names[reference.removeprefix(PREFIX)]
        if "type" in adopted:  # first, where people and models look for it
            adopted = {"type": adopted["type"], **adopted}
        properties = adopted.get("properties")
        if isinstance(properties, dict) and adopted.get("type") == "object":
            adopted["properties"] = {n: self._adopted_property(p) for n, p in properties.items()}
        return adopted

    def _adopted_property(self, schema: Any) -> Any:
        default = schema.get("default", NODEFAULT)
        rest = {key: value for key, value in schema.items() if key != "default"}
        if self.mode == "output":
            return rest
        return without_null(rest) if default is None else schema


def _unordered(values: Iterable[Any]) -> frozenset[tuple[type, Any]]:
    """What a ``Literal`` allows, whatever its order; 1 and True are two things."""
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
        name = schema["$ref"].removeprefix(PREFIX)
        return admits_string((definitions or {}).get(name, {}), definitions)
    if "enum" in schema:
        return any(isinstance(value, str) for value in schema["enum"])
    kinds = schema.get("type", "string")
    return "string" in ([kinds] if isinstance(kinds, str) else kinds)


def _untitled(schema: Schema) -> Schema:
    """The schema without the class's name as its title."""
    return {key: value for key, value in schema.items() if key != "title"}


def _written(default: Any) -> Any:
    """A default value as JSON data; NODEFAULT where it has no JSON form."""
    try:
        return msgspec.json.decode(encode(default))
    except (TypeError, ValueError):
        return NODEFAULT


def _class_name(kind: Any) -> str:
    name = getattr(kind, "__name__", None) or str(kind)
    return "_".join([name, *(_class_name(argument) for argument in getattr(kind, "__args__", ()))])
