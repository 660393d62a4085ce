"""Costs of several nodes: ``python bench/scale.py [--short]`` prints each figure beside its floor.

Nodes are ``isthmus run`` processes of ``servers/scaled.py`` with one store: Redis on a Unix socket
where ``redis-server`` is installed, and an SQLite file. All but the times after a kill are ratios of
figures of one run. Ends with 1 where a starred figure is beyond its floor, or beyond its bound.
"""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Self

import wires

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import debian
from load import Job
from processes import (
    SERVER_CORE,
    end_process,
    find_free_port,
    read_memory,
    run_child,
    wait_listening,
)

HERE = Path(__file__).resolve().parent
SERVER = HERE / "servers" / "scaled.py"
KILL_TIMEOUT_S = 20
SESSIONS = 2_000


@dataclass(frozen=True)
class ScaleFloor:
    """What one figure must reach.

    Attributes:
        measure: in words.
        floor, goal: the bounds.
        upper: less is better.
        starred: CI fails beyond the floor, or beyond the bound where there is one.
        bound: further off than the floor, for a figure that differs from run to run.
    """

    measure: str
    floor: float
    goal: float
    upper: bool = True
    starred: bool = False
    bound: float | None = None

    def fails(self, figure: float) -> bool:
        """Whether CI fails with a figure."""
        most = self.floor if self.bound is None else self.bound
        return self.starred and (figure > most if self.upper else figure < most)


ATTEMPTS = 3  # an unlucky pair of processes is no miss

FLOORS = {
    "json": ScaleFloor(
        "legacy JSON, calls by CPU with a store, of those without", 0.9, 0.97, False, True, 0.75
    ),
    "sse": ScaleFloor(
        "legacy stream of 5 reports, calls/s with Redis, of memory", 0.35, 0.5, False
    ),
    "adopt": ScaleFloor("first call at another node, p50, of a later one", 3.0, 1.5),
    "workers": ScaleFloor("2 workers against 1, calls/s", 1.3, 1.6, False),
    "answer": ScaleFloor("answer posted to another node, ms more", 3.0, 0.5),
    "update": ScaleFloor("update heard at another node, ms, p99", 20.0, 5.0),
    "idle": ScaleFloor("idle session with a store, KiB", 3.4, 0.0),
    "error": ScaleFloor("kill -9 to the caller's error, s", 8.0, 4.0, starred=True),
    "next": ScaleFloor("kill -9 to a call served elsewhere, s", 1.0, 0.1, starred=True),
}


