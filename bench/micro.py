"""Microseconds of the functions that every call goes through, with their budgets.

``python bench/micro.py`` prints them: CPU time, the least of several runs, since noise only adds. Where a
figure grows, the call did too. ``docs/concepts/speed.md`` has the budgets as a table.
"""

import time
import timeit
from collections.abc import Callable, Mapping

import wires
from msgspec import Raw

from isthmus.core.caller import Caller, read_caller, read_envelope
from isthmus.core.framing import LineSplitter
from isthmus.core.http.rules import judge, judge_head, read_head
from isthmus.core.http.sse import encode_event
from isthmus.core.session import Session
from isthmus.revisions import BY_NAME, LATEST, METHODS, REVISIONS, accept, project
from isthmus.runtime.stamp import Stamp
from isthmus.server.schema.functions import UserFunction
from isthmus.server.schema.results import to_call_result
from isthmus.wire import Implementation
from isthmus.wire.jsonrpc import Frame, encode_answer, parse

RUNS, CALLS = 15, 5_000

BUDGETS_US = {
    "framing: a line": 2,
    "parse: a message": 1,
    "envelope: read": 1,
    "envelope: to caller": 1,
    "judge: read the head": 2,
    "judge: the head": 0.5,
    "judge: head and body": 4,
    "params: decode": 1.5,
    "params: accept": 0.5,
    "bind: arguments": 0.5,
    "result: to_call_result": 1,
    "project: 2025-06-18": 2,
    "project: latest": 0.2,
    "stamp: write": 1,
    "encode: the answer": 0.3,
    "sse: an event": 1.5,
    "caller: make": 0.2,
    "session: call and answer": 5,
}
"""Budgets of the hot functions, for an ordinary machine that does nothing else."""
OLD = BY_NAME[wires.LEGACY]


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def legacy_session() -> Callable[[], object]:
    """A call in and its answer out of an open legacy session."""
    session = Session("server")
    session.receive(wires.INITIALIZE)
    session.answer(1, b"{}")
    session.receive(wires.INITIALIZED)
    call = wires.write_template("legacy") % (7, 7)

    def once() -> object:
        session.receive(call)
        return session.answer(7, b"{}")

    return once


def make_work() -> Mapping[str, Callable[[], object]]:
    """Name and work of each function, as a call of ``add`` needs it."""
    legacy = wires.write_template("legacy") % (7, 7)
    modern = wires.write_template("modern") % (7, 7)
    frame = parse(modern)
    if not isinstance(frame, Frame) or not isinstance(frame.params, Raw):
        raise TypeError("the call does not parse")
    params = frame.params
    envelope = read_envelope(params)
    headers = [(k.lower().encode(), v.encode()) for k, v in wires.make_headers("modern").items()]
    head = read_head(headers)
    row = METHODS["tools/call"]
    read = row.decode_params(params)
    function = UserFunction.of(add)
    returns = function.plan_returns()
    arguments = read.arguments
    result = to_call_result(9, returns)
    stamp = Stamp(LATEST, Implementation(name="bench", version="1"), cacheable=False)
    body = stamp.write(result)
    lines = LineSplitter(4 << 20)
    return {
        "framing: a line": lambda: lines.feed(legacy + b"\n"),
        "parse: a message": lambda: parse(modern),
        "envelope: read": lambda: read_envelope(params),
        "envelope: to caller": lambda: read_caller(envelope, REVISIONS),
        "judge: read the head": lambda: read_head(headers),
        "judge: the head": lambda: judge_head("POST", head),
        "judge: head and body": lambda: judge(head, frame, envelope),
        "params: decode": lambda: row.decode_params(params),
        "params: accept": lambda: accept(read, LATEST),
        "bind: arguments": lambda: function.bind(arguments),
        "result: to_call_result": lambda: to_call_result(9, returns),
        "project: 2025-06-18": lambda: project(result, OLD),
        "project: latest": lambda: project(result, LATEST),
        "stamp: write": lambda: stamp.write(result),
        "encode: the answer": lambda: encode_answer(7, body),
        "sse: an event": lambda: encode_event(body, id="1"),
        "caller: make": Caller,
        "session: call and answer": legacy_session(),
    }


def time_work(work: Callable[[], object]) -> float:
    """Microseconds of CPU of one call, in the best of some runs."""
    runs = timeit.repeat(work, timer=time.process_time, number=CALLS, repeat=RUNS)
    return min(runs) / CALLS * 1e6


def main() -> None:
    """Time each, and print it with its budget."""
    for name, work in make_work().items():
        spent, budget = time_work(work), BUDGETS_US[name]
        print(f"{name:26} {spent:6.2f} of {budget:4g} µs{'' if spent <= budget else '  over'}")


if __name__ == "__main__":
    main()
