"""The measurements: each takes one peer through one kind of work and returns its columns."""

import json
import os
import resource
import select
import socket
import subprocess
import sys
import time
from dataclasses import dataclass

import wires
from contenders import Contender
from processes import (
    LOAD_CORE,
    SERVER_CORE,
    child,
    cpu_seconds,
    free_port,
    output_of,
    resident_kib,
    wait_listening,
)

IN_FLIGHT = 64
SECONDS_TO_ANSWER = 30


@dataclass(frozen=True)
class Span:
    """How long and how much: the short form for CI, the full one for RESULTS.md."""

    rounds: int
    seconds: float
    sessions: int
    starts: int


SHORT = Span(rounds=2, seconds=0.8, sessions=400, starts=5)
FULL = Span(rounds=5, seconds=1.2, sessions=1000, starts=9)


def http(peer: Contender, wire: str, span: Span) -> dict[str, float]:
    """``tools/call`` over keep-alive connections: rate at 64, latency at 16, CPU of the server."""
    port = free_port()
    with child(peer.over_http(port, wire)) as process:
        wait_listening(port, process)
        kind = wire.partition(" ")[0]
        few = load(port, kind, 16, span.seconds)
        before = cpu_seconds(process.pid)
        many = load(port, kind, 64, span.seconds)
        spent = cpu_seconds(process.pid) - before
    return {
        "rps_64": many["rps"],
        "p99_16_ms": few["p99_ms"],
        # The warm-up's calls are part of what the CPU did.
        "cpu_us": spent * 1e6 / many["requests"] * span.seconds / (span.seconds + 0.5),
    }


def load(port: int, wire: str, connections: int, seconds: float) -> dict[str, float]:
    """What the load generator saw."""
    argv = [sys.executable, "load.py", str(port), wire, str(connections), str(seconds)]
    found: dict[str, float] = json.loads(output_of(argv, LOAD_CORE, seconds + 60))
    return found


class Pipe:
    """A stdio server and the bytes to and from it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        if not process.stdin or not process.stdout:
            raise RuntimeError("a process without pipes")
        self.to = process.stdin.fileno()
        self.come = process.stdout.fileno()

    def line(self) -> bytes:
        """The next whole line; raises when none comes."""
        data = b""
        while not data.endswith(b"\n"):
            if not select.select([self.come], [], [], SECONDS_TO_ANSWER)[0]:
                raise RuntimeError(f"no answer within {SECONDS_TO_ANSWER} s")
            data += self.some()
        return data

    def some(self) -> bytes:
        """Whatever has arrived; waits for the first byte."""
        data = os.read(self.come, 262_144)
        if not data:
            raise RuntimeError("the server closed its output")
        return data

    def say(self, data: bytes) -> None:
        """Write bytes; lines end where the caller ends them."""
        os.write(self.to, data)

    def shake_hands(self) -> None:
        """Open the conversation as a legacy client."""
        self.say(wires.INITIALIZE + b"\n")
        if b"protocolVersion" not in self.line():
            raise RuntimeError("no handshake")
        self.say(wires.INITIALIZED + b"\n")


PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}


def stdio(peer: Contender, span: Span) -> dict[str, float]:
    """``tools/call`` over a pipe: one after another, and 64 in flight."""
    template = wires.call_template("legacy") + b"\n"
    with child(peer.over_stdio(), **PIPES) as process:
        pipe = Pipe(process)
        pipe.shake_hands()
        sequential(pipe, template, 0.5)
        one = sequential(pipe, template, span.seconds)
        many = in_flight(pipe, template, span.seconds)
    return {"sequential": one, "flight_64": many}


def sequential(pipe: Pipe, template: bytes, seconds: float) -> float:
    """Calls per second with one under way; every answer is checked."""
    start = now = time.perf_counter()
    number = wires.FIRST_ID
    while now < start + seconds:
        pipe.say(template % (number, number))
        answer = pipe.line()
        if wires.expected(number) not in answer:
            raise RuntimeError(f"call {number}: {answer[:300]!r}")
        number += 1
        now = time.perf_counter()
    return (number - wires.FIRST_ID) / (now - start)


def in_flight(pipe: Pipe, template: bytes, seconds: float) -> float:
    """Calls per second with 64 under way; the first answers are checked, the rest counted."""
    ready = [template % (n, n) for n in range(2_000_000, 2_000_000 + 4096)]
    sent, done = IN_FLIGHT, 0
    pipe.say(b"".join(ready[:sent]))
    start = now = time.perf_counter()
    while now < start + seconds:
        data = pipe.some()
        if not done and b'"result"' not in data:
            raise RuntimeError(f"not a result: {data[:300]!r}")
        arrived = data.count(b"\n")
        done += arrived
        pipe.say(b"".join(ready[(sent + k) % 4096] for k in range(arrived)))
        sent += arrived
        now = time.perf_counter()
    rate = done / (now - start)
    while done < sent:
        done += pipe.some().count(b"\n")
    return rate


IMPORTS = {
    "isthmus": """
