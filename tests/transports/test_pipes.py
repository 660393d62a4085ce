"""Inlets and outlets on real descriptors, on both event loops."""

import asyncio
import os
import select
import socket
import struct
import tracemalloc

import pytest

from isthmus.core.framing import Oversize
from isthmus.transports import pipes
from isthmus.transports.pipes import (
    MAX_AHEAD_BYTES,
    MAX_JOINED_BYTES,
    MAX_UNSENT_BYTES,
    LineReader,
    LineWriter,
    ThreadedSource,
)

EVERY_LOOP = True
LARGE = MAX_JOINED_BYTES + 1


@pytest.fixture
def pipe():
    """Both ends of a pipe; what the test does not hand over is closed at its end."""
    ends = os.pipe()
    spare = [os.dup(end) for end in ends]  # so that no number is given away twice meanwhile
    yield ends
    for fd in spare:
        os.close(fd)


async def taken(inlet):
    """All lines up to the end of input."""
    lines = []
    while not inlet.over or inlet.lines:
        if not inlet.lines:
            await inlet.more()
        lines += inlet.lines
        inlet.lines.clear()
    return lines


async def read(fd, size):
    """That many bytes from a blocking descriptor, in a thread."""
    return await asyncio.to_thread(os.read, fd, size)


def nothing():
    """For outlets nobody watches."""


# Reading


async def test_lines_come_whole_however_they_are_cut():
    """Ours: bytes arrive as they like, lines do not."""
    out, into = os.pipe()
    inlet = LineReader(out, 100)
    pieces = [b'{"a"', b":1}\n{}", b"\n", b"\r\n[]\r\n"]

    for piece in pieces:
        os.write(into, piece)
        await asyncio.sleep(0)
    os.close(into)

    assert [b'{"a":1}', b"{}", b"[]"] == await taken(inlet)


async def test_a_line_of_five_megabytes_comes_whole():
    """Ours: there is no limit near what a message may well have."""
    out, into = os.pipe()
    inlet = LineReader(out, 64 * 1024 * 1024)
    line = b"x" * 5_000_000

    def write():
        with os.fdopen(into, "wb") as file:
            file.write(line + b"\n")

    writing = asyncio.create_task(asyncio.to_thread(write))

    assert [line] == await taken(inlet)
    await writing


async def test_a_line_beyond_the_limit_is_reported_in_its_place():
    """Ours: what is too long is thrown away as it comes, the next line is unharmed."""
    out, into = os.pipe()
    inlet = LineReader(out, 10)
    os.write(into, b"1\n" + b"x" * 11 + b"\n2\n")
    os.close(into)

    assert [b"1", Oversize(11), b"2"] == await taken(inlet)


async def test_what_no_newline_ended_is_kept_apart():
    """Ours: a line cut off by the end of input is not passed off as a whole one."""
    out, into = os.pipe()
    inlet = LineReader(out, 100)
    os.write(into, b"whole\nhal")
    os.close(into)

    assert [b"whole"] == await taken(inlet)
    assert b"hal" == inlet.cut


