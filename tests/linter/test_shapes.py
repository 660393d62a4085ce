"""Our own shapes, held against the official schemas: the same verdict on whatever is thrown at both."""

import json
from functools import cache

import jsonschema_rs
import pytest

from isthmus import wire
from isthmus.linter.rules.shapes import Flaw, find_flaws
from isthmus.revisions import BY_NAME, METHODS, REVISIONS, project
from isthmus.wire.jsonrpc import encode
from support.schemas import official, shapes, wire_values

CLIENT_PARAMS = {row.params for row in METHODS.values() if "client" in row.senders and row.result}
OTHERS = (None, True, 1, 1.5, "x", [], {}, {"type": "text"}, ["x"], -3)
STRIDE = 7  # one in so many of the values is looked at: all of them take a minute


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def at(value, path):
    for step in path:
        value = value[step]
    return value


def vary_value(value):
    """The value, and the value with one thing changed, in every way and at every place.

    It is always the same object, as it was again in the end: copies would be most of the work.
    """
    yield value
    for path in list(places(value)):
        if not path:
            yield from OTHERS
            continue
        owner, key = at(value, path[:-1]), path[-1]
        before = owner[key]
        for other in OTHERS:
            owner[key] = other
            yield value
        if isinstance(key, str):
            del owner[key]
            yield value
        owner[key] = before


@cache
def validator(revision, name):
    """The official validator, which also looks at formats."""
    whole = official.schema(revision)
    where = "$defs" if "$defs" in whole else "definitions"
    return jsonschema_rs.validator_for(
        {**whole, "$ref": f"#/{where}/{name}"}, validate_formats=True
    )


def definitions(revision):
    """Each struct that is a definition of a revision, and the definition's name."""
    known = official.definitions(revision.name)
    for struct in sorted(revision.members, key=lambda struct: struct.__name__):
        for name, definition in known.items():
            if shapes.struct_of(name) is struct and not shapes.is_choice(definition, name):
                yield struct, name


def verdict(value, struct, revision):
    """What we find wrong; of a modern request also in its ``_meta``."""
    found = find_flaws(value, struct, revision)
    if struct in CLIENT_PARAMS and revision.name == "2026-07-28" and isinstance(value, dict):
        meta = value.get("_meta")
        found += find_flaws(meta, wire.RequestMeta, revision, "$._meta")
    return [flaw for flaw in found if flaw.kind != "unknown"]


@pytest.mark.covers("linter.shapes.agree-with-schemas")
@pytest.mark.parametrize("revision", REVISIONS, ids=str)
@pytest.mark.timeout(120)
def test_we_and_the_official_schema_agree(revision):
    """Ours: what a schema refuses we refuse, and nothing else, in thousands of values."""
    disagreements, compared = [], 0
    for struct, name in definitions(revision):
        for value in wire_values.fullest(struct):
            plain = json.loads(encode(project(value, revision)))
            plain.get("notifications", plain).pop("taskIds", None)  # an extension's
            for i, one in enumerate(vary_value(plain)):
                if i % STRIDE and i:
                    continue
                compared += 1
                theirs = validator(revision.name, name).is_valid(one)
                ours = verdict(one, struct, revision)
                if theirs is bool(ours):
                    disagreements.append(f"{name}: {ours or 'fine'} of {json.dumps(one)[:300]}")

    assert compared > 1000
    assert [] == disagreements[:20]


@pytest.mark.parametrize("revision", REVISIONS, ids=str)
def test_what_we_send_ourselves_has_no_flaw(revision):
    """Ours: the fullest value of each struct, cut to a revision, has nothing surplus either."""
    for struct in revision.members:
        for value in wire_values.fullest(struct):
            plain = json.loads(encode(project(value, revision)))
            found = [f for f in find_flaws(plain, struct, revision) if f.kind == "unknown"]

            assert [] == found, struct


LEGACY, MODERN = BY_NAME["2025-03-26"], BY_NAME["2026-07-28"]


@pytest.mark.parametrize(
    ("value", "shape", "expected"),
    [
        (
            {"tools": [{"name": 1, "inputSchema": {"type": "object"}}]},
            wire.ListToolsResult,
            Flaw("$.tools[0].name", "unfit", "must be a string, not 1"),
        ),
        (
            {"tools": [{"inputSchema": {"type": "object"}}]},
            wire.ListToolsResult,
            Flaw("$.tools[0]", "missing", "the member 'name' is required"),
        ),
        (
            {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "title": "A"}]},
            wire.ListToolsResult,
            Flaw(
                "$.tools[0].title",
                "unknown",
                "2025-03-26 has no member 'title' here; there is one since 2025-06-18",
            ),
        ),
        (
            {"content": [{"type": "video"}]},
            wire.CallToolResult,
            Flaw(
                "$.content[0].type",
                "unfit",
                "is \"video\", not one of 'text', 'image', 'audio', 'resource'",
            ),
        ),
        (
            {"content": [], "surplus": 1},
            wire.CallToolResult,
            Flaw("$.surplus", "unknown", "no revision has a member 'surplus' here"),
        ),
        (
            {"roots": [{"uri": "nowhere"}]},
            wire.ListRootsResult,
            Flaw("$.roots[0].uri", "unfit", "must be a URI with a scheme, not 'nowhere'"),
        ),
        (
            {"level": "loud"},
            wire.SetLevelParams,
            Flaw(
                "$.level",
                "unfit",
                (
                    "must be one of 'alert', 'critical', 'debug', 'emergency', 'error', 'info', "
                    "'notice', 'warning', not \"loud\""
                ),
            ),
        ),
    ],
)
def test_a_flaw_says_where_and_what(value, shape, expected):
    """Ours: a JSON path, and words that say what to mend."""
    assert [expected] == find_flaws(value, shape, LEGACY)


def test_a_member_that_went_is_named_with_its_last_revision():
    """Ours: who sends it learns until when it was right."""
    (flaw,) = find_flaws({"listChanged": True}, wire.RootsCapability, MODERN)

    assert "2026-07-28 has no member 'listChanged' here; there is one up to 2025-11-25" == flaw.text
