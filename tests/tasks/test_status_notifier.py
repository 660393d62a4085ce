"""Status notifier: in order, the newest first, and nothing after the end."""

import asyncio

from msgspec import structs

from isthmus.tasks.receiver import StatusNotifier
from isthmus.tasks.records import TaskRecord
from support.event_loop import run_turns

RECORD = TaskRecord(id="a", tool="t", created=0.0, updated=1.0, ttl=60.0, poll=0.5)


def of(status):
    return structs.replace(RECORD, status=status)


async def test_a_slow_listener_hears_how_it_stands_and_not_how_it_stood():
    """Ours: what was overtaken is not told, so nothing piles up."""
    told, go = [], asyncio.Event()

    async def tell(record):
        told.append(record.status)
        await go.wait()

    teller = StatusNotifier(tell)
    for status in ("working", "input_required", "working", "completed"):
        teller.hear(of(status))
        await run_turns()
    go.set()
    await run_turns()

    assert ["working", "completed"] == told


async def test_nothing_is_told_after_the_end():
    """Spec: a final status does not change; ours: nor is it told twice."""
    told = []

    async def tell(record):
        told.append(record.status)

    teller = StatusNotifier(tell)
    teller.hear(of("cancelled"))
    teller.hear(of("working"))
    await run_turns()
    teller.hear(of("cancelled"))
    await run_turns()

    assert ["cancelled"] == told


async def test_who_has_left_is_told_nothing():
    """Ours: a stream that ended hears no more."""
    told = []

    async def tell(record):
        told.append(record.status)

    teller = StatusNotifier(tell)
    teller.hear(of("working"))
    teller.stop()
    await run_turns()

    assert [] == told
