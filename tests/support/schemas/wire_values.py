"""Hypothesis strategies for the structs of isthmus.wire: any value an author could build."""

import types
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import fields

from isthmus import wire
from isthmus.wire.jsonrpc import encode

words = st.sampled_from(["", "a", "zwölf", 'x\n"y"', "\U0001f600\x00", "long " * 9])
uris = st.sampled_from(["file:///a", "https://example.com/b?c=d", "mem:e"])
json_values = st.sampled_from(
    [None, True, 0, -1.5, "", "text", [], [1, [None]], {}, {"a": {"b": []}}]
)
objects = st.sampled_from([{}, {"a": 1}, {"a": {"b": [None]}, "c": "d"}])
optional = st.just(UNSET)
plain_answers = st.sampled_from([UNSET, {}, {"a": "b", "c": 1, "d": 0.5, "e": False}])

facts = st.fixed_dictionaries(
    {
        wire.PROTOCOL_VERSION: st.just("2026-07-28"),
        wire.CLIENT_CAPABILITIES: st.sampled_from([{}, {"elicitation": {}}]),
    },
    optional={
        wire.CLIENT_INFO: st.just({"name": "a", "version": "1"}),
        wire.LOG_LEVEL: st.sampled_from(wire.LOG_LEVELS),
        "progressToken": st.sampled_from([0, "a"]),
    },
)
"""The ``_meta`` of a modern request."""

INPUT_SCHEMAS: list[dict[str, Any]] = [
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": True, "b": False, "c": {}}, "$schema": "urn:x"},
]
OUTPUT_SCHEMAS: list[dict[str, Any]] = [
    *INPUT_SCHEMAS,
    {},
    {"type": "array", "items": {"type": "string"}},
    {"type": ["object", "null"]},
]
ANSWERS = [{"action": "decline"}, {"roots": []}, {"action": "accept", "content": {"a": ["b"]}}]

SCALARS = {
    str: words,
    int: st.sampled_from([0, 1, 2**40]),
    float: st.sampled_from([0.0, 0.25]),
    bool: st.booleans(),
    type(None): st.none(),
    UnsetType: optional,
    Raw: objects.map(lambda value: Raw(encode(value))),
    Any: json_values,
}

weights = st.sampled_from([0, 0.5, 1]) | optional

# Members whose type says less than the protocol does, by name or by struct and name.
PARTICULAR: dict[str | tuple[type, str], st.SearchStrategy[Any]] = {
    "meta": st.sampled_from([UNSET, {}, {"example.com/a": [1]}]),
    "uri": uris,
    "src": uris,
    "website_url": uris | optional,
    "priority": weights,
    "cost_priority": weights,
    "speed_priority": weights,
    "intelligence_priority": weights,
    "uri_template": st.sampled_from(["file:///{path}", "mem:{a}"]),
    "blob": st.just("AAEC"),
    "input_schema": st.sampled_from(INPUT_SCHEMAS),
    "output_schema": st.sampled_from(OUTPUT_SCHEMAS) | optional,
    "structured_content": json_values | optional | objects.map(lambda value: Raw(encode(value))),
    "input_responses": optional
    | st.sampled_from(ANSWERS).map(lambda answer: {"a": Raw(encode(answer))}),
    (wire.ElicitParams, "url"): uris,
    (wire.CancelledParams, "request_id"): st.sampled_from([0, "a"]),
    (wire.InputRequiredResult, "result_type"): st.just("input_required"),
    (wire.InputRequiredResult, "input_requests"): st.just(
        {"a": wire.InputRequest(method="roots/list")}
    ),
    (wire.TextResourceContents, "blob"): optional,
    (wire.BlobResourceContents, "text"): optional,
}


