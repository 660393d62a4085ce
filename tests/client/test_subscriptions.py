"""Changes: one stream of them, whichever way the server tells."""

import asyncio
import logging

import pytest

from isthmus.client.client import Client
from isthmus.client.subscriptions import MAX_PENDING_CHANGES, Change, ChangeStream, is_at_or_below
from isthmus.errors import CallTimedOut, CapabilityMissing, ConnectionLost, MethodNotFound
from isthmus.wire import SubscriptionFilter
from support.client.small_server import LEGACY_NAME, MODERN_NAME, PuppetChannel
from support.clock import run_in_virtual_time

KEY = "io.modelcontextprotocol/subscriptionId"
CAN = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {},
}


async def open_client(revision, **options):
    """A client of a server that tells everything, and the puppet that plays the server."""
    puppet = PuppetChannel()
    client = Client(puppet.channel, revision=revision, **options)
    opening = asyncio.create_task(client.open())
    await (puppet.discovered(**CAN) if revision == MODERN_NAME else puppet.greeted(**CAN))
    await opening
    return client, puppet


async def open_stream(client, puppet, **wanted):
    """A modern client's stream once it is acknowledged, and the request that opened it."""
    stream = client.listen(**wanted)
    entering = asyncio.create_task(stream.__aenter__())
    asked = await puppet.heard()
    await acknowledge(puppet, asked["id"], asked["params"]["notifications"])
    return stream, await entering, asked


async def acknowledge(puppet, id, granted):
    params = {"_meta": {KEY: id}, "notifications": granted}
    await puppet.says(method="notifications/subscriptions/acknowledged", params=params)


async def send_change(puppet, what, id=None, **params):
    """The server tells of a change."""
    meta = {} if id is None else {"_meta": {KEY: id}}
    await puppet.says(method=f"notifications/{what}", params={**params, **meta})


async def test_a_modern_client_listens_on_a_stream():
    """Spec 2026-07-28 basic/patterns/subscriptions: listen, acknowledged, notifications."""
    client, puppet = await open_client(MODERN_NAME)
    stream, changes, asked = await open_stream(client, puppet, tools=True, uris=["file:///c"])

    assert "subscriptions/listen" == asked["method"]
    assert {"toolsListChanged": True, "resourceSubscriptions": ["file:///c"]} == (
        asked["params"]["notifications"]
    )
    await send_change(puppet, "tools/list_changed", asked["id"])
    await send_change(puppet, "resources/updated", asked["id"], uri="file:///c")

    assert Change("tools") == await anext(changes)
    assert Change("resource", "file:///c") == await anext(changes)

    await stream.__aexit__(None, None, None)
    withdrawn = await puppet.heard()
    assert asked["id"] == withdrawn["params"]["requestId"]
    await client.close()


async def test_a_change_that_names_no_stream_reaches_those_who_asked_for_it():
    """Ours: servers MUST name the subscription, and mcp-go does not over stdio."""
    client, puppet = await open_client(MODERN_NAME)
    stream, changes, _ = await open_stream(client, puppet, tools=True)
    await send_change(puppet, "prompts/list_changed")
    await send_change(puppet, "tools/list_changed")

    assert Change("tools") == await anext(changes)
    await stream.__aexit__(None, None, None)
    await client.close()


@pytest.mark.covers("listening.streams.correlated")
async def test_two_streams_are_kept_apart_by_their_ids():
    """Spec 2026-07-28 basic/patterns/subscriptions: clients MUST correlate by the id."""
    client, puppet = await open_client(MODERN_NAME)
    stream, one, first = await open_stream(client, puppet, tools=True)
    other, two, second = await open_stream(client, puppet, tools=True, prompts=True)
    await send_change(puppet, "prompts/list_changed", second["id"])
    await send_change(puppet, "tools/list_changed", first["id"])
    await send_change(puppet, "tools/list_changed", 999)

    assert Change("prompts") == await anext(two)
    assert Change("tools") == await anext(one)
    assert first["id"] != second["id"]
    for leaving in (stream, other):
        await leaving.__aexit__(None, None, None)
    await client.close()


@pytest.mark.covers("listening.streams.granted")
async def test_what_the_server_grants_can_be_seen():
    """Spec 2026-07-28 basic/patterns/subscriptions#acknowledgment: clients SHOULD check it."""
    client, puppet = await open_client(MODERN_NAME)
    stream = client.listen(tools=True, prompts=True)
    entering = asyncio.create_task(stream.__aenter__())
    asked = await puppet.heard()
    await acknowledge(puppet, asked["id"], {"toolsListChanged": True})
    changes = await entering

    assert SubscriptionFilter(tools_list_changed=True) == changes.granted
    await client.close()


