"""Nodes that are started, killed, paused and cut off while clients are at work, on virtual time."""

import asyncio
import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from isthmus.testing.clock import VirtualLoop
from support.examples import count_examples
from support.nodes.simulated_town import SimulatedClient, SimulatedTown

MAX_CALLS = 12
LAST_WAIT_S = 60.0  # after which every call must have ended
LOOK_INTERVAL_S = 0.05

ACTIONS = (
    *("add", "count", "count", "ask", "cancel", "leave"),
    *("start", "kill", "pause", "resume", "cut", "heal"),
)


def run_virtually(work):
    """Run a coroutine on virtual time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work(loop))
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))
        loop.close()


async def play(loop, seed, actions):
    """Play a town; gives the client, all of whose calls have had the time to end."""
    town = SimulatedTown(loop, random.Random(seed))  # noqa: S311 - it is a simulation
    client = SimulatedClient(town)
    await client.open()
    for action, seconds in actions:
        act(town, client, action)
        await follow_for(client, seconds)
    for node in town.nodes:
        mend(node)
    until = loop.time() + LAST_WAIT_S
    while loop.time() < until and any(not call.is_over for call in client.calls):
        await follow_for(client, LOOK_INTERVAL_S)
    await town.close()
    assert [] == [task.get_coro().__qualname__ for node in town.nodes for task in node.tasks]
    return client


def act(town, client, action):
    """Do one thing."""
    node = town.chance.choice(town.nodes)
    if action in {"add", "count", "ask"} and len(client.calls) < MAX_CALLS:
        arguments = {
            "add": {"a": 1, "b": 2},
            "count": {"steps": town.chance.randint(1, 30)},
            "ask": {"question": f"number {len(client.calls)}"},
        }
        client.call(action, **arguments[action])
    elif action == "leave" and client.calls:
        call = town.chance.choice(client.calls)
        if call.events:
            call.exchange.leave()
            call.go_on(client.listen(call.events[-1]))
    elif action == "cancel" and client.calls:
        call = town.chance.choice(client.calls)
        call.is_cancelled = True
        client.cancel(call)
    elif action == "start" and len(town.nodes) < 4:
        town.start_node()
    elif action == "kill":
        town.kill_node(town.nodes.index(node))
    elif action == "pause" and town.reachable != [node]:
        node.pause()
    elif action == "cut":
        node.store.is_cut = True
    elif action in {"resume", "heal"}:
        mend(node)


def mend(node):
    """Let a node go on, and reach the store."""
    if node.is_paused:
        node.pause(paused=False)
    if node.store.is_cut:
        node.store.is_cut = False
        node.store.bus.report_gap()


async def follow_for(client, seconds):
    """Let time pass, and have the client follow its calls."""
    until = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < until:
        await asyncio.sleep(LOOK_INTERVAL_S)
        for call in client.calls:
            if not call.is_over:
                client.follow(call)


def check(client, actions=()):
    """Every call has one end, and no event came twice or out of order."""
    happened = {action for action, _ in actions}
    for call in client.calls:
        assert len(call.ends) <= 1
        assert not call.lost or happened & {"kill", "cut", "pause", "cancel"}
        assert not call.refused or happened & {"cut", "pause", "kill"}
        assert len(set(call.events)) == len(call.events)
        places = [int(id.rsplit("-", 1)[1]) for id in call.events]
        assert sorted(places) == places
        progress = [
            message["params"]["progress"]
            for message in call.messages
            if message.get("method") == "notifications/progress"
        ]
        assert sorted(set(progress)) == progress


def test_calls_over_nodes_that_nothing_happens_to_have_their_results():
    """Ours: a client cannot tell three nodes from one."""

    async def work(loop):
        actions = [(name, 0.3) for name in ("start", "add", "count", "ask", "count", "ask", "add")]
        return await play(loop, 1, actions)

    client = run_virtually(work)

    check(client)
    assert [1] * 6 == [len(call.ends) for call in client.calls]
    assert [] == [call.ends[0] for call in client.calls if "result" not in call.ends[0]]


@settings(max_examples=count_examples(150))
@given(
    seed=st.integers(0, 2**32),
    actions=st.lists(st.tuples(st.sampled_from(ACTIONS), st.floats(0, 3)), max_size=25),
)
def test_every_call_ends_once_whatever_happens_to_the_nodes(seed, actions):
    """Ours: nothing hangs, nothing is said twice, and nothing is lost on the way."""
    client = run_virtually(lambda loop: play(loop, seed, actions))

    check(client, actions)
    assert [] == [
        call.id
        for call in client.calls
        if not call.is_over and not getattr(call, "is_cancelled", False)
    ]


async def subscribe_and_change(loop, seed, pause, *, listens_first):
    """A client subscribes and listens, at any nodes and in either order, and then something changes."""
    town = SimulatedTown(loop, random.Random(seed), nodes=3)  # noqa: S311 - as above
    client = SimulatedClient(town)
    await client.open()
    if listens_first:
        stream = client.listen()
        await asyncio.sleep(pause)
    await client.request("resources/subscribe", uri="stock://pears")
    if not listens_first:
        stream = client.listen()
        await asyncio.sleep(pause)
    changing = client.call("restock")
    await changing.exchange.complete.wait()
    await asyncio.sleep(LAST_WAIT_S)
    await town.close()
    return stream.body.count(b"notifications/resources/updated")


@settings(max_examples=count_examples(150))
@given(seed=st.integers(0, 2**32), pause=st.floats(0, 0.5), listens_first=st.booleans())
@example(seed=5276, pause=0.10265411, listens_first=True)  # a change overtook the hand-over
def test_who_has_subscribed_hears_of_the_next_change(seed, pause, listens_first):
    """Ours: from the answer to resources/subscribe on, wherever the stream, the call and the change are."""
    heard = run_virtually(
        lambda loop: subscribe_and_change(loop, seed, pause, listens_first=listens_first)
    )

    assert heard >= 1
