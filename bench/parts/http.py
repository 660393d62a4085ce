"""Calls over HTTP: 64 connections, one connection, and the latency at 16, on three wires."""

from dataclasses import replace
from functools import partial

from load import Job
from results import Column, Table
from talks import HttpTalk
from turns import Run

COLUMNS = {
    "cpu_us": Column("server CPU at 64 connections, µs/call"),
    "cpu_us_1": Column("server CPU at one, µs/call"),
    "rps_64": Column("calls/s at 64", less=False, pick="median"),
    "rps_1": Column("calls/s at one", less=False, pick="median"),
    "p99_16_ms": Column("p99 at 16, ms", pick="median", compared=False),
}
TITLES = {
    "legacy json": "HTTP `tools/call`, a 2025-06-18 session, JSON answers",
    "legacy sse": "HTTP `tools/call`, a 2025-06-18 session, each answer an event stream",
    "modern": "HTTP `tools/call`, 2026-07-28",
}
# A peer's own CPU for streams differs by a factor of two from round to round, on an idle machine, too: its
# luckiest round is no measure of it.
STREAM_COLUMNS = {**COLUMNS, "cpu_us": replace(COLUMNS["cpu_us"], pick="median")}

TABLES = tuple(
    Table(f"http {wire}", title, STREAM_COLUMNS if wire == "legacy sse" else COLUMNS)
    for wire, title in TITLES.items()
)


def measure(run: Run) -> None:
    """Everybody on each wire, all servers alive at once."""
    for wire in TITLES:
        table = f"http {wire}"
        with run.open_http(table, "add", wire) as talks:
            works = {name: partial(measure_calls, talk, run) for name, talk in talks.items()}
            run.take_turns(table, works)


def measure_calls(talk: HttpTalk, run: Run) -> dict[str, float]:
    """The columns of one server in one round."""
    seconds = run.effort.seconds
    many = Job(talk.pid, talk.port, talk.wire, 64, seconds).run()
    one = Job(talk.pid, talk.port, talk.wire, 1, seconds / 2).run()
    found = {
        "cpu_us": many["cpu_us"],
        "cpu_us_1": one["cpu_us"],
        "rps_64": many["rps"],
        "rps_1": one["rps"],
    }
    if not run.effort.short:
        few = Job(talk.pid, talk.port, talk.wire, 16, seconds).run()
        found["p99_16_ms"] = few["p99_ms"]
    return found
