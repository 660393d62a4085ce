"""Costs of the gateway, as ratios of one run, with floors: ``python bench/gateway.py [--short]``.

A call over HTTP goes to a server, to a server that calls on by a client (the bare hop), through the
gateway with its state in memory and in a file, and through FastMCP's proxy where that can be had. Lists,
idle sessions and a stalled server follow. Ends with 1 where a starred figure is beyond its bound, which
is further off than the floor: machines of CI are busy, and have two cores for three processes.
"""

import asyncio
import contextlib
import http.client
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import wires
from load import Job
from processes import (
    HERE,
    SERVER_CORE,
    find_free_port,
    raise_file_limit,
    read_memory,
    run_child,
    wait_listening,
)

sys.path.insert(0, str(HERE.parent / "tools"))

import peers

from isthmus import Client, Server
from isthmus.gateway import Gateway
from isthmus.host import Host
from isthmus.host.model.gateway_options import GatewayOptions

SERVERS = HERE / "servers"
WIRE = "modern"
SESSIONS = 1_000
CONNECTIONS = 32
LISTED_SERVERS, LISTED_TOOLS = 10, 50
LISTS = 60
STALLED_CALLS = 4
ROUNDS = 3
ATTEMPTS = 3  # a busy moment is no miss


@dataclass(frozen=True)
class GatewayFloor:
    """What one figure must reach.

    Attributes:
        measure: in words.
        floor, goal: the bounds.
        upper: less is better.
        bound: CI fails beyond it; None where it fails for no value.
        unit: of all figures.
    """

    measure: str
    floor: float
    goal: float
    upper: bool = True
    bound: float | None = None
    unit: str = "times"

    def holds(self, value: float, most: float | None) -> bool:
        """Whether a figure is within the floor, the goal or the bound."""
        return most is None or (value <= most if self.upper else value >= most)


FLOORS = {
    "added": GatewayFloor("added p50, of the bare hop's", 3.0, 1.8, bound=5.0),
    "durable": GatewayFloor("the same with a durable intent", 4.0, 2.5, bound=9.0),
    "fastmcp": GatewayFloor("added p50, of FastMCP's create_proxy", 1 / 15, 1 / 30, bound=1 / 15),
    "rate": GatewayFloor(
        "calls/s of a core at 32 connections, of direct", 0.15, 0.25, False, bound=0.03
    ),
    "list": GatewayFloor("list of 500 tools of 10 servers, of one server", 2.0, 1.3, bound=3.0),
    "idle": GatewayFloor("idle legacy session", 8.0, 5.0, unit="KiB"),
    "stalled": GatewayFloor("p99 beside a stalled server, of without", 1.5, 1.2),
}


class Served:
    """A process that serves over HTTP.

    Args:
        process: the process.
        port: where it listens.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        self.process = process
        self.port = port

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def measure(self, tool: str, seconds: float, connections: int = 1) -> dict[str, float]:
        """Calls per second and latencies of a tool."""
        return Job(self.process.pid, self.port, WIRE, connections, seconds, tool).run()


@contextlib.contextmanager
def serve(argv: list[str], port: int) -> Iterator[Served]:
    """Run something that serves, until the block is left."""
    with run_child(argv, SERVER_CORE) as process:
        wait_listening(port, process)
        yield Served(process, port)


def serve_direct(stack: contextlib.ExitStack) -> Served:
    """The server itself."""
    port = find_free_port()
    argv = [sys.executable, str(SERVERS / "ours.py"), "add", "http", str(port), "json"]
    return stack.enter_context(serve(argv, port))


def serve_script(stack: contextlib.ExitStack, python: str, name: str, url: str) -> Served:
    """A script that is given the server's URL and a port."""
    port = find_free_port()
    return stack.enter_context(serve([python, str(SERVERS / name), url, str(port)], port))


