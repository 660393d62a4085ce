"""Drain: what a server that was told to stop still does, and for how long."""

import asyncio
import contextlib
import signal
import sys
from types import SimpleNamespace

import pytest

from isthmus.testing.faults import until
from isthmus.transports.http.serve import drain_connections
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import (
    begin_legacy_call,
    begin_modern_call,
    hello,
    legacy_head,
    make_http_app,
    modern_body,
    modern_head,
    open_legacy_session,
)
from transports.test_http_serve import connect_to, encode_request, read_response, serve_app

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


class Gated:
    """A tool that waits until it may go on."""

    def __init__(self):
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()

    async def __call__(self, _inbound):
        """Serve a call."""
        self.begun.set()
        await self.gate.wait()
        return "late"


async def probe(app):
    """The status of readiness."""
    return (await fetch(app, "GET", "/ready", headers={"host": "10.0.0.7"})).status


@contextlib.contextmanager
def signals_owned():
    """SIGTERM is handled by whoever runs the app; gives what it hears."""
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        yield heard
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_call_in_flight_finishes_while_the_server_drains(era):
    """Ours: and the server does not wait for longer than that."""
    slow = Gated()
    app = make_http_app({"drain": 60.0}, slow=slow)
    if era == "legacy":
        call = begin_legacy_call(app, await open_legacy_session(app), "slow")
    else:
        call = begin_modern_call(app, "slow")
    await slow.begun.wait()
    closing = asyncio.create_task(app.close())
    await asyncio.sleep(0)
    assert 503 == await probe(app)
    slow.gate.set()
    answer = await call.done()
    await closing

    assert 200 == answer.status
    assert "late" in answer.body.decode()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_call_that_takes_too_long_is_answered_by_an_error(era):
    """Ours: 503, since the session of a client need not end with this process."""
    slow = Gated()
    app = make_http_app(slow=slow)
    if era == "legacy":
        call = begin_legacy_call(app, await open_legacy_session(app), "slow")
    else:
        call = begin_modern_call(app, "slow")
    await slow.begun.wait()
    await app.close(drain=0.0)
    answer = await call.done()

    assert (503, -32603) == (answer.status, answer.json["error"]["code"])
    assert "shutting down" in answer.json["error"]["message"]


async def test_a_server_that_drains_serves_calls_and_begins_no_streams():
    """Ours: a stream would have to end at once, and another node may have it."""
    slow = Gated()
    app = make_http_app({"drain": 60.0}, slow=slow, hello=hello)
    session = await open_legacy_session(app)
    call = begin_modern_call(app, "slow")
    await slow.begun.wait()
    closing = asyncio.create_task(app.close())
    await asyncio.sleep(0)
    served = await begin_modern_call(app).done()
    wanted = modern_body("subscriptions/listen", {"notifications": {}}, id="s")
    refused = [
        await fetch(app, headers=modern_head("subscriptions/listen", None), body=wanted),
        await fetch(app, "GET", headers=legacy_head(session, accept="text/event-stream")),
        await fetch(app, "GET", "/sse", headers={"host": "localhost"}),
    ]
    slow.gate.set()
    await call.done()
    await closing

    assert 200 == served.status
    assert [503, 503, 503] == [one.status for one in refused]
    assert {"close"} == {one.header("connection") for one in refused}


async def test_a_standing_stream_is_told_to_come_back():
    """Spec 2025-11-25 basic/transports: SHOULD send retry before closing; it is another node's then."""
    app = make_http_app({"retry": 0.25})
    session = await open_legacy_session(app)
    head = legacy_head(session, accept="text/event-stream")
    stream = Exchange(app, "GET", headers=head)
    await stream.started.wait()
    await app.close()
    whole = await stream.done()

    assert b"retry: 250\n" in whole.body
    assert whole.body.endswith(b"\n\n")


async def test_a_second_signal_cuts_what_is_in_flight():
    """Ours: whoever repeats it does not want to wait."""
    slow = Gated()
    app = make_http_app({"drain": 60.0}, slow=slow)
    with signals_owned() as heard:
        call = begin_modern_call(app, "slow")
        await slow.begun.wait()
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0)
        signal.raise_signal(signal.SIGTERM)
        answer = await call.done()
        await app.close()

    assert 503 == answer.status
    assert [signal.SIGTERM] * 2 == heard


async def test_a_server_goes_on_for_the_lead_that_balancers_need():
    """Ours: all is served as before, but /ready says no; then the server hears of the signal."""
    app = make_http_app({"drain_lead": 0.2}, hello=hello)
    with signals_owned() as heard:
        await app.start()
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0)
        assert 503 == await probe(app)
        assert 200 == (await begin_modern_call(app).done()).status
        assert [] == heard
        await until(lambda: bool(heard), turns=10_000_000)
        await app.close()

    assert [signal.SIGTERM] == heard


async def test_a_second_signal_ends_the_lead():
    """Ours: then there is nothing to wait for."""
    app = make_http_app({"drain_lead": 60.0, "drain": 60.0}, hello=hello)
    with signals_owned() as heard:
        await app.start()
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0)
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0)
        await app.close()

    assert [signal.SIGTERM] == heard


# On connections


async def test_a_connection_ends_with_the_next_answer_of_a_server_that_drains():
    """Ours: a request that is on its way meanwhile is not lost (RFC 9112 9.6: close is announced)."""
    slow = Gated()
    target = make_http_app({"drain": 60.0}, slow=slow, hello=hello)
    async with contextlib.AsyncExitStack() as stack:
        url = await stack.enter_async_context(serve_app(target))
        busy, kept = await connect_to(url), await connect_to(url)
        for _ in range(3):  # by then its head is known
            kept[1].write(encode_request(modern_head(), modern_body()))
            assert "connection" not in (await read_response(kept[0]))[1]
        body = modern_body(params={"name": "slow", "arguments": {}})
        busy[1].write(encode_request(modern_head(name="slow"), body))
        await slow.begun.wait()
        stopping = asyncio.create_task(stack.aclose())
        await until(lambda: target.is_draining)
        kept[1].write(encode_request(modern_head(), modern_body()))
        status, headers, _ = await read_response(kept[0])
        slow.gate.set()
        late = await read_response(busy[0])
        await stopping

    assert (200, "close") == (status, headers["connection"])
    assert b"" == await kept[0].read()
    assert (200, "close") == (late[0], late[1]["connection"])
    for _, writer in (busy, kept):
        writer.close()


async def test_a_signal_that_is_heard_late_holds_no_idle_server_up():
    """Ours: a server may end its connections before its loop runs what the signal asked for."""
    with signals_owned():
        app = make_http_app({"drain": 60.0})
        await app.start()
        app.drain.awaits_connections = True
        signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(5.0):
            await drain_connections(app, SimpleNamespace(connections=set()))

    assert not app.has_started
