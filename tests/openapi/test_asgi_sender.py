"""Requests to an application in the same process."""

import asyncio
import contextvars
import gzip
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from isthmus.errors import UsageError
from isthmus.openapi.apps.asgi_sender import AsgiSender
from isthmus.openapi.request import PreparedRequest
from isthmus.openapi.sending import ApiUnavailable

WAIT_S = 5.0


def make_request(path: str = "/", method: str = "GET", **more) -> PreparedRequest:
    return PreparedRequest(method, f"http://app{path}", **more)


async def send(sender, request=None, *, limit=1000, timeout=WAIT_S, context=None):
    return await sender.send(
        request or make_request(), limit=limit, timeout=timeout, context=context
    )


def answer(*pieces: bytes, status: int = 200, headers=(), more: bool = False):
    """An application that answers with these pieces."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": [*headers]})
        for at, piece in enumerate(pieces):
            last = at == len(pieces) - 1 and not more
            await send({"type": "http.response.body", "body": piece, "more_body": not last})

    return app


async def test_a_request_arrives_as_a_server_would_hand_it_over():
    """ASGI 3.0: path decoded and raw, query, headers in lower case, the body in one piece."""
    seen = {}

    async def app(scope, receive, send):
        seen.update(scope, message=await receive())
        await answer(b"ok")(scope, receive, send)

    request = make_request(
        "/a%20b?q=%C3%BC", "POST", headers={"X-Sign": "1"}, body=b"{}", cookies=(("k", "v"),)
    )
    response = await send(AsgiSender(app), request)

    assert (200, b"ok") == (response.status, response.body)
    assert ("/a b", b"/a%20b", b"q=%C3%BC") == (
        seen["path"], seen["raw_path"], seen["query_string"]
    )  # fmt: skip
    headers = dict(seen["headers"])
    assert (b"1", b"k=v", b"2", b"app") == (
        headers[b"x-sign"], headers[b"cookie"], headers[b"content-length"], headers[b"host"]
    )  # fmt: skip
    assert {"type": "http.request", "body": b"{}", "more_body": False} == seen["message"]


async def test_nobody_at_this_machine_is_said_to_call():
    """An application that trusts 127.0.0.1 must not trust a model."""
    seen = {}

    async def app(scope, receive, send):
        seen.update(scope)
        await answer(b"")(scope, receive, send)

    await send(AsgiSender(app))

    assert seen["client"] is None


@pytest.mark.parametrize("path", ["/users/1%2Fdelete", "/users/1%2fdelete"])
async def test_a_slash_within_a_part_of_a_path_is_not_sent(path):
    """Applications match their routes with it decoded: it would be another operation."""
    with pytest.raises(ApiUnavailable, match="'/' within a part"):
        await send(AsgiSender(answer(b"")), make_request(path))


async def test_nothing_of_the_caller_goes_along_unasked():
    """Neither a token nor a cookie of the inbound request reaches the application."""
    seen = []

    async def app(scope, receive, send):
        seen.append(dict(scope["headers"]))
        await answer(b"")(scope, receive, send)

    inbound = {"authorization": "Bearer secret", "cookie": "s=1", "x-request-id": "r1"}
    context = SimpleNamespace(headers=inbound)

    await send(AsgiSender(app), context=context)
    await send(AsgiSender(app, pass_headers=["X-Request-Id", "Authorization"]), context=context)

    assert not {b"authorization", b"cookie", b"x-request-id"} & seen[0].keys()
    assert (b"r1", b"Bearer secret") == (seen[1][b"x-request-id"], seen[1][b"authorization"])
    assert b"cookie" not in seen[1]


async def test_an_argument_never_stands_in_for_a_header_that_is_passed_on():
    """A model does not say who calls: not even where the caller said nothing."""
    seen = []

    async def app(scope, receive, send):
        seen.append(dict(scope["headers"]))
        await answer(b"")(scope, receive, send)

    sender = AsgiSender(app, pass_headers=["x-user"])
    forged = make_request(headers={"X-User": "admin"})
    await send(sender, forged, context=SimpleNamespace(headers={"x-user": "ada"}))
    await send(sender, forged, context=SimpleNamespace(headers={}))

    assert b"ada" == seen[0][b"x-user"]
    assert b"x-user" not in seen[1]


@pytest.mark.parametrize("name", ["host", "Content-Length", "transfer-encoding", "a b", "te", ""])
def test_headers_of_a_connection_are_not_passed_on(name):
    """They say something about another connection."""
    with pytest.raises(UsageError, match="pass_headers"):
        AsgiSender(answer(b""), pass_headers=[name])


async def test_a_failing_application_is_a_500_without_words(caplog):
    """The exception is in the log and nowhere else."""

    async def app(scope, receive, send):
        raise ValueError("the password is hunter2")

    response = await send(AsgiSender(app))

    assert (500, b"") == (response.status, response.body)
    assert "hunter2" in caplog.text


@pytest.mark.parametrize("started", [False, True])
async def test_an_incomplete_answer_is_none(started):
    """An application that returns in the middle of its response."""
    app = answer(b"half", more=True) if started else answer()

    with pytest.raises(ApiUnavailable, match="before its answer was complete"):
        await send(AsgiSender(app))


async def test_an_endless_answer_ends_at_the_limit():
    """The application is told that the client has left, and its generator is closed."""
    ended = asyncio.Event()

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 100, "more_body": True})
        except OSError:
            ended.set()
            raise

    with pytest.raises(ApiUnavailable, match="more than 1000 bytes"):
        await send(AsgiSender(app))
    await asyncio.wait_for(ended.wait(), WAIT_S)


async def test_a_bomb_stays_packed():
    """A body that is packed is unpacked up to the limit, and no further."""
    bomb = gzip.compress(b"\0" * 5_000_000)
    packed = [(b"content-encoding", b"gzip")]

    with pytest.raises(ApiUnavailable, match="more than 100000 bytes"):
        await send(AsgiSender(answer(bomb, headers=packed)), limit=100_000)

    response = await send(AsgiSender(answer(gzip.compress(b"ok"), headers=packed)))
    assert b"ok" == response.body


async def test_a_slow_application_is_told_of_the_disconnect():
    """After the time is up ``receive`` gives ``http.disconnect``, as a server does it."""
    told = asyncio.Event()

    async def app(scope, receive, send):
        await receive()
        assert "http.disconnect" == (await receive())["type"]
        told.set()

    with pytest.raises(ApiUnavailable, match=r"within 0\.05 seconds"):
        await send(AsgiSender(app), timeout=0.05)
    await asyncio.wait_for(told.wait(), WAIT_S)


async def test_a_cancelled_call_is_a_client_that_has_left():
    """The client of MCP gives up: so does the request."""
    begun, told = asyncio.Event(), asyncio.Event()

    async def app(scope, receive, send):
        await receive()
        begun.set()
        await receive()
        told.set()

    call = asyncio.create_task(send(AsgiSender(app)))
    await begun.wait()
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(told.wait(), WAIT_S)


async def test_background_tasks_go_on_and_are_waited_for_at_the_end():
    """The answer does not wait for what the application does after it."""
    go, done = asyncio.Event(), asyncio.Event()

    async def app(scope, receive, send):
        await answer(b"ok")(scope, receive, send)
        await go.wait()
        done.set()

    sender = AsgiSender(app)
    response = await send(sender)
    assert b"ok" == response.body
    assert not done.is_set()
    go.set()
    await sender.close()
    assert done.is_set()


async def test_context_variables_of_a_call_are_those_of_the_request():
    """A middleware of the MCP server may set what the application reads."""
    tenant = contextvars.ContextVar("tenant")
    seen = []

    async def app(scope, receive, send):
        seen.append(tenant.get())
        await answer(b"")(scope, receive, send)

    tenant.set("ada")
    await send(AsgiSender(app))

    assert ["ada"] == seen


@pytest.mark.parametrize("location", ["http://other.example/", "//other.example/", "ftp://app/"])
async def test_a_redirect_leads_nowhere_else(location):
    """A response that points to another origin is an answer like any other."""
    app = answer(b"gone", status=302, headers=[(b"location", location.encode())])

    response = await send(AsgiSender(app))

    assert 302 == response.status


async def test_a_redirect_within_the_application_is_followed_for_reading():
    """A framework that adds a slash at the end answers so."""

    async def app(scope, receive, send):
        if scope["path"] == "/items":
            headers = [(b"location", b"/items/")]
            await answer(b"", status=307, headers=headers)(scope, receive, send)
        else:
            await answer(b"items")(scope, receive, send)

    read = await send(AsgiSender(app), make_request("/items"))
    written = await send(AsgiSender(app), make_request("/items", "POST"))

    assert (200, b"items") == (read.status, read.body)
    assert 307 == written.status


async def test_the_lifespan_of_an_application_is_open_between_open_and_close():
    """Its state is that of each request's scope, copied."""
    story = []

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            assert "lifespan.startup" == (await receive())["type"]
            scope["state"]["db"] = "open"
            await send({"type": "lifespan.startup.complete"})
            assert "lifespan.shutdown" == (await receive())["type"]
            story.append("closed")
            await send({"type": "lifespan.shutdown.complete"})
            return
        story.append(scope["state"]["db"])
        scope["state"]["db"] = "changed"
        await answer(b"")(scope, receive, send)

    sender = AsgiSender(app)
    await sender.open()
    await send(sender)
    await send(sender)
    await sender.close()

    assert ["open", "open", "closed"] == story


async def test_an_application_that_cannot_start_says_so():
    """``lifespan.startup.failed`` ends the start of the server, too."""

    async def app(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})

    with pytest.raises(RuntimeError, match="the app cannot start: no database"):
        await AsgiSender(app).open()


async def test_an_application_without_a_lifespan_needs_none():
    """ASGI: an exception before the start is complete means that it is not supported."""
    sender = AsgiSender(answer(b"ok"))
    await sender.open()

    response = await send(sender)
    await sender.close()

    assert b"ok" == response.body


async def test_a_lifespan_that_runs_already_is_not_run_again():
    """An application that serves over HTTP, and its operations as tools, starts once."""
    from starlette.applications import Starlette

    starts = []

    @asynccontextmanager
    async def lifespan(app):
        starts.append("start")
        yield {"db": "open"}

    app = Starlette(lifespan=lifespan)
    sender = AsgiSender(app)
    async with app.router.lifespan_context(app):
        await sender.open()
        assert {"db": "open"} == sender._lifespan.state
        await sender.close()

    assert ["start"] == starts
