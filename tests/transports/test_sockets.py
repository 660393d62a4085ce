"""The client's end of a socket, and the ends of sockets as channels."""

import asyncio
import contextlib
import errno
import os
import socket
import sys
from collections import Counter

import pytest

from isthmus import Client, Server
from isthmus.errors import ConnectFailed, ConnectionLost, UsageError
from isthmus.runtime.channel import Origin, Outgoing
from isthmus.transports.line_channel import MAX_BURST_MESSAGES
from isthmus.transports.pipes import MAX_UNREAD_BYTES
from isthmus.transports.sockets import (
    SocketChannel,
    SocketClientChannel,
    dial,
    make_tcp_url,
    parse_socket_url,
    prepare_socket,
    read_peer_user,
    split_socket,
)
from support.transports.line_wire import make_echo_server, serve_lines

EVERY_LOOP = True
URL = "unix:///the/socket"


@contextlib.asynccontextmanager
async def joined(**options):
    """A client's channel, and the other end of it as a plain socket."""
    ours, theirs = socket.socketpair()
    channel = SocketClientChannel(prepare_socket(ours), URL, **options)
    theirs.setblocking(False)
    with theirs:
        yield channel, theirs
    await channel.close()


@contextlib.asynccontextmanager
async def open_channel(**options):
    """A server's channel, and the other end of it as a plain socket."""
    ours, theirs = socket.socketpair()
    channel = SocketChannel(prepare_socket(ours), Origin("unix"), **options)
    theirs.setblocking(False)
    with theirs:
        yield channel, theirs
    await channel.close()


# The client


@pytest.mark.parametrize("way", ["unix", "tcp"])
@pytest.mark.parametrize("revision", ["2025-11-25", None])
async def test_a_client_is_pointed_at_a_url(way, revision, tmp_path):
    """Ours: the target says it all, in either era."""
    async with (
        serve_lines(make_echo_server(), way, tmp_path / "s") as (url, _),
        Client(url, revision=revision) as client,
    ):
        assert "hello" == (await client.call_tool("echo", {"text": "hello"})).text


async def test_an_entry_of_mcp_servers_may_be_a_socket(tmp_path):
    """Ours: a host's configuration reaches it as it reaches HTTP."""
    async with (
        serve_lines(make_echo_server(), "unix", tmp_path / "s") as (url, _),
        Client({"mcpServers": {"echoing": {"url": url}}}) as client,
    ):
        assert "hello" == (await client.call_tool("echo", {"text": "hello"})).text


async def test_headers_do_not_go_with_a_socket():
    """Ours: what could not be sent is not taken."""
    with pytest.raises(UsageError, match="headers go with a URL of HTTP or a WebSocket"):
        Client("tcp://127.0.0.1:1", headers={"Authorization": "x"})


@pytest.mark.covers("sockets.client.lost")
async def test_a_server_that_closes_is_one_typed_error():
    """Ours (D20): for who waits and who comes, and it says where the connection led."""
    async with joined() as (channel, theirs):
        theirs.sendall(b'{"a":1}\n{"b":')
        theirs.close()

        assert b'{"a":1}' == (await channel.receive()).data
        with pytest.raises(ConnectionLost, match=f"the server at {URL} closed the connection"):
            await channel.receive()
        with contextlib.suppress(ConnectionLost):  # it may take a message to notice
            await channel.send(Outgoing(b"[1]"))
        await asyncio.sleep(0)
        with pytest.raises(ConnectionLost, match=f"the connection to {URL} broke"):
            await channel.send(Outgoing(b"[2]"))


async def test_a_message_beyond_the_limit_ends_a_clients_connection():
    """Ours: an answer that is thrown away would leave its call waiting."""
    async with joined(limit=10) as (channel, theirs):
        theirs.sendall(b"x" * 11 + b"\n")

        with pytest.raises(ConnectionLost, match="a message of 11 bytes, and the limit is 10"):
            await channel.receive()


async def test_a_channel_that_was_closed_says_so():
    """Ours: closing is no fault; sending afterwards is."""
    async with joined() as (channel, _):
        await asyncio.gather(channel.close(), channel.close())

        assert None is await channel.receive()
        assert False is channel.abandon(1)
        with pytest.raises(ConnectionLost, match="was closed"):
            await channel.send(Outgoing(b"[1]"))


