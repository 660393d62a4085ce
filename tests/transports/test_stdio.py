"""The server's end of stdio: this process's own streams, and real servers that use it."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from textwrap import dedent

import msgspec
import pytest

from isthmus.errors import ConnectFailed, ConnectionLost
from isthmus.runtime.channel import Outgoing
from isthmus.transports.pipes import MAX_UNREAD_BYTES, MAX_UNSENT_BYTES
from isthmus.transports.stdio import StdioChannel

EVERY_LOOP = True


@contextmanager
def replace_stdio():
    """Ends of pipes whose other ends are this process's standard input and output for a while."""
    kept = os.dup(0), os.dup(1)
    stdin, into = os.pipe()
    out, stdout = os.pipe()
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.close(stdin)
    os.close(stdout)
    try:
        with os.fdopen(into, "wb", 0) as writer, os.fdopen(out, "rb", 0) as reader:
            yield writer, reader
    finally:
        for number, fd in enumerate(kept):
            os.dup2(fd, number)
            os.close(fd)


@pytest.fixture
def host():
    """What the host has of our standard streams, which are pipes while the test runs.

    (pytest puts its own streams back between fixture and test, so a test that makes the channel
    itself has to say ``with launched()`` itself.)
    """
    with replace_stdio() as ends:
        yield ends


@pytest.fixture
async def channel(host):
    """The channel over them."""
    channel = StdioChannel(limit=10_000_000)
    yield channel
    await channel.close()


async def received(channel):
    """All messages up to the end of input."""
    messages = []
    while (delivery := await channel.receive()) is not None:
        messages.append(delivery.data)
    return messages


# Messages


async def test_messages_come_in_and_go_out(host, channel):
    """Spec: one message per line, read from standard input and written to standard output."""
    writer, reader = host
    writer.write(b'{"a":1}\n\n{"b":2}\r\n')

    first, second = await channel.receive(), await channel.receive()
    await channel.send(Outgoing(b"[1]"))
    await channel.send(Outgoing(b"[2]"))

    assert (b'{"a":1}', b'{"b":2}') == (first.data, second.data)
    assert "stdio" == first.origin.transport
    assert b"[1]\n[2]\n" == await asyncio.to_thread(reader.read, 100)


async def test_all_that_was_sent_before_the_end_of_input_is_received(host, channel):
    """Ours: every request read before the end of input is answered."""
    writer, _reader = host
    writer.write(b"".join(b"[%d]\n" % number for number in range(1000)))
    writer.close()

    assert [b"[%d]" % number for number in range(1000)] == await received(channel)
    assert None is await channel.receive()


async def test_a_last_line_without_a_newline_is_received(host, channel):
    """Ours: whether it is whole is for the parser to say, and its refusal is the answer."""
    writer, _reader = host
    writer.write(b'{"a":1}\n{"b":')
    writer.close()

    assert [b'{"a":1}', b'{"b":'] == await received(channel)


async def test_invalid_utf8_is_passed_on(host, channel):
    """Ours: the parser refuses it with -32700; the channel does not die of it."""
    writer, _reader = host
    writer.write(b'{"a":"\xff"}\n')

    assert b'{"a":"\xff"}' == (await channel.receive()).data


async def test_five_megabytes_in_one_line(host, channel):
    """Ours: large arguments pass, and so do large results."""
    writer, reader = host
    message = b"x" * 5_000_000

    def exchange():
        os.set_blocking(writer.fileno(), True)
        writer.write(message[:3_000_000])
        writer.write(message[3_000_000:] + b"\n")
        answer = bytearray()
        while not answer.endswith(b"\n"):
            answer += reader.read(1 << 20)
        return answer

    exchanging = asyncio.create_task(asyncio.to_thread(exchange))
    delivery = await channel.receive()
    await channel.send(Outgoing(delivery.data))

    assert message + b"\n" == await exchanging


async def test_a_message_beyond_the_limit_is_refused():
    """Ours: the host is told, and the messages around it are unharmed."""
    with replace_stdio() as (writer, reader):
        channel = StdioChannel(limit=1000)
        writer.write(b"[1]\n" + b"x" * 1001 + b"\n[2]\n")
        writer.close()
        messages = await received(channel)
        await channel.close()
        refusal = msgspec.json.decode(reader.readline())

    assert [b"[1]", b"[2]"] == messages
    assert (None, -32600) == (refusal["id"], refusal["error"]["code"])
    assert "1001 bytes is longer than the limit of 1000 bytes" in refusal["error"]["message"]


