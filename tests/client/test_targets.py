"""What a client may be pointed at."""

import asyncio
import ssl
import sys

import pytest

from isthmus.client import handshake
from isthmus.client.client import Client
from isthmus.client.targets import resolve_target
from isthmus.errors import ConnectFailed, UsageError
from isthmus.revisions import LATEST, LATEST_LEGACY
from isthmus.server.server import Server
from isthmus.testing import serving
from isthmus.transports.command import Command
from isthmus.transports.http.client.address import Http
from support.client.small_server import LEGACY_NAME, MODERN_NAME, PuppetChannel, SmallServer


def where(target, headers=None):
    return resolve_target(target, headers=headers, connect_timeout=1.0)


def test_a_url_is_reached_over_http():
    """Decision D21: the target may be a URL; its fragment names nothing of the server."""
    target = where("https://example.com/mcp#x")

    assert ("https://example.com/mcp", True) == (target.key, target.http)


def test_a_script_is_run_by_this_interpreter(tmp_path):
    """Decision D21: the target may be the path of a script."""
    script = tmp_path / "server.py"
    script.touch()

    assert str(Command(sys.executable, script)) == where(script).name
    assert str(Command(sys.executable, script)) == where(str(script)).name


@pytest.mark.parametrize("wrap", [False, True])
def test_an_entry_of_mcp_servers_is_a_command(wrap):
    """Decision D21: as hosts write it into their configuration."""
    entry = {"command": "uvx", "args": ["time", 7], "env": {"TZ": "UTC"}, "cwd": "/tmp"}

    target = where({"mcpServers": {"time": entry}} if wrap else entry)

    assert ("uvx time 7", (("uvx", "time", "7"), "/tmp", (("TZ", "UTC"),))) == (
        target.name, target.key
    )  # fmt: skip


def test_an_entry_of_mcp_servers_is_a_url():
    """Decision D21: the same for servers elsewhere."""
    target = where({"type": "http", "url": "https://x.example/mcp", "headers": {"A": "b"}})

    assert ("https://x.example/mcp", True) == (target.name, target.http)


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("uvx", r"neither a URL .* nor a \.py script; a program is given as Command\('uvx'"),
        ({"args": []}, "has a command or a url"),
        ({"mcpServers": {"a": {}, "b": {}}}, "has a command or a url"),
        (7, "cannot connect to 7: a target is a URL"),
    ],
)
def test_anything_else_is_refused(target, complaint):
    """Ours: the message says what a target may be."""
    with pytest.raises(UsageError, match=complaint):
        Client(target)


def test_variables_in_an_entry_are_filled_in(monkeypatch):
    """Ours: ``${VAR}`` is never handed to a server as text (users.md, pain 25)."""
    monkeypatch.setenv("PLACE", "/data")
    monkeypatch.delenv("MODE", raising=False)
    entry = {"command": "serve", "args": ["${PLACE}", "${MODE:-fast}"]}

    assert "serve /data fast" == where(entry).name
    with pytest.raises(UsageError, match=r"args\[0\]: \$\{MODE\} is not set; export MODE"):
        where({"command": "serve", "args": ["${MODE}"]})


def test_what_is_not_there_is_said_before_anything_is_launched(tmp_path):
    """Ours: a missing script and an empty configuration are the caller's mistakes."""
    with pytest.raises(UsageError, match="there is no file"):
        where(tmp_path / "nothing.py")
    with pytest.raises(UsageError, match="names no server"):
        where({"mcpServers": {}})


def test_headers_need_a_url():
    """Ours: a setting without effect is a mistake."""
    with pytest.raises(UsageError, match="headers go with a URL"):
        Client(SmallServer(), headers={"A": "b"})


def test_a_command_that_differs_in_its_environment_is_another_server():
    """Spec 2026-07-28 basic/versioning: what is remembered belongs to one configuration."""
    assert where(Command("x", env={"A": "1"})).key != where(Command("x", env={"A": "2"})).key


def test_what_is_in_this_process_is_not_remembered():
    """Ours: it costs nothing to ask."""
    assert None is where(SmallServer()).key
    assert None is where(PuppetChannel().channel).key


SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    print(message["method"], file=sys.stderr, flush=True)
    if message["method"] == "initialize":
        result = {"protocolVersion": "2024-11-05", "capabilities": {},
                  "serverInfo": {"name": "script", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    elif "DIE" in sys.argv:
        sys.exit("I only know initialize")
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "server.py"
    path.write_text(SERVER, encoding="utf-8")
    return path


async def test_a_silent_script_is_spoken_to_after_the_probe(script):
    """Spec 2026-07-28 basic/transports/stdio: silence is legacy; a second time none is needed."""
    async with Client(script, probe_timeout=0.05) as client:
        assert ("script", "2024-11-05") == (client.info.name, str(client.revision))

    async with Client(script, probe_timeout=60) as client:
        assert "2024-11-05" == str(client.revision)


async def test_a_server_that_dies_of_the_probe_is_started_again(script):
    """Users.md 6: an older SDK exits when server/discover comes first."""
    async with Client(Command(sys.executable, script, "DIE")) as client:
        assert "2024-11-05" == str(client.revision)


async def test_a_server_that_exits_at_once_says_why():
    """Users.md L9: the last words on standard error are in the message."""
    client = Client(Command(sys.executable, "-c", "import sys; sys.exit('no licence')"))

    with pytest.raises(ConnectFailed, match="no licence"):
        await client.open()


async def test_a_command_that_does_not_exist_is_a_failed_connection():
    """Ours: the message says what was looked for, and where."""
    with pytest.raises(ConnectFailed, match="no such command: 'no-such-program'"):
        await Client(Command("no-such-program")).open()


async def test_a_server_in_memory_ends_with_its_client():
    """Ours: nothing runs on behind a closed client."""
    small = SmallServer()
    before = asyncio.all_tasks()
    async with Client(small, revision=LEGACY_NAME) as client:
        await client.ping()
    await asyncio.sleep(0)

    assert before == asyncio.all_tasks()


def test_what_a_target_speaks_is_remembered_and_forgotten():
    """Spec 2026-07-28 basic/versioning: SHOULD cache, and find out anew when it fails."""
    handshake.remember_target("test:one", LATEST_LEGACY)

    assert LATEST_LEGACY is handshake.recall_target("test:one").revision
    handshake.forget_target("test:one")
    assert handshake.KnownTarget(None) == handshake.recall_target("test:one")
    handshake.remember_target(None, LATEST)
    assert handshake.KnownTarget(None) == handshake.recall_target(None)


def test_what_is_remembered_is_bounded():
    """Ours: a program that meets many servers forgets the first."""
    for n in range(handshake.MAX_KNOWN_TARGETS + 1):
        handshake.remember_target(("test", n), LATEST)

    assert None is handshake.recall_target(("test", 0)).revision
    assert LATEST is handshake.recall_target(("test", handshake.MAX_KNOWN_TARGETS)).revision
    assert MODERN_NAME == str(LATEST)
    for n in range(handshake.MAX_KNOWN_TARGETS + 1):
        handshake.forget_target(("test", n))


async def test_a_pinned_connection_teaches_nothing_about_its_server():
    """Ours: who insisted on an older revision does not keep the next one from the newest."""
    server = Server("both", version="1")
    async with serving(server) as url:
        async with Client(url, revision=LATEST_LEGACY):
            pass
        async with Client(url) as client:
            assert LATEST is client.revision


def test_a_server_met_another_way_is_remembered_as_another():
    """Ours: one that a bad proxy or certificate led to must not answer for the one meant."""
    url, lax = "https://example.com/mcp", ssl.create_default_context()
    kinds = [Http(url), Http(url, tls=lax), Http(url, proxy=False), Http(url, proxy="http://p:1")]

    assert len(kinds) == len({where(one).key for one in kinds})
    assert where(Http(url, tls=lax)).key == where(Http(url, tls=lax)).key
    assert where(url).key == where(Http(url, headers={"a": "b"})).key


class Nobody:
    """An authorization that nothing is asked of."""

    def over(self, url, requests):
        return requests


@pytest.mark.covers("auth.all.stdio-environment")
@pytest.mark.parametrize(
    "target", [Command("server"), "unix:///s", {"command": "server"}, SmallServer()]
)
def test_tokens_go_with_http_alone(target):
    """The spec: a server that is launched has its credentials in its environment."""
    with pytest.raises(UsageError, match=r"auth= goes with a URL of HTTP.*environment"):
        Client(target, auth=Nobody())


@pytest.mark.parametrize("target", ["https://h/mcp", "wss://h/mcp", {"url": "https://h/mcp"}])
@pytest.mark.parametrize("name", ["Authorization", "authorization"])
def test_credentials_come_from_one_place(target, name):
    """Ours: a header of one's own and auth= would contradict one another."""
    with pytest.raises(UsageError, match="leave out the other"):
        Client(target, headers={name: "Bearer x"}, auth=Nobody())
    with pytest.raises(UsageError, match="leave out the other"):
        Client(Http("https://h/mcp", headers={name: "Bearer x"}), auth=Nobody())
    assert Client(target, headers={"X-Key": "x"}, auth=Nobody())


@pytest.mark.parametrize("auth", ["a-token", b"a-token", {"token": "a"}])
def test_what_gets_no_tokens_is_told_to_whoever_passes_it(auth):
    """Ours: a token for auth= is the first thing that people try, and it is not shown."""
    with pytest.raises(UsageError, match=r"BearerToken\('…'\)") as caught:
        Client("https://h/mcp", auth=auth)

    assert "a-token" not in str(caught.value)
