"""Conversations with a server, over a pipe or over HTTP: requests that wait for their answers."""

import http.client
import json
import os
import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import wires
from processes import cpu_seconds

ANSWER_TIMEOUT_S = 60
IDLE_S = 1.0
READ_BYTES = 1 << 20
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}


def read_result(answer: bytes) -> dict[str, Any]:
    """The result that an answer brings; raises with the error when it brings one."""
    if answer.startswith((b"event:", b"data:", b"id:", b":", b"retry:")):
        lines = [line for line in answer.splitlines() if line.startswith(b"data:")]
        answer = lines[-1].removeprefix(b"data:").strip()
    found = json.loads(answer)
    if "result" not in found:
        raise RuntimeError(f"no result: {answer[:300]!r}")
    result: dict[str, Any] = found["result"]
    if result.get("isError"):
        raise RuntimeError(f"the tool failed: {answer[:300]!r}")
    return result


def read_value(result: Mapping[str, Any]) -> Any:
    """What a tool returned, out of the result of its call."""
    return json.loads(result["content"][0]["text"])


def find_last_line(data: bytes) -> bytes:
    """The last of some whole lines."""
    return data[data.rfind(b"\n", 0, -1) + 1 :]


def is_answer(line: bytes, number: int) -> bool:
    """Whether a line answers the request of this id, which stands near one of its ends."""
    ends = (line[:300] + line[-300:]).replace(b'"id": ', b'"id":')
    return b'"id":%d' % number in ends