def serve_gateway(stack: contextlib.ExitStack, state: str, **servers: Served) -> Served:
    """The gateway, in front of servers by name."""
    port = find_free_port()
    named = [f"{name}={served.url}" for name, served in servers.items()]
    argv = [sys.executable, str(SERVERS / "gateway.py"), str(port), state, *named]
    return stack.enter_context(serve(argv, port))


def compare_calls(seconds: float) -> dict[str, float]:
    """Calls by all ways, which take turns."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        direct = serve_direct(stack)
        ways = {
            "direct": (direct, "add"),
            "hop": (serve_script(stack, sys.executable, "hop.py", direct.url), "add"),
            "memory": (serve_gateway(stack, "", calc=direct), "calc__add"),
            "durable": (serve_gateway(stack, folder, calc=direct), "calc__add"),
        }
        python = find_fastmcp()
        if python is not None:
            ways["fastmcp"] = serve_script(stack, python, "fastmcp_proxy.py", direct.url), "add"
        rounds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, (served, tool) in ways.items():
                rounds[name].append(served.measure(tool, seconds)["p50_ms"])
        p50 = {name: median(seen) for name, seen in rounds.items()}
        rates = compare_rates({name: ways[name] for name in ("direct", "memory")}, seconds)
    for name, ms in p50.items():
        print(f"{name}: p50 {ms:.3f} ms", file=sys.stderr)
    added = {name: ms - p50["direct"] for name, ms in p50.items()}
    found = {
        "added": added["memory"] / added["hop"],
        "durable": added["durable"] / added["hop"],
        "rate": rates["memory"] / rates["direct"],
    }
    if "fastmcp" in added:
        found["fastmcp"] = added["memory"] / added["fastmcp"]
    return found


def compare_rates(ways: dict[str, tuple[Served, str]], seconds: float) -> dict[str, float]:
    """Calls that a core serves in a second with many connections: of its CPU, the least of rounds in turn.

    The rate itself says more about what else runs: the load tool and a direct server are as fast as each other,
    and share two cores with whatever is there.
    """
    seen: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, (served, tool) in ways.items():
            seen[name].append(served.measure(tool, seconds, CONNECTIONS)["cpu_us"])
    for name, spent in seen.items():
        says = f"{min(spent):.0f} µs of CPU for a call at {CONNECTIONS} connections"
        print(f"{name}: {says}", file=sys.stderr)
    return {name: 1e6 / min(spent) for name, spent in seen.items()}


def find_fastmcp() -> str | None:
    """The Python of an environment with FastMCP; None where it cannot be made."""
    try:
        return str(peers.python("fastmcp"))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"without FastMCP: {error}", file=sys.stderr)
        return None


def make_listed(name: str, tools: int) -> Server:
    """A server with many tools."""
    server: Server = Server(name, list_ttl_ms=0)
    for number in range(tools):

        async def act(a: int, text: str = "") -> str:
            """Do something with a number and a text, and tell of it."""
            return f"{a}{text}"

        server.add_tool(act, name=f"tool_{number}")
    return server


async def measure_list(target: Server) -> float:
    """Seconds of CPU of a list of all tools, the median."""
    async with Client(target) as client:
        for _ in range(5):
            tools = await client.list_tools(fresh=True)
        if len(tools) != LISTED_SERVERS * LISTED_TOOLS:
            raise RuntimeError(f"{len(tools)} tools were listed")
        seen = []
        for _ in range(LISTS):
            start = time.process_time()
            await client.list_tools(fresh=True)
            seen.append(time.process_time() - start)
    return median(seen)


async def compare_lists() -> float:
    """A list of the gateway's 500 tools against that of one server."""
    one = await measure_list(make_listed("one", LISTED_SERVERS * LISTED_TOOLS))
    host = Host()
    for number in range(LISTED_SERVERS):
        host.add(f"server{number}", make_listed(f"server{number}", LISTED_TOOLS))
    options = GatewayOptions(search="never")  # the tools themselves, however many
    async with Gateway(host, options=options) as gateway:
        all_of_them = await measure_list(gateway.server)
    print(f"list: {one * 1e3:.2f} ms of one, {all_of_them * 1e3:.2f} ms", file=sys.stderr)
    return all_of_them / one