@pytest.mark.covers("listening.streams.graceful")
async def test_the_server_may_end_a_stream():
    """Spec 2026-07-28 basic/patterns/subscriptions#graceful-closure: an answer is the end."""
    client, puppet = await open_client(MODERN_NAME)
    stream, changes, asked = await open_stream(client, puppet, tools=True)
    await send_change(puppet, "tools/list_changed", asked["id"])
    await puppet.says(id=asked["id"], result={"resultType": "complete"})

    assert [Change("tools")] == [change async for change in changes]
    await stream.__aexit__(None, None, None)
    await client.close()


@pytest.mark.covers("listening.streams.graceful")
@pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])
async def test_a_broken_connection_ends_the_stream_with_its_error(revision):
    """Spec 2026-07-28 basic/patterns/subscriptions: no answer means an unexpected disconnect."""
    client, puppet = await open_client(revision)
    if revision == MODERN_NAME:
        stream, changes, _ = await open_stream(client, puppet, tools=True)
    else:
        stream = client.listen(tools=True)
        changes = await stream.__aenter__()
    reading = asyncio.create_task(anext(changes))
    await puppet.leaves()

    with pytest.raises(ConnectionLost):
        await reading
    await stream.__aexit__(None, None, None)
    await client.close()


async def test_a_refused_stream_is_an_exception():
    """Ours: as any other call that is refused."""
    client, puppet = await open_client(MODERN_NAME)
    entering = asyncio.create_task(client.listen(tools=True).__aenter__())
    asked = await puppet.heard()
    await puppet.says(id=asked["id"], error={"code": -32601, "message": "no such method"})

    with pytest.raises(MethodNotFound):
        await entering
    await client.close()


@run_in_virtual_time
async def test_a_stream_that_is_not_acknowledged_is_given_up():
    """Decision D18: nothing waits for ever."""
    client, puppet = await open_client(MODERN_NAME, timeout=0.01)

    with pytest.raises(CallTimedOut, match="no acknowledgement of subscriptions/listen"):
        async with client.listen(tools=True):
            pass

    asked, withdrawn = await puppet.heard(), await puppet.heard()
    assert asked["id"] == withdrawn["params"]["requestId"]
    await client.close()


async def test_a_legacy_client_subscribes_and_filters():
    """Spec 2025-11-25 server/resources: subscribe, bare notifications, unsubscribe."""
    client, puppet = await open_client(LEGACY_NAME)
    stream = client.listen(tools=True, uris=["file:///dir"])
    entering = asyncio.create_task(stream.__aenter__())
    (asked,) = await puppet.answers({})
    changes = await entering

    await send_change(puppet, "prompts/list_changed")
    await send_change(puppet, "tools/list_changed")
    await send_change(puppet, "resources/updated", uri="file:///other")
    await send_change(puppet, "resources/updated", uri="file:///dir/below")

    assert ("resources/subscribe", "file:///dir") == (asked["method"], asked["params"]["uri"])
    assert Change("tools") == await anext(changes)
    assert Change("resource", "file:///dir/below") == await anext(changes)

    leaving = asyncio.create_task(stream.__aexit__(None, None, None))
    (asked,) = await puppet.answers({})
    await leaving
    assert "resources/unsubscribe" == asked["method"]
    await client.close()


async def test_a_server_that_tells_more_than_it_declared_is_heard():
    """Ours: the most used servers declare no listChanged and send it; who asked hears of it."""
    client, puppet = await open_client(LEGACY_NAME)
    async with client.listen(prompts=True) as changes:
        assert not changes.granted.prompts_list_changed

        await send_change(puppet, "prompts/list_changed")

        assert Change("prompts") == await anext(changes)
    await client.close()


async def test_two_legacy_listeners_share_a_subscription():
    """Ours: the server is told of the first and of the last."""
    client, puppet = await open_client(LEGACY_NAME)
    one = client.listen(uris=["u:1"])
    entering = asyncio.create_task(one.__aenter__())
    await puppet.answers({})
    await entering
    async with client.listen(uris=["u:1"]) as changes:
        await send_change(puppet, "resources/updated", uri="u:1")
        assert Change("resource", "u:1") == await anext(changes)
    leaving = asyncio.create_task(one.__aexit__(None, None, None))
    (asked,) = await puppet.answers({})
    await leaving

    assert "resources/unsubscribe" == asked["method"]
    await client.close()


async def test_a_subscription_that_fails_takes_back_the_others():
    """Ours: what could not be listened to leaves nothing behind."""
    client, puppet = await open_client(LEGACY_NAME)
    entering = asyncio.create_task(client.listen(uris=["u:1", "u:2"]).__aenter__())
    await puppet.answers({})
    asked = await puppet.heard()
    await puppet.says(id=asked["id"], error={"code": -32601, "message": "no"})
    (undone,) = await puppet.answers({})

    with pytest.raises(MethodNotFound):
        await entering
    assert ("resources/unsubscribe", "u:1") == (undone["method"], undone["params"]["uri"])
    await client.close()


