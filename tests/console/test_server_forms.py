"""Forms to add servers: what they mean, and what is told at which field."""

import pytest

from isthmus.console.pages.servers import BadServerForm, list_actions, read_entry, read_pasted
from isthmus.host.model.view import ServerStatus


@pytest.mark.parametrize(
    ("where", "pairs", "entry"),
    [
        ("uvx mcp-server-time", "", {"command": "uvx", "args": ["mcp-server-time"]}),
        ("'/a b/c' \"x y\"", "", {"command": "/a b/c", "args": ["x y"]}),
        ("run", "KEY=${KEY}\r\n\r\nB=a=b", {"command": "run", "args": [], "env": {"KEY": "${KEY}", "B": "a=b"}}),
        ("https://example.com/mcp", "", {"url": "https://example.com/mcp"}),
        ("https://x/mcp", "X-Key=${K}", {"url": "https://x/mcp", "headers": {"X-Key": "${K}"}}),
    ],
)  # fmt: skip
def test_a_form_is_an_entry(where, pairs, entry):
    """Ours: a command with its arguments, quoted as in a shell, or an address."""
    assert read_entry({"name": "a", "where": where, "pairs": pairs}) == entry


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"where": "x"}, "name"),
        ({"name": " ", "where": "x"}, "name"),
        ({"name": "a"}, "where"),
        ({"name": "a", "where": "x 'y"}, "where"),
        ({"name": "a", "where": "x", "pairs": "no pair"}, "pairs"),
        ({"name": "a", "where": "x", "pairs": "=value"}, "pairs"),
    ],
)
def test_what_is_no_server_is_told_at_its_field(fields, field):
    """Ours: nothing is added, and a person sees where to mend it."""
    with pytest.raises(BadServerForm) as told:
        read_entry(fields)
    assert told.value.field == field


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"time": {"command": "uvx"}}}',
        '{"servers": {"time": {"command": "uvx"}}}',
        '{"time": {"command": "uvx"}}',
    ],
)
def test_a_pasted_piece_is_read_as_programs_write_it(text):
    """Ours: with the member around it that other programs have, or without."""
    assert read_pasted(text) == {"time": {"command": "uvx"}}


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"mcpServers": []}', '{"a": 1}', "[" * 100_000])
def test_a_pasted_text_without_servers_is_refused(text):
    """Ours: the message shows what a piece looks like."""
    with pytest.raises(BadServerForm):
        read_pasted(text)


@pytest.mark.parametrize(
    ("state", "first"), [("ready", "stop"), ("failed", "start"), ("idle", "start"), ("disabled", "enable")]
)  # fmt: skip
def test_a_server_offers_what_makes_sense_in_its_state(state, first):
    """Ours: nothing is offered that would change nothing."""
    assert list_actions(ServerStatus(name="a", state=state))[0] == first
