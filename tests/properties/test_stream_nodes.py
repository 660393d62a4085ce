"""Laws of streams over nodes: whatever breaks, and wherever the client comes back, it hears all once."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.nodes.node import OUTCOME_UNKNOWN
from isthmus.testing import VirtualLoop
from support.examples import count_examples
from support.http.fleet import Fleet, FleetClient

NODES = 3

# What happens to a call: it says something, its client's connection breaks, the client comes back to
# some node (after the last event it saw), time passes, it is let go of, its node is paused or killed.
STEPS = st.lists(
    st.one_of(
        st.sampled_from(["say", "say", "leave", "wait", "let go"]),
        st.tuples(st.just("back"), st.integers(0, NODES - 1)),
    ),
    max_size=12,
)
ENDS = st.sampled_from(["end", "kill", "pause"])


class Listener:
    """What one client hears, which reads its newest connection alone."""

    def __init__(self, client, exchange):
        self.client = client
        self.exchange = exchange
        self.ids = []
        self.events = []

    def take(self):
        """Take in what came on the connection."""
        self.ids += self.exchange.ids
        self.events += self.exchange.events

    async def come_back(self, node):
        """Connect to a node, after the last event that was seen."""
        self.take()
        self.exchange = self.client.get(node, self.ids[-1])
        await self.exchange.started.wait()


async def act(step, said, fleet, listener):
    """Do one step; how much has been said after it."""
    steps = fleet.nodes[0].steps
    if step == "say":
        said += 1
        await steps.tell(said)
    elif step == "let go":
        await steps.tell("let go")
    elif step == "leave":
        if not listener.exchange.complete.is_set():
            await listener.exchange.watched.wait()
        listener.exchange.leave()
    elif step == "wait":
        await asyncio.sleep(1)
    else:
        await listener.come_back(fleet.nodes[step[1]])
    await asyncio.sleep(0.01)
    return said


async def play(steps, end, last):
    """Play one call to its end; what its client heard, and how much was said."""
    async with asyncio.timeout(300), Fleet(NODES) as fleet:
        here = fleet.nodes[0]
        client = await FleetClient.connect(here)
        listener = Listener(client, client.call(here))
        await here.steps.tell(1)
        first = await listener.exchange.event()
        first_id = listener.exchange.ids[0]
        said = 1
        for step in steps:
            said = await act(step, said, fleet, listener)
        if end == "end":
            here.steps.end()
        elif end == "kill":
            await here.kill()
        else:
            here.pause()
        await listener.come_back(fleet.nodes[last if end == "end" else 1 + last % (NODES - 1)])
        await listener.exchange.complete.wait()
        listener.take()
        if end == "pause":
            await here.steps.tell(said + 1)
            here.steps.end()
            await asyncio.sleep(1)
        late = client.get(fleet.nodes[1], first_id)
        await late.complete.wait()
        assert first == late.events[0]
        return listener, late, said


def run(*arguments):
    """Play on a clock that passes when nothing else happens."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(play(*arguments))


@settings(max_examples=count_examples(40), deadline=None)
@given(STEPS, ENDS, st.integers(0, NODES - 1))
def test_for_any_course_of_a_call_its_client_hears_all_of_it_once_and_one_end(steps, end, last):
    """2025-11-25 basic/transports#resumability-and-redelivery: at any node; and Ours: one end."""
    listener, late, said = run(steps, end, last)

    events, places = listener.events, [int(id.rpartition("-")[2]) for id in listener.ids]
    assert [*range(1, len(places) + 1)] == places
    assert [*range(1, said + 1)] == [event["params"]["progress"] for event in events[:-1]]
    assert 1 == events[-1]["id"]
    if end == "end":
        assert "result" in events[-1]
    else:
        assert OUTCOME_UNKNOWN == events[-1]["error"]["message"]
    assert events == late.events
