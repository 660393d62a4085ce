"""The app under uvicorn, over real sockets."""

import asyncio
import contextlib
import http.client
import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvicorn

from isthmus.testing.faults import until
from isthmus.transports.http.connections.h11_connection import H11Connection
from isthmus.transports.http.connections.http_connection import HttpConnection
from isthmus.transports.http.connections.server_context import (
    HEAD_TIMEOUT_TICKS,
    UNREAD_LOOK_TICKS,
)
from isthmus.transports.http.serve import serve
from support.clock import stretch_limit
from support.http.messages import hello, make_http_app, modern_body, modern_head

EVERY_LOOP = True

SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from support.http.messages import hello, make_http_app
from isthmus.transports.http.serve import run
run(make_http_app(hello=hello), port=0)
"""


@contextlib.asynccontextmanager
async def serve_app(target, **options):
    """The URL of an app that is served meanwhile."""
    bound = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(target, port=0, on_bound=bound.set_result, **options))
    try:
        await asyncio.wait({task, bound}, return_when=asyncio.FIRST_COMPLETED)
        yield bound.result()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def encode_request(head, body, verb="POST", path="/mcp"):
    """A request as bytes."""
    data = json.dumps(body).encode()
    lines = [f"{verb} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
    return "\r\n".join([*lines, f"content-length: {len(data)}", "", ""]).encode() + data


async def read_response(reader):
    """Status, headers and body of a response with a length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    status, *lines = head.strip().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    body = await reader.readexactly(int(headers["content-length"]))
    return int(status.split()[1]), headers, body


async def connect_to(url):
    """A connection to a server's URL."""
    host, _, port = url.removeprefix("http://").removesuffix("/mcp").rpartition(":")
    return await asyncio.open_connection(host, int(port))