def measure_idle() -> float:
    """KiB of an idle legacy session."""
    with contextlib.ExitStack() as stack:
        gateway = serve_gateway(stack, "", calc=serve_direct(stack))
        open_sessions(gateway, SESSIONS // 10)
        before = read_memory(gateway.process.pid)
        open_sessions(gateway, SESSIONS)
        return (read_memory(gateway.process.pid) - before) / SESSIONS


def open_sessions(served: Served, count: int) -> None:
    """Open sessions that then say nothing."""
    connection = wires.connect(served.port)
    for _ in range(count):
        wires.open_session(connection)
    connection.close()


def measure_stalled(seconds: float) -> float:
    """The p99 of calls to one server while another one is stopped, of that without."""
    with contextlib.ExitStack() as stack:
        good, bad = serve_direct(stack), serve_direct(stack)
        gateway = serve_gateway(stack, "", good=good, bad=bad)
        gateway.measure("bad__add", 0.2)
        before = gateway.measure("good__add", seconds, 4)["p99_ms"]
        os.kill(bad.process.pid, signal.SIGSTOP)
        try:
            waiting = [send_call(gateway, "bad__add") for _ in range(STALLED_CALLS)]
            after = gateway.measure("good__add", seconds, 4)["p99_ms"]
            for connection in waiting:
                connection.close()
        finally:
            os.kill(bad.process.pid, signal.SIGCONT)
    return after / before


def send_call(served: Served, tool: str) -> http.client.HTTPConnection:
    """Send a call whose answer is not waited for."""
    body = wires.write_template(WIRE, tool) % (wires.FIRST_ID, wires.FIRST_ID)
    connection = wires.connect(served.port)
    connection.request("POST", "/mcp", body, wires.make_headers(WIRE, "", tool))
    return connection


MEASURES: tuple[Callable[[float], dict[str, float]], ...] = (
    compare_calls,
    lambda _seconds: {"list": asyncio.run(compare_lists())},
    lambda _seconds: {"idle": measure_idle()},
    lambda seconds: {"stalled": measure_stalled(seconds)},
)
"""Each gives some of the figures by their names, measured for so many seconds at a time."""


def measure_patiently(
    measure: Callable[[float], dict[str, float]], seconds: float
) -> dict[str, float]:
    """The figures of one measure; it is made again where one of them is beyond its bound."""
    found: dict[str, float] = {}
    for _ in range(ATTEMPTS):
        found = measure(seconds)
        if not is_missed(found):
            break
    return found


def is_missed(found: dict[str, float]) -> bool:
    """Whether a figure is beyond its bound."""
    return any(not FLOORS[name].holds(value, FLOORS[name].bound) for name, value in found.items())


def main() -> int:
    """Print the table."""
    raise_file_limit()
    seconds = 0.7 if "--short" in sys.argv else 3.0
    found: dict[str, float] = {}
    for measure in MEASURES:
        found |= measure_patiently(measure, seconds)
    print("| measure | seen | floor | goal | |\n| --- | ---: | ---: | ---: | --- |")
    for name, floor in FLOORS.items():
        if name not in found:
            continue
        value = found[name]
        reached = "goal" if floor.holds(value, floor.goal) else "floor"
        reached = reached if floor.holds(value, floor.floor) else "missed"
        if floor.bound is not None:
            reached += f", {'held' if floor.holds(value, floor.bound) else 'BROKEN'}*"
        print(
            f"| {floor.measure} | {value:.3f} {floor.unit} | {floor.floor:.3f} | {floor.goal:.3f} | "
            f"{reached} |"
        )
    return int(is_missed(found))


if __name__ == "__main__":
    sys.exit(main())
