"""Connections that break amid a call, over real sockets: our client and server get over it."""

import asyncio
import contextlib
import json
from urllib.parse import urlsplit

import pytest

from isthmus import Accepted, Client, Context, Server
from isthmus.testing import serving
from support.http.messages import INITIALIZE, INITIALIZED, legacy_call_body

RESUMABLE = ["2025-03-26", "2025-06-18", "2025-11-25"]


class Wire:
    """A TCP proxy whose connections can be cut.

    Args:
        url: the server's.
    """

    def __init__(self, url):
        self.there = urlsplit(url)
        self.open = set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._joined, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}{self.there.path}"
        return self

    async def __aexit__(self, *_):
        self.cut()
        self.server.close()

    def cut(self):
        """Break every connection."""
        for writer in self.open:
            writer.transport.abort()
        self.open.clear()

    async def _joined(self, reader, writer):
        far = await asyncio.open_connection(self.there.hostname, self.there.port)
        self.open |= {writer, far[1]}
        await asyncio.gather(self._pumped(reader, far[1]), self._pumped(far[0], writer))

    async def _pumped(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()


class Turns:
    """What a tool and its test do in turns, and the progress its client has heard of."""

    def __init__(self):
        self.here = asyncio.Event()
        self.there = asyncio.Event()
        self.known = asyncio.Event()
        self.heard = []

    def hear(self, progress):
        """The client hears of progress: from there on its stream can be resumed."""
        self.heard.append(progress.progress)
        self.known.set()


def server(turns):
    """A server whose tools wait amid their work."""
    made = Server("broken")

    @made.tool
    async def long(ctx: Context) -> str:
        """Work, and say so."""
        await ctx.progress(1)
        await turns.there.wait()
        await ctx.progress(2)
        return "worked"

    @made.tool
    async def asks(ctx: Context) -> str:
        """Ask when the client was away."""
        await ctx.progress(1)
        await turns.there.wait()
        answer = await ctx.elicit("Still there?")
        return "yes" if isinstance(answer, Accepted) else "no"

    @made.tool
    async def polled(ctx: Context) -> str:
        """Let go of the connection."""
        await ctx.close_stream(retry=0.01)
        turns.here.set()
        await turns.there.wait()
        return "polled"

    return made


@pytest.mark.covers("resumption.call.goes-on")
@pytest.mark.parametrize("revision", RESUMABLE)
async def test_a_call_survives_the_connection_it_was_made_on(revision):
    """2025-03-26 basic/transports: the stream is resumed, and the tool runs once."""
    turns = Turns()
    async with (
        serving(server(turns)) as url,
        Wire(url) as wire,
        Client(wire.url, revision=revision) as client,
    ):
        call = asyncio.ensure_future(client.call_tool("long", on_progress=turns.hear))
        await turns.known.wait()
        wire.cut()
        turns.there.set()

        assert "worked" == (await call).text
        assert [1, 2] == turns.heard


async def test_a_question_survives_the_connection_of_its_call():
    """2025-11-25: requests of the server are on the stream as well."""
    turns = Turns()

    async def agree(_question):
        return Accepted(None)

    async with (
        serving(server(turns)) as url,
        Wire(url) as wire,
        Client(wire.url, revision="2025-11-25", elicit=agree) as client,
    ):
        call = asyncio.ensure_future(client.call_tool("asks", on_progress=turns.hear))
        await turns.known.wait()
        wire.cut()
        turns.there.set()

        assert "yes" == (await call).text


@pytest.mark.covers("resumption.polling.comes-back")
async def test_a_client_polls_for_the_answer_of_a_tool_that_lets_go():
    """2025-11-25: over a real server, whose response ends while the call goes on."""
    turns = Turns()
    async with (
        serving(server(turns)) as url,
        Client(url, revision="2025-11-25") as client,
    ):
        call = asyncio.ensure_future(client.call_tool("polled"))
        await turns.here.wait()
        turns.there.set()

        assert "polled" == (await call).text


# By hand


async def send_raw(url, verb, head, body=b""):
    """Send a request on a connection of its own; the connection."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=4096)
    lines = [f"{verb} {parts.path}{'?' + parts.query if parts.query else ''} HTTP/1.1"]
    head = {"Host": parts.netloc, "Content-Length": str(len(body)), **head}
    lines += [f"{name}: {value}" for name, value in head.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    return reader, writer


async def post_raw(url, body, **head):
    """A POST from beginning to end; its head and body."""
    head = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Connection": "close",
        **{name.replace("_", "-"): value for name, value in head.items()},
    }
    reader, writer = await send_raw(url, "POST", head, json.dumps(body).encode())
    text = (await reader.read()).decode()
    writer.close()
    return text.partition("\r\n\r\n")[::2]


async def open_session(url):
    """Open a session by hand."""
    head, _ = await post_raw(url, INITIALIZE)
    session = next(line[16:] for line in head.split("\r\n") if line.startswith("mcp-session-id"))
    await post_raw(url, INITIALIZED, mcp_session_id=session)
    return session


@pytest.mark.covers("http.reader.slow-is-cut")
async def test_a_client_that_never_reads_does_not_hold_a_tool_for_ever():
    """Ours: real buffers, which fill up; the answer is kept, the connection is not waited for."""
    ended = asyncio.Event()
    made = Server("floods")

    @made.tool
    async def flood(ctx: Context) -> str:
        """Say more than any buffer takes."""
        for number in range(1, 200):
            await ctx.progress(number, message="x" * 100_000)
        ended.set()
        return "flooded"

    async with serving(made, heartbeat=0.05) as url:
        session = await open_session(url)
        head = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "Mcp-Session-Id": session,
        }
        body = json.dumps(legacy_call_body("flood", progressToken="t")).encode()
        _, writer = await send_raw(url, "POST", head, body)
        async with asyncio.timeout(15):
            await ended.wait()
        writer.transport.abort()
