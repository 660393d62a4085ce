"""Explanation of a configuration: the source of each part, and no secret in it."""

import json

import pytest

from isthmus.host.config.explain import describe_server, explain_server, mask_entry
from isthmus.host.config.load import merge_documents, read_config_layers
from isthmus.host.model.errors import ConfigError

ENTRY = {
    "command": "uvx",
    "args": ["files", "--token", "arg-canary", "--api-key=eq-canary", "https://u:url-canary@x/y?k=q-canary", "${TOKEN}"],
    "env": {"API_KEY": "env-canary", "TOKEN": "${TOKEN}", "TZ": "Europe/Berlin", "X_KEY": "a ${TOKEN}"},
    "host": {"idleStop": "15m", "timeouts": {"call": 5}, "auth": {"kind": "static", "token": "auth-canary"}},
}  # fmt: skip


def load_servers(folder, **servers):
    """A configuration with where it comes from."""
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    environ = {"TOKEN": "var-canary"}
    layers, notes = read_config_layers(path, folder=folder, environ=environ, managed=folder / "m")
    return merge_documents(layers, notes, folder=folder, environ=environ)


def test_every_member_has_its_place(tmp_path):
    """Ours: in the file, or that it is the default."""
    lines = {line.name: line for line in explain_server(load_servers(tmp_path, a=ENTRY), "a")}
    path = tmp_path / "mcp.json"

    assert f"{path}:1:23" == lines["command"].place
    assert lines["host.idleStop"].place.startswith(f"{path}:1:")
    assert ("5.0", "30.0", "default") == (
        lines["host.timeouts.call"].value,
        lines["host.timeouts.connect"].value,
        lines["host.timeouts.connect"].place,
    )
    assert "command_line" == lines["layer"].value


@pytest.mark.covers("hostconfig.variables.no-leak")
def test_no_secret_is_explained(tmp_path):
    """Ours: not from the file, not from a variable, not in an argument or a URL."""
    found = load_servers(
        tmp_path,
        a=ENTRY,
        b={
            "url": "https://u:url-canary@x/y?k=q-canary",
            "headers": {"Authorization": "Bearer head-canary"},
        },
    )
    shown = repr(
        [
            explain_server(found, "a"),
            explain_server(found, "b"),
            *map(describe_server, found.config.servers.values()),
        ]
    )

    assert "canary" not in shown
    assert "Europe/Berlin" in shown
    assert "${TOKEN}" in shown


def test_a_broken_server_is_explained_with_its_fault(tmp_path):
    """Ours: this is where one looks for it."""
    lines = {
        line.name: line.value
        for line in explain_server(load_servers(tmp_path, a={"args": []}), "a")
    }

    assert 'needs "command" or "url"' in lines["broken"]


def test_a_server_that_is_not_there_is_told_with_those_that_are(tmp_path):
    """Ours: the message is the help."""
    with pytest.raises(ConfigError, match="there is no server 'b'; there are: a"):
        explain_server(load_servers(tmp_path, a=ENTRY), "b")


@pytest.mark.covers("hostconfig.variables.no-leak")
def test_an_entry_that_is_shown_has_no_secret():
    """Ours: also not in how tokens are got, however deep."""
    auth = {
        "kind": "static",
        "token": "t-canary",
        "keys": ["k-canary"],
        "x": {"secret": "s-canary"},
    }
    said = mask_entry({**ENTRY, "host": {"auth": auth | {"clientId": "me", "scopes": ["a"]}}})

    assert "canary" not in repr(said)
    assert ("static", "me", ["a"]) == tuple(
        said["host"]["auth"][key] for key in ("kind", "clientId", "scopes")
    )