def forms(*, several: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Form schemas; ``several`` allows questions that take several choices."""
    kinds = get_args(wire.PrimitiveSchemaDefinition)
    blanks = [structs(kind) for kind in kinds if several or "Multi" not in kind.__name__]
    asked = st.one_of(blanks).map(lambda blank: msgspec.json.decode(encode(blank)))
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(words, asked, max_size=3)},
        optional={"required": st.just(["a"])},
    )


def questions(*, several: bool = True, pages: bool = True) -> st.SearchStrategy[wire.ElicitParams]:
    """Questions of a server to a user, by form or by page."""
    form = structs(
        wire.ElicitParams,
        mode=st.sampled_from([UNSET, "form"]),
        requested_schema=optional | forms(several=several),
        url=optional,
        elicitation_id=optional,
    )
    page = structs(wire.ElicitParams, mode=st.just("url"), requested_schema=optional, url=uris)
    return form | page if pages else form


@cache
def structs(shape: type, **particular: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any value of a struct, with these strategies for some members."""
    if shape is wire.ResourceContents:
        return structs(wire.TextResourceContents) | structs(wire.BlobResourceContents)
    members = {}
    for field in fields(shape):
        names = (field.name, (shape, field.name))
        own = [particular.get(field.name), *(PARTICULAR.get(name) for name in reversed(names))]
        found = [strategy for strategy in own if strategy is not None]
        members[field.name] = found[0] if found else values(field.type)
    return st.builds(shape, **members)


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Any value of a type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in SCALARS:
        return SCALARS[annotation]
    made: st.SearchStrategy[Any] = st.deferred(lambda: structs(annotation))
    if origin in {Union, types.UnionType}:
        made = st.one_of([values(argument) for argument in arguments])
    elif origin is Literal:
        made = st.sampled_from(arguments)
    elif origin is list:
        made = st.lists(values(arguments[0]), max_size=2)
    elif origin is dict and arguments[1] is Any:
        made = objects
    elif origin is dict:
        made = st.dictionaries(words, values(arguments[1]), max_size=2)
    return made


FULL = {
    str: "a",
    int: 1,
    float: 0.5,
    bool: True,
    Any: {"a": [None]},
    Raw: Raw(b'{"action":"accept","content":{"a":["b"]}}'),
}


def fullest(annotation: Any) -> list[Any]:
    """Values of a type that together have every member of every struct in it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    made = [FULL[annotation]] if annotation in FULL else []
    if annotation is wire.ResourceContents:
        made = fullest(wire.TextResourceContents) + fullest(wire.BlobResourceContents)
    elif origin in {Union, types.UnionType}:
        made = [v for argument in arguments if argument is not UnsetType for v in fullest(argument)]
    elif origin is Literal:
        made = list(arguments)
    elif origin is list:
        made = [fullest(arguments[0])]
    elif origin is dict:
        made = [{"a": fullest(arguments[1])[0]}]
    elif not made and issubclass(annotation, msgspec.Struct):
        made = _fullest_structs(annotation)
    return made


PARTICULARS = {
    "uri": "file:///a",
    "url": "https://example.com/",
    "src": "https://example.com/a.png",
    "website_url": "https://example.com/",
    "uri_template": "file:///{path}",
    "input_schema": INPUT_SCHEMAS[2],
    "priority": 1,
    "result_type": "complete",
}


def _fullest_structs(shape: type[msgspec.Struct]) -> list[Any]:
    """As many structs as the member with the most variants has."""
    if shape is wire.ElicitParams:
        return _FULL_QUESTIONS
    variants = {
        field.name: [PARTICULARS[field.name]]
        if field.name in PARTICULARS and shape is not wire.ElicitationCapability
        else fullest(field.type)
        for field in fields(shape)
    }
    if shape is wire.Tool:
        variants["output_schema"] = list(OUTPUT_SCHEMAS)
    if issubclass(shape, wire.ResourceContents):
        variants["text" if shape is wire.BlobResourceContents else "blob"] = [UNSET]
    most = max(map(len, variants.values()), default=1)
    return [shape(**{k: v[i % len(v)] for k, v in variants.items()}) for i in range(most)]


_FULL_QUESTIONS = [
    wire.ElicitParams(
        mode="form",
        message="a",
        requested_schema={"type": "object", "properties": {"a": {"type": "string"}}},
        task=wire.TaskMetadata(ttl=1),
        meta={"a": 1},
    ),
    wire.ElicitParams(mode="url", message="a", url="https://example.com/", meta={"a": 1}),
]