class PipeTalk:
    """A stdio server that shook hands as a legacy server.

    Args:
        process: has pipes for its input and output.
    """

    wire = "legacy"

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        if not process.stdin or not process.stdout:
            raise RuntimeError("a process without pipes")
        self.pid = process.pid
        self.process = process
        self.to = process.stdin.fileno()
        self.come = process.stdout.fileno()
        self.last_id = wires.FIRST_ID

    def shake_hands(self) -> None:
        """Open the conversation as a legacy client."""
        self.send(wires.INITIALIZE + b"\n")
        if b"protocolVersion" not in self.read_line():
            raise RuntimeError("no handshake")
        self.send(wires.INITIALIZED + b"\n")

    def send(self, data: bytes) -> None:
        """Write all bytes; lines end where the caller ends them."""
        view = memoryview(data)
        while view:
            view = view[os.write(self.to, view) :]

    def read_some(self) -> bytes:
        """Whatever has arrived; waits for the first byte."""
        if not select.select([self.come], [], [], ANSWER_TIMEOUT_S)[0]:
            raise RuntimeError(f"nothing came within {ANSWER_TIMEOUT_S} s")
        data = os.read(self.come, READ_BYTES)
        if not data:
            raise RuntimeError("the server closed its output")
        return data

    def read_line(self) -> bytes:
        """What comes up to the end of a line; several lines if they came at once."""
        parts = [self.read_some()]
        while not parts[-1].endswith(b"\n"):
            parts.append(self.read_some())
        return b"".join(parts)

    def make_request(self, method: str, params: dict[str, Any]) -> Callable[[], bytes]:
        """Prepare a request that is sent with each call of what this returns; that has the answer."""
        body = wires.write_request(self.wire, 0, method, params).replace(b'"id":0', b"", 1)
        before, _, after = body.partition(b",,")
        if not after:
            raise RuntimeError("a request without a place for its id")

        def ask() -> bytes:
            self.last_id += 1
            self.send(b'%s,"id":%d,%s\n' % (before, self.last_id, after))
            while not is_answer(answer := find_last_line(self.read_line()), self.last_id):
                pass  # a notification
            return answer

        return ask

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request once; its result."""
        return read_result(self.make_request(method, params)())

    def call(self, tool: str, **arguments: object) -> Any:
        """Call a tool once; what it returned."""
        return read_value(self.request("tools/call", {"name": tool, "arguments": arguments}))


class HttpTalk:
    """An HTTP server, on one connection that is kept.

    Args:
        pid: the server's process.
        port: where it listens.
        wire: how it is spoken to.
        token: an access token that each request shows.
    """

    def __init__(self, pid: int, port: int, wire: str, token: str = "") -> None:
        self.pid = pid
        self.port = port
        self.wire = wire.partition(" ")[0]
        self.token = token
        self.session = ""
        self.connection = wires.connect(port)
        self.used_at = 0.0

    def shake_hands(self) -> None:
        """Open a session, where the wire has sessions."""
        if self.wire == "legacy":
            self.session = self.open_session()

    def open_session(self) -> str:
        """Open one more session; its id."""
        with self.fresh_connection() as connection:
            return wires.open_session(connection, self.token)

    @contextmanager
    def fresh_connection(self) -> Iterator[http.client.HTTPConnection]:
        """The connection: opened anew when it was idle, since servers close idle ones after seconds."""
        if time.monotonic() > self.used_at + IDLE_S:
            self.connection.close()
        try:
            yield self.connection
        except BaseException:
            self.connection.close()  # an answer may still be under way
            raise
        self.used_at = time.monotonic()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def make_headers(self, method: str, name: str) -> dict[str, str]:
        """What each request has beside its body."""
        own = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return wires.make_headers(self.wire, self.session, name, method) | own

    def make_request(self, method: str, params: dict[str, Any]) -> Callable[[], bytes]:
        """Prepare a request that is sent with each call of what this returns; that has the answer."""
        body = wires.write_request(self.wire, wires.FIRST_ID, method, params)
        head = self.make_headers(method, params.get("name") or params.get("uri") or "")

        def ask() -> bytes:
            with self.fresh_connection() as connection:
                status, _, data = wires.post(connection, body, head)
            if status != 200:
                raise RuntimeError(f"{method}: {status} {data[:300]!r}")
            return data

        return ask

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request once; its result."""
        return read_result(self.make_request(method, params)())

    def call(self, tool: str, **arguments: object) -> Any:
        """Call a tool once; what it returned."""
        return read_value(self.request("tools/call", {"name": tool, "arguments": arguments}))

    def is_known(self) -> bool:
        """Whether the server knows the session of this talk."""
        body = wires.write_request(self.wire, wires.FIRST_ID, "ping", {})
        with self.fresh_connection() as connection:
            status, _, _ = wires.post(connection, body, self.make_headers("ping", ""))
        return status == 200

    def open_stream(self, session: str) -> socket.socket:
        """Open the standing GET of a session; the caller closes it."""
        head = wires.make_headers("legacy", session) | {"Accept": "text/event-stream"}
        lines = [f"Host: 127.0.0.1:{self.port}", *(f"{k}: {v}" for k, v in head.items())]
        stream = socket.create_connection(("127.0.0.1", self.port), 20)
        stream.sendall("\r\n".join(["GET /mcp HTTP/1.1", *lines, "", ""]).encode())
        answer = stream.recv(4096)
        if b" 200 " not in answer.split(b"\r\n", 1)[0]:
            raise RuntimeError(f"GET: {answer[:300]!r}")
        return stream


Talk = PipeTalk | HttpTalk


def time_requests(talk: Talk, ask: Callable[[], bytes], times: int) -> float:
    """Seconds of CPU that the server takes for one request, one after another."""
    if b'"result"' not in (answer := ask()) or b'"isError":true' in answer.replace(b" ", b""):
        raise RuntimeError(f"not a result: {answer[:300]!r}")
    before = cpu_seconds(talk.pid)
    for _ in range(times):
        ask()
    return (cpu_seconds(talk.pid) - before) / times


def time_answer(ask: Callable[[], object]) -> float:
    """Seconds on the wall until a request is answered."""
    began = time.perf_counter()
    ask()
    return time.perf_counter() - began
