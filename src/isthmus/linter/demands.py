"""What a revision demands of a message beyond the structs that serve all revisions."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from isthmus import wire
from isthmus.revisions import MODERN, Revision
from isthmus.wire.base import wire_name
from isthmus.wire.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION, SUBSCRIPTION_ID
from isthmus.wire.results import CacheableResult, Result

__all__ = ["ALSO_REQUIRED", "DEMANDS", "EXTENDED", "WILD", "Inside", "Placeholder", "is_uri"]

WILD = "..."
"""A member of a transcript's object that stands for members not listed."""


class Placeholder(str):
    """Text of a transcript that stands for any value."""

    __slots__ = ()


class Inside(msgspec.Struct, frozen=True):
    """A part whose struct keeps it raw: it is to be held against a shape of its own."""

    value: Any
    shape: Any


Demand: TypeAlias = Callable[[dict[str, Any], Revision], Iterator[tuple[str, str | Inside]]]
"""Gives places, below the value, and what is wrong there, or what must fit there."""

Holds: TypeAlias = Callable[[Revision], bool]


def _modern(revision: Revision) -> bool:
    return revision in MODERN


def _always(_revision: Revision) -> bool:
    return True


_TYPED: tuple[tuple[str, Holds], ...] = (("type", _always),)

ALSO_REQUIRED: Mapping[type, tuple[tuple[str, Holds], ...]] = {
    Result: (("resultType", _modern),),
    CacheableResult: (("ttlMs", _modern), ("cacheScope", _modern)),
    wire.InputRequiredResult: (("resultType", _modern),),
    wire.CancelledParams: (("requestId", lambda r: r.name != "2025-11-25"),),
    wire.RequestMeta: ((PROTOCOL_VERSION, _modern), (CLIENT_CAPABILITIES, _modern)),
    wire.ListenResult: (("_meta", _modern),),
    wire.StringSchema: _TYPED,
    wire.NumberSchema: _TYPED,
    wire.BooleanSchema: _TYPED,
    wire.LegacyTitledEnumSchema: _TYPED,
    wire.UntitledSingleSelectEnumSchema: _TYPED,
    wire.TitledSingleSelectEnumSchema: _TYPED,
    wire.UntitledMultiSelectEnumSchema: _TYPED,
    wire.TitledMultiSelectEnumSchema: _TYPED,
    wire.EnumItems: _TYPED,
}
"""Members that some revisions require: the struct, or one it derives from, and where that holds."""

EXTENDED: Mapping[type, frozenset[str]] = {wire.SubscriptionFilter: frozenset({"task_ids"})}
"""Members that an extension adds to a struct of the specification's."""

# Values


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!#-;=?-\[\]_a-z~]*")


def is_uri(value: str) -> bool:
    """Whether text is a URI with a scheme, in characters that RFC 3986 allows."""
    return _URI.fullmatch(value) is not None


def _uris(*names: str) -> Demand:
    def check(value: dict[str, Any], _revision: Revision) -> Iterator[tuple[str, str]]:
        for name in names:
            uri = value.get(name)
            if isinstance(uri, str) and not isinstance(uri, Placeholder) and not is_uri(uri):
                yield f".{name}", f"must be a URI with a scheme, not {uri[:60]!r}"

    return check


def _weight(*names: str) -> Demand:
    def check(value: dict[str, Any], _revision: Revision) -> Iterator[tuple[str, str]]:
        for name in names:
            weight = value.get(name)
            if isinstance(weight, int | float) and not 0 <= weight <= 1:
                yield f".{name}", "must lie between 0 and 1"

    return check


def _not_negative(value: dict[str, Any], _revision: Revision) -> Iterator[tuple[str, str]]:
    ttl = value.get("ttlMs")
    if isinstance(ttl, int | float) and ttl < 0:
        yield ".ttlMs", "must not be negative"


# Parts


def _text_or_blob(value: dict[str, Any], _revision: Revision) -> Iterator[tuple[str, str]]:
    if "text" not in value and "blob" not in value and WILD not in value:
        yield "", "needs the member 'text', or 'blob'"


def _structured(value: dict[str, Any], revision: Revision) -> Iterator[tuple[str, str]]:
    structured = value.get("structuredContent", {})
    known = "structured_content" in revision.members.get(wire.CallToolResult, ())
    if known and revision not in MODERN and not isinstance(structured, dict):
        yield ".structuredContent", f"must be an object in {revision.name}"


def _single(value: dict[str, Any], revision: Revision) -> Iterator[tuple[str, str]]:
    if isinstance(value.get("content"), list) and not revision.knows(wire.ToolUseContent):
        yield ".content", f"must be one block in {revision.name}, not an array"


def _schemas(value: dict[str, Any], revision: Revision) -> Iterator[tuple[str, str]]:
    known = {wire_name(name) for name in revision.members[wire.Tool]}
    for name in sorted({"inputSchema", "outputSchema"} & known & value.keys()):
        schema = value[name]
        if not isinstance(schema, dict):
            continue
        dialects = revision.name >= "2025-11-25"  # JSON Schema 2020-12 where nothing is said
        if dialects and not isinstance(schema.get("$schema", ""), str):
            yield f".{name}.$schema", "must be a string"
        of_objects = name == "inputSchema" or revision not in MODERN
        if of_objects and schema.get("type") != "object" and WILD not in schema:
            yield f".{name}.type", 'must be "object"'
        if revision not in MODERN:
            yield from _properties(schema, f".{name}", revision)


