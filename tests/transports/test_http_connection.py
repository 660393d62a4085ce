"""Connections of our own: what a response is, however it arrives, and where it ends."""

import asyncio
import gzip
import zlib
from itertools import pairwise

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import Misbehaved
from isthmus.transports.http.client.connection import (
    MAX_HEAD_BYTES,
    MAX_HEADERS,
)
from isthmus.transports.http.client.pool import PooledRequests, open_requests
from support.http.raw_server import answer_each, serve_raw
from support.http.scripted_connection import ScriptedConnection

EVERY_LOOP = True

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def make_response(body=b"", *headers, status=b"200 OK"):
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"HTTP/1.1 %b\r\ncontent-length: %d\r\n%b\r\n%b" % (status, len(body), lines, body)


def make_chunked(*pieces, trailers=b""):
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + chunks + b"0\r\n" + trailers + b"\r\n"


def cut(data, places):
    """The bytes in pieces."""
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(ends)]


BODIES = st.binary(max_size=300)
RESPONSES = st.one_of(
    st.builds(make_response, BODIES, st.sampled_from([b"x: y", b"X-Long: " + b"z" * 99])),
    st.builds(make_chunked, BODIES.filter(len), BODIES.filter(len)),
    BODIES.map(lambda body: b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + make_response(body)),
    BODIES.map(lambda body: make_response(gzip.compress(body), b"content-encoding: gzip")),
    st.just(b"HTTP/1.1 204 No Content\r\n\r\n"),
    st.just(b"HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n"),
    BODIES.map(lambda body: b"HTTP/1.0 200 OK\r\n\r\n" + body),
    BODIES.map(lambda body: b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n" + body),
    st.binary(max_size=100),
)


@settings(deadline=None)
@given(RESPONSES, st.lists(st.integers(0, 5000), max_size=12))
def test_a_response_is_the_same_however_it_is_cut(data, places):
    """RFC 9112 2: messages are what the octets say, not the packets they came in."""

    async def parse(pieces):
        scripted = ScriptedConnection()
        return await scripted.ask(*pieces, eof=True), scripted.wire.closed

    whole = asyncio.run(parse([data]))

    assert whole == asyncio.run(parse(cut(data, places)))
    assert whole == asyncio.run(parse([data[at : at + 1] for at in range(len(data))]))


WELL_FORMED = {
    "length": make_response(b'{"a": 1}', b"Content-Type: application/json"),
    "chunked": make_chunked(b"one", b"two", b"three"),
    "trailers": make_chunked(b"one", trailers=b"x-sum: 1\r\n"),
    "extensions": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;a=b\r\none\r\n0\r\n\r\n",
    "until close": b"HTTP/1.1 200 OK\r\nx: y\r\n\r\nall there is",
    "http/1.0": b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "early hints": b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + OK,
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
    "no content": b"HTTP/1.1 204 No Content\r\nx: y\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\netag: z\r\n\r\n",
    "gzip": make_response(gzip.compress(b"packed" * 99), b"content-encoding: gzip"),
    "deflate": make_response(zlib.compress(b"packed" * 99), b"content-encoding: deflate"),
    "repeated": make_response(b"", b"set-cookie: a=b", b"Set-Cookie: c=d"),
    "spaces": make_response(b"", b"x:   y  "),
    "utf-8": make_response(b"", "x: ü".encode()),
    "empty value": make_response(b"", b"x:"),
    "close": make_response(b"bye", b"connection: close"),
}


@pytest.mark.parametrize("said", WELL_FORMED.values(), ids=WELL_FORMED)
async def test_a_well_formed_response_is_what_another_client_finds_in_it(said):
    """Ours: status, headers and body as aiohttp has them."""

    async def once(server, reader, writer):
        await server.read_request(reader)
        writer.write(said)

    async with serve_raw(once) as server:
        requests = open_requests(connect_timeout=5)
        response = await requests.send("GET", server.url, {})
        ours = (
            response.status,
            [(name.lower(), value) for name, value in response.headers.items()],
            await response.read(10**6),
        )
        await requests.close()
        async with aiohttp.ClientSession() as session, session.get(server.url) as other:
            headers = [(name.lower(), value) for name, value in other.headers.items()]
            theirs = (other.status, headers, await other.read())

    assert theirs == ours


MALFORMED = {
    "no http": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "no version": b"HTTP 200 OK\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "broken name": b"HTTP/1.1 200 OK\r\nx y: z\r\n\r\n",
    "nul": b"HTTP/1.1 200 OK\r\nx: a\x00b\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok!",
    "length and chunks": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n",
    "negative": b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    "other coding": b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    "unknown packing": make_response(b"x", b"content-encoding: br"),
    "packed twice": make_response(b"x", b"content-encoding: gzip, gzip"),
    "endless name": b"HTTP/1.1 200 OK\r\n" + b"x" * (2 * MAX_HEAD_BYTES),
    "endless value": b"HTTP/1.1 200 OK\r\nx: " + b"x" * (2 * MAX_HEAD_BYTES),
    "large head": b"HTTP/1.1 200 OK\r\nx: "
    + b"x" * MAX_HEAD_BYTES
    + b"\r\ncontent-length: 0\r\n\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * (MAX_HEADERS + 1) + b"\r\n",
    "many interim heads": b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 2000,
}


@pytest.mark.parametrize("size", [10**9, 4096, 100])
@pytest.mark.parametrize("said", MALFORMED.values(), ids=MALFORMED)
async def test_what_is_no_response_is_refused_and_its_connection_closed(said, size):
    """RFC 9112 6.3: a response that cannot be framed ends its connection; and heads have a bound."""
    scripted = ScriptedConnection()
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    kind, why = await scripted.ask(*pieces)

    assert "MalformedResponse" == kind
    assert why
    assert scripted.wire.closed
    assert [] == scripted.kept


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: "
        + b"y" * 2 * MAX_HEAD_BYTES,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;" + b"y" * 2 * MAX_HEAD_BYTES,
    ],
    ids=["trailer", "extension"],
)
async def test_what_is_no_body_is_bounded_after_the_head_too(said):
    """Ours: a header after the body, or an extension of a chunk, fills no memory."""
    scripted = ScriptedConnection()
    kind, why = await scripted.ask(*[said[at : at + 4096] for at in range(0, len(said), 4096)])

    assert "ConnectionLost" == kind
    assert f"more than {MAX_HEAD_BYTES} bytes came without a body" in why
    assert scripted.wire.closed


