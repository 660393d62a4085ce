"""Decision D20 over a launched server: whatever it does, each call ends once, and soon."""

import asyncio
import sys

import pytest

from isthmus.client.client import Client
from isthmus.errors import CallTimedOut, ConnectFailed, ConnectionLost
from isthmus.transports.command import Command

SERVER = """
import json, os, sys

def say(**members):
    print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "server/discover":
        say(id=id, result={"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
    elif method == "tools/call":
        what = message["params"]["name"]
        if what == "exit":
            print("out of paper", file=sys.stderr, flush=True)
            sys.exit(3)
        if what == "mute":
            os.close(1)
            continue
        if what == "garbage":
            print("Traceback: this is no JSON", flush=True)
            print('{"jsonrpc": "2.0", "id": true}', flush=True)
        if what == "ask":
            say(id=77, method="roots/list")
        if what != "silent":
            say(id=id, result={"content": [], "resultType": "complete"})
"""


def server():
    return Command(sys.executable, "-c", SERVER)


async def test_an_exit_fails_every_call_with_the_last_words():
    """Users.md L9: what the server said before is in the message."""
    async with Client(server()) as client:
        waiting = asyncio.create_task(client.call_tool("silent"))
        with pytest.raises(ConnectionLost, match=r"ended with exit code 3\n.*\n.*out of paper$"):
            await client.call_tool("exit")
        with pytest.raises(ConnectionLost, match="out of paper"):
            await waiting
        with pytest.raises(ConnectionLost, match="out of paper"):
            await client.call_tool("more")


async def test_a_closed_output_fails_every_call():
    """Ours: a server that can no longer answer is gone, running or not."""
    async with Client(server()) as client:
        with pytest.raises(ConnectionLost):
            await client.call_tool("mute")


async def test_silence_fails_the_call_and_nothing_else():
    """Decision D18: within the timeout; the connection lives on."""
    async with Client(server()) as client:
        with pytest.raises(CallTimedOut):
            await client.call_tool("silent", timeout=0.05)
        assert [] == (await client.call_tool("fine")).content


async def test_garbage_between_messages_is_passed_over():
    """Users.md 6: servers print banners to stdout."""
    async with Client(server()) as client:
        assert [] == (await client.call_tool("garbage")).content


async def test_a_server_that_only_prints_is_a_failed_connection():
    """Ours: and the message shows what it printed."""
    chatty = Command(sys.executable, "-c", "print('Listening on port 8000')")

    said = r"(?s)accept initialize: the server .*port 8000\nA server over stdio goes on until"
    with pytest.raises(ConnectFailed, match=said):
        await Client(chatty).open()


async def test_a_message_that_is_dropped_is_logged_once_with_what_it_is(caplog):
    """Ours: a server's request in 2026-07-28 gets no answer, and its author should learn why."""
    async with Client(server()) as client:
        for what in ("ask", "garbage", "ask", "garbage"):
            await client.call_tool(what)

    said = [record.getMessage() for record in caplog.records]
    assert 2 == len(said)
    assert said[0].endswith(
        " sent a request for 'roots/list', which servers of this revision do not send"
    )
    assert " sent what is no message: " in said[1]
    assert all(line.startswith(str(server())) for line in said)


PARTICULAR = """
import json, sys

def say(**members):
    print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)

first = None
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    first = first or method
    if first != "initialize":
        say(id=id, error={"code": -32600, "message": "initialize must come first"})
    elif method == "initialize":
        info = {"name": "particular", "version": "1"}
        version = message["params"]["protocolVersion"]
        say(id=id, result={"protocolVersion": version, "capabilities": {}, "serverInfo": info})
"""


async def test_a_server_that_wants_initialize_first_is_started_anew_without_the_probe():
    """Ours: supergateway answers nothing any more once something else came before initialize."""
    async with Client(Command(sys.executable, "-c", PARTICULAR)) as client:
        assert ("particular", "2025-11-25") == (client.info.name, client.revision.name)


HANGS = """
import sys, time
print("waiting for the database", file=sys.stderr, flush=True)
for line in sys.stdin:
    pass
"""

REFUSES = """
import json, sys
print("no key: set FOO_KEY", file=sys.stderr, flush=True)
for line in sys.stdin:
    id = json.loads(line).get("id")
    error = {"code": -32600, "message": "not today"}
    print(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}), flush=True)
"""


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (HANGS, "(?s)no connection within .*waiting for the database$"),
        (REFUSES, "(?s)not today.*no key: set FOO_KEY$"),
        ("raise SystemExit('no such table')", "(?s)exit code 1.*no such table$"),
    ],
)
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_server_that_does_not_start_says_why_in_the_error(source, says, era):
    """Ours: its standard error mostly says what it lacks, whether it ends, refuses or hangs."""
    client = Client(Command(sys.executable, "-c", source), era=era, connect_timeout=3.0)
    with pytest.raises(ConnectFailed, match=says):
        await client.open()
