"""Attacks across users of a gateway: what one has, used by another, is as if it were not there, in the same words."""

import json
import time

import pytest

from isthmus import Context, Server
from support.gateway.asking_shop import make_asker
from support.gateway.gateway_users import HOST, SECRET, GatewayUser, open_users
from support.gateway.task_kitchen import Kitchen
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import modern_body, modern_head

LEGACY, MODERN = "2025-11-25", "2026-07-28"


def tamper(state):
    """The state with one character changed."""
    middle = len(state) // 2
    return f"{state[:middle]}{'A' if state[middle] != 'A' else 'B'}{state[middle + 1 :]}"


async def test_the_state_of_a_parked_call_opens_for_its_own_call_alone(monkeypatch):
    """Attack: of another user, tool, arguments, server or endpoint, changed, or too old: refused in the same words."""
    servers = {"shop": make_asker(LEGACY), "other": make_asker(LEGACY, "other")}
    async with open_users(**servers) as (app, ann, bob):
        asked = await ann.order()
        said = [
            await bob.order({**asked, "requestState": "x"}),
            await bob.order(asked),
            await ann.order({**asked, "requestState": tamper(asked["requestState"])}),
            await ann.order(asked, item="hat"),
            await ann.order(asked, tool="other__order"),
            await ann.order(asked, tool="shop__pay"),
            await GatewayUser(app, "ann", "/mcp/shop").order(asked, tool="order"),
        ]
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 3_601)
        said.append(await ann.order(asked))
        monkeypatch.undo()
        done = await ann.order(asked)
        again = await ann.order(asked)

    assert "shoe: ann" == done["content"][0]["text"]
    assert 1 == len({json.dumps(one) for one in said}), said
    assert "not under way any more" in again["message"]


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        pytest.param(SECRET, "may have happened", id="same"),
        pytest.param(SECRET[::-1], "cannot be used here", id="other"),
    ],
)
async def test_a_parked_call_is_not_made_again_after_a_restart(secret, words):
    """Ours: with the same secret its client is told that it was lost, with another one that its state is none."""
    begun = []
    async with open_users(shop=make_counting_shop(begun)) as (_, ann, _bob):
        asked = await ann.order()
    async with open_users(secret, shop=make_counting_shop(begun)) as (_, ann, _bob):
        said = await ann.order(asked)
    assert words in said["message"]
    assert ["shoe"] == begun


def make_counting_shop(begun):
    """A server of 2025-11-25 whose tool notes each call, and asks."""
    shop = Server("shop", revisions=[LEGACY])

    @shop.tool
    async def order(item: str, ctx: Context) -> str:
        begun.append(item)
        return str(await ctx.elicit("Which size?", str))

    return shop


async def test_the_session_of_another_is_no_session():
    """Attack: session id of one user, with the token of another."""
    async with open_users(shop=make_asker(LEGACY)) as (_, ann, bob):
        await ann.open_session()
        bob.session = ann.session
        stolen = await bob.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        bob.session = "0" * len(ann.session)
        invented = await bob.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        mine = await ann.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert (404, stolen.body) == (stolen.status, invented.body)
    assert 404 == invented.status
    assert 200 == mine.status


async def test_events_of_another_session_are_not_replayed():
    """Attack: Last-Event-ID of one user's call, in the session of another."""
    kitchen = Kitchen(LEGACY, task=None)
    async with open_users(kitchen=kitchen.server) as (app, ann, bob):
        await ann.open_session()
        await bob.open_session()
        params = {"name": "kitchen__roast", "arguments": {"dish": "goose"}}
        params["_meta"] = {"progressToken": "p"}
        body = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}
        call = Exchange(app, headers=ann.make_head(), body=body)
        await call.event()
        ids = [*call.ids, "1", "x"]
        for id in ids:
            head = bob.make_head(accept="text/event-stream", last_event_id=id)
            replay = Exchange(app, "GET", headers=head)
            await replay.started.wait()
            kitchen.ready.set()
            await call.done()
            assert b"goose" not in replay.body
            replay.leave()
            await replay.done()
        assert b"goose is done" in call.body


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/result", "tasks/update"])
async def test_the_task_of_another_is_unknown(revision, method):
    """Attack: task id of one user, asked for by another; it goes on."""
    if (revision, method) in {(LEGACY, "tasks/update"), (MODERN, "tasks/result")}:
        return  # the other shape's
    kitchen = Kitchen(LEGACY)
    async with open_users(kitchen=kitchen.server) as (_, ann, bob):
        for user in (ann, bob):
            await user.open_session()
        params = {"name": "kitchen__roast", "arguments": {"dish": "goose"}}
        if revision == LEGACY:
            task = (await ann.call("tools/call", **params, task={}))["task"]["taskId"]
        else:
            task = (await ann.ask("tools/call", params, "kitchen__roast"))["taskId"]
        said = []
        for id in (task, "0" * len(task)):
            more = {"inputResponses": {}} if method == "tasks/update" else {}
            asked = {"taskId": id, **more}
            answer = (
                await bob.call(method, **asked)
                if revision == LEGACY
                else await bob.ask(method, asked, id)
            )
            said.append(json.dumps(answer).replace(id, "ID"))
        assert 1 == len(set(said)), said
        assert "code" in said[0]
        kitchen.ready.set()
        assert not kitchen.cancelled.is_set()


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS", "PUT"])
@pytest.mark.parametrize(
    "head",
    [
        pytest.param({}, id="stranger"),
        pytest.param({"authorization": "Bearer eve"}, id="wrong-token"),
        pytest.param({"origin": "https://evil.example"}, id="other-origin"),
        pytest.param({"host": "evil.example"}, id="rebound"),
        pytest.param({"origin": "http://127.0.0.1:8000"}, id="own-origin"),
    ],
)
async def test_a_stranger_does_not_learn_which_servers_there_are(method, head):
    """Attack: a path where nothing stands, and one of a server, are answered alike without a token."""
    async with open_users(shop=make_asker(MODERN)) as (app, ann, _bob):
        said = []
        for path in ("/mcp/shop", "/mcp/none", "/mcp/p/none"):
            body = modern_body("tools/list", {}) if method == "POST" else b""
            given = {**modern_head("tools/list", None), "host": HOST, **head}
            answer = await fetch(app, method, path, headers=given, body=body)
            said.append((answer.status, sorted(answer.headers), answer.body))
        ann.path = "/mcp/none"
        known = await ann.ask("tools/list")

    assert said[0] == said[1] == said[2]
    assert "no such server or profile" in known["message"]