async def test_a_host_that_reads_slowly_slows_us_down(host, channel):
    """Ours: no more is kept in memory than a high-water mark and one message."""
    _writer, reader = host
    await channel.send(Outgoing(b"x" * (MAX_UNSENT_BYTES - 1)))
    sending = asyncio.create_task(channel.send(Outgoing(b"y" * 100_000)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not sending.done()

    def read_all():
        got = bytearray()
        while not got.endswith(b"y\n"):
            got += reader.read(1 << 16)
        return got

    got = await asyncio.to_thread(read_all)
    await sending

    assert MAX_UNSENT_BYTES + 100_001 == len(got)


@pytest.mark.covers("stdio.pressure.takes-no-more")
async def test_a_host_that_asks_and_does_not_read_gets_no_more_work_done(host, channel):
    """Ours: a slow reader never makes a server's memory grow without bound, and is never cut."""
    writer, reader = host
    writer.write(b"[1]\n[2]\n")
    await channel.receive()
    answering = asyncio.create_task(channel.send(Outgoing(b"x" * 2 * MAX_UNREAD_BYTES)))
    await asyncio.sleep(0)
    taking = asyncio.create_task(channel.receive())
    for _ in range(10):
        await asyncio.sleep(0)
    held_back = not taking.done()

    def read_all():
        got = 0
        while got < 2 * MAX_UNREAD_BYTES + 1:
            got += len(reader.read(1 << 16))

    await asyncio.to_thread(read_all)
    await answering

    assert held_back
    assert b"[2]" == (await taking).data


async def test_a_host_that_is_gone_is_told_from_one_that_has_said_its_last_word(host, channel):
    """Ours: for one that still listens work goes on, for one that cannot it does not."""
    writer, reader = host
    writer.close()
    assert None is await channel.receive()

    reader.close()
    with pytest.raises(ConnectionLost, match="hung up"):
        await channel.receive()


def test_a_call_cannot_be_abandoned_without_a_word():
    """Spec: to cancel over stdio takes a notification; no stream can be closed instead."""
    assert False is StdioChannel.abandon(None, 1)


# The end


async def test_closing_writes_what_was_sent(host, channel):
    """Ours: the last answer is not lost because the server ends after it."""
    _writer, reader = host
    await channel.send(Outgoing(b"[1]"))

    await asyncio.gather(channel.close(), channel.close())

    assert b"[1]\n" == reader.read(100)
    assert None is await channel.receive()
    with pytest.raises(ConnectionLost, match="was closed"):
        await channel.send(Outgoing(b"[2]"))


async def test_a_host_that_reads_slowly_after_its_last_word_reads_everything(host, channel):
    """Ours: it is given up for what it leaves unread, not for how long it takes."""
    writer, reader = host
    os.set_blocking(reader.fileno(), False)
    said, read = b"x" * 8_000_000, 0
    sending = asyncio.create_task(channel.send(Outgoing(said)))
    await asyncio.sleep(0)
    writer.close()
    assert None is await channel.receive()
    while read <= len(said) and not (sending.done() and sending.exception()):
        read += len(reader.read(64 * 1024) or b"")
        await asyncio.sleep(0.01)

    await sending
    assert len(said) + 1 == read


async def test_closing_does_not_wait_for_ever_for_the_host(host, channel):
    """Ours: a host that does not read keeps nobody from exiting."""
    await channel.send(Outgoing(b"x" * (MAX_UNSENT_BYTES - 1)))

    async with asyncio.timeout(5):
        await channel.close()


async def test_closing_ends_a_receiver_that_waits(host, channel):
    """Ours: a server can end itself while the host says nothing."""
    reading = asyncio.create_task(channel.receive())
    await asyncio.sleep(0)

    await channel.close()

    assert None is await reading


async def test_a_message_too_long_from_a_host_that_stopped_reading():
    """Ours: there is nobody to refuse it to, and that is what the error says."""
    with replace_stdio() as (writer, reader):
        channel = StdioChannel(limit=10)
        writer.write(b"[0]\n" + b"x" * 11 + b"\n[2]\n")
        first = await channel.receive()
        reader.close()
        await channel.send(Outgoing(b"[1]"))
        await asyncio.sleep(0)
        second = await channel.receive()
        with pytest.raises(ConnectionLost, match="the host stopped reading"):
            await channel.receive()
        await channel.close()

    assert (b"[0]", b"[2]") == (first.data, second.data)


async def test_a_host_that_stops_reading_ends_the_conversation(host, channel):
    """Ours (D20): a broken pipe is one typed error, for those who wait and those who come."""
    _writer, reader = host
    reading = asyncio.create_task(channel.receive())
    reader.close()

    await channel.send(Outgoing(b"[1]"))

    with pytest.raises(ConnectionLost, match="the host stopped reading standard output"):
        await reading
    with pytest.raises(ConnectionLost, match="the host stopped reading standard output"):
        await channel.send(Outgoing(b"[2]"))


def streams():
    """What this process has as its standard streams, and all its descriptors."""
    numbers = sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - they are no files
    return os.fstat(0).st_ino, os.fstat(1).st_ino, sys.stdout, numbers


async def test_both_streams_are_given_back():
    """Ours: after the channel, the process has its standard streams as before."""
    with replace_stdio() as (_writer, reader):
        before = streams()
        channel = StdioChannel()
        claimed = streams()
        await channel.close()
        after = streams()
        blocking = os.get_blocking(0), os.get_blocking(1)
        os.write(1, b"free again")
        read = reader.read(100)

    assert [True] * 4 == [a != b for a, b in zip(before, claimed, strict=True)]
    assert before == after
    assert (True, True) == blocking
    assert b"free again" == read


@pytest.mark.parametrize("number", [0, 1])
async def test_a_process_without_one_of_them_cannot_serve(number):
    """Ours: the message says what is missing."""
    with replace_stdio():
        os.close(number)

        with pytest.raises(ConnectFailed, match="standard input or output is closed"):
            StdioChannel()


def test_a_process_without_standard_error_can_serve(serve):
    """Ours: strays then go nowhere."""
    ran = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *serve('print("stray")')],
        input=b"[1]\n", capture_output=True, timeout=10, check=True,
    )  # fmt: skip

    assert b"[1]\nprinted after\n" == ran.stdout


