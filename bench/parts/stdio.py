"""Calls over a pipe: one after another, 64 in flight, and at full speed for a while."""

import time
from functools import partial

import wires
from processes import cpu_seconds
from results import ISTHMUS, MCP, Column, Table
from talks import PipeTalk
from turns import Run

CALLS, ENDURANCE = "stdio", "stdio endurance"
TABLES = (
    Table(
        CALLS,
        "stdio `tools/call`, 2025-06-18",
        {
            "sequential_us": Column("server CPU one after another, µs/call"),
            "flight_us": Column("server CPU, 64 in flight, µs/call"),
            "sequential": Column("calls/s, one after another", less=False, pick="median"),
            "flight_64": Column("calls/s, 64 in flight", less=False, pick="median"),
        },
    ),
    Table(
        ENDURANCE,
        "stdio at full speed, 64 in flight, without a pause",
        {
            "calls": Column("calls", less=False, pick="median", compared=False),
            "seconds": Column("seconds", less=False, pick="median", compared=False),
            "errors": Column("errors among the answers", compared=False),
        },
    ),
)
IN_FLIGHT = 64
PREPARED = 4096
WARM_UP_S = 0.2


def measure(run: Run) -> None:
    """Everybody's calls in turn; then everybody at full speed, once."""
    with run.open_pipes(CALLS, "add") as talks:
        works = {name: partial(measure_calls, talk, run) for name, talk in talks.items()}
        run.take_turns(CALLS, works)
    seconds = run.effort.endurance
    names = (ISTHMUS,) if run.effort.short else (ISTHMUS, MCP)
    with run.open_pipes(ENDURANCE, "add", *names) as talks:
        works = {name: partial(endure, talk, seconds) for name, talk in talks.items()}
        run.take_turns(ENDURANCE, works, rounds=1, timeout=seconds + 60)


def measure_calls(talk: PipeTalk, run: Run) -> dict[str, float]:
    """The columns of one server in one round."""
    template = wires.write_template("legacy") + b"\n"
    call_one_by_one(talk, template, WARM_UP_S)
    began, rate = cpu_seconds(talk.pid), call_one_by_one(talk, template, run.effort.seconds)
    between = cpu_seconds(talk.pid)
    many = call_in_flight(talk, template, run.effort.seconds)
    ended = cpu_seconds(talk.pid)
    return {
        "sequential_us": (between - began) / rate["calls"] * 1e6,
        "flight_us": (ended - between) / many["calls"] * 1e6,
        "sequential": rate["calls"] / rate["seconds"],
        "flight_64": many["calls"] / many["seconds"],
    }


def call_one_by_one(talk: PipeTalk, template: bytes, seconds: float) -> dict[str, float]:
    """Calls with one under way, and the seconds they took; every answer is checked."""
    start = now = time.perf_counter()
    first = number = talk.last_id + 1
    while now < start + seconds:
        talk.send(template % (number, number))
        answer = talk.read_line()
        if wires.expected_sum(number) not in answer:
            raise RuntimeError(f"call {number}: {answer[:300]!r}")
        number += 1
        now = time.perf_counter()
    talk.last_id = number
    return {"calls": number - first, "seconds": now - start}


def call_in_flight(talk: PipeTalk, template: bytes, seconds: float) -> dict[str, float]:
    """Calls with 64 under way, their seconds, and how many answers were errors.

    The ids come again after many thousand calls, long after their answers.
    """
    ready = [template % (n, n) for n in range(2_000_000, 2_000_000 + PREPARED)]
    sent, done, errors = IN_FLIGHT, 0, 0
    talk.send(b"".join(ready[:sent]))
    start = now = time.perf_counter()
    while now < start + seconds:
        data = talk.read_some()
        if not done and b'"result"' not in data:
            raise RuntimeError(f"not a result: {data[:300]!r}")
        errors += data.count(b'"error"')
        arrived = data.count(b"\n")
        done += arrived
        talk.send(b"".join(ready[(sent + k) % PREPARED] for k in range(arrived)))
        sent += arrived
        now = time.perf_counter()
    while done < sent:
        data = talk.read_some()
        errors += data.count(b'"error"')
        done += data.count(b"\n")
    return {"calls": done, "seconds": time.perf_counter() - start, "errors": errors}


def endure(talk: PipeTalk, seconds: float) -> dict[str, float]:
    """Full speed without a pause: no limit of the server may be met."""
    return call_in_flight(talk, wires.write_template("legacy") + b"\n", seconds)
