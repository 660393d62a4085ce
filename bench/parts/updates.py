"""Notifications of a server: changes of resources among many sessions, and progress."""

from contextlib import ExitStack
from functools import partial

import wires
from processes import cpu_seconds
from results import ISTHMUS, Column, Table, make_sizes
from talks import HttpTalk, PipeTalk, is_answer
from turns import Run

SESSIONS = (100, 1_000, 10_000)
SHORT_MOST = 1_000
UPDATES = "updates"
PROGRESS = ("progress stdio", "progress modern", "progress legacy")
REPORTS, CALLS = 100, 50
WIRES = {"progress modern": "modern sse", "progress legacy": "legacy sse"}  # reports need a stream
HEADS = {
    "report_us": Column("server CPU, µs/report"),
    "arrived_first": Column("arrive of 100, first 10 calls", False, "median", compared=False),
    "arrived_last": Column("arrive of 100, last 10 calls", False, "median", compared=False),
    "last_sent": Column("calls whose last report arrives, of 50", False, "median"),
}
TABLES = (
    Table(
        UPDATES,
        "`notify_resource_updated` with one subscriber, by the sessions: server CPU",
        make_sizes("µs", SESSIONS),
        compared=False,
    ),
    Table(PROGRESS[0], f"{CALLS} calls that report progress {REPORTS} times each, stdio", HEADS),
    Table(PROGRESS[1], "The same over HTTP, 2026-07-28", HEADS),
    Table(PROGRESS[2], "The same over HTTP, 2025-06-18", HEADS),
)
TOUCHES = 200
OPEN_TIMEOUT_S = 120


def measure(run: Run) -> None:
    """Changes of a resource, then progress over three ways."""
    with run.open_http(UPDATES, "updates", "legacy json", ISTHMUS) as talks, ExitStack() as stack:
        for name, talk in talks.items():
            subscribe(talk, stack)
            live = 1
            for count in SESSIONS:
                if count > SHORT_MOST and run.effort.short:
                    break
                work = partial(time_updates, talk, live, count)
                run.take(UPDATES, name, work, OPEN_TIMEOUT_S)
                live = count
    with run.open_pipes(PROGRESS[0], "progress") as talks:
        works = {name: partial(count_reports, talk) for name, talk in talks.items()}
        run.take_turns(PROGRESS[0], works, rounds=1)
    if run.effort.short:
        return
    for table, wire in WIRES.items():
        with run.open_http(table, "progress", wire) as talks:
            works = {name: partial(count_reports, talk) for name, talk in talks.items()}
            run.take_turns(table, works, rounds=1)


def subscribe(talk: HttpTalk, stack: ExitStack) -> None:
    """Subscribe the session of a talk, with its stream open."""
    stack.enter_context(talk.open_stream(talk.session))
    talk.make_request("resources/subscribe", {"uri": "note://one"})()


def time_updates(talk: HttpTalk, live: int, count: int) -> dict[str, float]:
    """Open sessions until so many are there, then tell of changes; microseconds each, the server's."""
    for _ in range(count - live):
        talk.open_session()
    return {str(count): min(float(talk.call("touch", times=TOUCHES)) for _ in range(3))}


def count_reports(talk: PipeTalk | HttpTalk) -> dict[str, float]:
    """How many reports arrive in the first calls and the last ones, and what one costs."""
    before = cpu_seconds(talk.pid)
    arrived, ended = [], 0
    for number in range(CALLS):
        params = {
            "name": "report",
            "arguments": {"times": REPORTS},
            "_meta": {"progressToken": number + 1},
        }
        data = read_reports(talk, params)
        arrived.append(data.count(b"notifications/progress"))
        ended += b'"progress":%d' % REPORTS in data.replace(b" ", b"")
    spent = cpu_seconds(talk.pid) - before
    if not any(arrived):
        raise RuntimeError("no report arrived")
    return {
        "report_us": spent / CALLS / REPORTS * 1e6,
        "arrived_first": sum(arrived[:10]) / 10,
        "arrived_last": sum(arrived[-10:]) / 10,
        "last_sent": ended,
    }


def read_reports(talk: PipeTalk | HttpTalk, params: dict[str, object]) -> bytes:
    """Send a call; all that comes up to its answer."""
    if isinstance(talk, HttpTalk):
        return talk.make_request("tools/call", params)()
    talk.last_id += 1
    talk.send(wires.write_request("legacy", talk.last_id, "tools/call", params) + b"\n")
    lines: list[bytes] = []
    while not lines or not is_answer(lines[-1], talk.last_id) or b'"result"' not in lines[-1]:
        lines += talk.read_line().splitlines()
    return b"\n".join(lines)
