"""Legacy sessions over HTTP: their memory, and what many of them make a call cost."""

import socket
import time
from contextlib import ExitStack, closing
from functools import partial

from contenders import Contender
from load import Job
from processes import cpu_seconds, find_free_port, read_memory, run_child, wait_listening
from results import ISTHMUS, MCP, Column, Table, make_sizes
from talks import HttpTalk
from turns import Run

MEMORY, OPENING, CALLING = "sessions", "sessions open", "sessions call"
SHARED = "sessions shared"
SECOND_CONNECTIONS = 40
APPLICATIONS = {ISTHMUS: "workers_ours:app", MCP: "workers_mcp_package:app"}
COUNTS = (1, 100, 1_000, 3_000)
TABLES = (
    Table(
        MEMORY,
        "KiB of server memory for each legacy session",
        {
            "idle_kib": Column("idle", pick="median"),
            "stream_kib": Column("with its stream open", pick="median"),
        },
    ),
    Table(
        OPENING,
        "Server CPU to open a session, by the sessions that are open",
        make_sizes("µs", COUNTS[1:]),
    ),
    Table(
        CALLING,
        "Server CPU of a call, 64 connections, by the sessions that are open",
        make_sizes("µs", COUNTS),
    ),
    Table(
        SHARED,
        "Legacy sessions on two processes (`uvicorn --workers 2`), each used by a second connection",
        {"found": Column(f"found, of {SECOND_CONNECTIONS}", less=False, pick="median")},
        compared=False,
    ),
)
SETTLE_S = 0.7
WARM_SESSIONS = 50


def measure(run: Run) -> None:
    """Memory first, each server fresh; then calls among more and more sessions."""
    count = 400 if run.effort.short else 1_000
    with_sessions = [one for one in run.field if one.stdio]  # the limit has none
    for one in with_sessions:
        run.take(MEMORY, one.name, partial(weigh_sessions, one, count))
    if not run.effort.short:
        grow_sessions(run)
        for one in with_sessions:
            if one.name in APPLICATIONS:
                run.take(SHARED, one.name, partial(count_shared, one))


def weigh_sessions(one: Contender, count: int) -> dict[str, float]:
    """KiB of the server for each idle legacy session, without and with its GET stream."""
    port = find_free_port()
    with run_child(one.over_http(port, "legacy json")) as process, ExitStack() as stack:
        wait_listening(port, process)
        talk = HttpTalk(process.pid, port, "legacy json")
        stack.callback(talk.close)
        for _ in range(WARM_SESSIONS):
            open_stream(talk, talk.open_session(), stack)
        base = weigh_settled(talk.pid)
        names = [talk.open_session() for _ in range(count)]
        idle = weigh_settled(talk.pid)
        for name in names:
            open_stream(talk, name, stack)
        full = weigh_settled(talk.pid)
    return {"idle_kib": (idle - base) / count, "stream_kib": (full - base) / count}


def open_stream(talk: HttpTalk, name: str, stack: ExitStack) -> socket.socket:
    """Open the stream of a session until the stack ends."""
    return stack.enter_context(talk.open_stream(name))


def weigh_settled(pid: int) -> float:
    """Resident memory once the process has caught up with what it was sent, KiB."""
    time.sleep(SETTLE_S)
    return read_memory(pid)


def grow_sessions(run: Run) -> None:
    """Calls of 64 sessions while more and more others are open and idle."""
    with run.open_http(OPENING, "add", "legacy json") as talks, ExitStack() as stack:
        left = {name: talk for name, talk in talks.items() if talk.session}
        live = 1  # each talk has one
        for count in COUNTS:
            for name, talk in list(left.items()):
                if count > live and not run.take(
                    OPENING, name, partial(open_many, talk, live, count, stack)
                ):
                    del left[name]
            live = count
            works = {
                name: partial(time_calls, talk, count, run.effort.seconds / 2)
                for name, talk in left.items()
            }
            run.take_turns(CALLING, works, rounds=2)


def open_many(talk: HttpTalk, live: int, count: int, stack: ExitStack) -> dict[str, float]:
    """Open sessions until so many are there; microseconds of CPU for each."""
    before = cpu_seconds(talk.pid)
    names = [talk.open_session() for _ in range(count - live)]
    spent = cpu_seconds(talk.pid) - before
    for name in names:
        open_stream(talk, name, stack)
    return {str(count): spent / (count - live) * 1e6}


def time_calls(talk: HttpTalk, count: int, seconds: float) -> dict[str, float]:
    """Microseconds of CPU of a call."""
    return {str(count): Job(talk.pid, talk.port, talk.wire, 64, seconds).run()["cpu_us"]}


def count_shared(one: Contender) -> dict[str, float]:
    """How many sessions a second connection finds, which may reach the other process."""
    port, python = find_free_port(), one.command[0]
    options = ["--workers", "2", "--port", str(port), "--log-level", "warning"]
    argv = [python, "-m", "uvicorn", *options, "--app-dir", "servers", APPLICATIONS[one.name]]
    found = 0
    with run_child(argv) as process:
        wait_listening(port, process)
        for _ in range(SECOND_CONNECTIONS):
            with closing(HttpTalk(process.pid, port, "legacy json")) as talk:
                session = talk.open_session()
            with closing(HttpTalk(process.pid, port, "legacy json")) as talk:
                talk.session = session
                found += talk.is_known()
    return {"found": found}
