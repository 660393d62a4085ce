"""Connections of our own: clients that leave, bodies that nobody reads, and who is told of either."""

import asyncio
import json

import pytest

from isthmus.testing.faults import until
from support.auth.protected_server import make_guard
from support.http.connection_driver import Wire, make_config
from support.http.messages import (
    hello,
    legacy_head,
    make_http_app,
    modern_body,
    modern_head,
    open_legacy_session,
)

BODY = json.dumps(modern_body()).encode()
CHUNK = b"%x\r\n%b\r\n" % (len(BODY), BODY)
LARGE_PART = b"x" * 100_000  # more than is read before somebody asks for it


def make_head(*more, first="POST /mcp", fields=None):
    """A request's head."""
    named = (modern_head(host="localhost") if fields is None else fields).items()
    lines = [f"{first} HTTP/1.1", *(f"{name}: {value}" for name, value in named), *more, "", ""]
    return "\r\n".join(lines).encode()


class SlowGuard:
    """An authorizer that knows who it is when it is told to.

    Attributes:
        asked: it was asked.
        told: it may answer.
    """

    def __init__(self):
        self._guard = make_guard()
        self.asked = asyncio.Event()
        self.told = asyncio.Event()

    def __getattr__(self, name):
        return getattr(self._guard, name)

    async def admit(self, _scope):
        """Nobody, who may do everything."""
        self.asked.set()
        await self.told.wait()

    def permit(self, *_asked, **_more):
        """Let it through."""


@pytest.mark.parametrize(
    ("framing", "part", "then"),
    [
        ("transfer-encoding: chunked", CHUNK, b"zz\r\n"),
        ("transfer-encoding: chunked", CHUNK, None),
        (f"content-length: {len(BODY)}", BODY, None),
    ],
    ids=["malformed after", "left amid the body", "left after the body"],
)
async def test_a_request_that_breaks_off_while_its_sender_is_looked_up_is_not_served(
    framing, part, then
):
    """RFC 9112 8: a message that is incomplete is not a request, whatever its first part says."""
    served = []

    async def note(_inbound):
        served.append(1)
        return "served"

    guard = SlowGuard()
    wire = Wire(make_config(make_http_app({"auth": guard}, hello=note)))
    await wire.send(make_head(framing) + part)
    await guard.asked.wait()
    if then is None:
        wire.close()
    else:
        await wire.send(then)
    await asyncio.sleep(0)
    guard.told.set()
    await wire.idle()

    assert served == []
    assert wire.said == b"" or wire.said.startswith(b"HTTP/1.1 400 ")


async def test_an_answer_whose_client_has_left_is_dropped_without_a_word(caplog):
    """Ours: a client may leave at any moment, which is no error of the server's."""
    begun, go_on, done = asyncio.Event(), asyncio.Event(), []

    async def wait(_inbound):
        begun.set()
        await go_on.wait()
        done.append(1)
        return "done"

    wire = Wire(make_config(make_http_app(hello=wait)))
    await wire.send(make_head(f"content-length: {len(BODY)}") + BODY)
    await begun.wait()
    wire.close()
    await asyncio.sleep(0)
    go_on.set()
    await wire.idle()

    assert done == [1]
    assert wire.said == b""
    assert [record.getMessage() for record in caplog.records] == []


async def test_a_refused_upload_is_read_on_however_much_of_it_came_at_once():
    """RFC 9112 9.6: else the client's stack erases the response before it is read."""
    wire = Wire(make_config(make_http_app(hello=hello)))
    await wire.send(make_head("content-length: 8000000", first="POST /other") + LARGE_PART)

    assert wire.said.startswith(b"HTTP/1.1 404 ")
    assert wire.transport.reading
    assert not wire.transport.closing
    wire.close()


async def test_a_stream_reads_the_body_of_its_request_so_that_it_sees_the_client_leave():
    """Ours: a connection that is not read from does not tell when it is closed."""
    app = make_http_app(hello=hello)
    session = await open_legacy_session(app)
    wire = Wire(make_config(app))
    head = legacy_head(session, accept="text/event-stream", host="localhost")
    await wire.send(make_head("content-length: 8000000", first="GET /mcp", fields=head))
    await until(lambda: bool(wire.said))
    await wire.send(LARGE_PART, LARGE_PART)

    assert wire.said.startswith(b"HTTP/1.1 200 ")
    assert wire.transport.reading
    wire.close()
    await wire.idle()


@pytest.mark.parametrize("body", [False, True], ids=["body read", "body awaited"])
async def test_all_who_wait_for_the_client_are_told_that_it_has_left(body):
    """ASGI: receive() may be awaited by several, and by one that gives it up, as ``is_disconnected`` does."""
    heard, waiting = [], []

    async def app(_scope, receive, send):
        async def listen():
            heard.append((await receive())["type"])

        if not body:
            await receive()
        listeners = [asyncio.create_task(listen()) for _ in range(3)]
        await asyncio.sleep(0)
        listeners[-1].cancel()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        waiting.append(1)
        await asyncio.wait(listeners)

    wire = Wire(make_config(app))
    await wire.send(make_head("content-length: 5" if body else "x: y", first="GET /"))
    await until(lambda: bool(waiting))
    wire.close()
    await wire.idle()

    assert heard == ["http.disconnect"] * 2


async def test_who_waits_for_the_body_is_told_that_the_response_is_complete():
    """ASGI: receive() gives the disconnect once the response has been sent, whatever was to come."""
    heard = []

    async def app(_scope, receive, send):
        async def listen():
            heard.append((await receive())["type"])

        listener = asyncio.create_task(listen())
        await asyncio.sleep(0)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})
        await listener

    wire = Wire(make_config(app))
    await wire.send(make_head("content-length: 5", first="POST /"))
    await until(lambda: bool(heard))

    assert heard == ["http.disconnect"]
    wire.close()
    await wire.idle()


async def test_a_uvicorn_that_cannot_reset_context_variables_is_none_the_worse():
    """Ours: the oldest uvicorn that may be installed has no such setting."""
    config = make_config(make_http_app(hello=hello))
    del config.reset_contextvars
    wire = Wire(config)
    await wire.send(make_head(f"content-length: {len(BODY)}") + BODY)
    await wire.idle()

    assert wire.said.startswith(b"HTTP/1.1 200 ")
    wire.close()