from isthmus import Server
server = Server("bench")
@server.tool
async def add(a: int, b: int) -> int: return a + b
""",
    "mcp 2.3.0": """
from mcp.server.mcpserver import MCPServer
server = MCPServer("bench")
@server.tool()
async def add(a: int, b: int) -> int: return a + b
""",
    "asyncio and msgspec": "import asyncio, msgspec",
    "python alone": "pass",
}


def imports(python: str, name: str, span: Span) -> dict[str, float]:
    """CPU milliseconds of ``python -c``, interpreter and all: the least of some.

    On an idle machine that is the time it takes; noise only adds to either.
    """
    took = []
    for _ in range(span.starts):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        output_of([python, "-c", IMPORTS[name]], SERVER_CORE, 60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return {"import_ms": min(took) * 1e3}


def first_answer(peer: Contender, span: Span) -> dict[str, float]:
    """Milliseconds from spawning a stdio server to its answer to ``initialize``."""
    took = []
    for _ in range(span.starts):
        start = time.perf_counter()
        with child(peer.over_stdio(), **PIPES) as process:
            Pipe(process).shake_hands()
            took.append(time.perf_counter() - start)
    return {"answer_ms": min(took) * 1e3}


def client(peer: Contender, fixed: Contender, span: Span) -> dict[str, float]:
    """The peer's own client against one fixed fast server."""
    port = free_port()
    with child(fixed.over_http(port, "legacy json")) as process:
        wait_listening(port, process)
        argv = [*peer.client, f"http://127.0.0.1:{port}/mcp", str(span.seconds)]
        found: dict[str, float] = json.loads(output_of(argv, LOAD_CORE, 60))
    return found


def memory(peer: Contender, span: Span) -> dict[str, float]:
    """The peer's client and server in one process."""
    argv = [*peer.client, "memory", str(span.seconds)]
    found: dict[str, float] = json.loads(output_of(argv, SERVER_CORE, 60))
    return found


def sessions(peer: Contender, span: Span) -> dict[str, float]:
    """KiB of the server for each idle legacy session, without and with its GET stream."""
    port = free_port()
    with child(peer.over_http(port, "legacy json")) as process:
        wait_listening(port, process)
        streams = [open_stream(port, wires.open_session(port)) for _ in range(50)]
        base = settled_kib(process.pid)
        names = [wires.open_session(port) for _ in range(span.sessions)]
        idle = settled_kib(process.pid)
        streams += [open_stream(port, name) for name in names]
        full = settled_kib(process.pid)
        for stream in streams:
            stream.close()
    return {
        "idle_kib": (idle - base) / span.sessions,
        "stream_kib": (full - base) / span.sessions,
    }


def settled_kib(pid: int) -> float:
    """Resident memory once the process has caught up with what it was sent."""
    time.sleep(0.7)
    return resident_kib(pid)


def open_stream(port: int, session: str) -> socket.socket:
    """The standing GET of a session; the caller closes it."""
    head = wires.headers("legacy", session) | {"Accept": "text/event-stream"}
    lines = [f"Host: 127.0.0.1:{port}", *(f"{k}: {v}" for k, v in head.items())]
    stream = socket.create_connection(("127.0.0.1", port), 20)
    stream.sendall("\r\n".join(["GET /mcp HTTP/1.1", *lines, "", ""]).encode())
    answer = stream.recv(4096)
    if b" 200 " not in answer.split(b"\r\n", 1)[0]:
        raise RuntimeError(f"GET: {answer[:300]!r}")
    return stream
