"""Callers of a gateway as a console sees them: principals, their clients, sessions and calls, and profiles."""

import asyncio

import pytest

from isthmus.gateway import Gateway
from isthmus.host.model.gateway_options import GatewayOptions, GatewayProfile
from support.gateway.http_gateway import make_auth
from support.gateway.small_gateway import make_allowing_host
from support.host.console_hosts import make_calculator, view_host, wait_for_call
from support.http.asgi_driver import fetch
from support.http.messages import INITIALIZE, INITIALIZED, legacy_head, modern_body, modern_head

pytestmark = pytest.mark.timeout(60)

ADDRESS = {"host": "127.0.0.1:8000"}


def sign(name):
    """The headers of a user."""
    return {**ADDRESS, "authorization": f"Bearer {name}"}


async def call_modern(app, name, tool):
    """Call a tool as a client of 2026-07-28 does."""
    head = {**modern_head("tools/call", tool), **sign(name)}
    body = modern_body("tools/call", {"name": tool, "arguments": {}})
    return await fetch(app, path="/mcp", headers=head, body=body)


async def open_session(app, name):
    """Open a session of 2025-11-25: its headers."""
    opened = await fetch(app, path="/mcp", headers={**legacy_head(), **sign(name)}, body=INITIALIZE)
    head = {**legacy_head(opened.header("mcp-session-id")), **sign(name)}
    await fetch(app, path="/mcp", headers=head, body=INITIALIZED)
    return head


@pytest.mark.parametrize("way", ["local", "attached"])
async def test_who_calls_a_gateway_is_shown(tmp_path, way):
    """Ours: while they call, with client, revision and session; afterwards what was recorded."""
    state = tmp_path / "state"
    host = make_allowing_host(state=state)
    host.add("calc", make_calculator(), era="legacy", instance="per-session")
    profile = GatewayProfile(servers=("calc",), include=("calc__add",))
    options = GatewayOptions(profiles={"sums": profile})
    async with (
        Gateway(host, options=options, auth=make_auth()) as gateway,
        view_host(host, way, state) as view,
        view.watch(),
    ):
        app = gateway.asgi()
        head = await open_session(app, "ann")
        body = {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "calc__hang", "arguments": {}},
        }  # fmt: skip
        calls = [asyncio.ensure_future(fetch(app, path="/mcp", headers=head, body=body))]
        await wait_for_call(view, "sent")
        calls.append(asyncio.ensure_future(call_modern(app, "bob", "calc__fail")))
        await calls[-1]
        lines = {one.principal: one for one in await view.principals()}
        profiles = await view.profiles()
        (hanging,) = [one for one in await view.traffic() if one.object == "hang"]
        assert await view.stop_call(hanging.id, by="ada")
        await calls[0]
        after = {one.principal: one.in_flight for one in await view.principals()}

    ann, bob = (next(line for who, line in lines.items() if name in who) for name in ("ann", "bob"))
    assert (1, 1, 0) == (ann.in_flight, ann.sessions, bob.in_flight)
    assert "2025-11-25" in str(ann.clients)
    assert (1, 1) == (ann.calls, bob.calls)
    assert {0} == set(after.values())
    assert [("sums", ("calc",), ("calc__add",))] == [
        (one.name, one.servers, one.tools) for one in profiles
    ]
