"""The end of an app under somebody else's server: a signal ends it soon, whatever is open."""

import asyncio
import contextlib
import json
import signal
import sys

import pytest

from support.clock import stretch_limit
from support.http.messages import (
    INITIALIZE,
    INITIALIZED,
    hello,
    legacy_head,
    make_http_app,
    modern_body,
    modern_head,
)

PLAIN = """
import signal, threading
from isthmus import Context, Server

server = Server("plain", version="1")

@server.tool
async def ask(ctx: Context) -> str:
    print("begun", flush=True)
    return str(await ctx.elicit("Which?", str))

@server.tool
def wait(ctx: Context) -> str:
    print("begun", flush=True)
    return str(ctx.wait(ctx.elicit("Which?", str)))

@server.tool
def block() -> str:
    print("begun", flush=True)
    threading.Event().wait()

@server.tool
async def sleep() -> str:
    print("begun", flush=True)
    import asyncio
    await asyncio.Event().wait()

app = server.asgi(websocket=True)
"""
MOUNTED = (
    PLAIN
    + """
from fastapi import FastAPI
outer = FastAPI()
outer.mount("/", app)
app = outer
"""
)
# A server that takes its signals by the event loop, as hypercorn does, and tells the app of its end
# only when every response is complete.
OTHER = (
    PLAIN
    + """
import asyncio, uvicorn

async def main():
    config = uvicorn.Config(app, port=0, log_level="info")
    own = uvicorn.Server(config)
    own.capture_signals = lambda: contextlib.nullcontext()
    asyncio.get_running_loop().add_signal_handler(
        signal.SIGTERM, lambda: setattr(own, "should_exit", True))
    await own.serve()

import contextlib
if __name__ == "__main__":
    asyncio.run(main())
"""
)
FORMS = {"plain": PLAIN, "mounted": MOUNTED, "by the loop": OTHER, "without lifespan": PLAIN}
TOOLS = ["ask", "wait", "block", "sleep"]


def request(head, body, verb="POST", path="/mcp"):
    """A request as bytes."""
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{verb} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
    return "\r\n".join([*lines, f"content-length: {len(data)}", "", ""]).encode() + data


class Running:
    """A server in a process of its own."""

    def __init__(self, process, port):
        self.process = process
        self.port = port

    async def send(self, *requests, until):
        """Send requests over one connection, and wait for what the last is answered with."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        for one in requests:
            writer.write(one)
        said = await reader.readuntil(until)
        return reader, writer, said

    async def session(self):
        """The id of a new legacy session."""
        _, writer, said = await self.send(request(legacy_head(), INITIALIZE), until=b"\r\n\r\n")
        writer.close()
        session = said.partition(b"mcp-session-id: ")[2].partition(b"\r")[0].decode()
        _, writer, _ = await self.send(
            request(legacy_head(session), INITIALIZED), until=b"\r\n\r\n"
        )
        writer.close()
        return session

    async def begun(self):
        """A tool says that it runs."""
        while b"begun" not in await self.process.stdout.readline():
            pass

    async def seconds_to_stop(self, number=signal.SIGTERM):
        """How long the process takes to end after a signal."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        self.process.send_signal(number)
        await asyncio.wait_for(self.process.wait(), 10)
        return loop.time() - started


@contextlib.asynccontextmanager
async def under_uvicorn(folder, form="plain"):
    """An app under plain uvicorn, started by its command or by a program."""
    (folder / "served.py").write_text(FORMS[form], "utf-8")
    lifespan = "off" if form == "without lifespan" else "auto"
    command = ["-m", "uvicorn", "--port", "0", "--lifespan", lifespan, "served:app"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *(["served.py"] if form == "by the loop" else command),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said = b""
    while b"http://127.0.0.1:" not in said:
        said = await process.stderr.readline()
        assert said, "it ended"
    port = int(said.partition(b"http://127.0.0.1:")[2].split()[0])
    try:
        yield Running(process, port)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform == "win32", reason="signals"),
]
MOST_S = 2.5
"""Two seconds, and what the test's own machine takes."""


