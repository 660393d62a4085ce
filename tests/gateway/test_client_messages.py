"""Messages between a gateway and its calling client, recorded while somebody watches, in both eras."""

import json

import pytest

from isthmus import Client
from isthmus.gateway import Gateway
from support.gateway.asking_shop import Answers, make_asker, make_host
from support.gateway.small_gateway import ALLOW_ALL, make_shop
from support.http.uvicorn_server import serve_uvicorn

pytestmark = pytest.mark.timeout(60)

LEGACY, MODERN = "2025-11-25", "2026-07-28"
PAIRS = [(client, server) for client in (LEGACY, MODERN) for server in (LEGACY, MODERN)]
CANARY = "sk-live-canary-0123456789abcdef"


async def list_conversations(view):
    """The messages of each recorded call with its client, the oldest call first."""
    calls = [one for one in reversed(await view.traffic()) if one.action == "tool.call"]
    return [
        [
            (one.direction, json.loads(one.text))
            for one in await view.wire_messages(call.id)
            if one.side == "client"
        ]
        for call in calls
    ]


@pytest.mark.parametrize(("client", "server"), PAIRS)
@pytest.mark.parametrize("way", ["memory", "http"])
async def test_a_call_and_its_question_are_recorded_as_they_went(way, client, server):
    """Ours: the request, what the client is asked and answers, and the result; the answer is hidden."""
    ann = Answers()
    host = make_host(ALLOW_ALL, ("shop", make_asker(server), {}))
    async with Gateway(host) as gateway, serve_uvicorn(gateway.asgi(), "auto") as port:
        target = gateway.server if way == "memory" else f"http://127.0.0.1:{port}/mcp"
        async with (
            host.view.watch(),
            Client(target, revision=client, **ann.all) as user,
        ):
            result = await user.call_tool("shop__order", {"item": "shoe"})
            found = await list_conversations(host.view)
            (*_, last) = await host.view.traffic()
            sides = {one.side for one in await host.view.wire_messages(last.id)}

    assert "shoe: ann" == result.text
    assert {"client", "server"} == sides
    said = [one for conversation in found for one in conversation]
    first, (direction, answer) = said[0], said[-1]
    assert ("received", "tools/call") == (first[0], first[1]["method"])
    assert {"item": "shoe"} == first[1]["params"]["arguments"]
    assert "sent" == direction
    assert "shoe: ann" in str(answer["result"]["content"])
    asked = [one for _, one in said if "Which size of shoe?" in str(one)]
    if client == LEGACY:
        assert "elicitation/create" in [one.get("method") for one in asked]
        (given,) = [one for way, one in said if way == "received" and one is not first[1]]
        assert {"action": "accept", "content": "[a person's answer]"} == given["result"]
    else:
        assert asked[0]["result"]["inputRequests"]
        assert "'value': 'ann'" not in str(said)


@pytest.mark.parametrize("client", [LEGACY, MODERN])
async def test_nothing_is_heard_where_nobody_watches(client):
    """Ours: routers and connections are as they were, before and afterwards; secrets are taken out."""
    host = make_host(ALLOW_ALL, ("shop", make_shop(MODERN), {}))
    async with Gateway(host) as gateway, Client(gateway.server, revision=client) as user:
        await user.call_tool("shop__add", {"a": 1, "b": 2})
        before = dict(vars(gateway.server.router))
        async with host.view.watch():
            assert "serve" in vars(gateway.server.router)
            await user.call_tool("shop__add", {"a": 3, "b": 4})
            await user.call_tool("shop__add", {"a": 3, "b": 4, "token": CANARY})
        assert before == vars(gateway.server.router)
        await user.call_tool("shop__add", {"a": 5, "b": 6})
        found = await list_conversations(host.view)

    assert [["received", "sent"]] * 2 == [[way for way, _ in one] for one in found]
    assert CANARY not in str(found)
