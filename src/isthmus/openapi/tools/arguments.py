"""Arguments of a tool: the parameters and the body of an operation, side by side in one schema.

The members of a body that is a plain object are arguments like any other. Where two have one name,
each gets the name of its place before it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET, Struct

from isthmus.openapi.bodies import choose_media_type, name_kind
from isthmus.openapi.document import DocumentError, Place
from isthmus.openapi.operation import ApiParameter, Body, MediaType, Operation
from isthmus.openapi.request import RequestValues
from isthmus.openapi.tools.schemas import (
    BINARY,
    Schema,
    SchemaConverter,
    list_object_parts,
    shorten,
)

ODD_SIGNS = re.compile(r"[^A-Za-z0-9_.\-]+")
MAX_NAME_CHARS = 64
BODY_ARGUMENT = "body"
FILE: Schema = {
    "anyOf": [
        BINARY,
        {
            "type": "object",
            "properties": {
                "data": {**BINARY, "description": "The bytes, in base64."},
                "filename": {"type": "string"},
                "content_type": {"type": "string", "description": "Such as image/png."},
            },
            "required": ["data"],
            "additionalProperties": False,
        },
    ],
}


class ToolArgument(Struct, frozen=True):
    """An argument of a tool.

    Attributes:
        location: ``path``, ``query``, ``header``, ``cookie``, ``querystring``; ``member`` of the body, or ``body``
            for the whole of it.
        name: what the API calls it.
        schema: of its value.
        required: whether it must be given.
    """

    location: str
    name: str
    schema: Schema
    required: bool


class ArgumentPlan(Struct, frozen=True):
    """The plan by which the arguments of a tool become those of a request.

    Attributes:
        arguments: by their names for a model.
        schema: of all of them together, with its definitions.
        media_type: in which the body is written; None for none.
        body_required: there is a body even where no argument is for it.
        fixed: values that the author settled, by name.
        hidden: arguments that a call cannot give.
    """

    arguments: Mapping[str, ToolArgument]
    schema: Schema
    media_type: MediaType | None = None
    body_required: bool = False
    fixed: Mapping[str, Any] = {}
    hidden: frozenset[str] = frozenset()

    def sort(self, given: Mapping[str, Any]) -> RequestValues:
        """Sort arguments by what they are for.

        Args:
            given: arguments that fit the schema.
        """
        parameters: dict[tuple[str, str], Any] = {}
        members: dict[str, Any] = {}
        body: Any = UNSET
        for name, value in {**given, **self.fixed}.items():
            argument = self.arguments.get(name)
            if argument is None or (name in self.hidden and name not in self.fixed):
                continue
            if argument.location == "member":
                members[argument.name] = value
            elif argument.location == "body":
                body = value
            elif value is not None:  # no style has a null
                parameters[argument.location, argument.name] = value
        if body is UNSET and self.media_type is not None:
            flat = any(one.location == "member" for one in self.arguments.values())
            if members or (self.body_required and flat):
                body = members
        return RequestValues(parameters, body, None if body is UNSET else self.media_type)


def plan_arguments(
    operation: Operation,
    converter: SchemaConverter,
    *,
    reserved: Iterable[tuple[str, str]] = (),
    split_body: bool = True,
) -> ArgumentPlan:
    """Plan the arguments of an operation.

    Args:
        operation: the operation.
        converter: of the document's schemas.
        reserved: parameters that credentials fill, as ``("query", "api_key")``.
        split_body: whether the members of a body become arguments, where they can.

    Raises:
        DocumentError: the body cannot be written, or a reference leads nowhere.
    """
    uses: set[str] = set()
    taken = {(location, name.lower()) for location, name in reserved}
    found = [
        _convert_parameter(one, converter, uses)
        for one in operation.parameters
        if (one.location, one.name.lower()) not in taken
    ]
    media = None
    if operation.body is not None:
        media = _find_media(operation.body, found)
        if media is not None:
            found += _convert_body(operation.body, media, converter, uses, split=split_body)
    named = name_arguments(found)
    required = [name for name, one in named.items() if one.required]
    schema: Schema = {"type": "object", "properties": {k: one.schema for k, one in named.items()}}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return ArgumentPlan(
        named,
        converter.complete(schema, frozenset(uses), "request"),
        media,
        operation.body is not None and operation.body.required,
    )


def _find_media(body: Body, found: list[ToolArgument]) -> MediaType | None:
    """The media type that a body is written in; None where there need be no body.

    Raises:
        DocumentError: it must be there, and cannot be written.
    """
    media = choose_media_type(body)
    if media is None and (body.required or not found):
        names = ", ".join(one.name for one in body.media_types)
        raise DocumentError(
            body.pointer, f"a body of {names} cannot be written: JSON, forms, texts and bytes can"
        )
    return media


def _convert_parameter(
    parameter: ApiParameter, converter: SchemaConverter, uses: set[str]
) -> ToolArgument:
    converted = converter.convert(parameter.schema, "request")
    uses |= converted.uses
    schema = {**converted.schema}
    if parameter.description.strip():
        schema["description"] = shorten(parameter.description)
    if parameter.deprecated:
        schema["deprecated"] = True
    return ToolArgument(parameter.location, parameter.name, schema, parameter.required)


def _convert_body(
    body: Body, media: MediaType, converter: SchemaConverter, uses: set[str], *, split: bool
) -> list[ToolArgument]:
    kind = name_kind(media)
    if kind in {"text", "bytes"}:
        schema: Schema = {"type": "string"} if kind == "text" else {**BINARY}
        schema["description"] = shorten(body.description) or f"The body, {media.name}."
        return [ToolArgument("body", BODY_ARGUMENT, schema, body.required)]
    parts = list_object_parts(media.schema, converter.resolve) if split else None
    if parts is not None:
        return _convert_members(parts, body, media, converter, uses)
    converted = converter.convert(media.schema, "request")
    uses |= converted.uses
    schema = {**converted.schema}
    if kind in {"form", "multipart"} and not schema:
        schema["type"] = "object"
    if body.description.strip():
        schema["description"] = shorten(body.description)
    return [ToolArgument("body", BODY_ARGUMENT, schema, body.required)]


def _convert_members(
    parts: list[Place],
    body: Body,
    media: MediaType,
    converter: SchemaConverter,
    uses: set[str],
) -> list[ToolArgument]:
    members: dict[str, Schema] = {}
    required: set[str] = set()
    for part in parts:
        converted = converter.convert(part, "request")
        uses |= converted.uses
        for name, schema in converted.schema.get("properties", {}).items():
            members[name] = {"allOf": [members[name], schema]} if name in members else schema
        required.update(converted.schema.get("required", ()))
    if name_kind(media) == "multipart":
        members = {name: _admit_file(name, schema, media) for name, schema in members.items()}
    return [
        ToolArgument("member", name, schema, body.required and name in required)
        for name, schema in members.items()
    ]


def _admit_file(name: str, schema: Schema, media: MediaType) -> Schema:
    """The schema of a part of a multipart form; of one that is a file, the bytes and their name."""
    if name not in media.files:
        return schema
    text = {"description": schema["description"]} if "description" in schema else {}
    if schema.get("type") == "array":
        return {"type": "array", "items": FILE, **text}
    return {**FILE, **text}


def fit_name(name: str) -> str:
    """A name as models may use it for an argument: letters, digits, ``_``, ``-`` and ``.``."""
    return ODD_SIGNS.sub("_", name).strip("_")[:MAX_NAME_CHARS] or "argument"


def name_arguments(found: list[ToolArgument]) -> dict[str, ToolArgument]:
    """Name arguments: as the API does, with their place before it where two have one name."""
    plain = [fit_name(one.name) for one in found]
    count, last = Counter(plain), Counter[str]()
    named: dict[str, ToolArgument] = {}
    for name, one in zip(plain, found, strict=True):
        free = name
        if count[name] > 1:
            place = {"member": "body", "body": "request"}.get(one.location, one.location)
            free = f"{place}_{name}"[:MAX_NAME_CHARS]
        wanted = free
        while free in named or (free != name and free in count):
            last[wanted] += 1  # from where the one before ended: many may want one name
            end = "_" * last[wanted] if last[wanted] < MAX_MARKS else f"_{last[wanted]}"
            free = f"{wanted[: MAX_NAME_CHARS - len(end)]}{end}"
        named[free] = one
    return named


MAX_MARKS = 4  # underlines behind a name; then it is numbered
