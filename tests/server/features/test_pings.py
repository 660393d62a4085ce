"""Pings of a server: as often as it is told to, and an end to a session that answers none."""

import asyncio
import json
from itertools import pairwise

import pytest

from isthmus.errors import UsageError
from isthmus.runtime.channel import Outgoing
from isthmus.runtime.peer import Peer
from isthmus.server import Server
from isthmus.testing import VirtualLoop
from isthmus.transports.memory import open_pair

REVISION = "2025-11-25"


class Hand:
    """A client moved by hand: one frame at a time."""

    def __init__(self, server, channel=None):
        mine, theirs = open_pair()
        self.channel = mine
        self.peer = Peer(channel(theirs) if channel else theirs, server.router, side="server")
        self.running = asyncio.create_task(self.peer.run())

    async def says(self, **members):
        """Send the server a message."""
        await self.channel.send(Outgoing(json.dumps({"jsonrpc": "2.0", **members}).encode()))

    async def heard(self):
        """The next message of the server, or None once it has gone."""
        delivery = await self.channel.receive()
        return None if delivery is None else json.loads(delivery.data)

    async def opens(self):
        """Shake hands."""
        info = {"name": "hand", "version": "1"}
        params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": info}
        await self.says(id=0, method="initialize", params=params)
        await self.heard()
        await self.says(method="notifications/initialized")


def virtual(test):
    """Run a coroutine function on a loop whose time passes when nothing else can happen."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(test())


@pytest.mark.covers("keepalive.server.configurable")
def test_a_client_is_pinged_as_often_as_the_server_is_told_to():
    """Spec 2025-11-25 basic/utilities/ping: SHOULD periodically, the frequency configurable."""

    async def pinged():
        hand = Hand(Server("pinging", ping_every=10))
        await hand.opens()
        at = []
        for _ in range(3):
            ping = await hand.heard()
            assert "ping" == ping["method"]
            at.append(round(asyncio.get_running_loop().time()))
            await hand.says(id=ping["id"], result={})
        await hand.channel.close()
        await hand.running
        return [b - a for a, b in pairwise(at)]

    assert [10, 10] == virtual(pinged)


@pytest.mark.covers("keepalive.server.lost")
def test_a_client_that_answers_no_ping_is_gone(caplog):
    """Spec 2025-11-25 basic/utilities/ping: timeouts SHOULD be treated as failures, and logged."""

    async def lost():
        hand = Hand(Server("pinging", ping_every=10, ping_misses=2))
        await hand.opens()
        heard = []
        while (message := await hand.heard()) is not None:
            heard.append(message["method"])
        await hand.running
        return heard, round(asyncio.get_running_loop().time()), str(hand.peer.lost)

    heard, time, why = virtual(lost)
    assert ["ping", "notifications/cancelled", "ping"] == heard[:3]
    assert "the client has not answered 2 pings, 10 s each" == why
    assert "ping 1 of 2 was not answered" in caplog.text
    assert time >= 40


@pytest.mark.covers("keepalive.server.off-by-default")
def test_nobody_is_pinged_unless_somebody_wants_it():
    """Spec 2025-11-25 basic/utilities/ping: excessive pinging SHOULD be avoided."""

    async def silence():
        hand = Hand(Server("quiet"))
        await hand.opens()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await hand.heard()
        await hand.channel.close()
        await hand.running

    virtual(silence)


def test_a_client_that_cannot_hear_is_not_thought_to_be_silent():
    """Ours: an HTTP session without an open stream is idle, not gone."""

    class Deaf:
        hears = False

        def __init__(self, channel):
            self.receive, self.send = channel.receive, channel.send
            self.abandon, self.close = channel.abandon, channel.close

    async def idle():
        hand = Hand(Server("pinging", ping_every=1, ping_misses=1), Deaf)
        await hand.opens()
        await asyncio.sleep(100)
        assert None is hand.peer.lost
        hand.peer.channel.hears = True
        assert "ping" == (await hand.heard())["method"]
        await hand.channel.close()
        await hand.running

    virtual(idle)


@pytest.mark.covers("keepalive.server.answers")
def test_a_ping_is_answered_at_once_with_nothing():
    """Spec 2025-11-25 basic/utilities/ping: MUST respond promptly with an empty response."""

    async def answered():
        hand = Hand(Server("answering"))
        await hand.says(id="p", method="ping")  # also before the handshake
        before = await hand.heard()
        await hand.opens()
        await hand.says(id=7, method="ping")
        after = await hand.heard()
        await hand.channel.close()
        await hand.running
        return before, after

    assert (
        {"jsonrpc": "2.0", "id": "p", "result": {}},
        {"jsonrpc": "2.0", "id": 7, "result": {}},
    ) == virtual(answered)


@pytest.mark.parametrize("options", [{"ping_every": 0}, {"ping_every": 5, "ping_misses": 0}])
def test_a_figure_that_is_none_is_refused(options):
    """Ours: None is what switches pings off."""
    with pytest.raises(UsageError, match="ping_every"):
        Server("x", **options)
