"""Connections for uvicorn, over real sockets and with either parser."""

import asyncio
import contextlib
import json

import pytest
import uvicorn

from isthmus.transports.http.connections import Connection
from isthmus.transports.http.connections.h11_connection import H11Connection
from isthmus.transports.http.connections.http_connection import MAX_LINGER_BYTES, HttpConnection
from isthmus.transports.http.serve import serve
from support.http.messages import hello, make_http_app, modern_body, modern_head
from support.http.uvicorn_server import serve_uvicorn

EVERY_LOOP = True
PARSERS = pytest.mark.parametrize("kind", [HttpConnection, H11Connection])


def request(more=(), path="/mcp"):
    """A call as bytes, with further lines in its head."""
    data = json.dumps(modern_body()).encode()
    fields = [f"{name}: {value}" for name, value in modern_head(host="localhost").items()]
    head = [f"POST {path} HTTP/1.1", *fields, *more, f"content-length: {len(data)}", "", ""]
    return "\r\n".join(head).encode() + data


async def answer(reader):
    """Status and body of a response with a length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length: ")[2].partition("\r")[0])
    return int(head.split()[1]), (await reader.readexactly(length)).decode(), head


async def flood(port, first, again, most=2 * MAX_LINGER_BYTES):
    """What a server says to a client that sends on and on, and how many bytes it took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(first)
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < most and not reader.at_eof():
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(0)  # the server is on the same loop
            sent += len(again)
    said = b""
    with contextlib.suppress(ConnectionError):
        said = await reader.read()
    writer.close()
    return said.decode(), sent


@PARSERS
@pytest.mark.parametrize("before", [0, 1])
async def test_a_target_without_an_end_is_refused(kind, before):
    """Ours: nobody keeps what a stranger sends without an end."""
    async with serve_uvicorn(make_http_app(hello=hello), kind) as port:
        said, sent = await flood(port, request() * before + b"POST /", b"a" * 1000)

    # h11 refuses it by 400 and closes at once, so that it may not be read
    assert "HTTP/1.1 414 " in said or sent > MAX_LINGER_BYTES or kind is H11Connection
    assert sent < 2 * MAX_LINGER_BYTES


@PARSERS
@pytest.mark.parametrize("again", [b"x: " + b"y" * 1000 + b"\r\n", b"z" * 1000, b"a:\r\n" * 300])
async def test_a_head_without_an_end_is_refused(kind, again):
    """Ours: many fields, one field without an end, and fields that are almost nothing."""
    async with serve_uvicorn(make_http_app(hello=hello), kind) as port:
        said, sent = await flood(port, b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: ", again)

    assert "HTTP/1.1 431 " in said or sent > MAX_LINGER_BYTES or kind is H11Connection
    assert sent < 2 * MAX_LINGER_BYTES


@PARSERS
@pytest.mark.parametrize("again", [b"x: " + b"y" * 1000 + b"\r\n", b"z" * 1000])
async def test_trailers_without_an_end_are_refused(kind, again):
    """Ours: they come after a body, where nothing is measured by its length."""
    data = json.dumps(modern_body()).encode()
    head = request().partition(b"content-length")[0] + b"transfer-encoding: chunked\r\n\r\n"
    first = head + b"%x\r\n%b\r\n0\r\nx: " % (len(data), data)
    async with serve_uvicorn(make_http_app(hello=hello), kind) as port:
        said, sent = await flood(port, first, again)

    assert "HTTP/1.1 200 " not in said
    assert sent < 2 * MAX_LINGER_BYTES


async def test_a_long_head_is_refused_with_a_status_that_the_client_reads():
    """RFC 9112 9.6: the connection is not closed at once, which would erase the response."""
    limit = f"x-long: {'y' * 60_000}"
    async with serve_uvicorn(make_http_app(hello=hello), HttpConnection) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request([limit]))
        status, text, head = await answer(reader)
        writer.close()

    assert 431 == status
    assert "The head of the request is larger than 32768 bytes: see head_limit" == text
    assert "connection: close" in head


@pytest.mark.parametrize("before", [0, 1])
async def test_a_long_target_is_refused_with_a_status_that_the_client_reads(before):
    """RFC 9112 3: MUST respond with 414; also on a connection that was used before."""
    async with serve_uvicorn(make_http_app(hello=hello), HttpConnection) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(before):
            writer.write(request())
            assert 200 == (await answer(reader))[0]
        writer.write(request(path="/mcp?" + "q" * 20_000))
        status, text, _head = await answer(reader)
        writer.close()

    assert 414 == status
    assert "The target of the request is larger than 8192 bytes: see target_limit" == text


@PARSERS
async def test_a_head_just_below_the_limit_is_served_however_it_comes(kind):
    """Ours: in one piece, and cut where it hurts most."""
    whole = request([f"x-{n}: {'y' * 1000}" for n in range(29)])
    async with serve_uvicorn(make_http_app(hello=hello), kind) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for pieces in ([whole], [whole[:9000], whole[9000:]], [whole[:1], whole[1:-1], whole[-1:]]):
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0)
            status, text, _head = await answer(reader)
            assert 200 == status, text
        writer.close()