async def test_a_client_goes_on_reading_while_the_server_does_not():
    """Ours: if both ends waited for the other to read, both might wait for ever."""
    async with joined() as (channel, theirs):
        sending = asyncio.create_task(channel.send(Outgoing(b"x" * 2 * MAX_UNREAD_BYTES)))
        await asyncio.sleep(0)
        theirs.sendall(b"[1]\n")

        assert b"[1]" == (await channel.receive()).data
        assert not sending.done()
        await channel.close()
        with pytest.raises(ConnectionLost):
            await sending


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("unix:///nowhere/at/all", "No such file or directory: is the server running"),
        ("unix://" + __file__, "Connection refused|no socket"),
        ("tcp://127.0.0.1:9", "Connection refused: is a server running there"),
        ("tcp://nowhere.invalid:9", "tcp://nowhere.invalid:9: "),
    ],
)
async def test_a_place_where_nobody_listens_says_what_to_try(url, says):
    """Ours: what, where, and how to mend it."""
    with pytest.raises(ConnectFailed, match=says):
        await dial(url, connect_timeout=5)


async def test_a_connection_that_does_not_come_about_is_given_up():
    """Ours: nothing waits for ever."""
    with pytest.raises(ConnectFailed, match="no connection within 0 s"):
        await dial("tcp://localhost:9", connect_timeout=0)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("unix:///run/my own.sock", "/run/my own.sock"),
        ("unix://relative.sock", "relative.sock"),
        ("tcp://127.0.0.1:9000", ("127.0.0.1", 9000)),
        ("tcp://[::1]:9000", ("::1", 9000)),
    ],
)
def test_a_url_is_a_place(url, place):
    """Ours: a path as it is, or a host and a port."""
    assert place == parse_socket_url(url)


@pytest.mark.parametrize("url", ["unix://", "tcp://", "tcp://host", "tcp://:9", "tcp://h:99999"])
def test_a_url_that_is_no_place_shows_how_it_is_written(url):
    """Ours: before anything is tried."""
    with pytest.raises(UsageError, match="write"):
        Client(url)


def test_an_address_is_written_as_a_url_has_it():
    """Ours: with brackets where it has colons."""
    assert "tcp://[::1]:9" == make_tcp_url("::1", 9)


# The server


@pytest.mark.covers("sockets.pressure.takes-no-more")
async def test_a_client_that_asks_and_does_not_read_gets_no_more_work_done():
    """Ours: a slow reader never makes a server's memory grow without bound."""
    async with open_channel() as (channel, theirs):
        theirs.sendall(b"[1]\n[2]\n")
        await channel.receive()
        answering = asyncio.create_task(channel.send(Outgoing(b"x" * 2 * MAX_UNREAD_BYTES)))
        await asyncio.sleep(0)
        taking = asyncio.create_task(channel.receive())
        for _ in range(10):
            await asyncio.sleep(0)
        held_back = not taking.done()
        got = 0
        while got < 2 * MAX_UNREAD_BYTES + 1:
            got += len(await asyncio.get_running_loop().sock_recv(theirs, 1 << 20))
        await answering
        taken = await taking

    assert held_back
    assert b"[2]" == taken.data


@pytest.mark.covers("sockets.pressure.in-turns")
async def test_a_flood_of_requests_is_taken_in_a_few_at_a_time():
    """Ours: what the first of them begin has a turn before the others are looked at."""
    async with open_channel() as (channel, theirs):
        theirs.sendall(b"[1]\n" * 3 * MAX_BURST_MESSAGES)
        turn, taken = [0], Counter()

        def tick():
            if turn:
                turn[0] += 1
                asyncio.get_running_loop().call_soon(tick)

        tick()
        for _ in range(3 * MAX_BURST_MESSAGES):
            await channel.receive()
            taken[turn[0]] += 1
        turn.clear()  # which ends the ticking

    assert MAX_BURST_MESSAGES >= max(taken.values())


