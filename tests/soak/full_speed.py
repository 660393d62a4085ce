"""Calls over stdio as fast as they are answered: ``python tests/soak/full_speed.py [--seconds 3]``.

A launched server gets ``tools/call`` with 64 in flight for so many seconds, in each era, of an ``async def`` and of
a plain function. The client is a loop over two pipes, so that the server is what is slow. No default limit may
stand in the way: each call is answered with its result, and the server's memory stays as it was
after the first seconds. Ends with 0 where that holds, with 1 and what does not where it does not.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isthmus import Server

IN_FLIGHT = 64

WARM_SHARE = 0.3  # of the time, after which memory must be flat

GROWTH_KIB = 4 * 1024

MAX_EXIT_S = 5.0

MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
KINDS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("2025-11-25, async", "add", {}),
    ("2025-11-25, plain", "add_plainly", {}),
    ("2026-07-28, async", "add", {"_meta": MODERN_META}),
    ("2026-07-28, plain", "add_plainly", {"_meta": MODERN_META}),
)


def serve() -> None:
    """Serve the two tools, with the limits that every server has."""
    server = Server("speed", version="1")

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool
    def add_plainly(a: int, b: int) -> int:
        """Add two numbers, in a thread."""
        return a + b

    server.run()


def run_kind(kind: str, tool: str, members: dict[str, Any], seconds: float) -> list[str]:
    """Call one tool in one era for so long; what is wrong."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        return list(call_at_full_speed(process, kind, tool, members, seconds))
    finally:
        process.communicate(timeout=MAX_EXIT_S)


def call_at_full_speed(
    process: "subprocess.Popen[bytes]",
    kind: str,
    tool: str,
    members: dict[str, Any],
    seconds: float,
) -> Iterator[str]:
    """Keep calls in flight for so long; what is wrong."""
    assert process.stdin is not None
    assert process.stdout is not None
    to_server, from_server = process.stdin.fileno(), process.stdout.fileno()
    if not members:
        shake_hands(to_server, from_server)
    params = json.dumps({**members, "name": tool, "arguments": {"a": 2, "b": 3}})
    call = b'{"jsonrpc":"2.0","id":%%d,"method":"tools/call","params":%b}\n' % params.encode()
    sent = answered = failed = warm = 0
    first_error, tail, began = b"", b"", time.monotonic()
    while answered < sent or not sent or time.monotonic() - began < seconds:
        if time.monotonic() - began < seconds:
            wanted = answered + IN_FLIGHT
            os.write(to_server, b"".join(call % id for id in range(sent + 1, wanted + 1)))
            sent = wanted
        data = os.read(from_server, 256 * 1024)
        if not data:
            yield f"{kind}: the server ended after {answered} calls"
            return
        lines, found, tail = (tail + data).rpartition(b"\n")
        if not found:
            continue
        answered += lines.count(b"\n") + 1
        if lines.count(b'"result":{') <= lines.count(b"\n") or b'"isError":true' in lines:
            wrong = [one for one in lines.split(b"\n") if not is_right(one)]
            failed += len(wrong)
            first_error = first_error or wrong[0]
        if not warm and time.monotonic() - began > seconds * WARM_SHARE:
            warm = measure_memory(process.pid)
    took, growth = time.monotonic() - began, measure_memory(process.pid) - warm
    print(
        f"{kind}: {answered} calls in {took:.1f} s, {answered / took:.0f}/s, {growth:+} KiB",
        flush=True,
    )
    if failed:
        yield f"{kind}: {failed} of {answered} calls failed, first {first_error[:300].decode()}"
    if growth > GROWTH_KIB:
        yield f"{kind}: {growth} KiB more than after the warm-up"


def is_right(line: bytes) -> bool:
    """Whether that is the answer to a call."""
    result = json.loads(line).get("result", {})
    return result.get("structuredContent") == {"result": 5} and not result.get("isError")


def shake_hands(to_server: int, from_server: int) -> None:
    """Open a session of 2025-11-25."""
    info = {"name": "speed", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    os.write(to_server, json.dumps(hello).encode() + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        answer += os.read(from_server, 64 * 1024)
    os.write(to_server, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')


def measure_memory(pid: int) -> int:
    """KiB that a process holds in memory."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def run_all(seconds: float) -> int:
    """All kinds of calls; the exit code."""
    wrong = [fault for kind in KINDS for fault in run_kind(*kind, seconds)]
    print("at full speed: " + ("; ".join(wrong) or "every call was answered"))
    return 1 if wrong else 0


def main() -> int:
    """Read the arguments, and call or serve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="of each kind of call")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve()
        return 0
    return run_all(asked.seconds)


if __name__ == "__main__":
    raise SystemExit(main())