async def test_the_limits_are_settings():
    """Ours: whoever has long cookies on his host may want more, a stranger's gate less."""
    small = type("Small", (HttpConnection,), {"head_limit": 4096, "target_limit": 2048})
    async with serve_uvicorn(make_http_app(hello=hello), small) as port:
        for more, path, expected in (
            ([], "/mcp", 200),
            ([], "/mcp?" + "q" * 4000, 414),
            (["x: " + "y" * 6000], "/mcp", 431),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request(more, path))
            status, _text, _head = await answer(reader)
            writer.close()
            assert expected == status


async def test_the_settings_of_an_app_reach_its_connections():
    """Ours: ``head_limit`` and ``target_limit`` of ``Server.run`` and ``Server.asgi``."""
    bound = asyncio.get_running_loop().create_future()
    target = make_http_app({"head_limit": 100_000, "target_limit": 50_000}, hello=hello)
    task = asyncio.create_task(serve(target, port=0, on_bound=bound.set_result))
    port = (await bound).rpartition(":")[2].removesuffix("/mcp")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    writer.write(request(["x: " + "y" * 60_000], "/mcp?" + "q" * 20_000))
    status, _text, _head = await answer(reader)
    writer.close()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

    assert 200 == status


@PARSERS
async def test_a_large_body_comes_through_whole(kind):
    """Ours: only heads are measured."""
    text = "ü" * 1_000_000

    async def length(inbound):
        return str(len(bytes(inbound.params)))

    data = json.dumps(modern_body(params={"name": "length", "arguments": {"text": text}})).encode()
    fields = modern_head(name="length", host="localhost").items()
    head = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    whole = "\r\n".join([*head, f"content-length: {len(data)}", "", ""]).encode() + data
    async with serve_uvicorn(
        make_http_app({"body_limit": 10_000_000}, length=length), kind
    ) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(whole)
            status, said, _head = await answer(reader)
            assert 200 == status
            assert str(len(data)) > json.loads(said)["result"]["content"][0]["text"] > "6000000"
        writer.close()


UPGRADES = {
    "java": ["connection: Upgrade, HTTP2-Settings", "http2-settings: AAMAAABk", "upgrade: h2c"],
    "curl": ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"],
    "unknown": ["connection: keep-alive, upgrade", "upgrade: something/1"],
    "websocket": ["connection: upgrade", "upgrade: websocket"],
}


@PARSERS
@pytest.mark.parametrize("offer", UPGRADES)
@pytest.mark.parametrize("cut", [False, True])
async def test_an_upgrade_that_is_not_ours_is_ignored(kind, offer, cut):
    """RFC 9110 7.8: a server MAY ignore an upgrade; the default of Java's client and of --http2."""
    whole = request(UPGRADES[offer])
    middle = whole.index(b"\r\n\r\n") + 4
    async with serve_uvicorn(make_http_app(hello=hello), kind) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            for piece in [whole[:middle], whole[middle:]] if cut else [whole]:
                writer.write(piece)
                await asyncio.sleep(0)
            status, text, head = await answer(reader)
            assert 200 == status, text
            assert "connection: close" not in head
        writer.close()


@PARSERS
async def test_an_upgrade_with_a_chunked_body_is_ignored(kind):
    """Ours: also where the length of the body is not known before."""
    data = json.dumps(modern_body()).encode()
    head = request(UPGRADES["curl"]).partition(b"content-length")[0]
    chunked = b"%btransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (head, len(data), data)
    async with serve_uvicorn(make_http_app(hello=hello), kind) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(chunked * 2)
        assert [200, 200] == [(await answer(reader))[0] for _ in range(2)]
        writer.close()


async def test_many_upgrades_in_one_piece_are_ignored_one_after_the_other():
    """Ours: each head is parsed again by itself, however many follow it."""
    first, count = request(), 700
    one = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
    async with serve_uvicorn(make_http_app(hello=hello), HttpConnection) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(first[:-1])
        await asyncio.sleep(0)
        writer.write(first[-1:] + one * count)
        answers = [(await answer(reader))[0] for _ in range(1 + count)]
        writer.close()

    assert [200, *[400] * count] == answers


@PARSERS
async def test_connect_is_refused(kind):
    """Ours: it is no request that can be parsed again without its upgrade."""
    async with serve_uvicorn(make_http_app(hello=hello), kind) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n")
        first = await reader.readline()
        writer.close()

    assert b" 40" in first


def test_a_server_can_be_told_by_name():
    """``uvicorn --http isthmus.transports.http.connections:Connection app:app``."""
    named = uvicorn.Config(make_http_app(), http="isthmus.transports.http.connections:Connection")
    named.load()

    assert named.http_protocol_class is Connection is HttpConnection
