"""What a server keeps of calls that were refused, given up or never read: nothing."""

import asyncio
import contextlib
import io
import json
import sys
from pathlib import Path

import aiohttp
import pytest

from support.transports.line_wire import MODERN

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="/proc is Linux's")

SERVER = """
import asyncio
from isthmus import Context, Server

server = Server("keeping", version="1")

@server.tool
async def add(a: int, text: str) -> int:
    return a

@server.tool
async def wait(text: str, ctx: Context) -> int:
    await ctx.progress(1)
    await asyncio.Event().wait()

@server.tool
async def big(size: int) -> str:
    return "x" * size

server.run("http", port=0, websocket=True)
"""
MANY = 40
BODY = "x" * 3_900_000
MOST_KEPT = 30 * 1024 * 1024
HEAD = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
}


class Process:
    """A server in a process of its own.

    Attributes:
        url: where it serves.
    """

    def __init__(self, pid, url, session):
        self.pid, self.url, self.session = pid, url, session

    def posts(self, tool, **arguments):
        """A response to a call, on its way."""
        body, head = call_body(tool, **arguments), HEAD | {"Mcp-Name": tool}
        return self.session.post(self.url, data=io.BytesIO(body.encode()), headers=head)

    @property
    def memory(self):
        """Bytes that it has in memory."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * 4096

    async def settles_below(self, most):
        """Whether it has less memory than this, at the latest some calls from now."""
        for _ in range(2_000):
            if self.memory < most:
                return True
            async with self.posts("add", a=1, text=""):
                pass
        return False


@contextlib.asynccontextmanager
async def open_server():
    """A stock server, and a client session to it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, stderr=asyncio.subprocess.PIPE
    )
    try:
        line = (await process.stderr.readline()).decode()
        url = next(word for word in line.split() if word.startswith("http"))
        async with aiohttp.ClientSession() as session:
            yield Process(process.pid, url, session)
    finally:
        process.terminate()
        await process.wait()


def call_body(tool, id=1, **arguments):
    meta = {**MODERN, "progressToken": "t"}
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("add", {"a": "x"}), ("nobody", {}), ("add", {"a": 1, "b": 2})],
    ids=["wrong arguments", "unknown tool", "surplus arguments"],
)
async def test_refused_bodies_are_not_kept(tool, arguments):
    """Ours: each of these once kept 11 MB, from anybody."""
    async with open_server() as process:
        for number in range(MANY):
            async with process.posts(tool, text=BODY, **arguments) as response:
                await response.read()
            if not number:
                before = process.memory

        assert await process.settles_below(before + MOST_KEPT)


async def test_what_a_client_sent_that_has_left_is_not_kept():
    """Ours: a call that is given up takes its arguments with it."""
    async with open_server() as process:
        for number in range(MANY):
            async with process.posts("wait", text=BODY) as response:
                await response.content.readany()  # it runs
            if not number:
                before = process.memory

        assert await process.settles_below(before + MOST_KEPT)


async def test_results_that_nobody_read_are_not_kept():
    """Ours: a WebSocket that closes takes along what waited to be sent on it."""
    async with open_server() as process:
        url = process.url.replace("http", "ws", 1)
        before = process.memory
        for _ in range(4):
            async with process.session.ws_connect(url, protocols=("mcp",)) as wire:
                for id in range(MANY // 2):
                    await wire.send_str(call_body("big", id, size=1_000_000))
                await wire.receive_str()
                wire._response.connection.transport.abort()

        assert await process.settles_below(before + MOST_KEPT)
