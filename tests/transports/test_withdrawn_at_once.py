"""Requests that are withdrawn at once, in the same write or a few turns later: every id is free again."""

import asyncio
import contextlib
import json
import sys

import aiohttp
import pytest

from isthmus.runtime.channel import Outgoing
from isthmus.runtime.peer import Peer
from isthmus.testing import serving
from isthmus.transports.memory import open_pair
from support.transports.line_wire import MODERN, connect_wire, make_echo_server, serve_lines

PIPES = ("memory", "stdio", "tcp", "unix", "websocket")
ERAS = ("legacy", "modern")
MANY = 3000
"""Pairs in one write: three times as many as a server serves at once."""

STDIO = """
import sys
sys.path.insert(0, sys.argv[1])
from support.transports.line_wire import make_echo_server
make_echo_server().run()
"""


class Ways:
    """How messages go out and come in, whatever carries them."""

    def __init__(self, says, hears):
        self.says, self._hears = says, hears

    async def hears(self):
        """The next message."""
        return json.loads(await self._hears())


@contextlib.asynccontextmanager
async def memory():
    ours, theirs = open_pair()
    peer = Peer(theirs, make_echo_server().router, side="server")
    task = asyncio.create_task(peer.run())

    async def says(*messages):
        for message in messages:
            await ours.send(Outgoing(message))

    async def hears():
        return (await ours.receive()).data

    yield Ways(says, hears)
    await ours.close()
    await task


@contextlib.asynccontextmanager
async def sockets(way, folder):
    async with (
        serve_lines(make_echo_server(), way, folder / "sock") as (url, _),
        connect_wire(url) as wire,
    ):
        yield Ways(wire.says, wire.reader.readline)


@contextlib.asynccontextmanager
async def stdio():
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        STDIO,
        *(path for path in sys.path if path.endswith("tests")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )

    async def says(*messages):
        process.stdin.write(b"".join(message + b"\n" for message in messages))
        await process.stdin.drain()

    yield Ways(says, process.stdout.readline)
    process.stdin.close()
    await process.wait()


@contextlib.asynccontextmanager
async def websocket():
    async with (
        serving(make_echo_server(), websocket=True) as url,
        aiohttp.ClientSession() as session,
        session.ws_connect(url.replace("http", "ws", 1), protocols=("mcp",)) as wire,
    ):

        async def says(*messages):
            for message in messages:
                await wire.send_str(message.decode())

        yield Ways(says, wire.receive_str)


@contextlib.asynccontextmanager
async def open_conversation(way, era, folder):
    """A conversation in an era over one of the pipes."""
    made = {"memory": memory, "stdio": stdio, "websocket": websocket}
    async with made[way]() if way in made else sockets(way, folder) as wire:
        if era == "legacy":
            client = {"name": "test", "version": "1"}
            opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
            await wire.says(message("initialize", "open", **opening))
            await wire.hears()
            await wire.says(message("notifications/initialized"))
        yield wire


def message(method, id=None, **params):
    frame = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(frame if id is None else {**frame, "id": id}).encode()


def call_message(id, era, tool="wait", **arguments):
    meta = {"_meta": MODERN} if era == "modern" else {}
    return message("tools/call", id, name=tool, arguments=arguments, **meta)


def withdrawn(id):
    return message("notifications/cancelled", requestId=id)


async def list_served_ids(wire, era, ids):
    """The ids under which a call is served now."""
    good = set()
    for start in range(0, len(ids), 50):
        some = ids[start : start + 50]
        await wire.says(*(call_message(id, era, "echo", text=str(id)) for id in some))
        for _ in some:
            answer = await wire.hears()
            if "result" in answer:
                good.add(answer["id"])
    return good


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", PIPES)
async def test_a_request_and_its_cancellation_in_one_write_leave_the_id_free(way, era, tmp_path):
    """No response for a cancelled request (spec: cancellation), and its id is not kept for ever."""
    async with open_conversation(way, era, tmp_path) as wire:
        for start in range(0, MANY, 500):
            ids = range(start, start + 500)
            await wire.says(*(one for id in ids for one in (call_message(id, era), withdrawn(id))))

        assert set(range(MANY)) == await list_served_ids(wire, era, range(MANY))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", PIPES)
async def test_a_cancellation_some_turns_after_its_request_leaves_the_id_free(way, era, tmp_path):
    """Ours: wherever in its work the cancellation meets a call, the id is free afterwards."""
    ids = range(400)
    async with open_conversation(way, era, tmp_path) as wire:
        for id in ids:
            tool = {"name": "echo", "text": "x"} if id % 2 else {"name": "wait"}
            await wire.says(call_message(id, era, tool.pop("name"), **tool))
            for _ in range(id % 20):
                await asyncio.sleep(0)
            await wire.says(withdrawn(id))
        await wire.says(call_message("fence", era, "echo", text="fence"))
        while (await wire.hears())["id"] != "fence":
            pass

        assert set(ids) == await list_served_ids(wire, era, ids)


async def test_a_batch_with_a_member_withdrawn_by_the_next_message_is_answered():
    """Spec 2025-03-26: the rest of a batch is answered; what is withdrawn is not."""
    async with memory() as wire:
        client = {"name": "test", "version": "1"}
        opening = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": client}
        await wire.says(message("initialize", "open", **opening))
        await wire.hears()
        await wire.says(message("notifications/initialized"))
        batch = (
            b"["
            + call_message(1, "legacy")
            + b","
            + call_message(2, "legacy", "echo", text="b")
            + b"]"
        )
        await wire.says(batch, withdrawn(1))
        answer = await wire.hears()

        assert [2] == [one["id"] for one in answer]
        assert {1} == await list_served_ids(wire, "legacy", [1])
