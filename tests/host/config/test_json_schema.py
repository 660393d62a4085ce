"""The configuration as a JSON Schema."""

import jsonschema_rs
import pytest

from isthmus.host.config.forms import get_type
from isthmus.host.config.json_schema import make_config_schema
from isthmus.host.model.entries import HostOptions, ServerOptions

GOOD = [
    {},
    {"mcpServers": {"a": {"command": "x", "args": ["a", 1], "disabled": True, "other": [1]}}},
    {"servers": {"a": {"url": "https://x"}}, "inputs": [{"id": "x", "password": True}]},
    {"mcpServers": {"a": {"command": "x", "host": {
        "idleStop": "15m", "start": "eager", "trust": "full", "pin": {"sha256": "a" * 64},
        "timeouts": {"call": 5, "total": "1h"}, "limits": {"calls": "60/min", "resultBytes": "1MiB"},
        "sandbox": {"filesystem": {"denyRead": ["~/.ssh"]}, "network": False},
        "labels": {"reads": ["private"], "egress": True}, "auth": {"kind": "none"},
        "tools": {"include": ["read_*"], "rename": {"a": "b"}, "labels": {"x": {"egress": True}}},
    }}}},
    {"mcpServers": {"a": {"command": "x", "host": {"sandbox": True, "idleStop": None}}}},
    {"host": {"policy": "developer", "mode": "shadow", "roots": [{"path": "~/w", "name": "W"}]}},
]  # fmt: skip
BAD = [
    {"mcpServers": {"a": {}}},
    {"mcpServers": {"a": {"command": 1}}},
    {"mcpServers": {"a": {"command": "x", "host": {"idleStop": "15 parsecs"}}}},
    {"mcpServers": {"a": {"command": "x", "host": {"start": "now"}}}},
    {"mcpServers": {"a": {"command": "x", "host": {"sandbox": "yes"}}}},
    {"mcpServers": {"a": {"command": "x", "type": "smoke"}}},
    {"host": {"roots": [{"name": "W"}]}},
    {"host": {"mode": "off"}},
]


@pytest.mark.covers("hostconfig.schema.examples")
@pytest.mark.parametrize("example", GOOD)
def test_examples_fit(example):
    """Ours: what the reader takes, an editor does not underline."""
    assert [] == list(jsonschema_rs.validator_for(make_config_schema()).iter_errors(example))


@pytest.mark.covers("hostconfig.schema.examples")
@pytest.mark.parametrize("example", BAD)
def test_mistakes_do_not(example):
    """Ours: and what it does not take, it does."""
    assert not jsonschema_rs.is_valid(make_config_schema(), example)


@pytest.mark.covers("hostconfig.schema.examples")
def test_every_option_is_in_it():
    """Ours: it is made from the structs that read the file."""
    made = make_config_schema()

    for kind, part in (
        (HostOptions, made["properties"]["host"]),
        (ServerOptions, made["$defs"]["server"]["properties"]["host"]),
    ):
        assert {field.encode_name for field in get_type(kind).fields} == set(part["properties"])
