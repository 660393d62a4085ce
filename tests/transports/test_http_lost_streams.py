"""Streams that their log has lost: a client that comes back is told so, at whichever node."""

import asyncio

import pytest

from isthmus.testing import VirtualLoop
from isthmus.transports.http.sessions.stream_followers import STREAM_NOT_KEPT
from support.http.fleet import Fleet, FleetClient

RESUMABLE = ["2025-03-26", "2025-06-18", "2025-11-25"]


def play(scene):
    """Run a scene on a clock that passes when nothing else happens."""

    async def run():
        async with asyncio.timeout(60):
            await scene()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())


@pytest.mark.parametrize("revision", RESUMABLE)
@pytest.mark.parametrize("ends", [False, True])
def test_a_call_whose_log_was_lost_has_one_end_at_another_node(revision, ends):
    """Ours: what was said while the store was lost is unknown there, and nobody asks for it for ever."""

    async def scene():
        async with Fleet(2) as fleet:
            here, there = fleet.nodes
            client = await FleetClient.connect(here, revision)
            call = client.call(here)
            await here.steps.tell(1)
            await call.event()
            here.store.cut()
            await here.steps.tell(2)
            await call.event()
            await call.watched.wait()
            call.leave()
            await asyncio.sleep(0.001)
            here.store.mend()
            if ends:
                here.steps.end()
                await asyncio.sleep(0.001)
            again = await client.get(there, call.ids[-1]).done()
            once_more = await client.get(there, call.ids[-1]).done()

            assert [STREAM_NOT_KEPT] == [event["error"]["message"] for event in again.events]
            assert again.events == once_more.events
            assert again.ids == once_more.ids

    play(scene)
