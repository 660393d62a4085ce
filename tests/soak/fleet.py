"""Fifty servers under one host: ``python tests/soak/fleet.py [--calls 10000]``.

Some are in memory, some are processes; one is slow to start, one is silent, one floods its log and
its standard error, one crashes whenever it is started. The host is up at once, the good servers are
there as soon as the slowest of them, a decision of policy stays quick while all of that goes on,
and ten thousand calls, each with its rows in the audit log, leave memory as it was. Ends with 0 where that holds, with 1 and what does
not where it does not.
"""

import argparse
import asyncio
import gc
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from isthmus import Server
from isthmus.host.host import Host
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.entries import HostConfig, ServerEntry, ServerLimits, ServerOptions
from isthmus.host.model.facts import Facts
from isthmus.runtime.sorted_ids import new_id

IN_MEMORY = 34
PROCESSES = 12
SLOW = 2.0
"""Seconds that the slowest good server takes until it answers at all."""

SPARE = 2.0
"""Seconds beyond those that the start of fifty servers may take on a busy machine."""

DECISION = 0.005
"""Seconds that 99 of 100 decisions stay below."""

GROWTH = 4 * 1024
"""KiB that memory may grow by after the warm-up."""

TOGETHER = 40
WARM = 0.3

ENOUGH = ServerLimits(calls=None, concurrency=TOGETHER)

POLICY = """
[[rule]]
id = "work"
effect = "allow"
when = { action = "tool.call", tool = "work" }
"""

SERVER = """
import json, sys, time
LATE

def say(**members):
    print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)

INFO = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
    "capabilities": {"tools": {}, "logging": {}}}
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        say(id=message["id"], result=INFO)
    elif message.get("method") == "notifications/initialized":
        BEGUN
    elif message.get("method") == "tools/list":
        say(id=message["id"], result={"tools": [{"name": "work", "inputSchema": {"type": "object"}}]})
    elif "id" in message:
        say(id=message["id"], result={"content": [{"type": "text", "text": "done"}]})
"""
LOG = (
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"flood"}}\n'
)
FLOOD = f"""
        from threading import Thread
        def shout():
            while True:
                sys.stderr.write("z" * 4000 + chr(10))
        Thread(target=shout, daemon=True).start()
        def log():
            while True:
                sys.stdout.write({LOG!r} * 100)
        Thread(target=log, daemon=True).start()
"""


def entry(name: str, late: str = "", begun: str = "pass") -> ServerEntry:
    """A server that is a process."""
    code = SERVER.replace("LATE", late).replace("BEGUN", begun)
    options = ServerOptions(start="eager", era="legacy", limits=ENOUGH)
    return ServerEntry(name=name, command=(sys.executable, "-I", "-S", "-c", code), options=options)


def fleet() -> dict[str, ServerEntry]:
    """The servers that are processes."""
    good = [entry(f"process{n}") for n in range(PROCESSES)]
    bad = [
        entry("slow", late=f"time.sleep({SLOW})"),
        entry("silent", late="time.sleep(3600)"),
        entry("flooding", begun=FLOOD),
        entry("crashing", late="sys.exit('I crash')"),
    ]
    return {one.name: one for one in (*good, *bad)}


def small() -> Server:
    """What is in memory."""
    server = Server("small")

    @server.tool
    async def work(number: int) -> str:
        """Work."""
        return f"done {number}"

    return server