LISTEN = (
    modern_head("subscriptions/listen", None),
    modern_body("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="s"),
)


async def test_a_connection_is_used_again_and_again(capsys):
    """Keep-alive; the address is told on stderr, and nothing else is said."""
    async with serve_app(make_http_app(hello=hello)) as url:
        reader, writer = await connect_to(url)
        for _ in range(3):
            writer.write(encode_request(modern_head(), modern_body()))
            status, headers, body = await read_response(reader)
            assert 200 == status
            assert "application/json" == headers["content-type"]
            assert b"hello" in body
        writer.close()

    out, err = capsys.readouterr()
    assert "" == out
    assert f"isthmus serves on {url} (Ctrl-C to stop)\n" == err


async def test_a_client_that_closes_its_connection_cancels_its_call():
    """2026-07-28: seen by a real server on a real socket."""
    running, ended = asyncio.Event(), asyncio.Event()

    async def slow(_inbound):
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with serve_app(make_http_app(slow=slow)) as url:
        _reader, writer = await connect_to(url)
        body = modern_body(params={"name": "slow", "arguments": {}})
        writer.write(encode_request(modern_head(name="slow"), body))
        await running.wait()
        writer.close()
        await ended.wait()


async def test_a_stop_ends_listening_streams_in_good_order_and_at_once():
    """Users' pain 23: no second Ctrl-C, no waiting for streams that never end."""
    async with serve_app(make_http_app()) as url:
        reader, writer = await connect_to(url)
        writer.write(encode_request(*LISTEN))
        await reader.readuntil(b"acknowledged")
        started = time.monotonic()

    rest = await reader.read()
    assert stretch_limit(2.0) > time.monotonic() - started
    assert b'"id":"s"' in rest
    assert rest.endswith(b"0\r\n\r\n")
    writer.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")
async def test_a_unix_socket_is_served(tmp_path):
    """For proxies on the same machine; nobody's name is checked there."""
    path = str(tmp_path / "socket")
    async with serve_app(make_http_app(hello=hello), uds=path) as where:
        assert path == where
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(encode_request(modern_head(host="mcp.example.com"), modern_body()))
        assert 200 == (await read_response(reader))[0]
        writer.close()


async def test_a_huge_body_is_refused_while_it_is_still_being_sent():
    """Users' pain 20: what is announced as too long is not read."""
    async with serve_app(make_http_app({"body_limit": 1000})) as url:
        reader, writer = await connect_to(url)
        request = encode_request(modern_head(), modern_body()).replace(
            b"content-length: ", b"content-length: 9"
        )
        writer.write(request)
        status, headers, _body = await read_response(reader)
        assert (413, "close") == (status, headers["connection"])
        writer.close()


@pytest.mark.parametrize("signalled", [signal.SIGINT, signal.SIGTERM])
async def test_run_stops_within_two_seconds_of_a_signal_though_streams_are_open(signalled):
    """One signal is enough, and there is no traceback."""
    script = SCRIPT.format(tests=str(Path(__file__).parents[1]))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    line = (await process.stderr.readline()).decode()
    reader, writer = await connect_to(line.split()[3])
    writer.write(encode_request(*LISTEN))
    await reader.readuntil(b"acknowledged")

    started = time.monotonic()
    process.send_signal(signalled)
    rest = await process.stderr.read()
    await process.wait()

    assert stretch_limit(2.0) > time.monotonic() - started
    assert b"" == rest
    assert b'"id":"s"' in await reader.read()
    writer.close()


BUSY = """
import threading
from isthmus import Server

server = Server("busy", version="1")

@server.tool
def blocks() -> str:
    print("begun", flush=True)
    threading.Event().wait()

server.run("http", port=0)
"""


async def test_run_stops_within_two_seconds_though_a_thread_is_busy():
    """A plain function cannot be stopped, but need not be waited for."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BUSY, stderr=pipe, stdout=pipe
    )
    assert process.stderr is not None
    assert process.stdout is not None
    line = (await process.stderr.readline()).decode()
    _reader, writer = await connect_to(line.split()[3])
    body = modern_body(params={"name": "blocks", "arguments": {}})
    writer.write(encode_request(modern_head(name="blocks"), body))
    await process.stdout.readline()

    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    await process.wait()

    assert stretch_limit(2.0) > time.monotonic() - started
    writer.close()


@pytest.mark.covers("http.headers.any-case")
@pytest.mark.parametrize("spell", [str.upper, str.lower, str.title])
async def test_names_of_headers_are_read_in_any_case(spell):
    """Spec 2026-07-28 basic/transports/streamable-http#case-sensitivity: a MUST."""
    async with serve_app(make_http_app(hello=hello)) as url:
        reader, writer = await connect_to(url)
        head = {spell(name): value for name, value in modern_head().items()}
        writer.write(encode_request(head, modern_body()))
        status, _, body = await read_response(reader)
        writer.close()

    assert 200 == status, body


@contextlib.asynccontextmanager
async def loose(target, http):
    """A server of uvicorn's, and its port."""
    server = uvicorn.Server(
        uvicorn.Config(target, port=0, http=http, lifespan="off", log_level="error")
    )
    task = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started, turns=1_000_000)
        yield server, server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await task


def let_pass(server, ticks):
    """Let so many seconds of the sweep pass."""
    for _ in range(ticks):
        server.server_state.isthmus_context.look()


def waits_for_head(connection):
    """Whether something of the next request has come, or the first is waited for."""
    if isinstance(connection, HttpConnection):
        return not connection.is_idle
    return connection.timeout_keep_alive_task is None


