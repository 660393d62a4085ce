"""The channel in memory: order, back-pressure, and the end."""

import asyncio

import pytest

from isthmus.errors import ConnectionLost
from isthmus.runtime.channel import Outgoing
from isthmus.transports.memory import MAX_WAITING_MESSAGES, open_pair


async def settle():
    """Let every task that can go on go on until it waits again."""
    for _ in range(5):
        await asyncio.sleep(0)


async def fill(channel):
    """Send as much as there is room for."""
    for number in range(MAX_WAITING_MESSAGES):
        await channel.send(Outgoing(b"%d" % number))


async def test_messages_arrive_in_order_at_the_other_end():
    """Ours: a pair is two queues, crossed."""
    here, there = open_pair()
    await here.send(Outgoing(b"1"))
    await here.send(Outgoing(b"2"))
    await there.send(Outgoing(b"3"))

    received = [(await end.receive()).data for end in (there, there, here)]

    assert [b"1", b"2", b"3"] == received


async def test_a_message_says_that_it_came_through_memory():
    """Ours: the origin names the transport."""
    here, there = open_pair()
    await here.send(Outgoing(b"{}"))

    assert "memory" == (await there.receive()).origin.transport


async def test_receiving_waits_for_a_message():
    """Ours: a reader that came first is woken by the message."""
    here, there = open_pair()
    reading = asyncio.create_task(there.receive())
    await settle()
    assert not reading.done()

    await here.send(Outgoing(b"late"))

    assert b"late" == (await reading).data


async def test_a_cancelled_reader_loses_no_message():
    """Ours: a message that arrives while its reader is cancelled is there for the next one."""
    here, there = open_pair()
    reading = asyncio.create_task(there.receive())
    await settle()

    await here.send(Outgoing(b"kept"))
    reading.cancel()
    await asyncio.wait([reading])

    assert b"kept" == (await there.receive()).data


async def test_sending_waits_where_too_much_is_waiting():
    """Ours: memory is bounded; whoever sends faster than the other receives is slowed."""
    here, there = open_pair()
    await fill(here)
    sending = asyncio.create_task(here.send(Outgoing(b"more")))
    await settle()
    assert not sending.done()

    for _ in range(MAX_WAITING_MESSAGES):
        await there.receive()
    await sending

    assert b"more" == (await there.receive()).data


async def test_a_cancelled_sender_sends_nothing_and_holds_up_nobody():
    """Ours: of two senders that wait, the one that is cancelled leaves the other its place."""
    here, there = open_pair()
    await fill(here)
    first = asyncio.create_task(here.send(Outgoing(b"first")))
    second = asyncio.create_task(here.send(Outgoing(b"second")))
    await settle()
    first.cancel()

    received = [(await there.receive()).data for _ in range(MAX_WAITING_MESSAGES)]
    await second

    assert b"first" not in received
    assert b"second" == (await there.receive()).data


async def test_what_was_sent_before_the_close_is_still_received():
    """Ours: closing is the last word, and no word before it is lost."""
    here, there = open_pair()
    await here.send(Outgoing(b"last"))

    await here.close()

    assert b"last" == (await there.receive()).data
    assert None is await there.receive()


async def test_whoever_closes_receives_nothing_more():
    """Ours: an end that closed has let go of what was waiting for it."""
    here, there = open_pair()
    await there.send(Outgoing(b"unheard"))

    await here.close()

    assert None is await here.receive()


@pytest.mark.parametrize("end", [0, 1])
async def test_closing_one_end_closes_both(end):
    """Ours: neither end can send once one of them has closed; closing twice is fine."""
    ends = open_pair()
    await ends[end].close()
    await ends[1 - end].close()

    for channel in ends:
        with pytest.raises(ConnectionLost, match="closed"):
            await channel.send(Outgoing(b"too late"))


@pytest.mark.parametrize("end", [0, 1])
async def test_closing_ends_all_waiting(end):
    """Ours (D20): a reader and a writer that wait are let go by a close at either end."""
    ends = open_pair()
    await fill(ends[0])
    reading = asyncio.create_task(ends[0].receive())
    writing = asyncio.create_task(ends[0].send(Outgoing(b"more")))
    await settle()

    await ends[end].close()

    assert None is await reading
    with pytest.raises(ConnectionLost):
        await writing


def test_a_call_cannot_be_abandoned_without_a_word():
    """Ours: memory has no stream per call that could be closed instead."""
    here, _there = open_pair()

    assert False is here.abandon(1)
