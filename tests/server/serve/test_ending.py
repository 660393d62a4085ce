"""How soon the process of a server ends, whatever its tools do."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time

import pytest

from support.clock import stretch_limit

SERVER = """
import asyncio, threading, time
from isthmus import Server

server = Server("busy", version="1")
never = threading.Event()

@server.tool
async def waits() -> str:
    print("begun", flush=True)
    await asyncio.Event().wait()

@server.tool
def blocks() -> str:
    print("begun", flush=True)
    never.wait()

@server.tool
async def lends() -> str:
    print("begun", flush=True)
    await asyncio.to_thread(never.wait)

@server.tool
async def insists() -> str:
    print("begun", flush=True)
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

@server.tool
def spins() -> str:
    print("begun", flush=True)
    while True:
        pass

@server.tool
async def hogs() -> str:
    print("begun", flush=True)
    time.sleep(3600)

@server.tool
async def answers() -> str:
    return "x" * 2_000

@server.tool
async def grinds() -> str:
    print("begun", flush=True)
    while True:
        pass

server.run()
"""
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
TOOLS = ("waits", "blocks", "lends", "insists", "spins", "hogs", "grinds")


def call_line(tool, id=1):
    """A call, as a line."""
    params = {"name": tool, "arguments": {}, "_meta": MODERN}
    call = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    return json.dumps(call).encode() + b"\n"


def launch_server(tool):
    """A server's process, in which ``tool`` has begun."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    server.stdin.write(call_line(tool))
    server.stdin.flush()
    assert b"begun\n" == server.stderr.readline()
    return server


@pytest.mark.covers("stdio.end.within-two-seconds")
@pytest.mark.parametrize("tool", TOOLS)
def test_a_process_ends_within_two_seconds_of_its_input(tool):
    """Ours: no thread, no task that will not stop, no busy event loop keeps a server alive."""
    with launch_server(tool) as server:
        started = time.monotonic()
        server.stdin.close()
        status = server.wait(10)

    assert 0 == status
    assert time.monotonic() - started < stretch_limit(2.0)


def crowd(server, tool, count):
    """Queue calls, as many as the server reads on for while nobody reads its answers."""
    lines = memoryview(b"".join(call_line(tool, id) for id in range(2, count)))
    os.set_blocking(server.stdin.fileno(), False)
    while lines and select.select([], [server.stdin], [], 0.5)[1]:
        with contextlib.suppress(BlockingIOError):
            lines = lines[os.write(server.stdin.fileno(), lines) :]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no poll that tells of a hang-up")
@pytest.mark.parametrize("end", ["stdin", "stdout"])
@pytest.mark.parametrize(("tool", "count"), [("answers", 4700), ("waits", 4700), ("waits", 12_000)])
def test_a_process_ends_with_calls_queued_and_nobody_reading(tool, count, end):
    """Ours: neither answers that wait to be read nor calls that wait to be taken keep a server."""
    with launch_server("waits") as server:
        crowd(server, tool, count)
        getattr(server, end).close()

        assert 0 == server.wait(15)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("told", "tool"), [(signal.SIGINT, "blocks"), (signal.SIGTERM, "insists")])
def test_a_process_ends_within_two_seconds_of_a_signal(told, tool):
    """Ours: a host that loses patience sends SIGTERM, a developer Ctrl-C."""
    with launch_server(tool) as server:
        started = time.monotonic()
        server.send_signal(told)
        status = server.wait(10)

    assert 0 == status
    assert time.monotonic() - started < stretch_limit(2.0)
