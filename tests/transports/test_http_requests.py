"""How a request that went wrong is told, whatever the library beneath says of it."""

import asyncio
import errno
import socket
import ssl

import pytest

from isthmus.errors import ConnectionLost
from isthmus.transports.http.client.failures import describe_error, find_hint
from isthmus.transports.http.client.pool import open_requests
from support.http.raw_server import answer_each, serve_raw


class FromLibrary(Exception):
    """An exception as aiohttp has them: its own words around the system's error."""

    def __init__(self, os_error: OSError) -> None:
        super().__init__(f"Cannot connect to host a:80 ssl:default [{os_error.strerror}]")
        self.os_error = os_error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FromLibrary(OSError(errno.ECONNREFUSED, "Connect call failed")), "Connection refused"),
        (FromLibrary(OSError(errno.EHOSTUNREACH, "failed")), "No route to host"),
        (FromLibrary(socket.gaierror(-2, "Name not known")), "Name not known"),
        (ConnectionResetError(errno.ECONNRESET, "gone"), "Connection reset by peer"),
        (FromLibrary(ssl.SSLError(1, "wrong version number")), "Cannot connect to host a:80 "),
        (ValueError("no such scheme"), "no such scheme"),
        (RuntimeError(), "RuntimeError"),
        (ValueError("<TransferEncodingError: 400>"), "the connection ended in the middle of it"),
    ],
)
def test_what_went_wrong_is_told_in_the_systems_words(error, words):
    """Ours: a refused connection is told as such, without the library's internals."""
    assert describe_error(error).startswith(words)


class FromProxy(Exception):
    """What is raised where a proxy answers for itself; others have a status, too."""

    def __init__(self, status):
        super().__init__("no")
        self.status = status


class Distrusted(Exception):
    """An exception as aiohttp has them of certificates."""

    certificate_error = ssl.SSLCertVerificationError(1, "self-signed certificate")


@pytest.mark.parametrize(
    ("error", "proxied", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "no"), False, ": is a server running there?"),
        (FromLibrary(socket.gaierror(-2, "Name not known")), False, ": is the name right, and"),
        (Distrusted(), False, ": pass tls= a context that trusts"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"), False, ": does it speak http:// rather"),
        (TimeoutError(), False, ": nothing answers there; connect_timeout="),
        (FromProxy(407), True, ": it wants credentials"),
        (FromProxy(403), True, ": NO_PROXY names hosts"),
        (FromProxy(403), False, ""),
        (ValueError("no such scheme"), False, ""),
    ],
)
def test_what_to_look_at_first_is_told(error, proxied, words):
    """Ours: where it is known."""
    found = find_hint(error, proxied=proxied)

    assert found.startswith(words)
    assert bool(words) == bool(found)


def test_a_timeout_is_told_as_one():
    """Ours: some of aiohttp's say nothing, or too much."""
    assert "no connection in time" == describe_error(TimeoutError("Connection timeout to host x"))


async def test_a_connection_is_kept_and_used_again():
    """Ours: no handshake for each request; as many connections as there are requests at once."""
    async with serve_raw(answer_each(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")) as server:
        requests = open_requests(connect_timeout=5)

        async def ask():
            return await (await requests.send("GET", server.url, {})).read(100)

        for _ in range(3):
            assert b"ok" == await ask()
        assert 1 == server.connections
        assert [b"ok"] * 4 == await asyncio.gather(*[ask() for _ in range(4)])
        assert 4 == server.connections
        await requests.close()


async def test_what_a_closed_answer_passed_through_is_not_kept():
    """Ours: what says why it ended was never raised, so that no frame hangs on it."""

    async def endless(server, reader, writer):
        await server.read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        await reader.read()

    async with serve_raw(endless) as server:
        requests = open_requests(connect_timeout=5)
        response = await requests.send("GET", server.url, {})
        reading = asyncio.create_task(response.piece())
        await asyncio.sleep(0)
        response.close()
        with pytest.raises(ConnectionLost) as lost:
            await reading
        await requests.close()

    assert lost.value.__cause__ is not None
    assert lost.value.__cause__.__traceback__ is None


async def test_of_a_connection_that_never_came_about_no_byte_was_sent():
    """Ours: whoever must not send anything twice may send this again."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        requests = open_requests(connect_timeout=5.0)
        try:
            with pytest.raises(ConnectionLost) as lost:
                await requests.send("POST", f"http://127.0.0.1:{taken.getsockname()[1]}/", {}, b"x")
        finally:
            await requests.close()
    assert not lost.value.sent
    assert ConnectionLost("by default").sent
