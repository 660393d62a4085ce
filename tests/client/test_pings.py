"""Pings: sent again and again, and an end to a connection that answers none of them."""

import asyncio

import pytest

from isthmus.client.client import Client
from isthmus.errors import ConnectionLost
from isthmus.testing import VirtualLoop
from support.client.small_server import LEGACY_NAME, MODERN_NAME, PuppetChannel, SmallServer


def virtual(test):
    """Run a coroutine function on a loop whose time passes when nothing else can happen."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(test())


@pytest.mark.covers("ping.periodic.configurable")
@pytest.mark.parametrize(
    ("revision", "method"), [(LEGACY_NAME, "ping"), (MODERN_NAME, "server/discover")]
)
def test_a_client_pings_as_often_as_it_is_told_to(revision, method):
    """Spec 2025-11-25 basic/utilities/ping: the frequency SHOULD be configurable."""

    async def pinged():
        seen = []
        small = SmallServer()

        async def pong(params, inbound):
            seen.append(asyncio.get_running_loop().time())
            return await (small.ping if method == "ping" else small.discover)(params, inbound)

        small = SmallServer({method: pong})
        async with Client(small, revision=revision, ping_every=10):
            opened = len(seen)
            await asyncio.sleep(35)
        return len(seen) - opened

    assert 3 == virtual(pinged)


@pytest.mark.covers("ping.off.by-default")
def test_nobody_is_pinged_unless_somebody_wants_it():
    """Spec 2025-11-25 basic/utilities/ping: excessive pinging SHOULD be avoided."""

    async def silence():
        seen = []

        async def pong(_params, _inbound):
            seen.append(1)

        async with Client(SmallServer({"ping": pong}), revision=LEGACY_NAME):
            await asyncio.sleep(3600)
        return seen

    assert [] == virtual(silence)


@pytest.mark.covers("ping.missed.connection-lost")
def test_a_server_that_answers_no_ping_is_lost(caplog):
    """Spec 2025-11-25 basic/utilities/ping#error-handling: timeouts are connection failures."""

    async def lost():
        puppet = PuppetChannel()
        client = Client(
            puppet.channel, revision=LEGACY_NAME, ping_every=10, ping_misses=2, timeout=3600
        )
        opening = asyncio.create_task(client.open())
        await puppet.greeted()
        await opening
        call = asyncio.create_task(client.call_tool("slow"))
        with pytest.raises(ConnectionLost, match="has not answered 2 pings, 10 s each"):
            await call
        with pytest.raises(ConnectionLost, match="has not answered 2 pings"):
            await client.ping()
        await client.close()
        return asyncio.get_running_loop().time()

    assert 40 == pytest.approx(virtual(lost), abs=1)
    assert "ping 1 of 2 was not answered within 10 s" in caplog.text


@pytest.mark.covers("ping.missed.in-a-row")
def test_a_ping_that_is_answered_forgives_the_ones_before():
    """Ours: a network has bad moments."""

    async def forgiven():
        puppet = PuppetChannel()
        client = Client(puppet.channel, revision=LEGACY_NAME, ping_every=10, ping_misses=2)
        opening = asyncio.create_task(client.open())
        await puppet.greeted()
        await opening
        for answered in (False, True, False, True, False):
            while (ping := await puppet.heard())["method"] != "ping":
                pass  # cancellations of the pings that were missed
            if answered:
                await puppet.says(id=ping["id"], result={})
        await client.close()

    virtual(forgiven)


def test_a_server_that_refuses_pings_is_there():
    """Ours: no is an answer."""

    async def refused():
        puppet = PuppetChannel()
        client = Client(puppet.channel, revision=LEGACY_NAME, ping_every=10, ping_misses=1)
        opening = asyncio.create_task(client.open())
        await puppet.greeted()
        await opening
        for _ in range(3):
            ping = await puppet.heard()
            await puppet.says(id=ping["id"], error={"code": -32601, "message": "no"})
        await client.close()

    virtual(refused)


@pytest.mark.covers("ping.received.answered")
async def test_a_ping_of_the_server_is_answered_with_nothing():
    """Spec 2025-11-25 basic/utilities/ping: MUST respond promptly with an empty response."""
    puppet = PuppetChannel()
    client = Client(puppet.channel, revision=LEGACY_NAME)
    opening = asyncio.create_task(client.open())
    await puppet.greeted()
    await opening
    await puppet.says(id="p", method="ping")

    assert {"jsonrpc": "2.0", "id": "p", "result": {}} == await puppet.heard()
    await client.close()
