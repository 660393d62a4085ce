"""Client targets of servers: launched, over HTTP, with which credentials."""

import sys

import pytest

from isthmus import Client
from isthmus.auth import BearerToken, ClientCredentials
from isthmus.auth.client.grants.oauth import StoredLogin
from isthmus.host.model.entries import ServerEntry, ServerOptions
from isthmus.host.model.errors import ConfigError
from isthmus.host.supervisor.targets import get_pinned_revision, make_credentials, make_target
from isthmus.transports.command import Command


def at(**auth):
    return ServerEntry(
        name="crm", kind="http", url="https://crm.example/mcp", options=ServerOptions(auth=auth)
    )


def test_a_command_is_run_as_it_stands_or_as_it_was_confined():
    """Ours: what a sandbox makes of a command is what is launched, under its own name."""
    entry = ServerEntry(name="a", command=("run", "me"), env={"KEY": "k"}, cwd="here")
    seen = []

    def confine(command):
        seen.append(command)
        return Command("bwrap", *command.argv)

    target = make_target(entry, confine)
    assert [Command("run", "me", env={"KEY": "k"}, cwd="here")] == seen
    assert "run me" == target.name
    assert not target.http


def test_the_era_in_an_entry_pins_how_it_is_opened():
    """Ours: who knows what a server speaks spares it the question."""
    entry = ServerEntry(name="a", command=("run",), options=ServerOptions(era="legacy"))
    modern = ServerEntry(name="a", command=("run",), options=ServerOptions(era="modern"))
    assert get_pinned_revision(entry) is None
    assert make_target(entry).handshake
    assert "2026-07-28" == get_pinned_revision(modern)
    assert not make_target(modern).handshake


@pytest.mark.covers("hostservers.era.pinned")
def test_another_program_is_asked_anew_what_it_speaks(tmp_path):
    """Ours: what was found out about one program says nothing of the next."""
    path = tmp_path / "server"
    entry = ServerEntry(name="a", command=(str(path),))
    keys = []
    for text in ("#!/bin/sh\necho one\n", "#!/bin/sh\necho another\n"):
        path.write_text(text)
        path.chmod(0o755)
        keys += [make_target(entry).key, make_target(entry).key]
    assert keys[0] == keys[1] != keys[2] == keys[3]


@pytest.mark.covers("hostservers.auth.kinds")
def test_the_kind_of_auth_says_where_tokens_come_from():
    """Ours: an entry names one of four ways, and none of them opens a browser."""
    assert isinstance(make_credentials(at()), StoredLogin)
    assert isinstance(make_credentials(at(kind="user-oauth")), StoredLogin)
    assert isinstance(make_credentials(at(kind="static", token="abc")), BearerToken)
    machine = at(kind="client-credentials", clientId="us", clientSecret="x", scopes=["read"])
    assert isinstance(make_credentials(machine), ClientCredentials)
    assert make_credentials(at(kind="none")) is None
    headed = ServerEntry(
        name="a", kind="http", url="https://a.example", headers={"authorization": "x"}
    )
    assert make_credentials(headed) is None
    assert make_credentials(ServerEntry(name="a", command=("run",))) is None
    assert make_credentials(ServerEntry(name="a", kind="socket", url="unix:///tmp/s")) is None


def test_an_auth_that_cannot_be_is_an_error_of_that_server():
    """Ours: the message has the server, the member and what there is."""
    with pytest.raises(
        ConfigError, match=r"crm: host\.auth\.kind is 'magic'; there are: client-cred"
    ):
        make_target(at(kind="magic"))
    with pytest.raises(ConfigError, match="needs 'token'"):
        make_target(at(kind="static"))


async def test_a_launched_server_is_reached_and_its_last_words_are_kept():
    """Ours: the lines of standard error are there while it runs."""
    code = (
        "import sys; from isthmus import Server; print('hello there', file=sys.stderr, flush=True);"
        "Server('s').run()"
    )
    async with Client(
        make_target(ServerEntry(name="a", command=(sys.executable, "-c", code)))
    ) as client:
        assert ("s", ["hello there"]) == (client.info.name, client.stderr)
        assert client.pid
