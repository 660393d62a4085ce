"""How a URL's transport is found out, request by request, against a scripted server."""

import asyncio
import json

import pytest

from isthmus.client import handshake
from isthmus.client.client import Client
from isthmus.client.targets import Target
from isthmus.errors import ConnectFailed
from isthmus.transports.http.client.channel import HttpClientChannel
from isthmus.transports.http.client.sse import HttpSseChannel
from support.http.scripted_requests import HOLD, ScriptedReply, ScriptedRequests

URL = "http://server.example/mcp"
OLD, LEGACY = "2024-11-05", "2025-11-25"


@pytest.fixture(autouse=True)
def forgetful():
    """No test knows what another has found out."""
    handshake.forget_target(URL)
    yield
    handshake.forget_target(URL)


def whole(status=200, **members):
    body = json.dumps({"jsonrpc": "2.0", **members}).encode()
    return ScriptedReply(status, body, kind="application/json")


def greeting(version):
    info = {"name": "scripted", "version": "1"}
    return {"protocolVersion": version, "capabilities": {}, "serverInfo": info}


class Site:
    """A URL, and what is said there.

    Args:
        post: the answer to each POST: a ``ScriptedReply`` maker; None greets as a legacy server does.
        stream: the answer to GET; None is a stream of HTTP+SSE.
    """

    def __init__(self, post=None, stream=None):
        self.post, self.get = post, stream
        self.steps = []
        self.posted = None

    def answer(self, method, url, _headers, body):
        message = json.loads(body) if body else {}
        self.steps.append(f"{method} {url.rpartition('/')[2]} {message.get('method', '')}".strip())
        if method == "DELETE":
            return ScriptedReply(405)
        if method == "GET":
            self.posted = asyncio.Event()
            answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": greeting(OLD)}).encode()
            pieces = (b"event: endpoint\ndata: /post\n\n", self.posted, b"data: %b\n\n" % answer)
            return ScriptedReply(200, *pieces, HOLD) if self.get is None else self.get()
        if url.endswith("/post"):
            self.posted.set()
            return ScriptedReply(202)
        return self.greet(message) if self.post is None else self.post()

    def greet(self, message):
        if message.get("id") is None:
            return ScriptedReply(202)
        if message["method"] != "initialize":
            return ScriptedReply(400)
        return whole(id=message["id"], result=greeting(LEGACY))

    def client(self, **options):
        async def dial():
            return HttpClientChannel(URL, requests=ScriptedRequests(self.answer))

        async def dial_sse():
            channel = HttpSseChannel(URL, requests=ScriptedRequests(self.answer))
            await channel.open()
            return channel

        return Client(Target(URL, dial, URL, http=True, sse=dial_sse), **options)


async def steps_of(site, **options):
    """What was asked for until the connection was open, and how that went."""
    try:
        async with site.client(**options) as client:
            return site.steps, str(client.revision)
    except ConnectFailed as error:
        return site.steps, str(error)


@pytest.mark.covers("fallback.get-after")
@pytest.mark.parametrize("status", [400, 404, 405, 406, 415])
async def test_after_a_status_about_the_request_the_stream_is_asked_for(status):
    """Spec 2025-03-26 and 2025-11-25 basic/transports#backwards-compatibility."""
    steps, end = await steps_of(Site(lambda: ScriptedReply(status)))

    assert ["POST mcp server/discover", "POST mcp initialize", "GET mcp"] == steps[:3]
    assert ["POST post initialize", "POST post notifications/initialized"] == steps[3:]
    assert OLD == end


@pytest.mark.covers("fallback.never")
@pytest.mark.parametrize("status", [401, 403, 407, 408, 425, 429, 502, 503, 302])
async def test_after_a_status_about_the_caller_or_the_moment_nothing_else_is_tried(status):
    """Ours: it says nothing about the transport."""
    steps, end = await steps_of(Site(lambda: ScriptedReply(status)))

    assert ["POST mcp server/discover"] == steps
    assert f"HTTP {status}; " in end


async def test_a_server_that_fails_is_no_older_server():
    """Ours: 500 may be a legacy server's answer to a method it does not know, and no more."""
    steps, end = await steps_of(Site(lambda: ScriptedReply(500)))

    assert ["POST mcp server/discover", "POST mcp initialize"] == steps
    assert "the server did not accept initialize: HTTP 500" in end


@pytest.mark.covers("fallback.modern-error")
@pytest.mark.parametrize("code", [-32020, -32021])
async def test_a_modern_error_is_no_reason_to_fall_back(code):
    """Spec 2026-07-28 basic/transports/streamable-http#http-sse-transport-2024-11-05."""
    error = {"code": code, "message": "no"}
    steps, end = await steps_of(Site(lambda: whole(400, id=1, error=error)))

    assert ["POST mcp server/discover"] == steps
    assert f"no ({code})" in end


@pytest.mark.parametrize("id", [1, 2, None])
async def test_another_json_rpc_error_is_one(id):
    """Spec 2026-07-28 basic/transports/streamable-http#http-sse-transport-2024-11-05."""
    error = {"code": -32000, "message": "no session"}
    steps, end = await steps_of(Site(lambda: whole(400, id=id, error=error)))

    assert (OLD, "GET mcp") == (end, steps[2])


@pytest.mark.parametrize(
    ("stream", "complaint"),
    [
        (lambda: ScriptedReply(405), "GET opens no stream of HTTP+SSE (HTTP 405)"),
        (lambda: ScriptedReply(200, b"<html>", kind="text/html"), "(GET brings text/html, and not"),
        (lambda: ScriptedReply(401), "HTTP 401; the server wants authorization"),
        (
            lambda: ScriptedReply(200, b"event: endpoint\ndata: //evil/\n\n", HOLD),
            "names '//evil/' as its",
        ),
        (
            lambda: ScriptedReply(200, b"data: {}\n\n", HOLD),
            "does not begin with an endpoint event",
        ),
    ],
)
async def test_a_url_where_neither_is_spoken_says_what_both_said(stream, complaint):
    """Ours: one message with both reasons."""
    steps, end = await steps_of(Site(lambda: ScriptedReply(404), stream))

    assert complaint in end
    assert 3 == len(steps)


async def test_what_was_found_is_used_first_and_found_out_anew_when_it_fails():
    """Spec 2026-07-28 basic/versioning: remembered as long as it holds."""
    site = Site(lambda: ScriptedReply(404))
    await steps_of(site)
    site.steps.clear()
    await steps_of(site)
    assert "GET mcp" == site.steps[0]

    site.steps.clear()
    site.post, site.get = None, lambda: ScriptedReply(405)
    steps, end = await steps_of(site)
    assert ["GET mcp", "POST mcp server/discover", "POST mcp initialize"] == steps[:3]
    assert LEGACY == end
    assert not handshake.recall_target(URL).sse


async def test_a_pinned_revision_falls_back_as_well():
    """Ours: the transport is not the revision's business alone."""
    steps, end = await steps_of(Site(lambda: ScriptedReply(405)), revision=OLD)

    assert ["POST mcp initialize", "GET mcp", "POST post initialize"] == steps[:3]
    assert OLD == end


async def test_the_modern_revision_is_not_looked_for_there():
    """Spec 2026-07-28: HTTP+SSE has a handshake, and 2026-07-28 has none."""
    steps, end = await steps_of(Site(lambda: ScriptedReply(405)), revision="2026-07-28")

    assert ["POST mcp server/discover"] == steps
    assert "does not speak revision 2026-07-28" in end
