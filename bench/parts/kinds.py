"""Kinds of tools: what async, Context, middleware, a lifespan, threads and records cost."""

from functools import partial

from load import Job
from results import LIMIT, Column, Table
from talks import HttpTalk
from turns import Run

MANY, ONE = "kinds", "kinds one"
TITLES = {
    "async": "async, µs",
    "context": "with `Context`",
    "structured": "a record as result",
    "middleware": "three middlewares",
    "lifespan": "a lifespan",
    "sync": "sync, in a thread",
    "on_loop": "sync, `blocking=False`",
}
CASES = {
    "async": "add",
    "context": "add_with_context",
    "structured": "add_structured",
    "middleware": "middleware",
    "lifespan": "lifespan",
    "sync": "add_in_thread",
    "on_loop": "add_on_loop",
}
COLUMNS = {name: Column(title) for name, title in TITLES.items()}
TABLES = (
    Table(MANY, "Kinds of tools, 2026-07-28 over HTTP, 64 connections: server CPU", COLUMNS),
    Table(ONE, "The same on one connection", COLUMNS),
)
AROUND = {"middleware", "lifespan"}  # something around the smallest tool


def measure(run: Run) -> None:
    """A server for each kind, which has that one tool."""
    for column, case in CASES.items():
        with run.open_http(MANY, case, "modern") as talks:
            take_kind(run, talks, column, "add" if case in AROUND else case)


def take_kind(run: Run, talks: dict[str, HttpTalk], column: str, tool: str) -> None:
    """Everybody's calls of one tool, on many connections and on one."""
    for table, connections in ((MANY, 64), (ONE, 1)):
        works = {
            name: partial(time_kind, talk, column, tool, connections, run.effort.seconds / 2)
            for name, talk in talks.items()
            if name != LIMIT
        }
        run.take_turns(table, works, min(3, run.effort.rounds))


def time_kind(
    talk: HttpTalk, column: str, tool: str, connections: int, seconds: float
) -> dict[str, float]:
    """Microseconds of server CPU of a call."""
    job = Job(talk.pid, talk.port, talk.wire, connections, seconds, tool)
    return {column: job.run()["cpu_us"]}
