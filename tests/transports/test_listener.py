"""The side that listens: who gets in, what becomes of the file, and how it all ends."""

import asyncio
import os
import socket
import stat
import sys

import pytest

from isthmus import Context
from isthmus.errors import ConnectFailed, UsageError
from isthmus.transports import listener
from isthmus.transports.listener import listen_tcp, listen_unix
from support.transports.line_wire import (
    call_line,
    connect_wire,
    make_echo_server,
    request_line,
    serve_lines,
)

EVERY_LOOP = True
INVALID = b'{"jsonrpc":"2.0","id":1,"method":"\xff"}'
WAYS = pytest.mark.parametrize("way", ["unix", "tcp"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "it.sock"


# Serving


@WAYS
@pytest.mark.covers("sockets.connections.many")
async def test_every_connection_is_a_conversation_of_its_own(way, path):
    """Ours: the same ids on two connections at once do not meet."""
    server = make_echo_server()
    async with (
        serve_lines(server, way, path) as (url, _),
        connect_wire(url) as one,
        connect_wire(url) as two,
    ):
        await one.says(call_line(1, "wait"))
        await server.begun.wait()
        await two.says(call_line(1, "echo", text="two"))
        second = await two.hears()
        server.gate.set()
        first = await one.hears()

    assert ("waited", "two") == tuple(m["result"]["content"][0]["text"] for m in (first, second))


@WAYS
@pytest.mark.covers("sockets.end.half-close")
async def test_what_was_read_before_the_last_word_is_answered(way, path):
    """Ours: a client may say all it has to say, hang up, and listen."""
    server = make_echo_server()
    async with serve_lines(server, way, path) as (url, _), connect_wire(url) as wire:
        await wire.says(*(call_line(number, "echo", text="x") for number in range(100)))
        await wire.says(call_line("slow", "wait"))
        await server.begun.wait()
        wire.hangs_up()
        asyncio.get_running_loop().call_soon(server.gate.set)
        heard = await wire.hears_all()

    assert {*range(100), "slow"} == {message["id"] for message in heard}
    assert all("result" in message for message in heard)


@WAYS
@pytest.mark.covers("sockets.messages.malformed")
async def test_bad_lines_are_refused_and_the_conversation_goes_on(way, path):
    """Ours: as over stdio, no silence and no end (JSON-RPC 2.0)."""
    async with (
        serve_lines(make_echo_server(), way, path, limit=1000) as (url, _),
        connect_wire(url) as wire,
    ):
        await wire.says(request_line(1, "server/discover"))
        await wire.hears()
        await wire.says(b"{nonsense", INVALID, b"x" * 1001, call_line(2, "echo", text="fine"))
        heard = [await wire.hears() for _ in range(4)]

    codes = [(message["id"], message["error"]["code"]) for message in heard if "error" in message]
    assert [(None, -32700), (None, -32700), (None, -32600)] == sorted(codes, key=str, reverse=True)
    assert [2] == [message["id"] for message in heard if "result" in message]


@pytest.mark.covers("sockets.tcp.not-http")
@pytest.mark.parametrize(
    "head", [b"POST / HTTP/1.1", b"GET /mcp HTTP/1.0", b"x" * 2000, b"\x16\x03\x01\x02\x00\x01"]
)
async def test_a_page_in_a_browser_cannot_call_a_tool(head):
    """Ours: a browser can be made to send any port a body of one's choice, or a ticket of TLS."""
    server = make_echo_server()
    async with serve_lines(server, limit=1000) as (url, _), connect_wire(url) as wire:
        await wire.says(head, b"Host: localhost\r", b"\r", call_line(1, "wait"))
        (refusal,) = await wire.hears_all()

    assert (None, -32600) == (refusal["id"], refusal["error"]["code"])
    assert "not HTTP" in refusal["error"]["message"]
    assert not server.begun.is_set()


@WAYS
@pytest.mark.covers("sockets.connections.bounded")
async def test_more_connections_than_may_be_are_told_so(way, path):
    """Ours: everything is bounded, and what is over the limit hears a clear error."""
    async with serve_lines(make_echo_server(), way, path, max_connections=1) as (url, _):
        async with connect_wire(url) as one:
            await one.says(call_line(1, "echo", text="in"))
            await one.hears()
            async with connect_wire(url) as two:
                (refusal,) = await two.hears_all()
        while True:  # the first has left; its place is free as soon as the server has seen that
            async with connect_wire(url) as three:
                await three.says(call_line(1, "echo", text="in"))
                if "result" in await three.hears():
                    break

    assert -32603 == refusal["error"]["code"]
    assert "max_connections" in refusal["error"]["message"]


async def test_those_turned_away_are_bounded_too(monkeypatch):
    """Ours: whoever does not read why it was turned away is closed without a word."""
    monkeypatch.setattr(listener, "MAX_TURNED_AWAY", 0)
    async with (
        serve_lines(make_echo_server(), max_connections=0) as (url, _),
        connect_wire(url) as wire,
    ):
        assert [] == await wire.hears_all()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who connects")
@pytest.mark.covers("sockets.unix.principal")
async def test_a_unix_socket_says_which_user_connects(path):
    """Ours: the kernel knows, so the principal of a request is that user."""
    server = make_echo_server()

    @server.tool
    def who(ctx: Context) -> str:
        """Say who calls."""
        return f"{ctx.origin.transport} {ctx.principal.subject} {ctx.origin.session}"

    async with serve_lines(server, "unix", path) as (url, _), connect_wire(url) as wire:
        await wire.says(call_line(1, "who"))
        answer = await wire.hears()

    assert f"unix uid:{os.getuid()} unix-1" == answer["result"]["content"][0]["text"]


# Back-pressure


@WAYS
@pytest.mark.covers("sockets.pressure.never-reads")
async def test_a_client_that_never_reads_is_cut_off_and_nobody_else(way, path):
    """Ours: what waits for it is bounded in size and in time."""
    server = make_echo_server()
    async with (
        serve_lines(server, way, path, patience=0.05) as (url, _),
        connect_wire(url) as deaf,
        connect_wire(url) as other,
    ):
        deaf.writer.transport.pause_reading()
        deaf.writer.write(call_line(1, "big", size=20_000_000) + b"\n")
        await deaf.writer.drain()
        while True:  # until the server has had enough of it
            deaf.writer.write(call_line(2, "echo", text="are you there?") + b"\n")
            try:
                await deaf.writer.drain()
            except ConnectionError:
                break
            await asyncio.sleep(0)
        await other.says(call_line(1, "echo", text="fine"))
        answer = await other.hears()

    assert "fine" == answer["result"]["content"][0]["text"]


# The end


@WAYS
@pytest.mark.covers("sockets.end.graceful")
async def test_a_server_that_stops_finishes_what_it_has_in_hand(way, path):
    """Ours: told to stop, it takes nothing more in, answers, and closes."""
    server = make_echo_server()
    async with serve_lines(server, way, path) as (url, task), connect_wire(url) as wire:
        await wire.says(call_line(1, "wait"))
        await server.begun.wait()
        task.cancel()
        asyncio.get_running_loop().call_later(0.01, server.gate.set)
        heard = await wire.hears_all()
        await asyncio.wait([task])

    assert [1] == [message["id"] for message in heard]
    assert task.cancelled()


@WAYS
async def test_a_busy_call_does_not_keep_a_server_from_stopping(way, path):
    """Ours: about a second is what a call gets."""
    server = make_echo_server()
    async with (
        asyncio.timeout(5),
        serve_lines(server, way, path) as (url, _),
        connect_wire(url) as wire,
    ):
        await wire.says(call_line(1, "wait"))
        await server.begun.wait()


# The file


@pytest.mark.covers("sockets.unix.mode")
async def test_the_file_is_its_owners_alone_and_goes_with_the_server(path):
    """Ours: access to the file is access to the server."""
    async with serve_lines(make_echo_server(), "unix", path):
        mode = path.stat().st_mode

    assert stat.S_ISSOCK(mode)
    assert 0o600 == stat.S_IMODE(mode)
    assert not path.exists()


@pytest.mark.covers("sockets.unix.stale")
async def test_a_file_that_a_dead_server_left_is_replaced(path):
    """Ours: a crash yesterday does not keep a server from starting today."""
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()

    async with serve_lines(make_echo_server(), "unix", path) as (url, _), connect_wire(url) as wire:
        await wire.says(call_line(1, "echo", text="alive"))
        assert 1 == (await wire.hears())["id"]


@pytest.mark.covers("sockets.unix.taken")
async def test_a_socket_that_somebody_listens_on_is_left_alone(path):
    """Ours: nobody's clients are taken away."""
    async with serve_lines(make_echo_server(), "unix", path) as (url, _):
        with pytest.raises(ConnectFailed, match="a server is listening there already"):
            listen_unix(str(path))
        async with connect_wire(url) as wire:
            await wire.says(call_line(1, "echo", text="still here"))
            assert 1 == (await wire.hears())["id"]


async def test_a_file_that_is_no_socket_is_left_alone(path):
    """Ours: a mistyped path destroys nothing."""
    path.write_text("precious")

    with pytest.raises(ConnectFailed, match="a file that is no socket"):
        listen_unix(str(path))
    assert "precious" == path.read_text()


async def test_the_file_of_a_server_that_took_over_is_left_alone(path):
    """Ours: a server removes its own file in the end, and no other."""
    async with serve_lines(make_echo_server(), "unix", path):
        path.unlink()
        successor = socket.socket(socket.AF_UNIX)
        successor.bind(str(path))

    assert path.exists()
    successor.close()


@pytest.mark.parametrize(
    ("place", "error", "says"),
    [
        ("", UsageError, "no path"),
        ("\0abstract", UsageError, "no path"),
        ("/nowhere/at/all.sock", ConnectFailed, "No such file or directory"),
        ("/tmp/" + "x" * 200, ConnectFailed, "path too long"),
    ],
)
async def test_a_path_that_will_not_do_says_why(place, error, says):
    """Ours: what, where, and how to mend it; a name without a file would be open to everybody."""
    with pytest.raises(error, match=says):
        listen_unix(place)


# The address


@pytest.mark.covers("sockets.tcp.loopback")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])  # noqa: S104 - that it is refused
async def test_an_address_that_other_machines_reach_wants_a_word(host):
    """Ours: nothing on a TCP socket asks who is there, so nobody listens everywhere by accident."""
    with pytest.raises(UsageError, match="exposed=True"):
        listen_tcp(host, 0)


async def test_a_word_is_enough():
    """Ours: where the network keeps strangers out, it can be had."""
    with listen_tcp("0.0.0.0", 0, exposed=True) as sock:  # noqa: S104 - and at once closed
        assert "0.0.0.0" == sock.getsockname()[0]  # noqa: S104


async def test_a_name_of_this_machine_is_enough():
    """Ours: localhost is where only this machine gets."""
    with listen_tcp("localhost", 0) as sock:
        assert listener.is_loopback(sock.getsockname()[0])


@pytest.mark.parametrize("host", ["nowhere.invalid", "192.0.2.1"])
async def test_an_address_that_is_not_ours_says_so(host):
    """Ours: what, and where."""
    with pytest.raises(ConnectFailed, match=f"cannot listen on tcp://{host}:0"):
        listen_tcp(host, 0, exposed=True)


async def test_a_port_that_is_taken_says_so():
    """Ours: what, and where."""
    with (
        listen_tcp("127.0.0.1", 0) as sock,
        pytest.raises(ConnectFailed, match="Address already in use"),
    ):
        listen_tcp("127.0.0.1", sock.getsockname()[1])
