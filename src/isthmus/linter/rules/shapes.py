"""Shapes of messages: whether a value fits its struct in a revision; every flaw with its JSON path.

The shapes are those of :mod:`isthmus.wire` as a revision's table cuts them. One struct serves all
revisions, so it is more lenient here and there than any one of them; ``DEMANDS`` and
``ALSO_REQUIRED`` say what a revision demands beyond the structs.
"""

import re
import types
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import inspect

from isthmus import wire
from isthmus.revisions import MODERN, REVISIONS, Revision
from isthmus.wire.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION, SUBSCRIPTION_ID
from isthmus.wire.results import CacheableResult, Result
from isthmus.wire.struct import wire_name


class Flaw(msgspec.Struct, frozen=True):
    """A part of a value that is not as the revision has it.

    Attributes:
        path: where, as a JSON path: ``$.tools[3].name``.
        kind: a member is missing, a value does not fit, or the revision knows no such member.
        text: what is wrong, in words.
    """

    path: str
    kind: Literal["missing", "unfit", "unknown"]
    text: str


def find_flaws(value: Any, shape: Any, revision: Revision, path: str = "$") -> list[Flaw]:
    """Find everything about ``value`` that does not fit ``shape`` in ``revision``.

    Args:
        value: decoded JSON. Text in angle brackets beside a member ``"..."``, or anywhere in a
            transcript's message, is taken as a placeholder by whoever reads transcripts, not here.
        shape: a struct of :mod:`isthmus.wire`, or another type of its members.
        revision: whose members count.
        path: what to call the value's place.
    """
    return list(_walk(value, _make_node(shape), revision, path))


_Walker: TypeAlias = Callable[[Any, Any, Revision, str], Iterator[Flaw]]


@cache
def _make_node(shape: Any) -> inspect.Type:
    if isinstance(shape, types.UnionType):  # msgspec takes none of structs without tags
        return inspect.UnionType(tuple(_make_node(one) for one in get_args(shape)))
    return inspect.type_info(shape)


def _walk(value: Any, node: Any, revision: Revision, path: str) -> Iterator[Flaw]:
    if isinstance(value, Placeholder):
        return
    walker = _WALKERS.get(type(node))
    if walker is not None:
        yield from walker(value, node, revision, path)
    elif not _fits_plainly(value, node):
        yield Flaw(path, "unfit", f"must be {_name_type(node)}, not {_quote_value(value)}")


def _fits_plainly(value: Any, node: Any) -> bool:
    """Whether a value is of a type that has no parts."""
    if isinstance(node, inspect.LiteralType):
        return value in node.values and not isinstance(value, bool)
    kinds = _PLAIN.get(type(node))
    if kinds is None:
        return True  # anything goes
    if isinstance(value, bool):
        return kinds == (bool,)
    if kinds == (int,) and isinstance(value, float):
        return value.is_integer()  # as JSON Schema has it
    return isinstance(value, kinds)


_PLAIN: Mapping[type, tuple[type, ...]] = {
    inspect.StrType: (str,),
    inspect.IntType: (int,),
    inspect.FloatType: (int, float),
    inspect.BoolType: (bool,),
    inspect.NoneType: (type(None),),
}

_NAMES: Mapping[type, str] = {
    inspect.StrType: "a string",
    inspect.IntType: "an integer",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.NoneType: "null",
    inspect.ListType: "an array",
    inspect.DictType: "an object",
    inspect.StructType: "an object",
}


def _name_type(node: Any) -> str:
    """A type in words."""
    if isinstance(node, inspect.LiteralType):
        return "one of " + ", ".join(sorted(map(repr, node.values)))
    if isinstance(node, inspect.UnionType):
        names = dict.fromkeys(_name_type(one) for one in node.types)
        if "an integer" in names and "a number" in names:
            del names["an integer"]
        return " or ".join(names)
    return _NAMES.get(type(node), "JSON")


