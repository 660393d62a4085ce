"""WebSockets: the handshake, frames that are no messages, slow readers, and the end."""

import asyncio
import contextlib
import json
import sys

import aiohttp
import pytest
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from isthmus import Client, Context, Server
from isthmus.errors import ConnectFailed, ConnectionLost
from isthmus.runtime.channel import Origin, Outgoing
from isthmus.testing import serving
from isthmus.testing.faults import until
from isthmus.transports.http import serve as http_serve
from isthmus.transports.http.client.websocket import connect_websocket
from isthmus.transports.http.websocket import WebSocketChannel
from isthmus.transports.pipes import MAX_AHEAD_BYTES, MAX_UNREAD_BYTES
from support.event_loop import run_turns
from support.transports import faulty_sockets
from support.transports.line_wire import call_line, make_echo_server


@contextlib.asynccontextmanager
async def opened(server, *, protocols=("mcp",), headers=None, path="/mcp", **options):
    """A WebSocket to a server, moved by hand."""
    async with (
        serving(server, websocket=True, **options) as url,
        aiohttp.ClientSession() as session,
    ):
        where = at(url).removesuffix("/mcp") + path
        async with session.ws_connect(where, protocols=protocols, headers=headers) as wire:
            yield wire


def at(url):
    """The WebSocket at an endpoint."""
    return url.replace("http", "ws", 1)


async def hears(wire):
    """The next message."""
    return json.loads(await wire.receive_str())


# The handshake


@pytest.mark.covers("websocket.handshake.subprotocol")
async def test_each_text_frame_is_one_message_under_the_subprotocol():
    """Ours: ``mcp`` is agreed on, and frames are text in both directions."""
    async with opened(make_echo_server(), protocols=("other", "mcp")) as wire:
        await wire.send_str(call_line(1, "echo", text="a\nb").decode())
        answer = await hears(wire)

        assert "mcp" == wire.protocol
    assert (1, "a\nb") == (answer["id"], answer["result"]["content"][0]["text"])


async def refused(server, **options):
    """The status that a handshake is refused with, and the body."""
    async with serving(server, websocket=True) as url, aiohttp.ClientSession() as session:
        path = options.pop("path", "/mcp")
        handshake = {
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": "mcp",
        }  # fmt: skip
        where = url.removesuffix("/mcp") + path
        async with session.get(where, headers=handshake | options) as response:
            return response.status, await response.text()


@pytest.mark.covers("websocket.handshake.guarded")
@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"Origin": "https://evil.example"}, "evil.example"),
        ({"Host": "evil.example"}, "evil.example"),
    ],
)
async def test_a_page_elsewhere_cannot_connect(headers, says):
    """Servers MUST validate Origin (spec: security warning); browsers let any page try."""
    status, body = await refused(make_echo_server(), **headers)

    assert 403 == status
    assert says in json.loads(body)["error"]["message"]


@pytest.mark.covers("websocket.handshake.no-subprotocol")
async def test_a_client_that_offers_no_subprotocol_is_served_with_one_note(caplog):
    """Ours: the official Kotlin SDK and langchain4j offer none; the log says so once."""
    async with (
        serving(make_echo_server(), websocket=True) as url,
        aiohttp.ClientSession() as session,
    ):
        for _ in range(2):
            async with session.ws_connect(at(url)) as wire:
                await wire.send_str(call_line(1, "echo", text="hi").decode())
                answer = await hears(wire)

                assert wire.protocol is None
                assert "hi" == answer["result"]["content"][0]["text"]

    notes = [record for record in caplog.records if "no subprotocol" in record.message]
    assert 1 == len(notes)


