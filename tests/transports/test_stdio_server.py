"""A whole server over stdio, in a process of its own: everything that a host may do to it."""

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from support.transports.line_wire import MODERN, call_line, request_line

SERVER = """
import asyncio, sys
from isthmus import Context, Server

server = Server("whole", version="1")

@server.tool
async def echo(text: str) -> str:
    return text

@server.tool
def shout() -> str:
    print("a stray line")
    sys.stdout.write("another")
    sys.__stdout__.write("a third\\\\n")
    return "shouted"

@server.tool
async def slow(ctx: Context) -> str:
    await ctx.progress(1, total=2)
    await asyncio.sleep(0.1)  # until the end of input was seen
    await ctx.progress(2, total=2)
    return "slow"

server.run()
"""


def conversation(*lines, end=b"\n"):
    """What a server says to lines that are there before it starts, and the rest it wrote."""
    done = subprocess.run(
        [sys.executable, "-c", SERVER.replace("\\\\n", "\\n")],
        input=b"\n".join(lines) + end,
        capture_output=True,
        timeout=15,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def by_id(messages):
    """The answers among some messages."""
    return {message["id"]: message for message in messages if "id" in message}


@pytest.mark.covers("stdio.messages.malformed", "stdio.messages.invalid-utf8")
def test_bad_lines_are_answered_and_the_lines_around_them_served():
    """Parse errors are -32700 with a null id (JSON-RPC 2.0); never silence, never the end (ours)."""
    bad = [b"{nonsense", b'{"jsonrpc":"2.0","id":5,"method":"\xff"}', b"\xff\xfe", b"[1"]
    told, _ = conversation(
        call_line(1, "echo", text="before"), *bad, call_line(2, "echo", text="after")
    )
    refusals = [m["error"]["code"] for m in told if m["id"] is None]

    assert [-32700] * len(bad) == refusals
    assert {1, 2} == {id for id, m in by_id(told).items() if "result" in m}


@pytest.mark.covers("stdio.messages.not-json-rpc")
def test_what_is_json_but_no_message_is_refused():
    """-32600, under its id where it has one that can be read (JSON-RPC 2.0)."""
    told, _ = conversation(
        b'{"id": 7, "method": "ping"}', b"3", b'"text"', call_line(1, "echo", text="x")
    )

    codes = [message["error"]["code"] for message in told if "error" in message]
    assert [-32600] * 3 == codes
    assert "result" in by_id(told)[1]


@pytest.mark.covers("stdio.end.all-answered")
@pytest.mark.parametrize("end", [b"\n", b""], ids=["newline", "none"])
def test_every_request_read_before_the_end_of_input_is_answered(end):
    """Ours: a host may say all it has to say and close, the last line without its newline."""
    told, _ = conversation(*(call_line(n, "echo", text=str(n)) for n in range(200)), end=end)

    answers = by_id(told)
    assert set(range(200)) == set(answers)
    assert all(str(n) == answers[n]["result"]["content"][0]["text"] for n in range(200))


def test_progress_of_a_call_in_hand_is_told_after_the_end_of_input():
    """Ours: in order, before the answer, and nothing after it."""
    params = {"name": "slow", "arguments": {}, "_meta": {**MODERN, "progressToken": "t"}}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    told, _ = conversation(line.encode())

    assert [1, 2] == [m["params"]["progress"] for m in told[:-1]]
    assert 1 == told[-1]["id"]


@pytest.mark.covers("stdio.output.nothing-but-messages")
def test_what_a_tool_prints_never_reaches_standard_output():
    """The server MUST NOT write anything to stdout that is not a valid message (spec: stdio)."""
    told, stderr = conversation(call_line(1, "shout"))

    assert [1] == [message["id"] for message in told]
    assert {b"a stray line", b"a third"} <= set(stderr.replace(b"another", b"").split(b"\n"))


@pytest.mark.covers("stdio.messages.five-megabytes")
def test_a_line_of_five_megabytes_is_read_and_answered():
    """Ours: large arguments pass, and so do large results."""
    text = "0123456789" * 500_000
    told, _ = conversation(call_line(1, "echo", text=text), request_line(2, "server/discover"))

    answers = by_id(told)
    assert text == answers[1]["result"]["content"][0]["text"]
    assert "result" in answers[2]


@pytest.mark.covers("stdio.messages.one-line")
def test_no_message_holds_a_line_of_its_own():
    """Messages MUST NOT contain embedded newlines (spec: stdio)."""
    text = "one\ntwo\r\nthree\rfour\u2028five"
    told, _ = conversation(call_line(1, "echo", text=text))

    assert text == told[0]["result"]["content"][0]["text"]
    assert 1 == len(told)


FLOODED = """
from isthmus import Server

server = Server("flooded", version="1")

@server.tool
async def big() -> str:
    return "x" * 100_000

server.run()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is looked up in /proc")
@pytest.mark.covers("stdio.pressure.memory")
def test_a_host_that_asks_for_ever_and_never_reads_does_not_fill_the_memory():
    """Ours: thousands of requests for 100 kB each; the pipe is what stops whoever asks."""
    line = call_line(1, "big").replace(b'"id": 1,', b'"id": %d,') + b"\n"
    lines = b"".join(line % number for number in range(10_000))
    with subprocess.Popen(
        [sys.executable, "-c", FLOODED], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        os.set_blocking(server.stdin.fileno(), False)
        poll = select.poll()
        poll.register(server.stdin, select.POLLOUT)
        while lines and poll.poll(700):
            lines = lines[os.write(server.stdin.fileno(), lines) :]
        status = Path(f"/proc/{server.pid}/status").read_text(encoding="utf-8")
        server.kill()
        server.stdin.close()

    (kilobytes,) = [int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line]
    assert lines
    assert kilobytes < 300_000