@pytest.mark.parametrize("form", FORMS)
async def test_a_modern_stream_of_changes_holds_no_server_up(tmp_path, form):
    """Ours: the stream ends in good order, with the answer to its request."""
    listen = request(
        modern_head("subscriptions/listen", None),
        modern_body("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="s"),
    )
    async with under_uvicorn(tmp_path, form) as running:
        reader, writer, _ = await running.send(listen, until=b"acknowledged")
        assert await running.seconds_to_stop() < stretch_limit(MOST_S)
        assert b'"id":"s"' in await reader.read()
        writer.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_legacy_stream_holds_no_server_up(tmp_path, number):
    """Ours: a GET that is open for what the server says of its own accord."""
    async with under_uvicorn(tmp_path) as running:
        session = await running.session()
        stream = request(legacy_head(session, accept="text/event-stream"), None, "GET")
        _reader, writer, _ = await running.send(stream, until=b"\r\n\r\n")
        assert await running.seconds_to_stop(number) < stretch_limit(MOST_S)
        writer.close()


async def test_a_stream_of_http_sse_holds_no_server_up(tmp_path):
    """Ours: the transport of 2024-11-05."""
    head = {"host": "localhost", "accept": "text/event-stream"}
    async with under_uvicorn(tmp_path) as running:
        _reader, writer, _ = await running.send(
            request(head, None, "GET", "/sse"), until=b"session_id"
        )
        assert await running.seconds_to_stop() < stretch_limit(MOST_S)
        writer.close()


@pytest.mark.parametrize(
    ("tool", "form"), [*((tool, "plain") for tool in TOOLS), ("ask", "without lifespan")]
)
@pytest.mark.parametrize("stays", [True, False])
async def test_a_legacy_call_that_does_not_end_holds_no_server_up(tmp_path, tool, form, stays):
    """Ours: a question whose asker has gone, and a function that blocks its thread."""
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool}}
    async with under_uvicorn(tmp_path, form) as running:
        session = await running.session()
        _, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(request(legacy_head(session), call))
        await running.begun()
        if not stays:
            writer.close()
        assert await running.seconds_to_stop() < stretch_limit(MOST_S)
        writer.close()


@pytest.mark.parametrize("tool", ["block", "sleep"])
async def test_a_modern_call_that_does_not_end_holds_no_server_up(tmp_path, tool):
    """Ours: as over ``isthmus run``."""
    async with under_uvicorn(tmp_path) as running:
        _, writer = await asyncio.open_connection("127.0.0.1", running.port)
        body = modern_body(params={"name": tool, "arguments": {}})
        writer.write(request(modern_head(name=tool), body))
        await running.begun()
        assert await running.seconds_to_stop() < stretch_limit(MOST_S)
        writer.close()


async def test_a_client_that_comes_back_at_once_holds_no_server_up(tmp_path):
    """Ours: what is asked for after the signal, over a connection that is still open, is refused."""
    listen = request(
        modern_head("subscriptions/listen", None),
        modern_body("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="s"),
    )
    async with under_uvicorn(tmp_path) as running:
        reader, writer, _ = await running.send(listen, until=b"acknowledged")
        stopping = asyncio.ensure_future(running.seconds_to_stop())
        await reader.readuntil(b"0\r\n\r\n")
        writer.write(listen)
        assert await stopping < stretch_limit(MOST_S)
        writer.close()


# In this process


@contextlib.contextmanager
def signals_owned_by(handler):
    """SIGTERM is handled by whoever runs the app."""
    before = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


async def test_closing_waits_for_the_end_that_a_signal_began():
    """Ours: a server that has no connections left would cut the author's lifespan short."""
    begun, gate, ended = asyncio.Event(), asyncio.Event(), []

    async def on_stop():
        begun.set()
        await gate.wait()
        ended.append("stop")

    target = make_http_app({"on_stop": on_stop}, hello=hello)
    with signals_owned_by(lambda *_: None):
        await target.start()
        signal.raise_signal(signal.SIGTERM)
        await begun.wait()
        closing = asyncio.create_task(target.close())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not closing.done()
        gate.set()
        await closing

    assert ["stop"] == ended


async def test_what_an_app_does_at_its_end_may_close_it():
    """Ours: it does not wait for itself."""
    ended = []

    async def on_stop():
        await target.close()
        ended.append("stop")

    target = make_http_app({"on_stop": on_stop}, hello=hello)
    await target.start()
    await target.close()

    assert ["stop"] == ended


def test_apps_that_nobody_closed_leave_the_signals_to_their_owner():
    """Ours: each would keep the one before, and be kept."""

    def own(*_):
        pass

    async def serve_once():
        target = make_http_app(hello=hello)
        await target.start()
        await target.close()

    with signals_owned_by(own):
        for _ in range(2):
            asyncio.run(make_http_app(hello=hello).start())
        asyncio.run(serve_once())
        assert own is signal.getsignal(signal.SIGTERM)