async def test_reading_pauses_until_lines_are_taken():
    """Ours: a flood is left in the pipe, where it slows down whoever writes it."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    inlet = LineReader(ours.detach(), 10_000)
    line = b"x" * 1023 + b"\n"
    sent = refused = 0
    while refused < 10:  # turns of the event loop in which nothing was read
        try:
            sent += theirs.send(line * 64)
            refused = 0
        except BlockingIOError:
            refused += 1
            await asyncio.sleep(0)
    theirs.close()

    held = len(inlet.lines) * len(line)
    lines = await taken(inlet)

    assert MAX_AHEAD_BYTES <= held < 2 * MAX_AHEAD_BYTES
    assert sent == sum(len(line) + 1 for line in lines) + len(inlet.cut)


async def test_a_regular_file_is_read_in_a_thread(tmp_path):
    """Ours: `server < requests.txt` works, although no event loop can wait for a file."""
    file = tmp_path / "requests.txt"
    lines = [b"%d" % number for number in range(300_000)]
    file.write_bytes(b"\n".join(lines))
    inlet = LineReader(os.open(file, os.O_RDONLY), 100)

    assert lines[:-1] == await taken(inlet)
    assert lines[-1] == inlet.cut


async def test_a_thread_that_reads_can_be_stopped():
    """Ours: after a stop the thread closes what it read, and nothing comes of it any more."""
    out, into = os.pipe()
    pieces = []
    reading = ThreadedSource(out, pieces.append)
    assert False is reading.empty()

    reading.stop()
    os.write(into, b"unheard")
    closed = select.poll()
    closed.register(into, 0)

    assert [(into, select.POLLERR)] == await asyncio.to_thread(closed.poll, 5000)
    await asyncio.sleep(0)
    assert [] == pieces
    os.close(into)


async def test_a_thread_that_reads_can_pause():
    """Ours: after the piece it was reading already, it leaves the rest where it is."""
    out, into = os.pipe()
    pieces = asyncio.Queue()
    reading = ThreadedSource(out, pieces.put_nowait)
    os.write(into, b"1")
    first = await pieces.get()
    reading.pause()
    os.write(into, b"2")
    second = await pieces.get()
    os.write(into, b"3")
    for _ in range(10):
        await asyncio.sleep(0)
    paused = pieces.empty(), select.select([out], [], [], 0)[0]
    reading.resume()
    third = await pieces.get()
    reading.stop()
    os.close(into)

    assert (b"1", b"2", b"3") == (first, second, third)
    assert (True, [out]) == paused


async def test_finishing_gives_a_thread_a_moment(monkeypatch):
    """Ours: what a thread reads cannot be read without waiting, but it is not waited for long."""
    monkeypatch.setattr(pipes, "SETTLE_TIMEOUT_S", 0.01)
    inlet = LineReader(os.open("/dev/zero", os.O_RDONLY), 10)

    inlet.finish()

    assert [] == await taken(inlet)


def test_a_thread_survives_the_end_of_its_event_loop():
    """Ours: a channel that nobody closed does not end in a traceback from a thread."""
    out, into = os.pipe()

    async def leave():
        ThreadedSource(out, nothing)

    asyncio.run(leave())
    os.write(into, b"1")
    closed = select.poll()
    closed.register(into, 0)

    assert [(into, select.POLLERR)] == closed.poll(5000)
    os.close(into)


async def test_a_connection_that_was_reset_is_over():
    """Ours: an end without ceremony is an end."""
    listener = socket.create_server(("127.0.0.1", 0))
    theirs = socket.create_connection(listener.getsockname())
    ours, _address = listener.accept()
    inlet = LineReader(ours.detach(), 10)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    theirs.close()

    assert [] == await taken(inlet)
    listener.close()


async def test_an_empty_file_is_over_at_once():
    """Ours: `server < /dev/null` ends."""
    inlet = LineReader(os.open(os.devnull, os.O_RDONLY), 100)

    assert [] == await taken(inlet)


async def test_finishing_takes_what_is_there_and_waits_for_nothing(pipe):
    """Ours: somebody else may hold the pipe open for ever."""
    out, into = pipe
    inlet = LineReader(out, 100)
    os.write(into, b"1\n2\n3")

    inlet.finish()

    assert [b"1", b"2"] == list(inlet.lines)
    assert inlet.over
    assert b"3" == inlet.cut
    os.close(into)


async def test_ignoring_goes_on_reading_so_that_the_other_side_can_write():
    """Ours: a server that still writes while it is seen off does not get stuck."""
    ours, theirs = socket.socketpair()
    inlet = LineReader(ours.detach(), 10_000)
    inlet.ignore()

    with theirs:
        await asyncio.to_thread(theirs.sendall, b"x\n" * MAX_AHEAD_BYTES)

    assert inlet.over
    assert 0 == len(inlet.lines)
    inlet.stop()


async def test_an_inlet_leaves_the_description_as_it_found_it(pipe):
    """Ours: uvloop makes it non-blocking, and whoever shares it would not expect that."""
    out, into = pipe
    shared = os.dup(out)
    inlet = LineReader(out, 100)
    os.write(into, b"1\n")
    await inlet.more()
    inlet.stop()
    inlet.stop()

    assert True is os.get_blocking(shared)
    os.close(shared)
    os.close(into)


# Writing


async def test_what_is_said_in_one_turn_is_written_at_once():
    """Ours: many answers in one turn of the event loop cost one system call."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    outlet = LineWriter(ours.detach(), nothing)

    for number in range(10):
        outlet.write(b"%d" % number)
    with theirs:
        first = await asyncio.to_thread(theirs.recv, 1000)
    outlet.close()

    assert b"0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n" == first