async def test_a_client_that_hangs_up_without_reading_is_not_waited_for():
    """Ours: its last word is noticed also while it holds us back."""
    async with open_channel() as (channel, theirs):
        theirs.sendall(b"[1]\n[2]\n")
        await channel.receive()
        answering = asyncio.create_task(channel.send(Outgoing(b"x" * 2 * MAX_UNREAD_BYTES)))
        await asyncio.sleep(0)
        theirs.shutdown(socket.SHUT_WR)

        assert b"[2]" == (await channel.receive()).data
        assert None is await channel.receive()
        answering.cancel()


@pytest.mark.covers("sockets.end.gone")
async def test_a_client_that_is_gone_is_told_from_one_that_has_said_its_last_word():
    """Ours: for one that still listens work goes on, for one that cannot it does not."""
    async with open_channel() as (channel, theirs):
        theirs.sendall(b"[1]\n")
        theirs.close()

        assert b"[1]" == (await channel.receive()).data
        with pytest.raises(ConnectionLost, match="the client hung up"):
            await channel.receive()


async def test_a_client_that_reads_nothing_is_given_up():
    """Ours: after a bounded time, with an error that says it."""
    async with open_channel(patience=0.01) as (channel, _):
        with pytest.raises(ConnectionLost, match=r"the client broke: it read nothing for 0\.01 s"):
            await channel.send(Outgoing(b"x" * 2 * MAX_UNREAD_BYTES))
        with pytest.raises(ConnectionLost, match="it read nothing"):
            await channel.receive()


async def test_a_client_that_reads_slowly_is_not_given_up():
    """Ours: it is progress that counts, not size."""
    async with open_channel(patience=1000) as (channel, theirs):
        sending = asyncio.create_task(channel.send(Outgoing(b"x" * 4 * MAX_UNREAD_BYTES)))
        await asyncio.sleep(0)
        for _ in range(3):  # a look finds that something was read since the last one
            await asyncio.get_running_loop().sock_recv(theirs, 1 << 20)
            for _ in range(3):
                await asyncio.sleep(0)
            channel._outlet._look()
        alive = not sending.done()
        channel._outlet._look()  # and this one that nothing was

        assert alive
        with pytest.raises(ConnectionLost, match="it read nothing for 1000 s"):
            await sending


async def test_a_crowd_that_waits_to_send_is_bounded(monkeypatch):
    """Ours: many small messages are many, too."""
    monkeypatch.setattr("isthmus.transports.pipes.MAX_UNSENT_MESSAGES", 3)
    async with open_channel() as (channel, _):
        sends = [
            asyncio.create_task(channel.send(Outgoing(b"x" * MAX_UNREAD_BYTES)))
            for _ in range(5)
        ]  # fmt: skip
        done = await asyncio.gather(*sends, return_exceptions=True)

    assert {ConnectionLost} == {type(error) for error in done}
    assert "it left 3 messages unread" in str(done[0])


async def test_nothing_is_left_open_where_no_second_descriptor_is_to_be_had(monkeypatch):
    """Ours: a process at its limit loses a connection, not a descriptor."""
    ours, theirs = socket.socketpair()

    def none_left(_):
        raise OSError(errno.EMFILE, "none left")

    with theirs, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "dup", none_left)
        with pytest.raises(OSError, match="none left"):
            split_socket(ours)
        patch.undo()
        assert b"" == theirs.recv(1)


async def test_a_server_in_the_same_process_is_reached_by_many(tmp_path):
    """Ours: fifty clients at once, each with an answer of its own."""
    server = Server("many", version="1")

    @server.tool
    async def double(number: int) -> int:
        """Double."""
        return 2 * number

    async def one(url, number):
        async with Client(url) as client:
            return int((await client.call_tool("double", {"number": number})).text)

    async with serve_lines(server, "unix", tmp_path / "s") as (url, _):
        doubled = await asyncio.gather(*(one(url, number) for number in range(50)))

    assert [2 * number for number in range(50)] == doubled


@pytest.mark.skipif(sys.platform not in {"linux", "darwin"}, reason="nobody tells it here")
def test_who_is_at_the_other_end_of_a_unix_socket_is_asked_of_the_kernel():
    """Ours: it cannot be claimed; where the system does not tell, nobody knows."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert (os.getuid(), None) == (read_peer_user(ours), read_peer_user(ours, "plan9"))