@pytest.mark.parametrize(
    ("said", "method"),
    [
        (make_response(b"ok", b"connection: close"), "GET"),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", "GET"),
        (OK + b"more", "GET"),
        (OK + OK, "GET"),
        (make_response(b"", b"x: y").replace(b"length: 0", b"length: 9"), "HEAD"),
    ],
    ids=["close", "1.0", "more", "another response", "head"],
)
async def test_a_connection_that_cannot_be_trusted_afterwards_is_not_kept(said, method):
    """RFC 9112 9.2, 9.3: what follows a response, and was not asked for, is no response."""
    scripted = ScriptedConnection()
    status, *_ = await scripted.ask(said, method=method)

    assert 200 == status
    assert [] == scripted.kept
    assert scripted.wire.closed


async def test_what_comes_unasked_on_an_idle_connection_ends_it():
    """RFC 9112 9.2: it is not the response to the next request."""
    scripted = ScriptedConnection()
    await scripted.ask(OK)
    assert 1 == len(scripted.kept)

    scripted.connection.data_received(OK)

    assert scripted.wire.closed
    assert scripted.connection.ended


@pytest.mark.parametrize("size", [1, 7, 1000], ids=["bytes", "sevens", "whole"])
async def test_line_ends_after_a_body_are_passed_over_however_they_arrive(size):
    """Ours: what a connection is good for does not depend on how TCP cuts it."""
    scripted = ScriptedConnection()
    data = OK + b"\r\n\n"

    await scripted.ask(*(data[at : at + size] for at in range(0, len(data), size)))

    assert [scripted.connection] == scripted.kept
    assert not scripted.wire.closed