@pytest.mark.covers("websocket.handshake.no-subprotocol")
async def test_a_server_that_agrees_to_no_subprotocol_is_used_with_a_note(caplog):
    """Ours: it may speak MCP all the same; the log names its URL."""
    async with (
        faulty_sockets.over_websocket("foreign") as url,
        Client(url, revision="2025-11-25") as client,
    ):
        said = (await client.call_tool("well")).text

    assert "fine" == said
    assert [f"{url} did not agree to the subprotocol 'mcp': is it an MCP server?"] == [
        record.message for record in caplog.records if "subprotocol" in record.message
    ]


async def test_a_handshake_that_offers_only_another_subprotocol_is_refused():
    """Ours: it expects something else here."""
    status, body = await refused(make_echo_server(), **{"Sec-WebSocket-Protocol": "chat"})

    assert 400 == status
    assert "'mcp'" in json.loads(body)["error"]["message"]


async def test_another_path_is_refused():
    """Ours: the endpoint is one path, for HTTP and WebSockets alike."""
    assert 403 == (await refused(make_echo_server(), path="/elsewhere"))[0]


async def test_an_endpoint_takes_no_websockets_unless_it_is_told_to():
    """Ours: a custom transport is asked for."""
    async with serving(make_echo_server()) as url:
        with pytest.raises(ConnectFailed, match="refused the WebSocket with HTTP status"):
            await connect_websocket(at(url), connect_timeout=5)


@pytest.mark.covers("websocket.connections.bounded")
async def test_more_connections_than_may_be_are_refused():
    """Ours: everything is bounded."""
    async with serving(make_echo_server(), websocket=True, max_sessions=1) as url, Client(at(url)):
        with pytest.raises(ConnectFailed, match="status 503: it has too many connections"):
            await connect_websocket(at(url), connect_timeout=5)


async def test_a_server_without_the_package_says_what_to_install(monkeypatch):
    """Ours: the extra is named."""
    monkeypatch.setitem(sys.modules, "websockets", None)
    monkeypatch.setattr(http_serve, "is_installed", lambda name: name != "websockets")
    with pytest.raises(ConnectFailed, match=r"pip install 'isthmus\[websocket\]'"):
        async with serving(make_echo_server(), websocket=True):
            pytest.fail("it serves")


async def test_headers_of_the_handshake_reach_a_tool():
    """Ours: as those of a request do."""
    server = Server("headed", version="1")

    @server.tool
    def head(ctx: Context) -> str:
        """Say a header."""
        return f"{ctx.origin.transport} {ctx.origin.headers['x-asked']}"

    async with (
        serving(server, websocket=True) as url,
        Client(at(url), headers={"X-Asked": "yes"}) as client,
    ):
        assert "websocket yes" == (await client.call_tool("head")).text


@pytest.mark.parametrize("path", ["/tools", "/tools/", "/tools/mcp"])
async def test_a_mounted_server_is_reached_by_a_websocket_too(path):
    """Ours: with and without a slash, beside the application's own routes."""
    outer = FastAPI()
    make_echo_server().asgi(websocket=True).attach(outer, "/tools")
    config = uvicorn.Config(
        outer, port=0, log_level="error", lifespan="off", ws="websockets-sansio"
    )
    uv = uvicorn.Server(config)
    task = asyncio.create_task(uv.serve())
    try:
        await until(lambda: uv.started, turns=1_000_000)
        port = uv.servers[0].sockets[0].getsockname()[1]
        async with Client(f"ws://127.0.0.1:{port}{path}") as client:
            assert "in" == (await client.call_tool("echo", {"text": "in"})).text
    finally:
        uv.should_exit = True
        await task


# Frames


@pytest.mark.covers("websocket.frames.binary-refused")
async def test_a_binary_frame_ends_the_connection():
    """Ours: 1003, unsupported data."""
    async with opened(make_echo_server()) as wire:
        await wire.send_bytes(call_line(1, "echo", text="x"))
        end = await wire.receive()

    assert (aiohttp.WSMsgType.CLOSE, 1003) == (end.type, end.data)


