"""The HTTP load: keep-alive connections that each have one ``tools/call`` under way, all the time.

``load.py PORT WIRE CONNECTIONS SECONDS`` prints one JSON line. One process, one thread, plain
sockets and epoll: it must never be what is slow. Every answer is checked for its sum.
"""

import json
import re
import select
import socket
import sys
import time
from collections.abc import Iterator

import wires

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
WARM_UP = 0.5


class Connection:
    """One keep-alive connection with at most one call under way."""

    def __init__(self, port: int, wire: str, session: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        template = wires.call_template(wire)
        body = template % (wires.FIRST_ID, wires.FIRST_ID)
        head = {"Host": f"127.0.0.1:{port}", "Content-Length": str(len(body))}
        lines = [f"{k}: {v}" for k, v in (head | wires.headers(wire, session)).items()]
        self.request = "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + template
        self.buffer = b""
        self.began = 0.0
        self.number = 0

    def ask(self, number: int, now: float) -> None:
        """Send call ``number``; ``now`` is when its latency begins."""
        self.number = number
        self.began = now
        self.socket.send(self.request % (number, number))

    def heard(self) -> bool:
        """Read what came; whether the answer is whole. Raises when it is not the right one."""
        data = self.socket.recv(65536)
        if self.buffer:
            data = self.buffer + data
        if not data or not whole(data):
            if not data:
                raise RuntimeError("the server closed a connection")
            self.buffer = data
            return False
        self.buffer = b""
        if not data.startswith(b"HTTP/1.1 200") or wires.expected(self.number) not in data:
            raise RuntimeError(f"call {self.number}: {data[:600]!r}")
        return True


def whole(data: bytes) -> bool:
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
        for file, _ in poll.poll(10):
            connection = by_file[file]
            if connection.heard():
                now = clock()
                latencies.append(now - connection.began)
                connection.ask(next(numbers), now)
    took = now - start
    settle(connections)
    return latencies, took


def settle(connections: list[Connection]) -> None:
    """Wait for the answers still under way, so that the next drive starts clean."""
    for connection in connections:
        connection.socket.settimeout(10)
        while not connection.heard():
            pass
        connection.socket.settimeout(None)


def main() -> None:
    port, wire, count, seconds = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    sessions = [wires.open_session(port) if wire == "legacy" else "" for _ in range(count)]
    connections = [Connection(port, wire, session) for session in sessions]
    numbers = iter(range(wires.FIRST_ID, 9_999_990))
    drive(connections, numbers, WARM_UP)
    latencies, took = drive(connections, numbers, seconds)
    latencies.sort()
    print(
        json.dumps(
            {
                "rps": len(latencies) / took,
                "p50_ms": latencies[len(latencies) // 2] * 1e3,
                "p99_ms": latencies[int(len(latencies) * 0.99)] * 1e3,
                "requests": len(latencies),
            }
        )
    )


if __name__ == "__main__":
    main()
