"""Calls that wait: in threads, for an answer of the user, and for time to pass."""

import json
import time
from functools import partial

import wires
from processes import cpu_seconds, read_memory
from results import ISTHMUS, MCP, Column, Table
from talks import PipeTalk
from turns import Run

BLOCKING, ASKING, WAITING = "blocking", "waiting for answers", "waiting"
BLOCKING_CALLS, BLOCKING_MS = 100, 200
WAITING_CALLS, WAITING_MS = 1_500, 1_000
ASKING_CALLS = 150  # more than there are threads
TABLES = (
    Table(
        BLOCKING,
        f"{BLOCKING_CALLS} calls at once of a sync tool that blocks for {BLOCKING_MS} ms, stdio",
        {"all_ms": Column("all answered after, ms", pick="median")},
    ),
    Table(
        ASKING,
        f"A quick sync tool beside {ASKING_CALLS} sync tools that wait for the user, 2025-06-18",
        {
            "asked": Column("questions that arrive", less=False, pick="median"),
            "quick_ms": Column("the quick one answered after, ms", pick="median"),
        },
        compared=False,
    ),
    Table(
        WAITING,
        f"{WAITING_CALLS:,} calls at once of an async tool that waits for {WAITING_MS:,} ms, stdio",
        {
            "waiting_us": Column("server CPU, µs/call"),
            "waiting_kib": Column("memory, KiB/call", pick="median"),
            "all_ms": Column("all answered after, ms", pick="median"),
        },
    ),
)
QUICK_TIMEOUT_S = 20


def measure(run: Run) -> None:
    """Blocking tools, tools that ask, and tools that wait."""
    rounds = 1 if run.effort.short else 3
    with run.open_pipes(BLOCKING, "blocking", ISTHMUS, MCP) as talks:
        works = {name: partial(block_threads, talk) for name, talk in talks.items()}
        run.take_turns(BLOCKING, works, rounds)
    with run.open_pipes(ASKING, "blocking", ISTHMUS) as talks:
        works = {name: partial(ask_in_threads, talk) for name, talk in talks.items()}
        run.take_turns(ASKING, works, rounds=1)
    with run.open_pipes(WAITING, "waiting") as talks:
        works = {name: partial(wait_together, talk) for name, talk in talks.items()}
        run.take_turns(WAITING, works, rounds)


def write_calls(first: int, count: int, tool: str, arguments: dict[str, int]) -> bytes:
    """Calls of a tool, a line each."""
    params = {"name": tool, "arguments": arguments}
    return b"".join(
        wires.write_request("legacy", first + n, "tools/call", params) + b"\n" for n in range(count)
    )


def read_answers(talk: PipeTalk, count: int) -> None:
    """Wait until so many answers came; raises when one is an error."""
    while count > 0:
        data = talk.read_line()
        if b'"error"' in data or b'"isError":true' in data.replace(b" ", b""):
            raise RuntimeError(f"a call failed: {data[:300]!r}")
        count -= data.count(b"\n")


def block_threads(talk: PipeTalk) -> dict[str, float]:
    """Milliseconds until all blocking calls are answered."""
    calls = write_calls(talk.last_id + 1, BLOCKING_CALLS, "block", {"ms": BLOCKING_MS})
    talk.last_id += BLOCKING_CALLS
    began = time.perf_counter()
    talk.send(calls)
    read_answers(talk, BLOCKING_CALLS)
    return {"all_ms": (time.perf_counter() - began) * 1e3}


def wait_together(talk: PipeTalk) -> dict[str, float]:
    """CPU, memory and milliseconds of many calls that wait."""
    fresh = talk.last_id == wires.FIRST_ID  # afterwards the memory is there already
    calls = write_calls(talk.last_id + 1, WAITING_CALLS, "pause", {"ms": WAITING_MS})
    talk.last_id += WAITING_CALLS
    weight, cpu, began = read_memory(talk.pid), cpu_seconds(talk.pid), time.perf_counter()
    talk.send(calls)
    read_answers(talk, WAITING_CALLS)
    took = time.perf_counter() - began
    found = {
        "waiting_us": (cpu_seconds(talk.pid) - cpu) / WAITING_CALLS * 1e6,
        "all_ms": took * 1e3,
    }
    if fresh:
        found["waiting_kib"] = max(0.0, read_memory(talk.pid) - weight) / WAITING_CALLS
    return found


def ask_in_threads(talk: PipeTalk) -> dict[str, float]:
    """How many questions arrive, and when a quick tool beside them is answered; none is answered."""
    quick = talk.last_id + ASKING_CALLS + 1
    talk.send(write_calls(talk.last_id + 1, ASKING_CALLS, "ask", {}))
    talk.send(write_calls(quick, 1, "quick", {}))
    asked, began, took = 0, time.perf_counter(), 0.0
    while not took or asked < ASKING_CALLS:
        if time.perf_counter() > began + QUICK_TIMEOUT_S:
            raise RuntimeError(f"{asked} questions, and no more within {QUICK_TIMEOUT_S} s")
        for line in talk.read_line().splitlines():
            frame = json.loads(line)
            asked += frame.get("method") == "elicitation/create"
            if frame.get("id") == quick and "result" in frame:
                took = time.perf_counter() - began
    return {"asked": asked, "quick_ms": took * 1e3}
