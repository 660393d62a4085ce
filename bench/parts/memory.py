"""Memory that must not stay: of refused calls, of clients that left, of sessions that expired."""

import socket
import time
from functools import partial

import wires
from processes import read_memory
from results import Column, Table
from talks import HttpTalk
from turns import Run

BODY_BYTES = 3_900_000
CALLS, SHORT_CALLS = 300, 60
LEAVERS = 100
SESSIONS = 10_000
HOLDING_MS, AFTER_S = 2_000, 4.0
REFUSED, LEFT, EXPIRED = "refused", "left", "expired"
# Not compared: a few megabytes more or less are the allocator's. The floors bound them.
TABLES = (
    Table(
        REFUSED,
        f"Memory after {CALLS} calls (2026-07-28, 3.9 MB each) with wrong arguments, which are refused",
        {"grown_mb": Column("grown by, MB", pick="median")},
        compared=False,
    ),
    Table(
        LEFT,
        f"Memory after {LEAVERS} clients (2026-07-28, 3.9 MB each) that left while their call ran",
        {"grown_mb": Column("grown by, MB", pick="median")},
        compared=False,
    ),
    Table(
        EXPIRED,
        f"Memory after {SESSIONS:,} legacy sessions that expired",
        {"grown_mb": Column("grown by, MB", pick="median")},
        compared=False,
    ),
)
EXPIRING_TIMEOUT_S = 240


def measure(run: Run) -> None:
    """Each from a fresh server, once."""
    calls = SHORT_CALLS if run.effort.short else CALLS
    with run.open_http(REFUSED, "add", "modern") as talks:
        works = {
            name: partial(refuse_calls, talk, calls)
            for name, talk in talks.items()
            if not name.startswith("limit")
        }
        run.take_turns(REFUSED, works, rounds=1)
    if run.effort.short:
        return
    with run.open_http(LEFT, "waiting", "modern") as talks:
        works = {name: partial(leave_calls, talk) for name, talk in talks.items()}
        run.take_turns(LEFT, works, rounds=1)
    with run.open_http(EXPIRED, "expiring", "legacy json") as talks:
        works = {name: partial(expire_sessions, talk) for name, talk in talks.items()}
        run.take_turns(EXPIRED, works, rounds=1, timeout=EXPIRING_TIMEOUT_S)


def refuse_calls(talk: HttpTalk, calls: int) -> dict[str, float]:
    """Send calls whose argument ``a`` is a long text in place of a number."""
    params = {"name": "add", "arguments": {"a": "x" * BODY_BYTES, "b": 2}}
    ask = talk.make_request("tools/call", params)
    warm_up(talk)
    before = read_memory(talk.pid)
    for _ in range(calls):
        answer = ask()
        if b'"error"' not in answer and b'"isError":true' not in answer.replace(b" ", b""):
            raise RuntimeError(f"not refused: {answer[:300]!r}")
    return {"grown_mb": (read_memory(talk.pid) - before) / 1024}


def warm_up(talk: HttpTalk) -> None:
    """Call once, so that what a first call imports is not counted."""
    talk.make_request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})()


def leave_calls(talk: HttpTalk) -> dict[str, float]:
    """Send long calls and close each connection while its call runs."""
    params = {"name": "pause", "arguments": {"ms": HOLDING_MS, "text": "x" * BODY_BYTES}}
    body = wires.write_request("modern", 1, "tools/call", params)
    head = {**wires.make_headers("modern", name="pause"), "Content-Length": str(len(body))}
    lines = [f"Host: 127.0.0.1:{talk.port}", *(f"{k}: {v}" for k, v in head.items())]
    request = "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + body
    talk.make_request("tools/call", {"name": "pause", "arguments": {"ms": 1}})()
    before = read_memory(talk.pid)
    for _ in range(LEAVERS):
        with socket.create_connection(("127.0.0.1", talk.port), 20) as client:
            client.sendall(request)
            time.sleep(0.02)  # the call has begun
    time.sleep(AFTER_S)
    return {"grown_mb": (read_memory(talk.pid) - before) / 1024}


def expire_sessions(talk: HttpTalk) -> dict[str, float]:
    """Open sessions that nobody uses, and wait until all have expired."""
    for _ in range(100):
        talk.open_session()
    time.sleep(AFTER_S)
    before = read_memory(talk.pid)
    for _ in range(SESSIONS):
        talk.open_session()
    time.sleep(AFTER_S)
    return {"grown_mb": (read_memory(talk.pid) - before) / 1024}
