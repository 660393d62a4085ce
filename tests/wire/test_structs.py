"""What the structs have in common: spelling, absence, and what they tolerate."""

import inspect
import json

import msgspec
import pytest
from msgspec import UNSET

from isthmus import wire
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import wire_name

STRUCTS = [
    shape
    for _, shape in inspect.getmembers(wire, inspect.isclass)
    if issubclass(shape, msgspec.Struct)
]


@pytest.mark.parametrize(
    ("python", "spelled"),
    [
        ("name", "name"),
        ("input_schema", "inputSchema"),
        ("uri_template", "uriTemplate"),
        ("meta", "_meta"),
        ("one_of", "oneOf"),
        ("format_", "format"),
    ],
)
def test_names_are_spelled_as_the_specification_does(python, spelled):
    """Ours: one translator between Python's spelling and the wire's."""
    assert spelled == wire_name(python)


@pytest.mark.parametrize("shape", STRUCTS, ids=lambda shape: shape.__name__)
def test_structs_keep_the_rules(shape):
    """Ours: frozen, keyword-only, absent means UNSET, and documented."""
    config = shape.__struct_config__
    defaults = {
        field.name: field.default
        for field in msgspec.structs.fields(shape)
        if not field.required and field.default is not UNSET
    }

    assert config.frozen
    assert not config.omit_defaults
    assert not config.forbid_unknown_fields
    assert len(shape.__doc__.splitlines()[0]) > 4
    assert {} == {name: d for name, d in defaults.items() if not isinstance(d, str)}
    with pytest.raises(TypeError):
        shape("positional")


def test_everything_is_exported():
    """Ours: isthmus.types is complete, and each name in it is there."""
    assert [] == [name for name in wire.__all__ if not hasattr(wire, name)]
    assert sorted(wire.__all__) == sorted(set(wire.__all__))
    assert {shape.__name__ for shape in STRUCTS} <= set(wire.__all__)


def test_what_is_absent_is_not_written():
    """Ours: absence is not null."""
    assert b'{"uri":"file:///a"}' == encode(wire.Root(uri="file:///a"))
    assert b'{"level":"info","data":null}' == encode(wire.LogMessageParams(level="info", data=None))


def test_tags_are_written():
    """Spec: content says its type."""
    assert b'{"type":"text","text":"a"}' == encode(wire.TextContent(text="a"))


def test_numbers_stay_what_they_were():
    """Ours: progress of 1 is not written as 1.0, and 0.5 is not cut."""
    read = msgspec.json.Decoder(wire.ProgressParams).decode

    for number in ("1", "0.5", "1e3"):
        data = b'{"progressToken":"a","progress":%b}' % number.encode()
        assert json.loads(data) == json.loads(encode(read(data)))
    assert isinstance(read(b'{"progressToken":1,"progress":1}').progress, int)


def test_contents_of_a_resource_are_one_struct():
    """Ours: JSON does not tag text and blob, so both are read as what has either."""
    read = msgspec.json.Decoder(wire.ReadResourceResult).decode
    made = wire.ReadResourceResult(
        contents=[
            wire.TextResourceContents(uri="file:///a", text="a"),
            wire.BlobResourceContents(uri="file:///b", blob="AAEC"),
        ]
    )

    text, blob = read(encode(made)).contents

    assert ("a", UNSET) == (text.text, text.blob)
    assert (UNSET, "AAEC") == (blob.text, blob.blob)
    assert encode(made) == encode(read(encode(made)))


def test_kinds_of_contents_are_told_apart_after_reading():
    """Ours: isinstance and match answer the same for what was read as for what was built."""
    text = wire.TextResourceContents(uri="file:///a", text="")
    blob = wire.BlobResourceContents(uri="file:///b", blob="")
    read = msgspec.json.Decoder(list[wire.ResourceContents]).decode
    both = (wire.TextResourceContents, wire.BlobResourceContents)

    for one, other in ((text, blob), read(encode([text, blob]))):
        assert [True, False] == [isinstance(one, kind) for kind in both]
        assert [False, True] == [isinstance(other, kind) for kind in both]
        match other:
            case wire.BlobResourceContents(blob=data):
                assert data == ""
            case _:
                pytest.fail("not matched")
    assert not isinstance("text", both)


def test_the_envelope_reads_what_concerns_every_method():
    """Spec: the facts of a modern request are in its _meta."""
    read = msgspec.json.Decoder(wire.Envelope).decode
    meta = {
        "progressToken": 7,
        wire.PROTOCOL_VERSION: "2026-07-28",
        wire.CLIENT_INFO: {"name": "a", "version": "1"},
        wire.CLIENT_CAPABILITIES: {"sampling": {"tools": {}}, "later": 1},
        wire.LOG_LEVEL: "warning",
        "example.com/other": [1],
    }

    envelope = read(json.dumps({"name": "n", "arguments": {"uri": 1}, "_meta": meta}).encode())

    assert ("n", UNSET, UNSET) == (envelope.name, envelope.uri, envelope.task_id)
    assert (
        wire.RequestMeta(
            progress_token=7,
            protocol_version="2026-07-28",
            client_info=wire.Implementation(name="a", version="1"),
            client_capabilities=wire.ClientCapabilities(sampling=wire.SamplingCapability(tools={})),
            log_level="warning",
        )
        == envelope.meta
    )


def test_the_envelope_leaves_custom_methods_their_members():
    """Ours: a custom method may call anything a name."""
    read = msgspec.json.Decoder(wire.Envelope).decode

    assert {"first": "a"} == read(b'{"name":{"first":"a"},"taskId":3}').name


@pytest.mark.parametrize(
    "meta",
    [
        {"progressToken": 1.5},
        {wire.PROTOCOL_VERSION: 20260728},
        {wire.LOG_LEVEL: "loud"},
        {wire.CLIENT_CAPABILITIES: []},
        3,
    ],
)
def test_the_envelope_refuses_malformed_facts(meta):
    """Spec: a malformed request is refused, not guessed at."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(json.dumps({"_meta": meta}).encode(), type=wire.Envelope)
