"""What happens in a host, for those who look."""

import asyncio

from isthmus.host.model import events as module
from isthmus.host.model.events import EventStream, HostEvents, HostNotice


async def test_a_listener_that_is_slow_loses_the_oldest_and_is_told_how_many(monkeypatch):
    """Ours: who does not take events keeps no memory, and knows that some are missing."""
    monkeypatch.setattr(module, "MAX_WAITING_EVENTS", 2)
    events = HostEvents()
    stream = events.listen()
    for number in range(5):
        events.tell(HostNotice(about="n", text=str(number)))
    events.close()

    seen = [event async for event in stream]

    assert ["3 events went by unseen", "3", "4"] == [event.text for event in seen]


async def test_events_wake_who_waits_and_end_with_the_host():
    """Ours: a surface waits for the next one, and for nothing when there is none."""
    events = HostEvents()
    assert not events
    stream = events.listen()
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    events.tell(HostNotice(about="n", text="now"))

    assert "now" == (await waiting).text
    await stream.aclose()
    assert not events
    assert [] == [event async for event in stream]
    assert isinstance(stream, EventStream)
