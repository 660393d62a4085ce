"""The HTTP load: keep-alive connections that each have one ``tools/call`` under way, all the time.

``load.py JOB`` takes a job in JSON and prints one JSON line. One process, one thread, plain
sockets and epoll: it must never be what is slow. Every answer is checked for its sum.
"""

import json
import re
import select
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import wires
from processes import LOAD_CORE, cpu_seconds, read_output

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
QUIET_TIMEOUT_S = 20
SPARE_S = 60  # for the sessions to open and the last answers to come


@dataclass(frozen=True)
class Job:
    """What is to be sent.

    Attributes:
        pid: the server, whose CPU time is read.
        port: where it listens.
        wire: ``legacy`` or ``modern``.
        connections: how many.
        seconds: how long.
        tool: which tool is called, with ``a`` and ``b``.
        tokens: an access token for each connection, in turn.
        warm_up: seconds of calls before those that count.
    """

    pid: int
    port: int
    wire: str
    connections: int
    seconds: float
    tool: str = "add"
    tokens: tuple[str, ...] = ("",)
    warm_up: float = 0.2

    def run(self) -> dict[str, float]:
        """Run in a process of its own, on the core of the load: what it saw."""
        argv = [sys.executable, "load.py", json.dumps(asdict(self))]
        limit = self.seconds + self.warm_up + SPARE_S
        found: dict[str, float] = json.loads(read_output(argv, LOAD_CORE, limit))
        return found


class Connection:
    """One keep-alive connection with at most one call under way."""

    def __init__(self, job: Job, token: str) -> None:
        opening = wires.connect(job.port)
        session = wires.open_session(opening, token) if job.wire == "legacy" else ""
        opening.close()
        self.socket = socket.create_connection(("127.0.0.1", job.port), QUIET_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        template = wires.write_template(job.wire, job.tool)
        body = template % (wires.FIRST_ID, wires.FIRST_ID)
        head = {"Host": f"127.0.0.1:{job.port}", "Content-Length": str(len(body))}
        head |= wires.make_headers(job.wire, session, job.tool)
        if token:
            head["Authorization"] = f"Bearer {token}"
        lines = [f"{k}: {v}" for k, v in head.items()]
        self.request = "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + template
        self.buffer = b""
        self.began = 0.0
        self.number = 0

    def ask(self, number: int, now: float) -> None:
        """Send call ``number``; ``now`` is when its latency begins."""
        self.number = number
        self.began = now
        self.socket.send(self.request % (number, number))

    def read_answer(self) -> bool:
        """Read what came; whether the answer is whole. Raises when it is not the right one."""
        data = self.socket.recv(65536)
        if not data:
            raise RuntimeError("the server closed a connection")
        if self.buffer:
            data = self.buffer + data
        if not is_whole(data):
            self.buffer = data
            return False
        self.buffer = b""
        if not data.startswith(b"HTTP/1.1 200") or wires.expected_sum(self.number) not in data:
            raise RuntimeError(f"call {self.number}: {data[:600]!r}")
        return True


def is_whole(data: bytes) -> bool:
    """Whether one HTTP response has arrived to its end, by its length or its last chunk."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return False
    length = LENGTH.search(data, 0, end)
    if length:
        return len(data) - end - 4 >= int(length[1])
    return data.endswith(b"\r\n0\r\n\r\n")


def drive(
    connections: list[Connection], numbers: Iterator[int], seconds: float
) -> tuple[list[float], float]:
    """Keep every connection busy for ``seconds``: the latencies, and how long it really took."""
    poll = select.epoll()
    by_file = {c.socket.fileno(): c for c in connections}
    for file in by_file:
        poll.register(file, select.EPOLLIN)
    clock = time.perf_counter
    latencies: list[float] = []
    start = now = clock()
    end = start + seconds
    for connection in connections:
        connection.ask(next(numbers), now)
    while now < end:
        ready = poll.poll(QUIET_TIMEOUT_S)
        if not ready:
            raise RuntimeError(f"no answer within {QUIET_TIMEOUT_S} s")
        for file, _ in ready:
            connection = by_file[file]
            if connection.read_answer():
                now = clock()
                latencies.append(now - connection.began)
                connection.ask(next(numbers), now)
    took = now - start
    poll.close()
    for connection in connections:  # the answers still under way: the next drive starts clean
        while not connection.read_answer():
            pass
    return latencies, took


def main() -> None:
    """Do one job, and print what was seen."""
    job = Job(**json.loads(sys.argv[1]))
    connections = [
        Connection(job, job.tokens[number % len(job.tokens)]) for number in range(job.connections)
    ]
    numbers = iter(range(wires.FIRST_ID, 9_999_990))
    drive(connections, numbers, job.warm_up)
    before = cpu_seconds(job.pid)
    latencies, took = drive(connections, numbers, job.seconds)
    spent = cpu_seconds(job.pid) - before
    calls = len(latencies) + len(connections)  # the last answers are part of what the CPU did
    latencies.sort()
    found = {
        "rps": len(latencies) / took,
        "p50_ms": latencies[len(latencies) // 2] * 1e3,
        "p99_ms": latencies[int(len(latencies) * 0.99)] * 1e3,
        "cpu_us": spent / calls * 1e6,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