def _quote_value(value: Any) -> str:
    """The beginning of a value, as JSON."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:59] + "…"


# Parts


def _walk_list(value: Any, node: inspect.ListType, revision: Revision, path: str) -> Iterator[Flaw]:
    if not isinstance(value, list):
        yield Flaw(path, "unfit", f"must be an array, not {_quote_value(value)}")
        return
    for i, item in enumerate(value):
        yield from _walk(item, node.item_type, revision, f"{path}[{i}]")


def _walk_dict(value: Any, node: inspect.DictType, revision: Revision, path: str) -> Iterator[Flaw]:
    if not isinstance(value, dict):
        yield Flaw(path, "unfit", f"must be an object, not {_quote_value(value)}")
        return
    for key, item in value.items():
        yield from _walk(item, node.value_type, revision, f"{path}.{key}")


def _walk_union(
    value: Any, node: inspect.UnionType, revision: Revision, path: str
) -> Iterator[Flaw]:
    """The flaws of the alternative that fits best."""
    structs = [one for one in node.types if isinstance(one, inspect.StructType)]
    tagged = [one for one in structs if one.tag_field is not None]
    if tagged and isinstance(value, dict):
        yield from _walk_tagged(value, tagged, revision, path)
        return
    alternatives = [one for one in node.types if one not in structs or revision.knows(one.cls)]
    tried = [list(_walk(value, one, revision, path)) for one in alternatives]
    # Fewest real flaws, then fewest flaws; one that is of another kind of JSON altogether loses.
    best = min(tried, key=lambda found: (_count_misses(found, path), len(found)))
    if _count_misses(best, path) == MISSES_KIND:
        best = [Flaw(path, "unfit", f"must be {_name_type(node)}, not {_quote_value(value)}")]
    yield from best


MISSES_KIND = 1_000_000


def _count_misses(found: list[Flaw], path: str) -> int:
    """Count how far a value is from an alternative."""
    if any(flaw.path == path and flaw.kind == "unfit" for flaw in found):
        return MISSES_KIND
    return sum(flaw.kind != "unknown" for flaw in found)


def _walk_tagged(
    value: dict[str, Any], structs: list[inspect.StructType], revision: Revision, path: str
) -> Iterator[Flaw]:
    """The flaws of the alternative that the value says it is."""
    field = structs[0].tag_field or "type"
    known = {one.tag: one for one in structs if revision.knows(one.cls)}
    if field not in value:
        yield Flaw(path, "missing", f"the member {field!r} is required")
    elif (tag := value[field]) in known if isinstance(value[field], str) else False:
        yield from _walk_struct(value, known[tag], revision, path)
    else:
        options = ", ".join(repr(tag) for tag in known)
        yield Flaw(
            f"{path}.{field}", "unfit", f"is {_quote_value(value[field])}, not one of {options}"
        )


def _walk_struct(
    value: Any, node: inspect.StructType, revision: Revision, path: str
) -> Iterator[Flaw]:
    if not isinstance(value, dict):
        yield Flaw(path, "unfit", f"must be an object, not {_quote_value(value)}")
        return
    if WILD not in value:
        for name in _list_members(node.cls, revision)[1]:
            if name not in value:
                yield Flaw(path, "missing", f"the member {name!r} is required")
    yield from _walk_members(value, node, revision, path)
    for demand in (demand for base in node.cls.__mro__ for demand in DEMANDS.get(base, ())):
        for place, said in demand(value, revision):
            if isinstance(said, NestedValue):
                yield from _walk(said.value, _make_node(said.shape), revision, path + place)
            else:
                yield Flaw(path + place, "unfit", said)


def _walk_members(
    value: dict[str, Any], node: inspect.StructType, revision: Revision, path: str
) -> Iterator[Flaw]:
    visible = _list_members(node.cls, revision)[0]
    for name, member in value.items():
        field = visible.get(name)
        if field is not None:
            yield from _walk(member, field.type, revision, f"{path}.{name}")
        elif name == node.tag_field:
            if member != node.tag:
                yield Flaw(f"{path}.{name}", "unfit", f"must be {node.tag!r}")
        elif name != WILD:
            yield Flaw(f"{path}.{name}", "unknown", _explain_unknown(node.cls, name, revision))


@cache
def _list_members(
    shape: type, revision: Revision
) -> tuple[Mapping[str, inspect.Field], tuple[str, ...]]:
    """The members of a struct that a revision has, and those that must be there."""
    node = inspect.type_info(shape)
    assert isinstance(node, inspect.StructType)  # noqa: S101 - for mypy: it is asked of structs
    known = revision.members.get(shape, frozenset(shape.__struct_fields__))  # type: ignore[attr-defined]  # structs have it
    known |= EXTENDED.get(shape, frozenset())
    visible = {field.encode_name: field for field in node.fields if field.name in known}
    required = [name for name, field in visible.items() if field.required]
    also = [
        name
        for base in shape.__mro__
        for name, holds in ALSO_REQUIRED.get(base, ())
        if name in visible and name not in required and holds(revision)
    ]
    tag = [node.tag_field] if node.tag_field is not None else []
    return visible, (*tag, *required, *also)


def _explain_unknown(shape: type, name: str, revision: Revision) -> str:
    """Explain a member that the revision does not have."""
    having = [r.name for r in REVISIONS if r.knows(shape) and name in _list_members(shape, r)[0]]
    if not having:
        return f"no revision has a member {name!r} here"
    when = f"since {having[0]}" if having[0] > revision.name else f"up to {having[-1]}"
    return f"{revision.name} has no member {name!r} here; there is one {when}"


_WALKERS: Mapping[type, _Walker] = {
    inspect.ListType: _walk_list,
    inspect.DictType: _walk_dict,
    inspect.UnionType: _walk_union,
    inspect.StructType: _walk_struct,
}


# Demands of a revision

WILD = "..."  # a member of a transcript's object that stands for members not listed


class Placeholder(str):
    """Text of a transcript that stands for any value."""

    __slots__ = ()


class NestedValue(msgspec.Struct, frozen=True):
    """A part whose struct keeps it raw: it is to be held against a shape of its own."""

    value: Any
    shape: Any


# Gives places, below the value, and what is wrong there, or what must fit there.
Demand: TypeAlias = Callable[[dict[str, Any], Revision], Iterator[tuple[str, str | NestedValue]]]

Holds: TypeAlias = Callable[[Revision], bool]


def _is_modern(revision: Revision) -> bool:
    return revision in MODERN


def _always(_revision: Revision) -> bool:
    return True


_TYPED: tuple[tuple[str, Holds], ...] = (("type", _always),)

# Members that some revisions require: the struct, or one it derives from, and where that holds.
ALSO_REQUIRED: Mapping[type, tuple[tuple[str, Holds], ...]] = {
    Result: (("resultType", _is_modern),),
    CacheableResult: (("ttlMs", _is_modern), ("cacheScope", _is_modern)),
    wire.InputRequiredResult: (("resultType", _is_modern),),
    wire.CancelledParams: (("requestId", lambda r: r.name != "2025-11-25"),),
    wire.RequestMeta: ((PROTOCOL_VERSION, _is_modern), (CLIENT_CAPABILITIES, _is_modern)),
    wire.ListenResult: (("_meta", _is_modern),),
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

# Members that an extension adds to a struct of the specification's.
EXTENDED: Mapping[type, frozenset[str]] = {wire.SubscriptionFilter: frozenset({"task_ids"})}

# Values


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!#-;=?-\[\]_a-z~]*")


def is_uri(value: str) -> bool:
    """Whether text is a URI with a scheme, in characters that RFC 3986 allows."""
    return _URI.fullmatch(value) is not None


def _check_uris(*names: str) -> Demand:
    def check(value: dict[str, Any], _revision: Revision) -> Iterator[tuple[str, str]]:
        for name in names:
            uri = value.get(name)
            if isinstance(uri, str) and not isinstance(uri, Placeholder) and not is_uri(uri):
                yield f".{name}", f"must be a URI with a scheme, not {uri[:60]!r}"

    return check


def _check_weight(*names: str) -> Demand:
    def check(value: dict[str, Any], _revision: Revision) -> Iterator[tuple[str, str]]:
        for name in names:
            weight = value.get(name)
            if isinstance(weight, int | float) and not 0 <= weight <= 1:
                yield f".{name}", "must lie between 0 and 1"

    return check


def _check_not_negative(value: dict[str, Any], _revision: Revision) -> Iterator[tuple[str, str]]:
    ttl = value.get("ttlMs")
    if isinstance(ttl, int | float) and ttl < 0:
        yield ".ttlMs", "must not be negative"


# Parts


def _check_text_or_blob(value: dict[str, Any], _revision: Revision) -> Iterator[tuple[str, str]]:
    if "text" not in value and "blob" not in value and WILD not in value:
        yield "", "needs the member 'text', or 'blob'"


def _check_structured(value: dict[str, Any], revision: Revision) -> Iterator[tuple[str, str]]:
    structured = value.get("structuredContent", {})
    known = "structured_content" in revision.members.get(wire.CallToolResult, ())
    if known and revision not in MODERN and not isinstance(structured, dict):
        yield ".structuredContent", f"must be an object in {revision.name}"


def _check_single(value: dict[str, Any], revision: Revision) -> Iterator[tuple[str, str]]:
    if isinstance(value.get("content"), list) and not revision.knows(wire.ToolUseContent):
        yield ".content", f"must be one block in {revision.name}, not an array"


def _check_schemas(value: dict[str, Any], revision: Revision) -> Iterator[tuple[str, str]]:
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
            yield from _check_properties(schema, f".{name}", revision)


def _check_properties(
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


def _check_unread(value: dict[str, Any], _revision: Revision) -> Iterator[tuple[str, str]]:
    """What a call is decoded without."""
    for name in ("arguments", "_meta"):
        if not isinstance(value.get(name, {}), dict | Placeholder):
            yield f".{name}", "must be an object"


def _check_answers(
    value: dict[str, Any], revision: Revision
) -> Iterator[tuple[str, str | NestedValue]]:
    answers = value.get("inputResponses")
    if revision in MODERN and isinstance(answers, dict):
        for key, answer in answers.items():
            yield f".inputResponses.{key}", NestedValue(answer, INPUT_RESPONSE)


INPUT_RESPONSE = wire.CreateMessageResult | wire.ListRootsResult | wire.ElicitResult

_QUESTIONS: Mapping[str, type] = {
    "elicitation/create": wire.ElicitParams,
    "sampling/createMessage": wire.CreateMessageParams,
    "roots/list": wire.ListRootsParams,
}


def _check_input_request(
    value: dict[str, Any], _revision: Revision
) -> Iterator[tuple[str, str | NestedValue]]:
    method = value.get("method")
    shape = _QUESTIONS.get(method) if isinstance(method, str) else None
    if shape is None:
        yield ".method", f"must be one of {', '.join(_QUESTIONS)}"
    elif "params" in value or shape is not wire.ListRootsParams:
        yield ".params", NestedValue(value.get("params"), shape)


def _check_question(
    value: dict[str, Any], revision: Revision
) -> Iterator[tuple[str, str | NestedValue]]:
    if value.get("mode") == "url":
        needed = ("url", "elicitationId") if revision not in MODERN else ("url",)
    else:
        needed = ("requestedSchema",)
    for name in needed:
        if name not in value and WILD not in value:
            yield "", f"the member {name!r} is required"
    form = value.get("requestedSchema")
    if value.get("mode") != "url" and isinstance(form, dict) and WILD not in form:
        yield from _check_form(form)


def _check_form(form: dict[str, Any]) -> Iterator[tuple[str, str | NestedValue]]:
    place = ".requestedSchema"
    if form.get("type") != "object":
        yield f"{place}.type", 'must be "object"'
    if not isinstance(form.get("$schema", ""), str):
        yield f"{place}.$schema", "must be a string"
    if not isinstance(form.get("properties"), dict):
        yield f"{place}.properties", "must be an object"
    else:
        for name, blank in form["properties"].items():
            yield f"{place}.properties.{name}", NestedValue(blank, wire.PrimitiveSchemaDefinition)
    required = form.get("required", [])
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        yield f"{place}.required", "must be an array of strings"


def _check_no_lists(value: dict[str, Any], revision: Revision) -> Iterator[tuple[str, str]]:
    content = value.get("content")
    several = revision.knows(wire.UntitledMultiSelectEnumSchema)
    if isinstance(content, dict) and not several:
        for name, answer in content.items():
            if isinstance(answer, list):
                yield f".content.{name}", f"must not be an array in {revision.name}"


def _check_subscription(value: dict[str, Any], _revision: Revision) -> Iterator[tuple[str, str]]:
    meta = value.get("_meta", {})
    if isinstance(meta, dict) and SUBSCRIPTION_ID not in meta and WILD not in meta:
        yield "._meta", f"the member {SUBSCRIPTION_ID!r} is required"


# Checks of the values of a struct, and of those that derive from it.
DEMANDS: Mapping[type, tuple[Demand, ...]] = {
    CacheableResult: (_check_not_negative,),
    wire.Annotations: (_check_weight("priority"),),
    wire.CallToolParams: (_check_unread, _check_answers),
    wire.CallToolResult: (_check_structured,),
    wire.CreateMessageResult: (_check_single,),
    wire.ElicitParams: (_check_question, _check_uris("url")),
    wire.ElicitResult: (_check_no_lists,),
    wire.GetPromptParams: (_check_answers,),
    wire.Icon: (_check_uris("src"),),
    wire.Implementation: (_check_uris("websiteUrl"),),
    wire.InputRequest: (_check_input_request,),
    wire.ListenResult: (_check_subscription,),
    wire.ModelPreferences: (
        _check_weight("costPriority", "speedPriority", "intelligencePriority"),
    ),
    wire.ReadResourceParams: (_check_answers, _check_uris("uri")),
    wire.Resource: (_check_uris("uri"),),
    wire.ResourceContents: (_check_text_or_blob, _check_uris("uri")),
    wire.ResourceLink: (_check_uris("uri"),),
    wire.ResourceUpdatedParams: (_check_uris("uri"),),
    wire.Root: (_check_uris("uri"),),
    wire.SamplingMessage: (_check_single,),
    wire.SubscribeParams: (_check_uris("uri"),),
    wire.Tool: (_check_schemas,),
    wire.ToolResultContent: (_check_structured,),
    wire.UnsubscribeParams: (_check_uris("uri"),),
}
