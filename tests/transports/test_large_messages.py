"""Messages of many megabytes over lines: whole, in order, and copied as rarely as can be."""

import asyncio
import json
import os
import platform
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from isthmus import Server
from isthmus.core.framing import LineSplitter
from isthmus.runtime.channel import LARGE_RESULT_BYTES, Origin
from isthmus.runtime.peer import Peer
from isthmus.transports.line_channel import LineChannel
from support.transports.line_wire import MODERN, call_line, connect_wire, serve_lines

EVERY_LOOP = True
TEXT = "x" * 10_000_000
SHORT, LONG = "short", "y" * (LARGE_RESULT_BYTES + 1)


def make_server():
    server = Server("large", version="1")

    @server.tool
    async def told() -> str:
        return TEXT

    @server.tool
    async def measure(text: str) -> int:
        return len(text)

    @server.tool
    async def echo(text: str) -> str:
        return text

    return server


def open_session(revision):
    """The lines that a session of an older revision begins with."""
    info = {"name": "test", "version": "1"}
    opening = {"protocolVersion": revision, "capabilities": {}, "clientInfo": info}
    return [
        b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":%b}'
        % json.dumps(opening).encode(),
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    ]


def plain_call(id, tool, **arguments):
    """A call without an envelope."""
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    return json.dumps(message).encode()


async def test_large_and_small_answers_come_whole():
    """Ours: in pieces or not, one after the other."""
    async with serve_lines(make_server()) as (url, _), connect_wire(url) as wire:
        texts = [SHORT, LONG, SHORT, LONG, LONG, SHORT]
        await wire.says(*(call_line(i, "echo", text=text) for i, text in enumerate(texts)))
        heard = [await wire.hears() for _ in texts]

    assert texts == [
        message["result"]["content"][0]["text"] for message in sorted(heard, key=lambda m: m["id"])
    ]


async def test_large_answers_of_a_batch_are_one_array():
    """Spec 2025-03-26: a batch is answered as an array, however large what is in it."""
    async with serve_lines(make_server()) as (url, _), connect_wire(url) as wire:
        await wire.says(*open_session("2025-03-26"))
        await wire.hears()
        calls = [plain_call(i, "echo", text=text) for i, text in ((1, LONG), (2, SHORT))]
        await wire.says(b"[" + b",".join(calls) + b"]")
        answers = await wire.hears()

    assert {1: LONG, 2: SHORT} == {
        answer["id"]: answer["result"]["content"][0]["text"] for answer in answers
    }


async def converse(tmp_path, *lines):
    """What a server answers to lines, with the most memory it took meanwhile."""
    out, into = os.pipe()
    file = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    channel = LineChannel(out, file, Origin("stdio"))
    serving = asyncio.create_task(Peer(channel, make_server().router, side="server").run())
    tracemalloc.start()
    await asyncio.to_thread(write_all, into, b"\n".join(lines) + b"\n")
    await serving
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    await channel.close()
    return [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()], peak


def write_all(fd, data):
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
    os.close(fd)


@pytest.mark.parametrize(
    ("revision", "copies"), [("2025-06-18", 1), (MODERN, 2)], ids=["legacy", "modern"]
)
async def test_a_large_result_is_encoded_and_not_copied_any_more(tmp_path, revision, copies):
    """Ours: members of the revision take one copy more; the text itself was there before."""
    legacy = revision != MODERN
    call = plain_call(1, "told") if legacy else call_line(1, "told")
    answers, peak = await converse(tmp_path, *(open_session(revision) if legacy else ()), call)

    assert TEXT == answers[-1]["result"]["content"][0]["text"]
    # the encoder asks for half as much again as it needs, and leaves that untouched
    assert peak < (copies + 0.7) * len(TEXT)


async def test_a_large_argument_is_there_once_as_a_line_and_once_as_a_text(tmp_path):
    """Ours: beside the pieces that it came in, before they were put together."""
    line = plain_call(1, "measure", text=TEXT)
    answers, peak = await converse(tmp_path, *open_session("2025-06-18"), line)

    assert len(TEXT) == answers[-1]["result"]["structuredContent"]["result"]
    assert peak < 3.2 * len(TEXT)  # and the line that this test writes


def test_a_line_in_many_pieces_is_put_together_once():
    """Ours: each piece is kept as it came, until the line ends."""
    splitter, pieces = LineSplitter(2 * len(TEXT)), [b"x" * 65_536] * 150

    tracemalloc.start()
    lines = [line for piece in [*pieces, b"\n"] for line in splitter.feed(piece)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert [b"".join(pieces)] == lines
    assert peak < 1.1 * len(lines[0])


SERVER = """
from isthmus import Server
server = Server("large", version="1")

@server.tool
async def measure(text: str) -> int:
    return len(text)

server.run()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc's memory")
def test_large_messages_one_after_the_other_take_their_memory_from_the_system_once():
    """Ours: pages that are given back and taken again are cleared by the kernel each time."""
    line = call_line(1, "measure", text=TEXT) + b"\n"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", SERVER], stdin=pipe, stdout=pipe) as process:
        taken = []
        for _ in range(6):
            process.stdin.write(line)
            process.stdin.flush()
            assert str(len(TEXT)).encode() in process.stdout.readline()
            status = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            taken.append(int(status[7]))  # pages that were taken from the system so far
        process.stdin.close()

    assert taken[-1] - taken[-2] < len(TEXT) // os.sysconf("SC_PAGE_SIZE")
