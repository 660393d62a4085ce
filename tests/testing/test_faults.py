"""Channels that misbehave, fate by fate."""

import asyncio
import json

import pytest

from isthmus import Server
from isthmus.errors import CallTimedOut, ConnectionLost
from isthmus.runtime.channel import Delivery, Outgoing
from isthmus.testing import connect
from isthmus.testing.faults import (
    Faulty,
    break_after,
    cut_after,
    drop,
    duplicate,
    garble,
    swap,
    until,
)
from isthmus.transports.memory import open_pair

WORDS = (b"1", b"2", b"3", b"4")


async def send_through(fate, words=WORDS):
    """What arrives of some messages, and how it ends: None, or the reason."""
    near, far = open_pair()
    channel = Faulty(near, fate)
    for word in words:
        await far.send(Outgoing(word))
    await far.close()
    got = []
    try:
        while (delivery := await channel.receive()) is not None:
            got.append(delivery.data)
    except ConnectionLost as lost:
        return got, str(lost)
    finally:
        await channel.close()
    return got, None


@pytest.mark.parametrize(
    ("fate", "got", "end"),
    [
        (drop(), [], None),
        (drop(0, 2), [b"2", b"4"], None),
        (duplicate, [b"1", b"1", b"2", b"2", b"3", b"3", b"4", b"4"], None),
        (swap(), [b"2", b"1", b"4", b"3"], None),
        (garble(1, noise=b"?"), [b"1", b"?", b"3", b"4"], None),
        (garble(noise=b"?"), [b"?"] * 4, None),
        (cut_after(1), [b"1"], None),
        (break_after(2), [b"1", b"2"], "the line went dead"),
        (break_after(0, "a digger came"), [], "a digger came"),
    ],
    ids=["drop all", "drop", "duplicate", "swap", "garble", "garble all", "cut", "break", "reason"],
)
async def test_each_named_fate_does_what_it_says(fate, got, end):
    """Messages are counted from 0, in the order they arrive (ours)."""
    assert (got, end) == await send_through(fate)


async def test_noise_is_no_json():
    """What ``garble`` puts in by itself cannot be read by anybody (ours)."""
    (noise,), _ = await send_through(garble(), [b"1"])

    with pytest.raises(ValueError, match="utf-8"):
        json.loads(noise)


async def test_a_broken_channel_stays_broken():
    """As a real one would (ours)."""
    near, far = open_pair()
    channel = Faulty(near, break_after(0))
    await far.send(Outgoing(b"1"))

    for _ in range(2):
        with pytest.raises(ConnectionLost, match="went dead"):
            await channel.receive()
    await channel.close()


async def test_a_fate_of_ones_own_decides_each_message():
    """It gets the delivery and its number, and may answer with anything (ours)."""

    def shout(delivery, number):
        return [Delivery(delivery.data * number, delivery.origin)] if number else []

    assert ([b"2", b"33", b"444"], None) == await send_through(shout)


async def test_what_is_sent_reaches_the_good_channel_unharmed():
    """Only what arrives meets its fate (ours)."""
    near, far = open_pair()
    channel = Faulty(near, drop())
    await channel.send(Outgoing(b"out"))

    assert b"out" == (await far.receive()).data
    await channel.close()


async def test_what_else_a_channel_can_do_goes_through_but_not_around():
    """HTTP is told the revision; what would hand its answers past the fate is not there (ours)."""

    class Able:
        def speak(self, revision):
            return f"speaks {revision}"

        def attach(self, sink):
            pytest.fail("around the fate")

    faulty = Faulty(Able(), drop())

    assert "speaks X" == faulty.speak("X")
    assert not hasattr(faulty, "attach")


async def test_until_waits_for_what_happens_and_gives_up_on_what_does_not():
    """In turns of the loop, not in seconds (ours)."""
    done = []
    asyncio.get_running_loop().call_soon(done.append, True)
    await until(lambda: done)

    with pytest.raises(AssertionError, match="did not happen"):
        await until(lambda: False, turns=3)


def adding():
    """A server that adds."""
    server = Server("adding", version="1")

    @server.tool(blocking=False)
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    return server


@pytest.mark.parametrize(
    ("fate", "error"),
    [(drop(2), CallTimedOut), (cut_after(2), ConnectionLost), (break_after(2), ConnectionLost)],
    ids=["drop", "cut", "break"],
)
async def test_a_client_behind_a_fault_ends_its_call_with_one_error(fate, error):
    """``connect(wrap=…)``: the third answer never arrives (decision D20)."""
    behind = {"wrap": lambda channel: Faulty(channel, fate), "timeout": 0.05}
    async with connect(adding(), revision="2026-07-28", **behind) as client:
        await client.list_tools()
        with pytest.raises(error):
            await client.call_tool("add", {"a": 1, "b": 2})


async def test_a_client_survives_answers_that_come_twice_or_garbled():
    """Late, unknown and unreadable messages end nothing (spec: JSON-RPC)."""
    fates = [duplicate, lambda d, n: [Delivery(b"\xff{", d.origin), d]]
    for fate in fates:
        async with connect(
            adding(), wrap=lambda channel, fate=fate: Faulty(channel, fate)
        ) as client:
            sums = [(await client.call_tool("add", {"a": n, "b": 1})).parse(int) for n in range(3)]

        assert [1, 2, 3] == sums
