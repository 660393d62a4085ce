"""Notifications of a client: each change is heard once, and never more than it can hold."""

import asyncio
import logging
from itertools import pairwise

import pytest

from isthmus.client import Limits, Rate
from isthmus.client.client import Client
from isthmus.client.subscriptions import Change
from isthmus.errors import MethodNotFound
from isthmus.testing import VirtualLoop
from isthmus.testing.faults import until
from isthmus.wire import ListChangedParams, LogMessageParams
from support.client.small_server import (
    LEGACY_NAME,
    MODERN_NAME,
    PuppetChannel,
    SmallServer,
    any_tool,
)

KEY = "io.modelcontextprotocol/subscriptionId"
CAN = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {},
}


def virtual(test):
    """Run a coroutine function on a loop whose time passes when nothing else can happen."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(test())


async def open_client(revision, **options):
    """A client of a server that tells everything, and the puppet that plays the server."""
    puppet = PuppetChannel()
    client = Client(puppet.channel, revision=revision, **options)
    opening = asyncio.create_task(client.open())
    await (puppet.discovered(**CAN) if revision == MODERN_NAME else puppet.greeted(**CAN))
    await opening
    return client, puppet


async def acknowledge(puppet, asked):
    params = {"_meta": {KEY: asked["id"]}, "notifications": asked["params"]["notifications"]}
    await puppet.says(method="notifications/subscriptions/acknowledged", params=params)


async def send_change(puppet, what, id=None, **params):
    """The server tells of a change."""
    meta = {} if id is None else {"_meta": {KEY: id}}
    await puppet.says(method=f"notifications/{what}", params={**params, **meta})


async def open_stream(client, puppet, **wanted):
    """The stream of a modern client once it is acknowledged, and the request that opened it."""
    stream = client.listen(**wanted)
    entering = asyncio.create_task(stream.__aenter__())
    asked = await puppet.heard()
    await acknowledge(puppet, asked)
    return stream, await entering, asked


@pytest.mark.covers("listening.changes.once")
async def test_a_change_on_two_streams_is_told_once():
    """Ours: the server tells every stream that asked; on_change is one listener, not two."""
    told = []
    client, puppet = await open_client(MODERN_NAME, on_change=told.append)
    attended = await puppet.heard()
    await acknowledge(puppet, attended)
    stream, changes, asked = await open_stream(
        client, puppet, tools=True, prompts=True, uris=["x://a"]
    )
    for id in (attended["id"], asked["id"]):
        await send_change(puppet, "tools/list_changed", id)
    await send_change(puppet, "prompts/list_changed", asked["id"])
    await send_change(puppet, "resources/updated", asked["id"], uri="x://a/b")
    expected = [Change("tools"), Change("prompts"), Change("resource", "x://a/b")]

    assert expected == [await anext(changes) for _ in range(3)]
    assert expected == told
    await puppet.leaves()
    await stream.__aexit__(None, None, None)
    await client.close()


@pytest.mark.covers("listening.changes.once")
async def test_a_change_of_an_older_server_is_told_once():
    """Ours: on_change and each listen() hear it, once each."""
    told = []
    client, puppet = await open_client(LEGACY_NAME, on_change=told.append)
    async with client.listen(tools=True) as changes:
        await send_change(puppet, "tools/list_changed")
        assert Change("tools") == await anext(changes)

    assert [Change("tools")] == told
    await client.close()


@pytest.mark.covers("listening.streams.granted")
async def test_what_an_older_server_never_tells_can_be_seen():
    """Ours: granted is what its capabilities say."""
    client, _puppet = await open_client(LEGACY_NAME)
    async with client.listen(tools=True, prompts=True) as changes:
        granted = changes.granted

    assert (True, False) == (
        bool(granted.tools_list_changed), bool(granted.prompts_list_changed)
    )  # fmt: skip
    await client.close()


@pytest.mark.covers("listening.stream.reopened")
def test_a_stream_for_on_change_that_ends_is_opened_again():
    """Spec 2026-07-28 basic/patterns/subscriptions#graceful-closure: the client MAY reconnect."""

    async def reopened():
        told = []
        client, puppet = await open_client(MODERN_NAME, on_change=told.append)
        times = []
        for _ in range(3):
            asked = await puppet.heard()
            times.append(asyncio.get_running_loop().time())
            await acknowledge(puppet, asked)
            await puppet.says(id=asked["id"], result={"resultType": "complete"})
        await client.close()
        return told, [later - sooner for sooner, later in pairwise(times)]

    told, waits = virtual(reopened)

    assert [Change("tools"), Change("resources")] == told[:2]
    assert all(0.8 <= wait <= 2.4 for wait in waits)


