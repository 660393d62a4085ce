"""HTTP/1.0, and bodies on their way from everywhere."""

import asyncio
import json

import pytest

from isthmus.transports.http.connections import Connection
from isthmus.transports.http.connections.h11_connection import H11Connection
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import (
    hello,
    legacy_head,
    make_http_app,
    modern_body,
    modern_head,
    open_legacy_session,
)
from support.http.uvicorn_server import serve_uvicorn

OLD_HTTP = {"http_version": "1.0"}


async def chatty(inbound):
    """A tool that says something before its answer."""
    from isthmus.wire import ProgressParams

    await inbound.link.note(
        "notifications/progress", ProgressParams(progress_token="p", progress=1)
    )
    return "done"


@pytest.mark.parametrize("kind", [Connection, H11Connection])
async def test_a_call_by_http_1_0_is_answered_in_one_piece(kind):
    """RFC 9112 6.1: no chunks to a client of HTTP/1.0; what comes before the answer is left out."""
    body = json.dumps(modern_body(params={"name": "chatty", "arguments": {}}, progressToken="p"))
    fields = modern_head(name="chatty", host="localhost").items()
    head = ["POST /mcp HTTP/1.0", *(f"{name}: {value}" for name, value in fields)]
    request = "\r\n".join([*head, f"content-length: {len(body)}", "", body]).encode()
    async with serve_uvicorn(make_http_app(chatty=chatty), kind) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        said = (await reader.read()).decode().lower()
        writer.close()

    assert " 200 ok\r\n" in said
    assert "content-length: " in said
    assert "transfer-encoding" not in said
    assert '"text":"done"' in said


async def test_http_1_0_has_no_streams():
    """Ours: what is nothing but a stream is refused, with the reason."""
    target = make_http_app()
    session = await open_legacy_session(target)
    listen = modern_body("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    asked = [
        {"headers": modern_head("subscriptions/listen", None), "body": listen},
        {"method": "GET", "headers": legacy_head(session, accept="text/event-stream")},
        {"method": "GET", "path": "/sse", "headers": legacy_head(accept="text/event-stream")},
    ]
    for one in asked:
        answer = await fetch(target, scope=OLD_HTTP, **one)
        assert 406 == answer.status
        assert "use HTTP/1.1" in answer.json["error"]["message"]
    await target.close()


async def test_bodies_on_their_way_have_a_budget_together():
    """Ours: each may be within its limit, and all of them too much."""
    target = make_http_app({"body_limit": 1000, "upload_budget": 3000}, hello=hello)
    piece = b'{"jsonrpc":"2.0",' + b" " * 883
    waiting = [Exchange(target, headers=modern_head(), body=[piece], whole=False) for _ in range(3)]
    for one in waiting:
        await one.watched.wait()
    refused = Exchange(target, headers=modern_head(), body=[piece, b"}"])
    await refused.done()
    whole = await fetch(target, headers=modern_head(), body=modern_body())

    assert (503, "5") == (refused.status, refused.header("retry-after"))
    assert "upload_budget" in refused.json["error"]["message"]
    assert 200 == whole.status  # what comes in one piece takes nothing

    for one in waiting:
        one.leave()
        await one.done()
    rest = json.dumps(modern_body()).encode()
    again = Exchange(target, headers=modern_head(), body=[rest[:100], rest[100:]])
    await again.done()
    assert 200 == again.status
    await target.close()
