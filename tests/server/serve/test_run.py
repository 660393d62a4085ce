"""``Server.run`` on sockets: processes that say where they are, and end when they are told to."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus import Client, Server
from isthmus.errors import ConnectFailed, UsageError
from isthmus.server.serve.run import has_other_port
from isthmus.testing.faults import until
from support.clock import stretch_limit
from support.transports.line_wire import call_line

SERVER = """
import asyncio
from isthmus import Server

server = Server("listening", version="1")

@server.tool
async def waits() -> str:
    print("begun", flush=True)
    await asyncio.Event().wait()

@server.tool
async def insists() -> str:
    print("begun", flush=True)
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

@server.tool
async def echo(text: str) -> str:
    return text

server.run(%s)
"""


def launch_server(arguments):
    """A server's process, and where it says that it serves."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER % arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    said = []
    while not said or b"serves on" not in said[-1]:
        said.append(process.stderr.readline())
        assert said[-1], said
    return process, said[-1].split()[3].decode(), b"".join(said)


def joined(url):
    """A connection to it."""
    if url.startswith("unix://"):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(url.removeprefix("unix://"))
        return sock
    host, _, port = url.removeprefix("tcp://").rpartition(":")
    return socket.create_connection((host, int(port)))


@pytest.mark.covers("sockets.end.signals")
@pytest.mark.parametrize("way", ["unix", "tcp"])
@pytest.mark.parametrize(
    ("told", "tool"),
    [(signal.SIGTERM, "waits"), (signal.SIGINT, "insists"), (signal.SIGTERM, None)],
)
def test_a_process_that_listens_ends_soon_after_a_signal(tmp_path, way, told, tool):
    """Ours: in good order, its file removed, whatever its tools are doing."""
    path = tmp_path / "it.sock"
    arguments = {"unix": f"'unix', path={str(path)!r}", "tcp": "'tcp', port=0"}[way]
    process, url, _ = launch_server(arguments)
    with process, joined(url) as sock:
        if tool:
            sock.sendall(call_line(1, tool) + b"\n")
            assert b"begun\n" == process.stdout.readline()
        started = time.monotonic()
        process.send_signal(told)
        status = process.wait(10)
        took = time.monotonic() - started

    assert 0 == status
    assert took < stretch_limit(3.0)
    assert not path.exists()


def test_a_process_serves_on_the_loop_that_is_made_for_many(tmp_path):
    """Ours: uvloop where it is installed, as for HTTP; and an answer comes back."""
    process, url, said = launch_server("'tcp', port=0")
    with process, joined(url) as sock, sock.makefile("rb") as lines:
        sock.sendall(call_line(1, "echo", text="there") + b"\n")
        answer = json.loads(lines.readline())
        process.terminate()

    assert "there" == answer["result"]["content"][0]["text"]
    assert b"warning" not in said


@pytest.mark.covers("sockets.tcp.warned")
def test_a_server_that_other_machines_reach_warns_of_it():
    """Ours: whoever starts it reads what it means."""
    process, _, said = launch_server("'tcp', host='0.0.0.0', port=0, exposed=True")
    with process:
        process.terminate()

    assert b"warning: every machine that reaches this address can call every tool" in said


@pytest.mark.parametrize(
    ("resource", "elsewhere"),
    [
        ("http://127.0.0.1:8000/mcp", False),
        ("http://localhost:8000/mcp", False),
        ("http://127.0.0.1:9000/mcp", True),
        ("http://localhost/mcp", True),
        ("https://mcp.example.com/mcp", False),  # behind a proxy
    ],
)
def test_a_port_that_no_client_can_log_in_by_is_seen(resource, elsewhere):
    """Ours: whoever serves on another port than auth= names is told before the first login fails."""
    assert elsewhere is has_other_port(resource, 8000)


# In an event loop that runs already


def make_hello():
    """A server with one tool."""
    server = Server("hello")

    @server.tool
    async def hello() -> str:
        return "hello"

    return server


async def test_run_in_a_running_loop_says_what_to_write():
    """Ours: instead of asyncio's own words, and a coroutine that nobody awaits."""
    with pytest.raises(UsageError, match=r"await server\.run_async"):
        make_hello().run()


async def test_run_async_serves_beside_other_work_until_it_is_cancelled(tmp_path):
    """The loop stays the caller's, and the lifespan is left."""
    opened = []

    @asynccontextmanager
    async def lifespan(_server):
        opened.append("open")
        yield
        opened.append("closed")

    path = str(tmp_path / "hello.sock")
    server = Server("hello", lifespan=lifespan)
    server.add_tool(lambda: "hello", name="hello")
    serving = asyncio.create_task(server.run_async("unix", path=path))
    await until(lambda: Path(path).exists() and bool(opened))
    async with Client(f"unix://{path}") as client:
        assert "hello" == (await client.call_tool("hello")).text
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert ["open", "closed"] == opened


async def test_run_async_over_http_says_where_it_cannot_listen():
    """An error of ours, where uvicorn would end the process."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConnectFailed, match="cannot listen on 127"):
            await make_hello().run_async("http", port=taken.getsockname()[1])


@pytest.mark.parametrize("transport", ["pigeon", "stdio"])
async def test_run_async_refuses_what_run_refuses(transport):
    """The same messages."""
    with pytest.raises(UsageError, match=r"no such option|there is no transport"):
        await make_hello().run_async(transport, wings=2)
