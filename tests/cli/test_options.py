"""Options of commands that talk to a server, and of one that serves HTTP."""

import contextlib
import http.client
import json
import signal
import subprocess
import sys

import pytest

from isthmus import Command
from isthmus.cli.commands.run import HttpRunOptions, ListenOptions, read_http_options
from isthmus.cli.main import main
from isthmus.cli.targets import CliTarget, extend_target
from isthmus.errors import UsageError
from support.ports import find_free_port

HTTP = ListenOptions("http", "127.0.0.1:8000")
REMOTE = CliTarget("x", "https://x.example/mcp", {"A": "1"})
LAUNCHED = CliTarget("y", Command("y", env={"A": "1"}, cwd="/srv"))
SERVER = """import os

from isthmus import Context, Server

server = Server("s")


@server.tool
async def tell(ctx: Context, name: str) -> str:
    ctx.log.debug("looked")
    ctx.log.error("found")
    return os.environ.get(name, "")
"""


@pytest.mark.parametrize("word", ["X-Shop=7", "X-Shop: 7", "X-Shop:7"])
def test_a_header_is_added_to_those_of_the_entry(word):
    """Ours: as isthmus writes pairs, and as curl does."""
    assert {"A": "1", "X-Shop": "7"} == extend_target(REMOTE, [word], []).headers


def test_a_variable_is_added_to_those_of_the_entry():
    """Ours: the folder and the command stay."""
    where = extend_target(LAUNCHED, [], ["B=2=3", "A="]).where

    assert ({"A": "", "B": "2=3"}, "/srv", ("y",)) == (where.env, where.cwd, where.argv)


@pytest.mark.parametrize(
    ("target", "headers", "env", "said"),
    [
        (LAUNCHED, ["A=1"], [], "--header goes with a URL of HTTP"),
        (REMOTE, [], ["A=1"], "--env goes with a server that is launched"),
        (REMOTE, ["A B=s3cret"], [], "--header 'A B': write NAME=VALUE"),
        (REMOTE, ["A=s3cret\r\nB: 1"], [], "--header 'A': write NAME=VALUE"),
        (LAUNCHED, [], ["s3cret"], "write NAME=VALUE"),
        (LAUNCHED, [], ["=s3cret"], "--env '': write NAME=VALUE"),
    ],
)
def test_what_does_not_fit_is_told(target, headers, env, said):
    """Ours: a value, which may be a secret, is in no message."""
    with pytest.raises(UsageError, match=said) as caught:
        extend_target(target, headers, env)
    assert "=s3cret" not in str(caught.value)


def test_a_launched_server_gets_its_variables_and_its_log_is_as_long_as_wanted(tmp_path, capfd):
    """Ours: a process of its own, as people use it."""
    path = tmp_path / "s.py"
    path.write_text(SERVER)
    said = []
    for words in (("--env", "CITY=Rom"), ("--env", "CITY=Rom", "--log-level", "debug")):
        with pytest.raises(SystemExit) as left:
            main(["call", str(path), "tell", "name=CITY", *words])
        out, err = capfd.readouterr()
        assert (0, "Rom\n") == (left.value.code or 0, out)
        said.append(("looked" in err, "found" in err))

    assert [(False, True), (True, True)] == said


def test_a_server_that_is_checked_gets_its_variables(tmp_path, capfd):
    """Ours: as one that is called; headers go with a URL, here, too."""
    path = tmp_path / "s.py"
    path.write_text(SERVER + 'assert os.environ["CITY"] == "Rom"\n')
    rules = ("--only", "tools", "--revision", "2026-07-28")
    ends = []
    for words in (("--env", "CITY=Rom"), ("--header", "A=1")):
        with pytest.raises(SystemExit) as left:
            main(["check", str(path), *rules, *words])
        ends.append((left.value.code or 0, capfd.readouterr().err))

    assert [0, 2] == [code for code, _ in ends], ends
    assert "--header goes with a URL of HTTP" in ends[1][1]


def test_options_of_http_are_told_to_other_processes():
    """Ours: a worker, or the server after a reload, serves what the first would."""
    given = {
        "drain": "0",
        "stateless": True,
        "path": "/tools/mcp",
        "public_url": "https://x.example",
        "allowed_origins": ("https://a.example", "https://b.example"),
    }
    options = read_http_options(HTTP, **given)

    assert {**given, "drain": 0.0} == options.arguments()
    assert [
        *("--drain", "0.0", "--stateless", "--path", "/tools/mcp"),
        *("--public-url", "https://x.example"),
        *("--allowed-origin", "https://a.example", "--allowed-origin", "https://b.example"),
    ] == options.words()
    assert {} == HttpRunOptions(store="sqlite:///a.db").arguments()


@pytest.mark.parametrize(
    ("place", "given", "said"),
    [
        (HTTP, {"path": "mcp"}, "a path begins with /"),
        (None, {"public_url": "https://x.example"}, "--public-url goes with --http"),
        (None, {"allowed_origins": ("https://x.example",)}, "--allowed-origin goes with --http"),
    ],
)
def test_options_of_http_that_cannot_be_are_told(place, given, said):
    """Ours: over stdio they would mean nothing."""
    with pytest.raises(UsageError, match=said):
        read_http_options(place, **given)


def test_a_server_listens_at_its_path_and_accepts_its_own_name(tmp_path):
    """Ours: --path, --public-url and --allowed-origin, in a process of its own."""
    path = tmp_path / "s.py"
    path.write_text(SERVER)
    port = find_free_port()
    words = ("--http", f"127.0.0.1:{port}", "--path", "/tools", "--public-url", "http://x.example")
    command = [sys.executable, "-m", "isthmus", "run", str(path), *words]
    running = subprocess.Popen(
        [*command, "--allowed-origin", "https://page.example"], stderr=subprocess.PIPE, text=True
    )
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})

    def ask(url, host, **headers):
        asked = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        kind = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        asked.request("POST", url, body, {**kind, "Host": host, **headers})
        with contextlib.closing(asked):
            return asked.getresponse().status

    try:
        while "/tools" not in (line := running.stderr.readline()):
            assert line
        assert 404 == ask("/mcp", "x.example")
        assert 403 == ask("/tools", "y.example")
        assert 403 == ask("/tools", "x.example", Origin="https://other.example")
        assert 403 != ask("/tools", "x.example", Origin="https://page.example")
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(20)
        running.stderr.close()