# Real servers

SERVER = """
    import asyncio, os, subprocess, sys
    from contextlib import suppress
    from isthmus.runtime.channel import Outgoing
    from isthmus.transports.stdio import StdioChannel

    print("printed before")

    async def main():
        channel = StdioChannel()
        while (delivery := await channel.receive()) is not None:
            {tool}
            await channel.send(Outgoing(delivery.data))
        await channel.close()
        print("printed after")

    {loop}
    asyncio.run(main())
"""

LOOPS = {"asyncio": "", "uvloop": "import uvloop; uvloop.install()"}


@pytest.fixture
def serve(tmp_path):
    """The command line of a server whose tool is the given statement."""

    def write(tool, loop="asyncio"):
        path = tmp_path / "server.py"
        path.write_text(dedent(SERVER).format(tool=tool, loop=LOOPS[loop]))
        return [sys.executable, "-E", "-W", "ignore::DeprecationWarning", path]

    return write


STRAY = {
    "print": 'print("stray")',
    "sys.__stdout__": 'print("stray", file=sys.__stdout__)',
    "descriptor": 'os.write(1, b"stray\\n")',
    "subprocess": 'subprocess.run(["echo", "stray"])',
}


@pytest.mark.parametrize("writer", STRAY)
def test_strays_go_to_standard_error(serve, writer):
    """Spec: nothing but messages may be written to standard output, so nothing else can be."""
    ran = subprocess.run(
        serve(STRAY[writer]), input=b"[1]\n[2]\n", capture_output=True, timeout=10, check=True
    )

    assert b"[1]\n[2]\nprinted after\n" == ran.stdout
    assert b"printed before" == ran.stderr.splitlines()[0]
    assert [b"stray"] * 2 == sorted(ran.stderr.splitlines())[1:]


THIEVES = {
    "input": "with suppress(EOFError): input()",
    "descriptor": 'assert b"" == os.read(0, 100)',
    "subprocess": 'assert b"" == subprocess.run(["cat"], stdout=-1).stdout',
}


@pytest.mark.parametrize("thief", THIEVES)
def test_nobody_else_reads_standard_input(serve, thief):
    """Ours: a tool that reads, or starts what reads, finds nothing and takes nothing."""
    with subprocess.Popen(
        serve(THIEVES[thief]), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        for line in (b"[1]\n", b"[2]\n"):
            server.stdin.write(line)
            server.stdin.flush()
            assert line == server.stdout.readline()
        server.stdin.close()
        server.stdout.read()

    assert 0 == server.returncode


@pytest.mark.parametrize("loop", LOOPS)
def test_a_server_on_files(serve, tmp_path, loop):
    """Ours: `server < requests > answers` works."""
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    lines = b"".join(b"[%d]\n" % number for number in range(10_000))
    requests.write_bytes(lines)

    with requests.open() as stdin, answers.open("w") as stdout:
        subprocess.run(serve("pass", loop), stdin=stdin, stdout=stdout, timeout=10, check=True)

    assert lines + b"printed after\n" == answers.read_bytes()


@pytest.mark.parametrize("loop", LOOPS)
def test_a_server_on_sockets(serve, loop):
    """Ours: Node.js launches servers on sockets instead of pipes."""
    ours, theirs = socket.socketpair()
    with (
        ours,
        subprocess.Popen(serve("pass", loop), stdin=theirs, stdout=theirs) as server,
    ):
        theirs.close()
        ours.sendall(b"[1]\n")
        assert b"[1]\n" == ours.recv(100)
        ours.shutdown(socket.SHUT_WR)
        assert b"printed after\n" == ours.recv(100)

    assert 0 == server.returncode


@pytest.mark.parametrize("loop", LOOPS)
def test_a_server_on_a_terminal(serve, loop):
    """Ours: a developer can type at a server, and the terminal is as before when it is killed."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        serve("pass", loop), stdin=theirs, stdout=theirs, stderr=theirs
    ) as server:
        os.write(ours, b"[1]\n")
        seen = b""
        while seen.count(b"[1]") < 2:  # its echo, and the answer
            seen += os.read(ours, 100)
        server.kill()

    assert -signal.SIGKILL == server.returncode
    assert os.get_blocking(theirs)
    os.close(ours)
    os.close(theirs)
