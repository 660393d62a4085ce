"""``run --reload``: the host's pipe outlives the servers behind it."""

import asyncio
import json
import os

import pytest

from isthmus.cli.reload import Relay, snapshot, wait_for_change
from isthmus.errors import ConnectFailed
from isthmus.runtime.channel import Outgoing
from isthmus.transports.memory import open_pair

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Scene:
    """A host, a relay, and the ends of the servers it started, in order."""

    def __init__(self, *, broken=()):
        self.host, relayed = open_pair()
        self.servers = asyncio.Queue()
        self.change = asyncio.Event()
        self.broken = list(broken)
        self.relay = Relay(relayed, self.start, self.wait)

    def start(self):
        """What a launch does: a channel, or a reason why not."""
        if self.broken:
            raise ConnectFailed(self.broken.pop(0))
        ours, theirs = open_pair()
        self.servers.put_nowait(theirs)
        return ours

    async def wait(self):
        """Return when the test says that a file changed."""
        await self.change.wait()
        self.change.clear()

    async def say(self, **message):
        """The host sends a message."""
        await self.host.send(Outgoing(json.dumps(message).encode()))

    async def hear(self):
        """The host's next message."""
        return json.loads((await self.host.receive()).data)


@pytest.fixture
async def scene():
    """A relay at work, ended by the host's end of input."""
    scene = Scene()
    running = asyncio.ensure_future(scene.relay.run())
    yield scene
    await scene.host.close()
    await running


async def read_next_message(server):
    """The next message a server gets."""
    return json.loads((await server.receive()).data)


async def reply(server, id, **result):
    """A server's answer."""
    data = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
    await server.send(Outgoing(data))


async def test_messages_pass_both_ways_unchanged(scene):
    """Ours: as long as nothing changes, the relay is a pipe."""
    server = await scene.servers.get()
    await scene.say(**INITIALIZE)
    assert INITIALIZE == await read_next_message(server)
    await reply(server, 0, capabilities={})

    assert {"jsonrpc": "2.0", "id": 0, "result": {"capabilities": {}}} == await scene.hear()


async def test_a_new_server_is_opened_as_the_host_opened_the_first(scene):
    """Ours: the host shakes hands once, and is told to list again what it was promised news of."""
    first = await scene.servers.get()
    await scene.say(**INITIALIZE)
    await reply(first, (await read_next_message(first))["id"])
    await scene.hear()
    await scene.say(**INITIALIZED)
    await read_next_message(first)
    scene.change.set()
    second = await scene.servers.get()
    assert INITIALIZE == await read_next_message(second)
    await reply(second, 0, capabilities={"tools": {"listChanged": True}, "prompts": {}})
    assert INITIALIZED == await read_next_message(second)
    assert "notifications/tools/list_changed" == (await scene.hear())["method"]
    await scene.say(jsonrpc="2.0", id=1, method="ping")

    assert {"jsonrpc": "2.0", "id": 1, "method": "ping"} == await read_next_message(second)


async def test_a_call_under_way_is_answered_when_its_server_is_replaced(scene):
    """Ours: the host never waits for an answer that cannot come."""
    first = await scene.servers.get()
    await scene.say(jsonrpc="2.0", id=7, method="tools/call", params={})
    await read_next_message(first)
    scene.change.set()
    answer = await scene.hear()

    assert (7, -32603) == (answer["id"], answer["error"]["code"])


def listen(id, **notifications):
    """What a modern host sends to hear of changes."""
    params = {"notifications": notifications}
    return {"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params}


async def test_a_listener_goes_on_listening_and_is_told_to_list_again(scene):
    """Ours: since 2026-07-28 changes are told to streams, and these outlive the server."""
    asked = listen(7, toolsListChanged=True, resourceSubscriptions=["a://b"])
    first = await scene.servers.get()
    await scene.say(**asked)
    await read_next_message(first)
    scene.change.set()
    second = await scene.servers.get()

    assert asked == await read_next_message(second)
    assert {
        "jsonrpc": "2.0",
        "method": "notifications/tools/list_changed",
        "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": 7}},
    } == await scene.hear()