async def test_a_body_that_nobody_reads_is_not_read_from_the_socket():
    """Ours: a server that sends faster than we take fills its own buffers, not ours."""
    scripted = ScriptedConnection()
    asking = asyncio.create_task(scripted.connection.exchange("GET", "http://a/", b"", None))
    await asyncio.sleep(0)
    scripted.connection.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
    response = await asking
    while scripted.wire.reading:
        scripted.connection.data_received(b"x" * 10_000)

    waiting = len(await response.piece())
    assert 100_000 < waiting < 200_000
    assert scripted.wire.reading


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "raw deflate"])
async def test_a_packed_body_is_unpacked_in_bounded_pieces(coding):
    """Ours: a bomb is as large as its reader allows, and never larger in memory."""
    wbits = {"deflate": zlib.MAX_WBITS, "raw deflate": -zlib.MAX_WBITS}.get(coding, 31)
    packing = zlib.compressobj(9, wbits=wbits)
    bomb = packing.compress(bytes(3_000_000)) + packing.flush()
    header = b"content-encoding: " + coding.split()[-1].encode()
    async with serve_raw(answer_each(make_response(bomb, header))) as server:
        requests = open_requests(connect_timeout=5)
        response = await requests.send("GET", server.url, {})
        with pytest.raises(Misbehaved, match="more than 1000000 bytes"):
            await response.read(1_000_000)
        response = await requests.send("GET", server.url, {})
        sizes = []
        while piece := await response.piece():
            sizes.append(len(piece))
        await requests.close()

    assert 3_000_000 == sum(sizes)
    assert max(sizes) <= 256 * 1024


async def test_members_of_gzip_follow_one_another():
    """RFC 1952 2.2: a file is one member after another."""
    packed = gzip.compress(b"one, ") + gzip.compress(b"two")
    scripted = ScriptedConnection()
    _, _, body = await scripted.ask(make_response(packed, b"content-encoding: gzip"))

    assert b"one, two" == body


@pytest.mark.parametrize(
    ("packed", "coding", "why"),
    [
        (gzip.compress(b"x" * 999, mtime=0)[:-9], b"gzip", "end too early"),
        (b"this is no gzip", b"gzip", "are damaged"),
        (zlib.compress(b"x") + b"more", b"deflate", "something follows"),
    ],
)
async def test_a_damaged_packed_body_is_told(packed, coding, why):
    """Ours: half of it is no answer."""
    scripted = ScriptedConnection()
    kind, told = await scripted.ask(make_response(packed, b"content-encoding: " + coding))

    assert "ConnectionLost" == kind
    assert why in told


async def test_a_request_is_one_write():
    """Ours: head and body leave in one packet where they fit."""
    scripted = ScriptedConnection()
    asking = asyncio.create_task(
        scripted.connection.exchange("POST", "http://a/", b"POST / HTTP/1.1\r\n", b"body")
    )
    await asyncio.sleep(0)
    scripted.connection.data_received(OK)
    await asking

    assert [b"POST / HTTP/1.1\r\ncontent-length: 4\r\n\r\nbody"] == scripted.wire.written


async def test_the_rest_of_a_body_that_is_refused_is_not_sent():
    """RFC 9112 9.5: a client SHOULD cease to send, and close."""
    body = bytes(20_000_000)

    async def refuse(server, reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(make_response(b"too large", status=b"413 Content Too Large"))
        await writer.drain()
        await reader.read()  # up to the client's end

    async with serve_raw(refuse) as server:
        requests = PooledRequests(connect_timeout=5)
        response = await requests.send("POST", server.url, {}, body)
        told = response.status, await response.read(100)
        again = await requests.send("POST", server.url, {}, body)
        await requests.close()

    assert (413, b"too large") == told
    assert 413 == again.status
    assert 2 == server.connections


async def test_a_long_body_arrives_whole():
    """Ours: in as many writes as it takes."""
    body = bytes(range(256)) * 20_000
    async with serve_raw(answer_each(OK)) as server:
        requests = PooledRequests(connect_timeout=5)
        for _ in range(2):
            response = await requests.send("POST", server.url, {}, body)
            assert b"ok" == await response.read(10)
        await requests.close()

    assert [body, body] == server.bodies
    assert 1 == server.connections