class Node:
    """One node: a process that serves.

    Args:
        store: the URL of the store, or "".
        options: further words for ``isthmus run``.
    """

    def __init__(self, store: str, *options: str) -> None:
        self.port = find_free_port()
        self.store = store
        self._options = options
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        words = ["-m", "isthmus", "run", str(SERVER), "--http", f"127.0.0.1:{self.port}"]
        environment = {**os.environ, "SCALE_STORE": self.store}
        core = SERVER_CORE
        more = {} if not self._options else {"preexec_fn": None}
        argv = [sys.executable, *words, *self._options]
        if more:  # workers share the machine
            self.process = subprocess.Popen(
                argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            self._stack.callback(end_process, self.process)
        else:
            child = run_child(argv, core, env=environment)
            self.process = self._stack.enter_context(child)
        wait_listening(self.port, self.process)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def measure(self, tool: str, seconds: float, connections: int = 16) -> dict[str, float]:
        """Calls per second and CPU per call of a tool."""
        return Job(self.process.pid, self.port, "legacy", connections, seconds, tool).run()


class Caller:
    """A client with one connection to a node, in a session that it did not open there.

    Args:
        node: where its requests go.
        session: the session's id.
    """

    def __init__(self, node: Node, session: str = "") -> None:
        self._connection = wires.connect(node.port)
        self.session = session or wires.open_session(self._connection)

    def connect(self) -> None:
        """Open the connection, which the first request does otherwise."""
        self._connection.connect()

    def call(self, tool: str = "add") -> float:
        """Call a tool, and give the seconds that took."""
        template = wires.write_template("legacy", tool) % (wires.FIRST_ID, wires.FIRST_ID)
        head = wires.make_headers("legacy", self.session, tool)
        began = time.perf_counter()
        status, _, body = wires.post(self._connection, template, head)
        took = time.perf_counter() - began
        if status != 200 or wires.expected_sum(wires.FIRST_ID) not in body:
            raise RuntimeError(f"{tool}: {status} {body[:300]!r}")
        return took

    def begin(self, method: str, body: bytes | None, **more: str) -> "EventReader":
        """Send a request whose answer is a stream."""
        head = wires.make_headers("legacy", self.session, "") | more
        self._connection.request(method, "/mcp", body, head)
        return EventReader(self._connection.getresponse())

    def post(self, message: dict[str, object]) -> int:
        """Send a message that has no answer; gives the status."""
        head = wires.make_headers("legacy", self.session, "")
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        return wires.post(self._connection, body, head)[0]

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


class EventReader:
    """The events of one response.

    Attributes:
        last_id: of the event read last.
    """

    def __init__(self, response: http.client.HTTPResponse) -> None:
        if response.status != 200:
            raise RuntimeError(f"{response.status} {response.read()[:300]!r}")
        self._response = response
        self.last_id = ""

    def __iter__(self) -> Iterator[dict[str, object]]:
        data = b""
        while line := self._response.readline():
            text = line.rstrip(b"\r\n")
            if text.startswith(b"id: "):
                self.last_id = text[4:].decode()
            elif text.startswith(b"data: "):
                data += text[6:]
            elif not text and data:
                message, data = json.loads(data), b""
                yield message


@contextlib.contextmanager
def run_redis(folder: str) -> Iterator[str]:
    """The URL of a Redis of our own; "" where none is installed."""
    program = debian.REDIS.find()
    if program is None:
        yield ""
        return
    path = f"{folder}/redis.sock"
    argv = [
        *(program, "--port", "0", "--unixsocket", path, "--dir", folder, "--save", ""),
        *("--appendonly", "yes", "--appendfsync", "everysec"),
    ]
    with run_child(argv, SERVER_CORE):
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
                probe.connect(path)
                break
            time.sleep(0.02)
        yield f"unix://{path}"


def count_call(tool: str, number: int) -> bytes:
    """A call that asks for progress."""
    params = {
        "name": tool,
        "arguments": {"a": number, "b": 2},
        "_meta": {"progressToken": f"p{number}"},
    }
    return wires.write_request("legacy", number, "tools/call", params)


def compare_json(store: str, seconds: float) -> float:
    """Calls that a node with a store answers in its CPU time, as a share of those of one without.

    Two pairs of processes differ by up to a quarter, so that others are measured where the floor is missed.
    """
    share = 0.0
    for _ in range(ATTEMPTS):
        share = max(share, compare_processes(store, seconds))
        if share >= FLOORS["json"].floor:
            break
    return share


def compare_processes(store: str, seconds: float) -> float:
    """The share of two processes, one with the store and one without."""
    with Node("") as alone, Node(store) as shared:
        costs = [
            tuple(node.measure("add", 0.3 * seconds)["cpu_us"] for node in (alone, shared))
            for _ in range(16)
        ]
    # the least of each: CPU time only ever grows by what else the machine does meanwhile
    return min(one for one, _ in costs) / min(other for _, other in costs)


def compare_streams(store: str, calls: int) -> float:
    """Calls per second whose answers are streams of five reports, with a store, of those without."""

    def measure(node: Node) -> float:
        caller = Caller(node)
        began = time.perf_counter()
        for number in range(calls):
            messages = list(caller.begin("POST", count_call("count", number)))
            if len(messages) < 2:
                raise RuntimeError(f"no reports: {messages}")
        caller.close()
        return calls / (time.perf_counter() - began)

    with Node("") as alone, Node(store) as shared:
        measure(alone), measure(shared)
        return median(measure(shared) / measure(alone) for _ in range(3))


def compare_adoption(store: str, sessions: int) -> float:
    """The first call of a session at another node, as a multiple of a later one."""
    first, later = [], []
    with Node(store) as home, Node(store) as other:
        opener = wires.connect(home.port)
        warm = Caller(other)
        for _ in range(50):
            warm.call()
        for _ in range(sessions):
            caller = Caller(other, wires.open_session(opener))
            warm.call()  # the connection of another one; this one connects with its first call
            caller.connect()  # the connection is not what is measured
            first.append(caller.call())
            later.append(caller.call())
            caller.close()
    return median(first) / median(later)


def compare_workers(seconds: float) -> float:
    """Calls per second of two workers, as a multiple of one's."""
    with Node("", "--workers", "1") as one:
        alone = one.measure("add", seconds, 32)["rps"]
    with Node("", "--workers", "2") as two:
        return two.measure("add", seconds, 32)["rps"] / alone


def measure_answer(store: str, questions: int) -> float:
    """Milliseconds that an answer takes longer when it is posted to another node."""

    def answer_at(caller: Caller, other: Caller) -> float:
        took = []
        for number in range(questions):
            for message in caller.begin("POST", count_call("ask", number)):
                if message.get("method") == "elicitation/create":
                    result = {"action": "accept", "content": {"value": True}}
                    began = time.perf_counter()
                    other.post({"id": message["id"], "result": result})
                else:
                    took.append(time.perf_counter() - began)
        return median(took)

    with Node(store) as home, Node(store) as away:
        caller = Caller(home)
        here, there = Caller(home, caller.session), Caller(away, caller.session)
        there.call()
        return 1000 * (answer_at(caller, there) - answer_at(caller, here))


def measure_update(store: str, updates: int) -> float:
    """Milliseconds from a change at one node until it is heard at another: of 99 in 100."""
    with Node(store) as home, Node(store) as away:
        changer, listener = Caller(home), Caller(away)
        changer.call("touch")  # which is the first time for everything
        filter = {"resourceSubscriptions": ["note://one"]}
        params = {"notifications": filter}
        body = wires.write_request("modern", 1, "subscriptions/listen", params)
        head = wires.make_headers("modern", name="", method="subscriptions/listen")
        connection = wires.connect(away.port)
        connection.request("POST", "/mcp", body, head)
        events = iter(EventReader(connection.getresponse()))
        next(events)  # the acknowledgement
        took = []
        for _ in range(updates):
            began = time.perf_counter()
            changer.call("touch")
            next(events)
            took.append(time.perf_counter() - began)
        listener.close()
    return 1000 * quantiles(took, n=100)[98]


def measure_idle(store: str) -> float:
    """KiB that a session takes at a node with a store while nothing happens in it."""
    with Node(store) as node:
        opener = wires.connect(node.port)
        for _ in range(SESSIONS // 4):
            wires.open_session(opener)
        before = read_memory(node.process.pid)
        for _ in range(SESSIONS):
            wires.open_session(opener)
        return (read_memory(node.process.pid) - before) / SESSIONS


def measure_kill(store: str) -> tuple[float, float]:
    """Seconds from SIGKILL to the error of a call, and to the next call that is served."""
    with Node(store) as doomed, Node(store) as other:
        caller = Caller(doomed)
        reader = caller.begin("POST", count_call("work", 7))
        events = iter(reader)
        next(events)
        os.kill(doomed.process.pid, signal.SIGKILL)
        killed = time.monotonic()
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            for _ in events:
                pass
        again = Caller(other, caller.session)
        again.call()
        served = time.monotonic() - killed
        for message in again.begin("GET", None, **{"Last-Event-ID": reader.last_id}):
            if message.get("id") == 7 and "error" in message:
                return time.monotonic() - killed, served
    raise RuntimeError("the call had no error")


def measure_all(*, short: bool) -> dict[str, float]:
    """Every figure; those of Redis where there is one, else of SQLite."""
    scale = 1 if short else 4
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, run_redis(folder) as redis:
        stores = [redis] if redis else []
        stores.append(f"sqlite:///{folder}/scale.db")
        for store in stores:
            kind = "Redis" if store == redis else "SQLite"
            for key, measure in (
                ("json", lambda store: compare_json(store, 1.0 * scale)),
                ("sse", lambda store: compare_streams(store, 100 * scale)),
                ("adopt", lambda store: compare_adoption(store, 50 * scale)),
                ("answer", lambda store: measure_answer(store, 50 * scale)),
                ("update", lambda store: measure_update(store, 100 * scale)),
                ("idle", measure_idle),
            ):
                show(key, measure(store), kind, found)
            error, served = measure_kill(store)
            show("error", error, kind, found)
            show("next", served, kind, found)
    show("workers", compare_workers(1.0 * scale), "", found)
    return found


def show(key: str, figure: float, kind: str, found: dict[str, float]) -> None:
    """Print a figure, and keep the worst of its kind."""
    floor = FLOORS[key]
    worse = max if floor.upper else min
    found[key] = worse(found[key], figure) if key in found else figure
    met = figure <= floor.floor if floor.upper else figure >= floor.floor
    words = "" if met else "  BELOW ITS FLOOR" if not floor.upper else "  ABOVE ITS FLOOR"
    star = "*" if floor.starred else " "
    print(
        f"{star} {floor.measure:58} {kind:7} {figure:8.3f}  floor {floor.floor:g}, goal {floor.goal:g}{words}",
        flush=True,
    )


def main() -> int:
    """Print every figure; 1 where CI fails with one of them."""
    found = measure_all(short="--short" in sys.argv)
    return int(any(FLOORS[key].fails(figure) for key, figure in found.items()))


if __name__ == "__main__":
    sys.exit(main())