@pytest.mark.covers("websocket.frames.limit")
async def test_a_message_beyond_the_limit_ends_the_connection():
    """Ours: 1009, message too big; a frame half read cannot be stepped over."""
    async with opened(make_echo_server(), body_limit=1000) as wire:
        await wire.send_str("x" * 1001)
        end = await wire.receive()

    assert (aiohttp.WSMsgType.CLOSE, 1009) == (end.type, end.data)


@pytest.mark.covers("websocket.frames.malformed")
async def test_a_frame_that_is_no_message_is_refused_and_the_conversation_goes_on():
    """As over stdio: -32700 with a null id (JSON-RPC 2.0)."""
    async with opened(make_echo_server()) as wire:
        await wire.send_str("{nonsense")
        await wire.send_str(call_line(1, "echo", text="fine").decode())
        refusal, answer = await hears(wire), await hears(wire)

    assert (None, -32700) == (refusal["id"], refusal["error"]["code"])
    assert 1 == answer["id"]


# The end


@pytest.mark.covers("websocket.end.client-leaves")
async def test_a_client_that_leaves_is_not_worked_for():
    """Ours: after the closing handshake nothing could be answered."""
    server = make_echo_server()
    stopped = asyncio.Event()

    @server.tool
    async def linger() -> str:
        """Wait for ever."""
        server.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with opened(server) as wire:
        await wire.send_str(call_line(1, "linger").decode())
        await server.begun.wait()
        await wire.close()
        await stopped.wait()


@pytest.mark.covers("websocket.end.server-stops")
async def test_a_server_that_stops_answers_what_it_has_in_hand_and_says_that_it_goes():
    """Ours: 1001, going away, after the answers."""
    server = make_echo_server()
    async with aiohttp.ClientSession() as session:
        async with serving(server, websocket=True) as url:
            wire = await session.ws_connect(at(url), protocols=("mcp",))
            await wire.send_str(call_line(1, "wait").decode())
            await server.begun.wait()
            asyncio.get_running_loop().call_later(0.02, server.gate.set)
        answer, end = await hears(wire), await wire.receive()

    assert 1 == answer["id"]
    assert (aiohttp.WSMsgType.CLOSE, 1001) == (end.type, end.data)


async def test_a_busy_call_does_not_keep_a_server_from_stopping():
    """Ours: about a second is what a call gets."""
    server = make_echo_server()
    async with asyncio.timeout(5), aiohttp.ClientSession() as session:
        async with serving(server, websocket=True) as url:
            wire = await session.ws_connect(at(url), protocols=("mcp",))
            await wire.send_str(call_line(1, "wait").decode())
            await server.begun.wait()
        end = await wire.receive()

    assert aiohttp.WSMsgType.CLOSE == end.type


async def test_a_client_hears_why_the_server_closed():
    """Ours (D20): one typed error, with the code."""
    async with serving(make_echo_server(), websocket=True) as url:
        channel = await connect_websocket(at(url), connect_timeout=5)
    with pytest.raises(ConnectionLost, match="closed the WebSocket: 1001"):
        await channel.receive()
    with pytest.raises(ConnectionLost, match="broke"):
        await channel.send(Outgoing(b"{}"))
    await channel.close()


async def redirecting(location, seen):
    """A server that keeps the heads of its requests, and redirects them if it has a location."""

    async def answer(reader, writer):
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        status = f"307 Moved\r\nLocation: {location}" if location else "403 Forbidden"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_a_client_is_not_redirected_to_another_origin(scheme):
    """Ours: the headers of a handshake may hold a key, which is nobody else's business."""
    seen = []
    other, port = await redirecting("", seen)
    server, here = await redirecting(f"{scheme}://127.0.0.1:{port}/", [])

    async with other, server:
        with pytest.raises(ConnectFailed, match=f"redirects to '{scheme}://127.0.0.1:{port}/'"):
            await connect_websocket(
                f"ws://127.0.0.1:{here}/", headers={"X-Api-Key": "sesame"}, connect_timeout=5
            )

    assert [] == seen