@pytest.mark.parametrize("http", [HttpConnection, H11Connection])
@pytest.mark.parametrize("before", [0, 1])
async def test_a_head_that_does_not_come_is_not_waited_for_for_ever(http, before):
    """Ours: a descriptor is taken by each connection, also by one that never asks anything."""
    request = encode_request(modern_head(host="localhost"), modern_body())
    async with loose(make_http_app(hello=hello), http) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(before):
            writer.write(request)
            assert 200 == (await read_response(reader))[0]
        writer.write(b"POST /mcp HTTP/1.1\r\nHost: local")
        connections = server.server_state.connections
        await until(lambda: [*filter(waits_for_head, connections)])
        let_pass(server, HEAD_TIMEOUT_TICKS)
        assert not reader.at_eof()
        let_pass(server, 1)
        rest = b""
        with contextlib.suppress(ConnectionResetError):  # what was not read of it makes it one
            rest = await reader.read()

        assert b"" == rest
        writer.close()


async def test_a_busy_connection_and_an_idle_one_are_left_alone():
    """Ours: only a head is waited for; what a request takes, and what follows it, is timed else."""
    request = encode_request(modern_head(host="localhost"), modern_body())
    async with loose(make_http_app(hello=hello), HttpConnection) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            writer.write(request)
            assert 200 == (await read_response(reader))[0]
            let_pass(server, 5)
        writer.close()


MUCH = 30_000_000  # more than kernels keep of a connection
STEP = 3_000_000


async def big(_inbound) -> str:
    """Say much."""
    return "x" * MUCH


async def unread(port):
    """A connection whose client has asked for much and does not read on, and its first bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(encode_request(modern_head(name="big"), modern_body(params={"name": "big"})))
    await reader.readexactly(1)
    return reader, writer


async def leave(writer):
    """Close a connection, whatever is unread on it."""
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


@pytest.mark.parametrize("http", [HttpConnection, H11Connection])
async def test_an_answer_that_nobody_reads_is_not_kept_for_ever(http):
    """Ours: it takes memory and a descriptor, whichever kind of answer it is."""
    async with loose(make_http_app(big=big), http) as (server, port):
        connections = server.server_state.connections
        _, writer = await unread(port)
        await until(
            lambda: all(one.transport.get_write_buffer_size() for one in connections),
            turns=1_000_000,
        )
        looks = 0
        while connections:
            let_pass(server, UNREAD_LOOK_TICKS)
            looks += 1
            await asyncio.sleep(0)
            assert looks < 10
        await leave(writer)

    assert looks >= 3


async def test_a_client_that_reads_slowly_is_waited_for():
    """Ours: each look finds that it has read something since the look before."""
    async with loose(make_http_app(big=big), HttpConnection) as (server, port):
        connections = server.server_state.connections
        reader, writer = await unread(port)
        size = 1
        while size < 20_000_000:
            waiting = [one.transport.get_write_buffer_size() for one in connections]
            size += len(await reader.readexactly(STEP))
            await until(
                lambda: [one.transport.get_write_buffer_size() for one in connections] < waiting,  # noqa: B023
                turns=1_000_000,
            )
            let_pass(server, UNREAD_LOOK_TICKS)

        assert connections
        await leave(writer)


MEASURING_SERVER = """
from isthmus import Server
server = Server("large", version="1")

@server.tool
async def measure(text: str) -> int:
    return len(text)

server.run("http", port=0)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc's memory")
def test_large_bodies_one_after_the_other_take_their_memory_from_the_system_once():
    """Ours: pages that are given back and taken again are cleared by the kernel each time."""
    text = "x" * 1_000_000
    params = {"name": "measure", "arguments": {"text": text}}
    body, taken = json.dumps(modern_body(params=params)), []
    argv = [sys.executable, "-c", MEASURING_SERVER]
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as process:
        url = urlsplit(process.stderr.readline().decode().split()[3])
        connection = http.client.HTTPConnection(url.netloc)
        for _ in range(6):
            connection.request("POST", url.path, body, modern_head(name="measure"))
            assert str(len(text)).encode() in connection.getresponse().read()
            status = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            taken.append(int(status[7]))  # pages that were taken from the system so far
        connection.close()
        process.terminate()

    assert taken[-1] - taken[-2] < len(text) // os.sysconf("SC_PAGE_SIZE") // 4