async def test_subscriptions_need_their_capability():
    """Spec 2025-11-25 server/resources: the subscribe capability."""
    puppet = PuppetChannel()
    client = Client(puppet.channel, revision=LEGACY_NAME)
    opening = asyncio.create_task(client.open())
    await puppet.greeted(resources={})
    await opening

    with pytest.raises(CapabilityMissing, match="does not offer subscriptions"):
        async with client.listen(uris=["u:1"]):
            pass
    with pytest.raises(CapabilityMissing):
        await client.subscribe("u:1")
    await client.close()


async def test_subscribing_by_hand():
    """Spec 2025-11-25 server/resources: the two requests themselves."""
    client, puppet = await open_client(LEGACY_NAME)
    both = asyncio.create_task(twice(client))
    asked = await puppet.answers({}, {})
    await both

    assert ["resources/subscribe", "resources/unsubscribe"] == [a["method"] for a in asked]
    await client.close()


async def twice(client):
    await client.subscribe("u:1")
    await client.unsubscribe("u:1")


async def test_a_legacy_client_is_told_of_every_change():
    """Ours: on_change hears what reaches the client."""
    told, heard = [], asyncio.Event()

    def on_change(change):
        told.append(change)
        heard.set()

    client, puppet = await open_client(LEGACY_NAME, on_change=on_change)
    await send_change(puppet, "tools/list_changed")
    await heard.wait()

    assert [Change("tools")] == told
    await client.close()


async def test_a_modern_client_with_on_change_listens_by_itself():
    """Ours: since 2026-07-28 nobody is told who did not ask, so the client asks."""
    told, heard = [], asyncio.Event()

    async def on_change(change):
        told.append(change)
        heard.set()

    client, puppet = await open_client(MODERN_NAME, on_change=on_change)
    asked = await puppet.heard()
    await acknowledge(puppet, asked["id"], asked["params"]["notifications"])
    await send_change(puppet, "tools/list_changed", asked["id"])
    await heard.wait()

    assert {"toolsListChanged": True, "resourcesListChanged": True} == (
        asked["params"]["notifications"]
    )
    assert [Change("tools")] == told
    await client.close()


async def test_a_client_that_cannot_listen_says_so_in_the_log(caplog):
    """Ours: on_change will not be told of anything, and that is worth knowing."""
    with caplog.at_level(logging.WARNING, "isthmus"):
        client, puppet = await open_client(MODERN_NAME, on_change=print)
        asked = await puppet.heard()
        await puppet.says(id=asked["id"], error={"code": -32601, "message": "no listening here"})
        call = asyncio.create_task(client.call_tool("add"))
        await puppet.answers({"content": []})
        await call
    await client.close()

    assert "its changes will not be heard of: no listening here" in caplog.text


async def test_a_server_that_will_not_unsubscribe_harms_nobody():
    """Ours: the listener has gone already."""
    client, puppet = await open_client(LEGACY_NAME)
    stream = client.listen(uris=["u:1"])
    entering = asyncio.create_task(stream.__aenter__())
    await puppet.answers({})
    await entering
    leaving = asyncio.create_task(stream.__aexit__(None, None, None))
    asked = await puppet.heard()
    await puppet.says(id=asked["id"], error={"code": -32603, "message": "no"})
    await leaving

    assert "resources/unsubscribe" == asked["method"]
    await client.close()


@pytest.mark.covers("listening.changes.bounded")
async def test_a_change_that_nobody_has_read_is_not_repeated():
    """Ours: a list that changed twice is to be listed once."""
    changes = ChangeStream(SubscriptionFilter(tools_list_changed=True))
    for change in (Change("tools"), Change("prompts"), Change("tools")):
        changes.put(change)
    changes.end(None)

    assert [Change("tools"), Change("prompts")] == [change async for change in changes]


@pytest.mark.covers("listening.changes.bounded")
async def test_unread_changes_are_bounded():
    """Ours: a server cannot fill the client's memory with URIs."""
    changes = ChangeStream(SubscriptionFilter(resource_subscriptions=["u:"]))
    for n in range(MAX_PENDING_CHANGES + 3):
        changes.put(Change("resource", f"u:{n}"))
    changes.end(None)

    found = [change async for change in changes]
    assert (MAX_PENDING_CHANGES, "u:3") == (len(found), found[0].uri)


@pytest.mark.parametrize(
    ("uri", "expected"),
    [("a://b", True), ("a://b/c", True), ("a://bc", False), ("a://b/", True), ("a:", False)],
)
def test_what_lies_below_a_place(uri, expected):
    """Spec 2025-11-25 server/resources: the updated URI may be a sub-resource."""
    assert expected == is_at_or_below(uri, "a://b")