async def test_a_client_is_redirected_within_the_origin():
    """Ours: a slash more or less is no other server."""
    seen = []
    server, port = await redirecting("/mcp/", seen)

    async with server:
        with pytest.raises(ConnectFailed, match="redirects to '/mcp/'"):  # which it does for ever
            await connect_websocket(f"ws://127.0.0.1:{port}/mcp", headers=None, connect_timeout=5)

    assert ["GET /mcp HTTP/1.1", "GET /mcp/ HTTP/1.1"] == [
        head.partition(b"\r\n")[0].decode() for head in seen
    ]


async def test_a_client_closes_in_any_order():
    """Ours: twice at once, and a receiver that waits ends."""
    async with serving(make_echo_server(), websocket=True) as url:
        channel = await connect_websocket(at(url), connect_timeout=5)
        receiving = asyncio.create_task(channel.receive())
        await asyncio.gather(channel.close(), channel.close())

        assert None is await receiving
        assert False is channel.abandon(1)
        with pytest.raises(ConnectionLost, match="was closed"):
            await channel.send(Outgoing(b"{}"))


async def test_an_answer_beyond_the_clients_limit_is_an_error_that_says_so():
    """Ours: what, and how much."""
    async with serving(make_echo_server(), websocket=True) as url:
        channel = await connect_websocket(at(url), connect_timeout=5, limit=1000)
        await channel.send(Outgoing(call_line(1, "big", size=2000)))
        with pytest.raises(ConnectionLost, match="more than 1000 bytes"):
            await channel.receive()
        await channel.close()


# Slow readers: the channel alone, on an ASGI server moved by hand


class Asgi:
    """What an ASGI server gives to an app: messages in, messages out, and a client that reads."""

    def __init__(self):
        self.incoming = asyncio.Queue()
        self.sent = []
        self.reads = asyncio.Event()
        self.reads.set()

    async def receive(self):
        return await self.incoming.get()

    async def send(self, message):
        await self.reads.wait()
        self.sent.append(message)

    def says(self, text):
        self.incoming.put_nowait({"type": "websocket.receive", "text": text})


@contextlib.asynccontextmanager
async def channel_on(asgi, **options):
    """A channel, and the pump beside it."""
    settings = {"limit": 10 * MAX_AHEAD_BYTES, "patience": 1000, **options}
    channel = WebSocketChannel(asgi.receive, asgi.send, Origin("websocket"), **settings)
    pump = asyncio.create_task(channel.pump())
    yield channel
    pump.cancel()
    await asyncio.wait([pump])


@pytest.mark.covers("websocket.pressure.takes-no-more")
async def test_a_client_that_asks_and_does_not_read_gets_no_more_work_done():
    """Ours: a slow reader never makes a server's memory grow without bound."""
    asgi = Asgi()
    asgi.reads.clear()
    async with channel_on(asgi) as channel:
        sending = asyncio.create_task(channel.send(Outgoing(b"x" * 2 * MAX_UNREAD_BYTES)))
        asgi.says("[1]")
        receiving = asyncio.create_task(channel.receive())
        await run_turns()
        held_back = not receiving.done()
        asgi.reads.set()
        await sending

        assert held_back
        assert b"[1]" == (await receiving).data


async def test_no_more_is_read_ahead_than_a_mebibyte_and_one_message():
    """Ours: a client that floods waits until its messages are taken."""
    asgi = Asgi()
    for _ in range(4):
        asgi.says("x" * MAX_AHEAD_BYTES)
    async with channel_on(asgi) as channel:
        await run_turns()
        waiting = asgi.incoming.qsize()
        taken = [len((await channel.receive()).data) for _ in range(4)]

    assert 2 == waiting
    assert [MAX_AHEAD_BYTES] * 4 == taken


