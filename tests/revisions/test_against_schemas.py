"""The tables against the five official schemas: every definition, every member, every method."""

import re
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest

from isthmus import wire
from isthmus.revisions import METHODS, REVISIONS, Feature, Revision
from isthmus.wire.struct import Id
from support.schemas import official, shapes
from support.schemas.shapes import Shape

each_revision = pytest.mark.parametrize("revision", REVISIONS, ids=str)

# Requests, notifications, answers and errors: rows of METHODS, and frames of wire.jsonrpc.
FRAMES = re.compile(r"JSONRPC\w+|Error|\w+Error|\w*Request|\w*Notification|\w+Response")

# Unions of messages, which METHODS says by sender.
SENT = re.compile(r"(Client|Server)(Request|Notification|Result)")

# Enumerations and plain values, and what they are here.
VALUES: dict[str, Any] = {
    "Cursor": str,
    "InputRequests": dict,
    "InputResponses": dict,
    "JSONArray": list,
    "JSONObject": dict,
    "LoggingLevel": wire.LogLevel,
    "ProgressToken": Id,
    "RequestId": Id,
    "ResultType": str,
    "Role": wire.Role,
    "TaskStatus": wire.TaskStatus,
}

# Unions of structs, and what they are here.
UNIONS: dict[str, Any] = {
    "ContentBlock": wire.ContentBlock,
    "EnumSchema": wire.PrimitiveSchemaDefinition,
    "MultiSelectEnumSchema": wire.PrimitiveSchemaDefinition,
    "PrimitiveSchemaDefinition": wire.PrimitiveSchemaDefinition,
    "SamplingMessageContentBlock": wire.SamplingMessageContentBlock,
    "SingleSelectEnumSchema": wire.PrimitiveSchemaDefinition,
    "InputResponse": wire.CreateMessageResult | wire.ListRootsResult | wire.ElicitResult,
    "JSONValue": Any,
}

# Required on the wire, and put there by somebody else than the author of the value.
FILLED_IN = {
    "resultType": "the router stamps it on every modern result",
    "ttlMs": "the same",
    "cacheScope": "the same",
    "_meta": "the client states the facts in it; a stream of changes names itself in it",
}

# Optional here, since one struct serves two shapes or revisions that disagree.
EITHER = {
    (wire.CancelledParams, "requestId"): "optional in 2025-11-25",
    (wire.ElicitParams, "requestedSchema"): "form mode only, and the projection fills it in",
    (wire.RequestMeta, "io.modelcontextprotocol/protocolVersion"): "read before it is judged",
    (wire.RequestMeta, "io.modelcontextprotocol/clientCapabilities"): "the same",
}

# Structs of ours that no schema has.
OURS = {wire.Envelope, wire.InputRequest}


def visible(revision: Revision, shape: Shape) -> set[str]:
    """The wire names of what the table lets a struct show, and its tag."""
    known = revision.members.get(shape.struct, frozenset())
    names = {name for name, field in shape.members().items() if field.name in known}
    config = shape.struct.__struct_config__
    return names | ({config.tag_field} if config.tag is not None else set())


@each_revision
def test_every_definition_is_accounted_for(revision):
    """Ours: a definition is a struct, a frame, a union, a value, or says why it is none."""
    known = official.definitions(revision.name)
    unplaced = [
        name
        for name, definition in known.items()
        if not FRAMES.fullmatch(name)
        and not SENT.fullmatch(name)
        and name not in VALUES.keys() | UNIONS.keys() | shapes.WITHOUT_STRUCT.keys()
        and (shapes.struct_of(name) is None or shapes.is_choice(definition, name))
    ]

    assert [] == unplaced


@pytest.mark.covers("messages.members.of-the-revision")
@each_revision
def test_members_are_those_of_the_schema(revision):
    """Spec: a revision shows exactly the members its schema has, in every type."""
    found = list(shapes.shapes(revision.name))
    wrong = {
        f"{shape.where}: {sorted(set(shape.properties) ^ visible(revision, shape))}"
        for shape in found
        if set(shape.properties) != visible(revision, shape)
    }
    print(  # noqa: T201 - how much was compared: `pytest -s`
        f"\n{revision}: {len({s.struct for s in found})} structs in {len(found)} places, "
        f"{sum(len(s.properties) for s in found)} members compared"
    )

    assert set() == wrong


@pytest.mark.covers("messages.members.of-the-revision")
@each_revision
def test_required_members_are_always_written(revision):
    """Spec: what a schema requires is on the wire, and what a struct demands is required."""
    wrong = []
    for shape in shapes.shapes(revision.name):
        for name, field in shape.members().items():
            if name not in shape.properties:
                continue
            written, required = shapes.is_written(field), name in shape.required
            excused = name in FILLED_IN or (shape.struct, name) in EITHER
            if required and not written and not excused:
                wrong.append(f"{shape.where}.{name} is required")
            if field.required and not required:
                wrong.append(f"{shape.where}.{name} is not required")

    assert [] == wrong


@each_revision
def test_members_can_hold_what_the_schema_allows(revision):
    """Spec: whatever a schema allows in a member, its struct can hold."""
    wrong = [
        f"{shape.where}.{name}: {field.type} for {shape.properties[name]}"
        for shape in shapes.shapes(revision.name)
        for name, field in shape.members().items()
        if name in shape.properties
        and not shapes.admits(field.type, shape.properties[name], revision.name)
    ]

    assert [] == wrong


