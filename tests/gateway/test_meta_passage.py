"""Members of a caller's _meta at a gateway: what reaches the server behind is of the protocol, or of gateways."""

import contextlib
import json

import pytest

from isthmus.bridge.upstream import HOPS_KEY
from isthmus.gateway import Gateway
from isthmus.gateway.loops import MARKS_KEY
from isthmus.host.model.entries import HostConfig, ServerEntry
from support.auth.oauth_town import body_of, replay_body
from support.gateway.small_gateway import make_allowing_host, make_shop
from support.http.asgi_driver import fetch
from support.http.messages import (
    legacy_head,
    modern_body,
    modern_head,
    open_legacy_session,
)
from support.http.uvicorn_server import serve_uvicorn

CANARY = "canary-51c0e2d7aa"
CARRIER = {"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01", "baggage": f"a={CANARY}"}
META = {
    "authorization": f"Bearer {CANARY}",
    "com.example/token": CANARY,
    "com.example/nested": {"io.github.isthmus/gateways": [CANARY]},
    "io.modelcontextprotocol/clientInfo": {"name": CANARY, "version": CANARY},
    "io.modelcontextprotocol/unknown": CANARY,
    "isthmus/approval": CANARY,
    **CARRIER,
}
KNOWN = {
    HOPS_KEY,
    MARKS_KEY,
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
}
REQUESTS = {
    "tools/call": ({"name": "shop__add", "arguments": {"a": 1, "b": 2}}, "shop__add"),
    "resources/read": ({"uri": "shop+shop://catalogue"}, "shop+shop://catalogue"),
    "prompts/get": ({"name": "shop__praise", "arguments": {"name": "it"}}, "shop__praise"),
    "completion/complete": (
        {
            "ref": {"type": "ref/prompt", "name": "shop__praise"},
            "argument": {"name": "name", "value": "sh"},
        },
        None,
    ),
    "tools/list": ({}, None),
}
MODERN, LEGACY = "2026-07-28", "2025-11-25"


@contextlib.asynccontextmanager
async def open_recorded_gateway(revision):
    """A gateway over HTTP in front of a server over HTTP, and all that this one is sent."""
    seen, shop = [], make_shop(revision).asgi()

    async def record(scope, receive, send):
        if scope["type"] != "http":
            await shop(scope, receive, send)
            return
        body = await body_of(receive)
        seen.append((scope["headers"], scope["query_string"], body))
        await shop(scope, replay_body(body, receive), send)

    async with serve_uvicorn(record, "auto") as port:
        entry = ServerEntry(name="shop", kind="http", url=f"http://127.0.0.1:{port}/mcp")
        gateway = Gateway(make_allowing_host(config=HostConfig(servers={"shop": entry})))
        async with gateway:
            yield gateway.asgi(), seen


async def send_request(app, revision, method):
    """Send a request with all those members, with canaries wherever else a request has room; its answer."""
    params, name = REQUESTS[method]
    more = {"authorization": f"Bearer {CANARY}", "cookie": f"c={CANARY}", "x-key": CANARY}
    scope = {"query_string": f"token={CANARY}".encode()}
    if revision == MODERN:
        head, body = modern_head(method, name), modern_body(method, params, **META)
    else:
        head = legacy_head(await open_legacy_session(app))
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": META}}
    return await fetch(app, headers={**head, **more}, body=body, scope=scope)


@pytest.mark.parametrize("behind", [MODERN, LEGACY])
@pytest.mark.parametrize("revision", [MODERN, LEGACY])
@pytest.mark.parametrize("method", REQUESTS)
async def test_no_member_of_a_callers_meta_reaches_a_server(method, revision, behind):
    """Spec 2026-07-28 basic/authorization: no token passthrough, by no way that a request offers."""
    async with open_recorded_gateway(behind) as (app, seen):
        answer = await send_request(app, revision, method)
        assert b'"result"' in answer.body, answer.body
    assert any(method.encode() in body for _, _, body in seen)
    assert [] == [one for one in seen if CANARY in repr(one)]
    metas = [json.loads(body).get("params", {}).get("_meta", {}) for *_, body in seen if body]
    assert set() == {key for meta in metas for key in meta} - KNOWN