@pytest.mark.covers("websocket.pressure.never-reads")
async def test_a_client_that_reads_nothing_is_given_up():
    """Ours: after a bounded time, and the one who receives hears of it, too."""
    asgi = Asgi()
    asgi.reads.clear()
    async with channel_on(asgi, patience=0.01) as channel:
        with pytest.raises(ConnectionLost, match=r"read nothing for 0\.01 s"):
            await channel.send(Outgoing(b"{}"))
        with pytest.raises(ConnectionLost, match="read nothing"):
            await channel.receive()
        with pytest.raises(ConnectionLost, match="read nothing"):
            await channel.send(Outgoing(b"{}"))


async def test_what_waits_for_a_client_is_bounded(monkeypatch):
    """Ours: in number as well as in time."""
    monkeypatch.setattr("isthmus.transports.http.websocket.MAX_UNSENT_MESSAGES", 1)
    asgi = Asgi()
    asgi.reads.clear()
    async with channel_on(asgi) as channel:
        first = asyncio.create_task(channel.send(Outgoing(b"x" * 2000)))
        await run_turns()
        second = asyncio.create_task(channel.send(Outgoing(b"x")))
        await run_turns()
        asgi.reads.set()
        with pytest.raises(ConnectionLost, match="left 1 messages unread"):
            await second
        await first


async def test_a_server_whose_send_fails_has_lost_the_client():
    """Ours: each ASGI server has an exception of its own for that."""
    asgi = Asgi()

    async def broken(_message):
        raise RuntimeError("after the end")

    asgi.send = broken
    async with channel_on(asgi) as channel:
        with pytest.raises(ConnectionLost, match="the client hung up: after the end"):
            await channel.send(Outgoing(b"{}"))
        await channel.close()


@pytest.mark.parametrize("code", [1000, 1006])
async def test_a_disconnect_ends_the_channel_with_its_code(code):
    """Ours: what came before is received, and then one typed error."""
    asgi = Asgi()
    asgi.says("[1]")
    asgi.incoming.put_nowait({"type": "websocket.disconnect", "code": code})
    async with channel_on(asgi) as channel:
        assert b"[1]" == (await channel.receive()).data
        with pytest.raises(ConnectionLost, match=f"closed the WebSocket: {code}"):
            await channel.receive()


async def test_a_message_beyond_the_limit_is_not_taken_where_the_server_lets_it_through():
    """Ours: not every ASGI server has a limit of its own."""
    asgi = Asgi()
    asgi.says("x" * 11)
    async with channel_on(asgi, limit=10) as channel:
        with pytest.raises(ConnectionLost, match="more than 10 bytes"):
            await channel.receive()
        await channel.close()
        await channel.close()

    assert [{"type": "websocket.close", "code": 1009}] == asgi.sent


# Pings


async def test_pongs_that_nobody_reads_are_bounded(monkeypatch):
    """Ours: a client that pings and does not read is read no further, and keeps a mebibyte or two."""
    opened = []
    made = WebSocketsSansIOProtocol.connection_made

    def keep(connection, transport):
        opened.append(transport)
        made(connection, transport)

    monkeypatch.setattr(WebSocketsSansIOProtocol, "connection_made", keep)
    async with serving(make_echo_server(), websocket=True) as url:
        host, port = url.split("/")[2].split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
        writer.write(
            f"GET /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mcp\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        await reader.readuntil(b"\r\n\r\n")
        ping = b"\x89\xfd" + bytes(4) + b"x" * 125
        most, idle, before = 0, 0, -1
        writer.write(ping * 250_000)  # 32 MB
        while idle < 1000:
            await asyncio.sleep(0)
            left = writer.transport.get_write_buffer_size()
            idle, before = (idle + 1 if left == before else 0), left
            most = max(most, *(one.get_write_buffer_size() for one in opened))
        left = before
        writer.transport.abort()

    assert left > 8_000_000  # it was read no further
    assert most < 2 * MAX_UNREAD_BYTES