@pytest.mark.covers("listening.refresh.debounced")
def test_a_list_that_changes_is_fetched_anew_once_and_told_after_that():
    """Ours: a burst of changes is one, and whoever is told finds the new list."""

    async def refreshed():
        listed, told = [], []
        small = SmallServer(tools=[any_tool("a")])
        small.capabilities = type(small.capabilities)(
            tools=type(small.capabilities.tools)(list_changed=True)
        )
        plain = small.list_tools

        async def noting(params, inbound):
            listed.append(asyncio.get_running_loop().time())
            return await plain(params, inbound)

        small.router._routes["tools/list"] = noting

        def on_change(change):
            told.append((change, [one.name for one in client.latest("tools")]))

        client = Client(small, revision=LEGACY_NAME, on_change=on_change, auto_refresh=True)
        async with client:
            assert client.latest("tools") is None
            await client.list_tools()
            small.tools.append(any_tool("b"))
            for _ in range(5):
                await small.links[0].note("notifications/tools/list_changed", ListChangedParams())
            await asyncio.sleep(10)
        return len(listed), told

    assert (2, [(Change("tools"), ["a", "b"])]) == virtual(refreshed)


def test_a_list_that_cannot_be_fetched_is_told_of_all_the_same(caplog):
    """Ours: the change has happened; the log says what else did."""

    async def refused():
        told = []
        client, puppet = await open_client(LEGACY_NAME, on_change=told.append, auto_refresh=0.1)
        listing = asyncio.create_task(client.list_tools())
        await puppet.answers({"tools": []})
        await listing
        await send_change(puppet, "tools/list_changed")
        asked = await puppet.heard()
        await puppet.says(id=asked["id"], error={"code": -32603, "message": "not now"})
        await until(lambda: bool(told))
        await client.close()
        return told

    assert [Change("tools")] == virtual(refused)
    assert "the list of tools changed, and could not be fetched: not now" in caplog.text


@pytest.mark.covers("listening.refresh.signal-only")
async def test_without_auto_refresh_nothing_is_fetched():
    """Ours: a change is a signal; what to do about it is the program's business."""
    told = asyncio.Event()
    client, puppet = await open_client(LEGACY_NAME, on_change=lambda _: told.set())
    listing = asyncio.create_task(client.list_tools())
    await puppet.answers({"tools": []})
    await listing
    await send_change(puppet, "tools/list_changed")
    await told.wait()
    pinging = asyncio.create_task(client.ping())

    assert "ping" == (await puppet.heard())["method"]
    await client.close()
    with pytest.raises(Exception, match=r"."):
        await pinging


@pytest.mark.covers("clientlimits.notifications.logs")
async def test_a_flood_of_log_messages_is_cut(caplog):
    """Spec 2025-11-25 server/utilities/logging: rate limits; ours on the client's side."""
    told = []

    async def call(_params, inbound):
        for number in range(50):
            params = LogMessageParams(level="info", data=number)
            await inbound.link.note("notifications/message", params)
        raise MethodNotFound(-32601, "")

    small = SmallServer({"tools/call": call})
    limits = Limits(log_messages=Rate(5, seconds=60))
    with caplog.at_level(logging.WARNING, "isthmus"):
        async with Client(small, revision=LEGACY_NAME, on_log=told.append, limits=limits) as client:
            with pytest.raises(Exception, match="Internal error"):
                await client.call_tool("flood")

    assert [0, 1, 2, 3, 4] == [params.data for params in told]
    assert 1 == caplog.text.count("logs more than 5 in 60 s: the rest is dropped")