def _properties(
    schema: dict[str, Any], place: str, revision: Revision
) -> Iterator[tuple[str, str]]:
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        yield f"{place}.properties", "must be an object"
    elif any(not isinstance(one, dict) for one in properties.values()):
        yield f"{place}.properties", f"must hold objects in {revision.name}"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        yield f"{place}.required", "must be an array of strings"


def _arguments(value: dict[str, Any], _revision: Revision) -> Iterator[tuple[str, str]]:
    arguments = value.get("arguments", {})
    if not isinstance(arguments, dict | Placeholder):
        yield ".arguments", "must be an object"


def _answers(value: dict[str, Any], revision: Revision) -> Iterator[tuple[str, str | Inside]]:
    answers = value.get("inputResponses")
    if revision in MODERN and isinstance(answers, dict):
        for key, answer in answers.items():
            yield f".inputResponses.{key}", Inside(answer, INPUT_RESPONSE)


INPUT_RESPONSE = wire.CreateMessageResult | wire.ListRootsResult | wire.ElicitResult

_QUESTIONS: Mapping[str, type] = {
    "elicitation/create": wire.ElicitParams,
    "sampling/createMessage": wire.CreateMessageParams,
    "roots/list": wire.ListRootsParams,
}


def _input_request(
    value: dict[str, Any], _revision: Revision
) -> Iterator[tuple[str, str | Inside]]:
    method = value.get("method")
    shape = _QUESTIONS.get(method) if isinstance(method, str) else None
    if shape is None:
        yield ".method", f"must be one of {', '.join(_QUESTIONS)}"
    elif "params" in value or shape is not wire.ListRootsParams:
        yield ".params", Inside(value.get("params"), shape)


def _question(value: dict[str, Any], revision: Revision) -> Iterator[tuple[str, str | Inside]]:
    if value.get("mode") == "url":
        needed = ("url", "elicitationId") if revision not in MODERN else ("url",)
    else:
        needed = ("requestedSchema",)
    for name in needed:
        if name not in value and WILD not in value:
            yield "", f"the member {name!r} is required"
    form = value.get("requestedSchema")
    if value.get("mode") != "url" and isinstance(form, dict) and WILD not in form:
        yield from _form(form)


def _form(form: dict[str, Any]) -> Iterator[tuple[str, str | Inside]]:
    place = ".requestedSchema"
    if form.get("type") != "object":
        yield f"{place}.type", 'must be "object"'
    if not isinstance(form.get("$schema", ""), str):
        yield f"{place}.$schema", "must be a string"
    if not isinstance(form.get("properties"), dict):
        yield f"{place}.properties", "must be an object"
    else:
        for name, blank in form["properties"].items():
            yield f"{place}.properties.{name}", Inside(blank, wire.PrimitiveSchemaDefinition)
    required = form.get("required", [])
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        yield f"{place}.required", "must be an array of strings"


def _no_lists(value: dict[str, Any], revision: Revision) -> Iterator[tuple[str, str]]:
    content = value.get("content")
    several = revision.knows(wire.UntitledMultiSelectEnumSchema)
    if isinstance(content, dict) and not several:
        for name, answer in content.items():
            if isinstance(answer, list):
                yield f".content.{name}", f"must not be an array in {revision.name}"


def _subscription(value: dict[str, Any], _revision: Revision) -> Iterator[tuple[str, str]]:
    meta = value.get("_meta", {})
    if isinstance(meta, dict) and SUBSCRIPTION_ID not in meta and WILD not in meta:
        yield "._meta", f"the member {SUBSCRIPTION_ID!r} is required"


DEMANDS: Mapping[type, tuple[Demand, ...]] = {
    CacheableResult: (_not_negative,),
    wire.Annotations: (_weight("priority"),),
    wire.CallToolParams: (_arguments, _answers),
    wire.CallToolResult: (_structured,),
    wire.CreateMessageResult: (_single,),
    wire.ElicitParams: (_question, _uris("url")),
    wire.ElicitResult: (_no_lists,),
    wire.GetPromptParams: (_answers,),
    wire.Icon: (_uris("src"),),
    wire.Implementation: (_uris("websiteUrl"),),
    wire.InputRequest: (_input_request,),
    wire.ListenResult: (_subscription,),
    wire.ModelPreferences: (_weight("costPriority", "speedPriority", "intelligencePriority"),),
    wire.ReadResourceParams: (_answers, _uris("uri")),
    wire.Resource: (_uris("uri"),),
    wire.ResourceContents: (_text_or_blob, _uris("uri")),
    wire.ResourceLink: (_uris("uri"),),
    wire.ResourceUpdatedParams: (_uris("uri"),),
    wire.Root: (_uris("uri"),),
    wire.SamplingMessage: (_single,),
    wire.SubscribeParams: (_uris("uri"),),
    wire.Tool: (_schemas,),
    wire.ToolResultContent: (_structured,),
    wire.UnsubscribeParams: (_uris("uri"),),
}
"""Checks of the values of a struct, and of those that derive from it."""
