"""Stateless mode: up to 2025-11-25 each POST stands alone, and what needs a session is refused."""

import msgspec
import pytest

from isthmus import Context, Server
from support.http.asgi_driver import fetch
from support.http.messages import (
    INITIALIZE,
    INITIALIZED,
    begin_modern_call,
    legacy_call_body,
    legacy_head,
    read_tool_text,
)

LEGACY = ["2025-03-26", "2025-06-18", "2025-11-25"]


@pytest.fixture
async def app():
    """An app without sessions."""
    server = Server("plain", version="1")

    @server.tool
    async def hello(ctx: Context) -> str:
        return f"hello in {ctx.revision.name}"

    @server.tool
    async def steps(ctx: Context) -> str:
        await ctx.progress(1, 2)
        return "done"

    @server.tool
    async def ask(ctx: Context) -> str:
        await ctx.elicit("Which?", str)
        return "asked"

    @server.tool
    async def roots(ctx: Context) -> str:
        return str(await ctx.roots())

    @server.resource("notes://all")
    async def notes() -> str:
        return "none"

    app = server.asgi(stateless=True)
    yield app
    await app.close()


def head(revision=None):
    """The headers of a POST; the revision's is not there where none is given."""
    named = legacy_head()
    return named if revision is None else {**named, "mcp-protocol-version": revision}


async def post(app, body, revision="2025-11-25"):
    """The answer to a POST."""
    return await fetch(app, headers=head(revision), body=body)


@pytest.mark.parametrize("revision", LEGACY)
async def test_a_conversation_needs_no_session(app, revision):
    """2025-11-25 basic/transports#session-management: a server MAY assign a session id, or not."""
    opening = msgspec.json.decode(msgspec.json.encode(INITIALIZE))
    opening["params"]["protocolVersion"] = revision

    opened = await fetch(app, headers=head(), body=opening)
    told = await post(app, INITIALIZED, revision)
    called = await post(app, legacy_call_body("hello"), revision)

    assert revision == opened.json["result"]["protocolVersion"]
    assert opened.header("mcp-session-id") is None
    assert 202 == told.status
    assert f"hello in {revision}" == read_tool_text(called.json)
    assert called.header("mcp-session-id") is None
    assert 0 == len(app._book)


async def test_nothing_that_takes_a_session_is_offered(app):
    """Ours: a client is not told of what it would be refused."""
    opened = await fetch(app, headers=head(), body=INITIALIZE)

    capabilities = opened.json["result"]["capabilities"]
    assert "logging" not in capabilities
    assert {} == capabilities["tools"]
    assert {} == capabilities["resources"]


async def test_without_a_header_the_revision_is_2025_03_26(app):
    """2025-11-25 basic/transports#protocol-version-header: SHOULD assume 2025-03-26."""
    called = await post(app, legacy_call_body("hello"), None)

    assert "hello in 2025-03-26" == read_tool_text(called.json)


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_get_and_delete_are_405(app, verb):
    """2025-11-25 basic/transports: 405 where there is no stream, or no session to end."""
    headers = {**head("2025-11-25"), "accept": "text/event-stream", "mcp-session-id": "abc"}

    answer = await fetch(app, method=verb, headers=headers)

    assert 405 == answer.status
    assert "POST, OPTIONS" == answer.header("allow")
    assert "stateless=True" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/subscribe", {"uri": "notes://all"}),
        ("resources/unsubscribe", {"uri": "notes://all"}),
        ("logging/setLevel", {"level": "error"}),
    ],
)
async def test_what_a_session_would_keep_is_refused(app, method, params):
    """Ours: by an error that names the mode."""
    answer = await post(app, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    assert 200 == answer.status
    assert f"{method} needs a session" in answer.json["error"]["message"]
    assert "stateless=True" in answer.json["error"]["message"]


@pytest.mark.parametrize(("tool", "said"), [("ask", "elicitation/create"), ("roots", "roots/list")])
async def test_a_question_is_refused_at_once(app, tool, said):
    """Ours: its answer could come to any process, and nobody would wait for it."""
    answer = await post(app, legacy_call_body(tool))

    text = str(answer.json)
    assert f"{said} needs a session" in text
    assert "stateless=True" in text


async def test_progress_is_told_on_the_stream_of_its_call(app):
    """2025-11-25 basic/utilities/progress: it belongs to a request, and needs no session."""
    answer = await post(app, legacy_call_body("steps", progressToken=7))

    assert ["notifications/progress", None] == [event.get("method") for event in answer.events]
    assert "done" == read_tool_text(answer.events[-1])


async def test_a_batch_is_answered_whole(app):
    """2025-03-26 basic#batching: MUST support receiving batches."""
    batch = [legacy_call_body("hello", 1), INITIALIZED, legacy_call_body("hello", 2)]

    answer = await post(app, batch, "2025-03-26")
    later = await post(app, batch, "2025-11-25")

    assert [1, 2] == [one["id"] for one in answer.json]
    assert 400 == later.status


async def test_an_answer_that_nobody_waits_for_is_taken(app):
    """2025-11-25 basic/transports#sending-messages-to-the-server: 202 for a response."""
    answer = await post(app, {"jsonrpc": "2.0", "id": 1, "result": {}})

    assert 202 == answer.status


async def test_modern_requests_are_served_as_ever(app):
    """Ours: since 2026-07-28 each request stands alone in any case."""
    answer = await begin_modern_call(app, "hello").done()

    assert "hello in 2026-07-28" == read_tool_text(answer.json)