@pytest.mark.covers("clientlimits.notifications.bounded")
async def test_a_listener_that_is_slow_gets_the_newest(caplog):
    """Ours: nothing that a server sends piles up without end."""
    told, go_on = [], asyncio.Event()

    async def on_log(params):
        await go_on.wait()
        told.append(params.data)

    client, puppet = await open_client(LEGACY_NAME, on_log=on_log, limits=Limits(waiting=2))
    for number in range(20):
        await puppet.says(method="notifications/message", params={"level": "info", "data": number})
    pinging = asyncio.create_task(client.ping())
    await puppet.answers({})
    await pinging
    go_on.set()
    await until(lambda: len(told) == 3)
    await client.close()

    assert [0, 18, 19] == told
    assert "is too slow" in caplog.text


@pytest.mark.covers("listening.session.resubscribed")
async def test_a_new_session_is_subscribed_to_what_the_old_one_was():
    """Ours: the server of a new session knows of none, and what changed meanwhile nobody does."""
    told = []
    client, puppet = await open_client(LEGACY_NAME, on_change=told.append)
    subscribing = asyncio.create_task(client.subscribe("x://hand"))
    await puppet.answers({})
    await subscribing
    stream = client.listen(uris=["x://a"])
    entering = asyncio.create_task(stream.__aenter__())
    await puppet.answers({})
    changes = await entering
    renewed = asyncio.create_task(client._upkeep.restore())
    asked = await puppet.answers({}, {})
    await renewed

    assert [("resources/subscribe", "x://a"), ("resources/subscribe", "x://hand")] == [
        (request["method"], request["params"]["uri"]) for request in asked
    ]
    assert Change("resource", "x://a") == await anext(changes)
    assert {"tools", "resources", "resource"} == {change.kind for change in told}
    await client.close()


async def test_a_new_session_that_refuses_says_so_in_the_log(caplog):
    """Ours: the calls go on, and somebody should know."""
    client, puppet = await open_client(LEGACY_NAME, log_level="info")
    subscribing = asyncio.create_task(client.subscribe("x://hand"))
    await puppet.answers({})
    await subscribing
    again = asyncio.create_task(client._upkeep.restore())
    asked = await puppet.heard()
    await puppet.says(id=asked["id"], error={"code": -32603, "message": "not again"})
    await again
    await client.close()

    assert "a new session is not what the one before was: not again" in caplog.text


class Pipe:
    """The client's end of a channel that can stop reading, as a launched server's can."""

    def __init__(self, channel):
        self._channel = channel
        self.rested = 0

    def rest(self, _seconds):
        """It was told to."""
        self.rested += 1

    def __getattr__(self, name):
        return getattr(self._channel, name)


@pytest.mark.covers("clientlimits.notifications.changes")
@pytest.mark.parametrize("kind", ["tools/list_changed", "resources/updated"])
async def test_a_server_that_tells_of_changes_without_a_pause_waits_at_its_own_end(kind):
    """Ours: every change is heard of, and reading rests, so that nobody else pays for it."""
    puppet = PuppetChannel()
    pipe, told = Pipe(puppet.channel), []
    client = Client(pipe, revision=LEGACY_NAME, on_change=told.append)
    opening = asyncio.create_task(client.open())
    await puppet.greeted(**CAN)
    await opening
    method, params = f"notifications/{kind}", {"uri": "a://b"} if "updated" in kind else {}
    rests = []
    for number in (6_000, 12_000):
        for _ in range(6_000):
            await puppet.says(method=method, params=params)
        await until(lambda number=number: len(told) == number)
        rests.append(pipe.rested)
    await client.close()

    assert 0 == rests[0]
    assert rests[1] >= 1