async def test_a_message_stays_on_one_line(pipe):
    """Spec: messages MUST NOT contain embedded newlines; a pretty-printed one loses them."""
    out, into = pipe
    outlet = LineWriter(into, nothing)

    outlet.write(b'{\r\n  "a":\n 1}')

    assert b'{    "a":  1}\n' == await read(out, 100)
    outlet.close()
    os.close(out)


async def test_nothing_is_lost_when_the_pipe_is_full():
    """Ours: partial writes go on where they stopped, in order, and then whatever came meanwhile."""
    out, into = os.pipe()
    outlet = LineWriter(into, nothing)
    big = [bytes([65 + number]) * 300_000 for number in range(5)]

    must_wait = [outlet.write(data) for data in big[:4]]
    waiting = asyncio.create_task(outlet.room(0))
    await asyncio.sleep(0)
    outlet.write(big[4])
    assert not waiting.done()
    received = bytearray()
    while len(received) < 5 * 300_001:
        received += await read(out, 1 << 20)
    await waiting
    outlet.close()
    os.close(out)

    assert [True] * 4 == must_wait
    assert b"".join(data + b"\n" for data in big) == received


@pytest.mark.parametrize(
    "sizes", [(LARGE,), (1, LARGE), (LARGE, 0, 1), (2, LARGE, LARGE, 3, LARGE)]
)
async def test_large_messages_and_small_ones_are_lines_in_their_order(sizes):
    """Ours: a large one is written as it is, small ones together."""
    out, into = os.pipe()
    outlet = LineWriter(into, nothing)
    messages = [bytes([65 + i]) * size for i, size in enumerate(sizes)]
    expected = b"".join(message + b"\n" for message in messages)

    for message in messages:
        outlet.write(message)
    received = b""
    while len(received) < len(expected):
        await asyncio.sleep(0)
        received += await read(out, 1 << 20)
    outlet.write(b"after")
    await outlet.room(0)

    assert expected == received
    assert b"after\n" == await read(out, 100)
    outlet.close()
    os.close(out)


async def test_a_large_message_is_not_copied_to_be_written(tmp_path):
    """Ours: it is as large as it is already."""
    file = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    outlet = LineWriter(file, nothing)
    message = b"x" * 10_000_000

    tracemalloc.start()
    outlet.write(message)
    await outlet.room(0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    outlet.close()

    assert len(message) + 1 == (tmp_path / "out").stat().st_size
    assert peak < 100_000


async def test_room_is_made_when_half_is_written():
    """Ours: whoever waits goes on before the pipe runs dry."""
    out, into = os.pipe()
    outlet = LineWriter(into, nothing)
    assert False is outlet.write(b"x" * (MAX_UNSENT_BYTES - 1))
    assert True is outlet.write(b"")

    waiting = asyncio.create_task(outlet.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    received = 0
    while not waiting.done():
        received += len(await read(out, 4096))
        await asyncio.sleep(0)
    outlet.close()
    os.close(out)

    assert MAX_UNSENT_BYTES // 4 < received < MAX_UNSENT_BYTES


async def test_a_reader_that_left_breaks_the_outlet_once():
    """Ours: a broken pipe is told to whoever watches, and lets go of whoever waits."""
    out, into = os.pipe()
    told = []
    outlet = LineWriter(into, lambda: told.append(outlet.broken))
    outlet.write(b"x" * MAX_UNSENT_BYTES)
    waiting = asyncio.create_task(outlet.room(0))
    await asyncio.sleep(0)

    os.close(out)
    await waiting

    assert [outlet.broken] == told
    assert isinstance(outlet.broken, BrokenPipeError)
    outlet.close()


async def test_an_outlet_leaves_the_description_as_it_found_it(pipe):
    """Ours: a terminal that stays non-blocking would break the shell."""
    out, into = pipe
    shared = os.dup(into)
    outlet = LineWriter(into, nothing)
    assert False is os.get_blocking(shared)

    outlet.close()
    outlet.close()

    assert True is os.get_blocking(shared)
    os.close(shared)
    os.close(out)


async def test_a_regular_file_is_written_without_waiting(tmp_path):
    """Ours: `server > answers.txt` works."""
    file = tmp_path / "answers.txt"
    outlet = LineWriter(os.open(file, os.O_WRONLY | os.O_CREAT), nothing)

    outlet.write(b"1")
    outlet.write(b"2")
    await outlet.room(0)
    outlet.close()

    assert b"1\n2\n" == file.read_bytes()