def memory_kib() -> int:
    """KiB that are resident."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


class Fleet:
    """The host of the fifty, and what was measured.

    Args:
        folder: where it keeps its state.
    """

    def __init__(self, folder: Path) -> None:
        policy = folder / "policy.toml"
        policy.write_text(POLICY, encoding="utf-8")
        config = HostConfig(servers=fleet())
        self.host = Host(config, approver=lambda _asked: True, policy=policy, state=folder)
        server = small()
        for number in range(IN_MEMORY):
            self.host.add(f"memory{number}", server, start="eager", limits=ENOUGH)
        self.decisions: list[float] = []
        self.turns: list[float] = []
        self.there = asyncio.Event()
        bad = {"silent", "flooding", "crashing"}
        self.good = [name for name in self.host.config.servers if name not in bad]

    async def call(self, name: str, number: int) -> None:
        """Decide, and call."""
        attempt = Attempt(
            id=new_id(),
            action="tool.call",
            principal="user:local",
            server=name,
            object="work",
            arguments={"number": number},
        )
        began = time.perf_counter()
        self.host.core.pipeline.policy.decide(attempt, Facts())
        self.decisions.append(time.perf_counter() - began)
        await self.host.call("work", {"number": number}, server=name)

    async def watch(self) -> None:
        """How long the event loop takes for a turn."""
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0)
            self.turns.append(time.perf_counter() - began)
            await asyncio.sleep(0.01)

    async def follow(self) -> None:
        """See when every good server is there."""
        async for _ in self.host.events():
            if all(self.host.servers[name].state == "ready" for name in self.good):
                self.there.set()
                return


def p99(values: list[float]) -> float:
    """What 99 of 100 stay below."""
    return statistics.quantiles(values, n=100)[98]


def faults(measured: dict[str, float], calls: int) -> Iterator[str]:
    """What does not hold."""
    if measured["up"] > SLOW + SPARE:
        yield f"the good servers were there after {measured['up']:.2f} s"
    if measured["open"] > 0.5:
        yield f"opening took {measured['open']:.2f} s"
    if measured["p99"] > DECISION:
        yield f"99 of 100 decisions took up to {measured['p99'] * 1000:.2f} ms"
    if measured["growth"] > GROWTH:
        yield f"memory grew by {measured['growth']:.0f} KiB in {calls} calls"


async def soak(calls: int, folder: Path) -> int:
    """Start, call, measure."""
    ours = Fleet(folder)
    following = asyncio.create_task(ours.follow())
    watching = asyncio.create_task(ours.watch())
    await asyncio.sleep(0)
    began = time.perf_counter()
    await ours.host.open()
    measured = {"open": time.perf_counter() - began}
    try:
        async with asyncio.timeout(60):
            await ours.there.wait()
        measured["up"] = time.perf_counter() - began
        async with asyncio.timeout(120):
            for first in range(0, calls, TOGETHER):
                numbers = range(first, min(calls, first + TOGETHER))
                await asyncio.gather(
                    *(ours.call(ours.good[number % len(ours.good)], number) for number in numbers)
                )
                if first <= calls * WARM:
                    warm = memory_kib() if first + TOGETHER > calls * WARM else 0
        measured["calls"] = time.perf_counter() - began - measured["up"]
        measured["growth"] = memory_kib() - warm
        measured["p99"] = p99(ours.decisions)
        states = {name: server.state for name, server in ours.host.servers.items()}
    finally:
        watching.cancel()
        following.cancel()
        await ours.host.close()
    return report(ours, measured, states, calls)


def report(ours: Fleet, measured: dict[str, float], states: dict[str, str], calls: int) -> int:
    """Print the figures; the exit code."""
    odd = {name: state for name, state in states.items() if state != "ready"}
    print(f"servers: {len(states)}, not ready: {odd}; flooding is {states['flooding']}")
    print(f"open() returned after {measured['open'] * 1000:.1f} ms")
    print(f"all good servers were ready after {measured['up']:.2f} s; the slowest takes {SLOW} s")
    rate = calls / measured["calls"]
    print(f"{calls} calls in {measured['calls']:.1f} s, {rate:.0f} a second, beside the flood")
    print(f"decisions: p99 {measured['p99'] * 1e6:.0f} µs, max {max(ours.decisions) * 1e6:.0f} µs")
    print(f"turns of the loop: p99 {p99(ours.turns) * 1000:.2f} ms")
    print(f"memory after the warm-up: {measured['growth']:+.0f} KiB")
    wrong = list(faults(measured, calls))
    print("wrong: " + "; ".join(wrong) if wrong else "as it should be")
    return 1 if wrong else 0


def main() -> int:
    """Read the arguments, and soak."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=10_000)
    asked = parser.parse_args()
    logging.getLogger("isthmus").setLevel(logging.CRITICAL)  # it is all on purpose
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(soak(asked.calls, Path(folder)))


if __name__ == "__main__":
    raise SystemExit(main())