@pytest.mark.parametrize("by", ["host", "server"])
async def test_a_stream_that_was_ended_is_not_begun_again(scene, by):
    """Ours: neither where the host has enough, nor where the server had."""
    first = await scene.servers.get()
    await scene.say(**listen("s", toolsListChanged=True))
    await read_next_message(first)
    if by == "host":
        params = {"requestId": "s"}
        await scene.say(jsonrpc="2.0", method="notifications/cancelled", params=params)
        await read_next_message(first)
    else:
        await reply(first, "s")
        await scene.hear()
    scene.change.set()
    second = await scene.servers.get()
    await scene.say(jsonrpc="2.0", id=8, method="ping")

    assert "ping" == (await read_next_message(second))["method"]


async def test_a_wrong_message_of_the_host_is_left_to_the_server(scene):
    """Ours: the relay carries what it does not understand, and lives on."""
    wrong = [
        {"id": 1, "method": "subscriptions/listen", "params": {"notifications": [1]}},
        {"id": 2, "method": "subscriptions/listen", "params": [1]},
        {"method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"method": "notifications/cancelled"},
    ]
    first = await scene.servers.get()
    for message in wrong:
        await scene.say(jsonrpc="2.0", **message)
        assert message.items() <= (await read_next_message(first)).items()
    scene.change.set()
    second = await scene.servers.get()

    assert [1, 2] == [
        (await read_next_message(second))["id"],
        (await read_next_message(second))["id"],
    ]


async def test_a_finished_call_is_not_answered_again(scene):
    """Ours: only what is under way is given up."""
    first = await scene.servers.get()
    await scene.say(jsonrpc="2.0", id=7, method="tools/call", params={})
    await read_next_message(first)
    await reply(first, 7)
    await scene.hear()
    scene.change.set()
    second = await scene.servers.get()
    await scene.say(jsonrpc="2.0", id=8, method="ping")
    assert 8 == (await read_next_message(second))["id"]
    await reply(second, 8)

    assert 8 == (await scene.hear())["id"]


async def test_a_server_that_does_not_start_is_tried_again_at_the_next_change(capsys):
    """Ours: a syntax error costs a message, not the host's connection."""
    scene = Scene(broken=["it has a syntax error"])
    running = asyncio.ensure_future(scene.relay.run())
    await scene.say(jsonrpc="2.0", id=1, method="ping")
    refused = await scene.hear()
    scene.change.set()
    server = await scene.servers.get()
    await scene.say(jsonrpc="2.0", id=2, method="ping")
    assert 2 == (await read_next_message(server))["id"]
    await scene.host.close()
    await running

    assert "not running" in refused["error"]["message"]
    assert "it has a syntax error" in capsys.readouterr().err


async def test_a_server_that_ends_fails_its_calls(scene, capsys):
    """Ours: a crash is an answer, too."""
    first = await scene.servers.get()
    await scene.say(jsonrpc="2.0", id=3, method="tools/call", params={})
    await read_next_message(first)
    await first.close()
    await scene.say(jsonrpc="2.0", id=4, method="ping")
    answers = [await scene.hear(), await scene.hear()]

    assert {3, 4} == {a["id"] for a in answers}


def test_only_python_files_in_visible_folders_are_watched(tmp_path):
    """Ours: caches and environments change all the time."""
    for name in ("a.py", "sub/b.py", ".venv/c.py", "__pycache__/d.py", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()

    assert {tmp_path / "a.py", tmp_path / "sub/b.py"} == set(snapshot(tmp_path))


async def test_a_written_file_is_a_change(tmp_path):
    """Ours: saving a file is what reloads."""
    path = tmp_path / "a.py"
    path.touch()
    os.utime(path, (1, 1))
    waiting = asyncio.ensure_future(wait_for_change(tmp_path))
    await asyncio.sleep(0)
    path.write_text("x = 1")
    await asyncio.wait_for(waiting, 5)

    assert waiting.done()
