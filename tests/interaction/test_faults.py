"""Whatever the transport and whatever goes wrong: one typed error, in bounded time (decision D20)."""

import asyncio
import contextlib
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from isthmus import Client, Command, Server
from isthmus.errors import CallTimedOut, ConnectFailed, ConnectionLost, HttpRefused, Misbehaved
from isthmus.testing import connect
from isthmus.testing.faults import Faulty, break_after, cut_after, drop, garble
from support.transports import faulty_server, faulty_sockets

SCRIPT = Path(faulty_server.__file__)
BOUND = 10.0  # seconds within which each of them must have ended
PATIENCE = 0.4  # the call's own timeout, in seconds

FAULTS = [
    ("stdio", "early exit", ConnectFailed, faulty_server.LAST_WORDS),
    ("stdio", "drop", ConnectionLost, faulty_server.LAST_WORDS),
    ("stdio", "half", ConnectionLost, "tools/call"),
    ("stdio", "silence", CallTimedOut, "tools/call"),
    ("stdio", "garbage", CallTimedOut, "tools/call"),
    ("stdio", "deaf", CallTimedOut, "tools/call"),
    ("http", "early exit", ConnectFailed, "http://127.0.0.1"),
    ("http", "drop", ConnectionLost, "POST http://127.0.0.1.*disconnected"),
    ("http", "half", ConnectionLost, "ended before the answer"),
    ("http", "silence", CallTimedOut, "tools/call"),
    ("http", "garbage", Misbehaved, "no JSON-RPC message"),
    ("http", "status", HttpRefused, "the database is on fire"),
    *[
        row
        for way in ("unix", "tcp")
        for row in [
            (way, "early exit", ConnectFailed, f"{way}://.*(closed the connection|broke)"),
            (way, "drop", ConnectionLost, "closed the connection"),
            (way, "reset", ConnectionLost, f"{way}://"),
            (way, "half", ConnectionLost, "tools/call"),
            (way, "silence", CallTimedOut, "tools/call"),
            (way, "garbage", CallTimedOut, "tools/call"),
        ]
    ],
    ("websocket", "early exit", ConnectFailed, "status 404: there is no endpoint at this path"),
    ("websocket", "drop", ConnectionLost, "closed the WebSocket: 1011 out of cheese"),
    ("websocket", "reset", ConnectionLost, "ws://"),
    ("websocket", "binary", ConnectionLost, "sent a binary frame"),
    ("websocket", "silence", CallTimedOut, "tools/call"),
    ("websocket", "garbage", CallTimedOut, "tools/call"),
]


SOCKETS = {
    "unix": faulty_sockets.over_lines,
    "tcp": lambda fault, _path: faulty_sockets.over_lines(fault),
    "websocket": lambda fault, _path: faulty_sockets.over_websocket(fault),
}


@contextlib.asynccontextmanager
async def going_wrong(transport, fault):
    """What a client connects to."""
    if transport == "stdio":
        yield Command(sys.executable, "-S", "-E", str(SCRIPT), fault)
        return
    if transport in SOCKETS:
        with TemporaryDirectory() as folder:
            async with SOCKETS[transport](fault, f"{folder}/it.sock") as url:
                yield url
        return
    end, url = await faulty_server.over_http(fault)
    try:
        yield url
    finally:
        await end()


async def call_both(transport, fault):
    """A call that goes well, and then one that does not."""
    async with (
        going_wrong(transport, fault) as target,
        Client(target, revision="2025-11-25", timeout=PATIENCE) as client,
    ):
        assert "fine" == (await client.call_tool("well")).text
        await client.call_tool("ill")


@pytest.mark.parametrize(("transport", "fault", "error", "words"), FAULTS)
async def test_a_call_ends_once_with_one_typed_error(transport, fault, error, words):
    """Never a group, never a bare CancelledError, never a hang; the message says what is known."""
    async with asyncio.timeout(BOUND):
        with pytest.raises(error, match=words):
            await call_both(transport, fault)


@pytest.mark.parametrize(("transport", "fault", "error", "words"), FAULTS)
async def test_every_call_in_flight_ends(transport, fault, error, words):
    """Ten at once: each gets an error of its own (decision D20)."""
    async with asyncio.timeout(BOUND), going_wrong(transport, fault) as target:
        client = Client(target, revision="2025-11-25", timeout=PATIENCE)
        try:
            await client.open()
            calls = [client.call_tool("ill") for _ in range(10)]
            ends = await asyncio.gather(*calls, return_exceptions=True)
        except ConnectFailed as failure:
            ends = [failure]
        finally:
            await client.close()

    # A process that died takes all calls with it, whatever each of them waited for.
    assert all(isinstance(end, error | ConnectionLost) for end in ends), ends


MEMORY_FAULTS = [
    ("drop", drop(), CallTimedOut),
    ("cut", cut_after(1), ConnectionLost),
    ("break", break_after(1), ConnectionLost),
    ("garbage", garble(1), CallTimedOut),
]


@pytest.mark.parametrize(("fault", "fate", "error"), MEMORY_FAULTS)
async def test_the_same_in_memory(fault, fate, error):
    """The faults of a channel, without a process or a socket (decision D20)."""
    server = Server("well", version="1")

    @server.tool
    def well() -> str:
        """Answer."""
        return "fine"

    def wrap(channel):
        # The handshake's answer is let through where the fate counts.
        return Faulty(channel, later(fate) if fault == "drop" else fate)

    async with asyncio.timeout(BOUND):
        with pytest.raises(error):
            async with connect(
                server, revision="2025-11-25", wrap=wrap, strict=False, timeout=PATIENCE
            ) as client:
                await client.call_tool("well")


def later(fate):
    return lambda delivery, number: [delivery] if number == 0 else fate(delivery, number)


@pytest.mark.parametrize("transport", ["stdio", "http", "unix", "tcp", "websocket"])
async def test_cancelling_a_call_leaves_the_connection_usable(transport):
    """Who cancels gets its CancelledError, everybody else goes on (decision D20)."""
    async with (
        asyncio.timeout(BOUND),
        going_wrong(transport, "silence") as target,
        Client(target, revision="2025-11-25") as client,
    ):
        call = asyncio.create_task(client.call_tool("ill"))
        await client.call_tool("well")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert "fine" == (await client.call_tool("well")).text