@each_revision
def test_tables_know_only_what_a_schema_has(revision):
    """Ours: a struct in a revision's table is somewhere in that revision's schema."""
    found = {shape.struct for shape in shapes.shapes(revision.name)}

    assert set() == set(revision.members) - found - OURS
    assert set() == found - set(revision.members)


@each_revision
def test_tables_name_real_members(revision):
    """Ours: a misspelt member in a table would hide the real one."""
    wrong = [
        f"{struct.__name__}.{name}"
        for struct, names in revision.members.items()
        for name in names
        if name not in struct.__struct_fields__
    ]

    assert [] == wrong


@pytest.mark.covers("messages.methods.of-the-revision")
@each_revision
@pytest.mark.parametrize("sender", ["client", "server"])
def test_methods_are_those_of_the_schema(revision, sender):
    """Spec: each side sends exactly the requests and notifications of its schema's unions."""
    expected = set(official.methods(revision.name, sender))

    assert expected == set(revision.methods[sender])


@pytest.mark.covers("messages.methods.of-the-revision")
@each_revision
def test_results_are_those_of_the_schema(revision):
    """Spec: every request has a result, under the name its schema gives it."""
    wrong = []
    for sender in ("client", "server"):
        for method in official.methods(revision.name, sender):
            result = METHODS[method].result
            name = official.result_of(revision.name, method)
            expected = shapes.struct_of(name)
            if method.startswith("notifications/"):
                expected = None
            elif name == "GetTaskPayloadResult":
                expected = msgspec.Raw
            if expected is not result:
                wrong.append(f"{method}: {result} for {name}")

    assert [] == wrong


def test_rows_say_who_sends_them():
    """Ours: a row's senders are those of all revisions together."""
    for name, row in METHODS.items():
        expected = {s for s in ("client", "server") for r in REVISIONS if r.allows(s, name)}

        assert expected == row.senders, name


@pytest.mark.covers("rounds.requests.three-methods")
def test_rows_that_ask_are_those_of_the_schema():
    """Spec: the methods that may be answered with questions are those whose response says so."""
    known = official.definitions("2026-07-28")
    asking = {
        method
        for method, name in official.methods("2026-07-28", "client").items()
        if name.removesuffix("Request") + "ResultResponse" in known
        and "InputRequiredResult" in str(known[name.removesuffix("Request") + "ResultResponse"])
    }

    assert asking == {name for name, row in METHODS.items() if row.asks}


def test_rows_that_are_cacheable_are_those_of_the_schema():
    """Spec: the methods with caching hints are those whose result requires them."""
    known = official.definitions("2026-07-28")
    hinted = {
        method
        for method in official.methods("2026-07-28", "client")
        if "ttlMs" in known[official.result_of("2026-07-28", method)].get("required", ())
    }

    assert hinted == {name for name, row in METHODS.items() if row.cacheable}


def tags_in(revision: str, schema: dict[str, Any]) -> set[str]:
    """The content tags that a schema allows, below references, unions and lists."""
    if "$ref" in schema:
        return tags_in(revision, official.definitions(revision)[official.refers_to(schema)])
    if "anyOf" in schema:
        return set().union(*(tags_in(revision, part) for part in schema["anyOf"]))
    if schema.get("type") == "array":
        return tags_in(revision, schema["items"])
    return {schema["properties"]["type"]["const"]}


@each_revision
@pytest.mark.parametrize(
    ("name", "union"),
    [
        ("CallToolResult", wire.ContentBlock),
        ("PromptMessage", wire.ContentBlock),
        ("ToolResultContent", wire.ContentBlock),
        ("SamplingMessage", wire.SamplingMessageContentBlock),
        ("CreateMessageResult", wire.SamplingMessageContentBlock),
    ],
)
def test_content_is_that_of_the_schema(revision, name, union):
    """Spec: the kinds of content a revision knows are those its schema lists, place by place."""
    definition = official.definitions(revision.name).get(name)
    if definition is None:
        assert not revision.knows(getattr(wire, name))
        return
    known = {block.__struct_config__.tag for block in get_args(union) if revision.knows(block)}

    assert tags_in(revision.name, definition["properties"]["content"]) == known


@each_revision
def test_several_blocks_come_with_tools(revision):
    """Spec: a message to a model has several blocks exactly where models may use tools."""
    content = official.definitions(revision.name)["SamplingMessage"]["properties"]["content"]
    several = any(part.get("type") == "array" for part in content.get("anyOf", ()))

    assert several == revision.has(Feature.SAMPLING_TOOLS)


@each_revision
def test_enumerations_are_those_of_the_schema(revision):
    """Spec: levels, roles and statuses are the same words."""
    known = official.definitions(revision.name)
    compared = {
        name: (set(known[name]["enum"]), set(get_args(value)))
        for name, value in VALUES.items()
        if name in known and get_origin(value) is Literal
    }

    assert {name: expected for name, (expected, _) in compared.items()} == {
        name: actual for name, (_, actual) in compared.items()
    }


def test_levels_are_in_order():
    """Spec: the order is RFC 5424's, least severe first."""
    assert get_args(wire.LogLevel) == wire.LOG_LEVELS
