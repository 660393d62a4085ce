"""Microseconds of the functions that every call goes through, one by one: ``python bench/micro.py``.

The least of several runs, since noise only adds. Where a figure grows, the call did too.
"""

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

RUNS, CALLS = 7, 20_000
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
    call = wires.call_template("legacy") % (7, 7)

    def once() -> object:
        session.receive(call)
        return session.answer(7, b"{}")

    return once


def functions() -> Mapping[str, Callable[[], object]]:
    """Name and work of everything that is timed."""
    legacy = wires.call_template("legacy") % (7, 7)
    modern = wires.call_template("modern") % (7, 7)
    frame = parse(modern)
    if not isinstance(frame, Frame) or not isinstance(frame.params, Raw):
        raise TypeError("the call does not parse")
    params = frame.params
    envelope = read_envelope(params)
    headers = [(k.lower().encode(), v.encode()) for k, v in wires.headers("modern").items()]
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
        "parse: a legacy call": lambda: parse(legacy),
        "parse: a modern call": lambda: parse(modern),
        "envelope: read": lambda: read_envelope(params),
        "envelope: to caller": lambda: read_caller(envelope, REVISIONS),
        "judge: read the head": lambda: read_head(headers),
        "judge: the head": lambda: judge_head("POST", head),
        "judge: head and body": lambda: judge(head, frame, envelope),
        "params: decode": lambda: row.decode_params(params),
        "params: accept, 2025-06-18": lambda: accept(read, OLD),
        "params: accept, latest": lambda: accept(read, LATEST),
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


def main() -> None:
    """Time and print each."""
    for name, work in functions().items():
        least = min(timeit.repeat(work, number=CALLS, repeat=RUNS))
        print(f"{name:28} {least / CALLS * 1e6:7.2f} µs")


if __name__ == "__main__":
    main()
