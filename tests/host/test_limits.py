"""How much each server, and each caller of it, may take."""

import asyncio

import pytest

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.entries import ServerLimits
from isthmus.host.model.errors import Exhausted
from isthmus.host.pipeline.limits import MAX_WAITING_CALLS, CallLimits, ServerSlots
from isthmus.store.memory_store import MemoryStore


def call(id="1", *, principal="user:a", server="shop", tool="buy", parent="", origin="local"):
    """One call."""
    return Attempt(
        id=id,
        action="tool.call",
        principal=principal,
        server=server,
        object=tool,
        parent=parent,
        origin=origin,
    )


def limits(now, **figures):
    """The limits of one server, by a clock of the test's."""
    found = ServerLimits(**figures)
    return CallLimits(lambda _server: found, clock=lambda: now[0])


@pytest.mark.covers("hostkernel.limits.rate")
async def test_who_calls_too_often_is_told_when_to_come_back():
    """Ours: the refusal has the seconds, and after them it goes through."""
    now = [0.0]
    gate = limits(now, calls=2.0)
    for _ in range(2):
        gate.leave(call(), await gate.enter(call()))

    with pytest.raises(Exhausted, match="again in") as refused:
        await gate.enter(call())

    now[0] += refused.value.retry_after
    gate.leave(call(), await gate.enter(call()))


@pytest.mark.covers("hostkernel.limits.tool")
async def test_one_tool_of_one_caller_leaves_room_for_the_others():
    """Ours: who has used up a tool may call another, and others may call that one."""
    gate = limits([0.0], calls=10.0, tool_calls=1.0)
    await gate.enter(call("1"))

    with pytest.raises(Exhausted, match="buy"):
        await gate.enter(call("2"))
    await gate.enter(call("3", tool="sell"))
    await gate.enter(call("4", principal="user:b"))


@pytest.mark.covers("hostkernel.limits.fair")
async def test_places_are_taken_in_turns_by_callers():
    """Ours: who has ten calls waiting does not hold up who has one."""
    gate = limits([0.0], concurrency=1)
    order = []

    async def one(id, principal):
        attempt = call(id, principal=principal)
        slots = await gate.enter(attempt)
        order.append(id)
        await asyncio.sleep(0)
        gate.leave(attempt, slots)

    many = [one(f"a{n}", "user:a") for n in range(4)]
    await asyncio.gather(*many, one("b0", "user:b"))

    assert ["a0", "a1", "b0", "a2", "a3"] == order


async def test_too_many_waiting_calls_of_one_caller_are_refused():
    """Ours: a queue has an end, and says so."""
    slots = ServerSlots(1)
    assert slots.take()
    waiting = [asyncio.ensure_future(slots.wait("user:a")) for _ in range(MAX_WAITING_CALLS)]
    await asyncio.sleep(0)

    with pytest.raises(Exhausted):
        await slots.wait("user:a")

    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert 0 == slots.waiting


async def test_who_gives_up_while_waiting_takes_no_place():
    """Ours: a cancelled call leaves the queue, also when its turn has just come."""
    slots = ServerSlots(1)
    assert slots.take()
    one = asyncio.ensure_future(slots.wait("user:a"))
    two = asyncio.ensure_future(slots.wait("user:b"))
    await asyncio.sleep(0)
    slots.leave()  # it is the turn of the first
    one.cancel()
    await asyncio.gather(one, return_exceptions=True)

    await two

    slots.leave()
    assert 0 == slots.taken


@pytest.mark.covers("hostkernel.limits.nested")
async def test_what_comes_about_within_a_call_does_not_wait_for_it():
    """Ours: a server with one place is called again in the course of its own call."""
    gate = limits([0.0], concurrency=1)
    outer = call("outer")
    slots = await gate.enter(outer)

    inner = call("inner", parent="outer")
    gate.leave(inner, await gate.enter(inner))
    gate.leave(outer, slots)

    assert slots.taken == 0


def gateway_limits(now, client_calls, **figures):
    """The limits of one server that a gateway stands in front of."""
    found = ServerLimits(**figures)
    return CallLimits(
        lambda _server: found, clock=lambda: now[0], get_client_calls=lambda: client_calls[0]
    )


async def test_callers_of_a_gateway_have_a_rate_each_at_each_server():
    """Ours: one caller's 600 calls a minute stop nobody else, and not at another server."""
    gate = gateway_limits([0.0], [2.0])
    for _ in range(2):
        await gate.enter(call(origin="gateway"))

    with pytest.raises(Exhausted, match=r"by user:a .*gateway\.limits\.calls"):
        await gate.enter(call(origin="gateway"))
    await gate.enter(call(origin="gateway", principal="user:b"))
    await gate.enter(call(origin="gateway", server="bank"))


async def test_a_server_own_rate_counts_in_a_gateway_where_its_entry_says_it():
    """Ours: the default of a server is for programs; a figure that somebody wrote is for all."""
    by_default = gateway_limits([0.0], [None])
    for number in range(601):
        attempt = call(str(number), origin="gateway")
        by_default.leave(attempt, await by_default.enter(attempt))

    written = gateway_limits([0.0], [600.0], calls=1.0)
    await written.enter(call(origin="gateway"))
    with pytest.raises(Exhausted, match=r"limits\.calls"):
        await written.enter(call(origin="gateway", principal="user:b"))


async def test_a_refused_call_counts_for_no_rate():
    """Ours: where one rate refuses a call, the others have not counted it."""
    now, client_calls = [0.0], [2.0]
    gate = gateway_limits(now, client_calls, calls=1.0)
    await gate.enter(call(origin="gateway", principal="user:b"))
    for _ in range(5):
        with pytest.raises(Exhausted, match=r"\(limits\.calls\)"):
            await gate.enter(call(origin="gateway"))


async def test_a_rate_of_callers_that_is_changed_counts_from_the_next_call():
    """Ours: a configuration that is read anew is followed."""
    client_calls = [1.0]
    gate = gateway_limits([0.0], client_calls)
    await gate.enter(call(origin="gateway"))
    with pytest.raises(Exhausted):
        await gate.enter(call(origin="gateway"))

    client_calls[0] = 10.0

    await gate.enter(call(origin="gateway"))


async def test_a_host_own_calls_have_the_default_rate_of_a_server():
    """Ours: without a gateway nothing is different: 600 a minute."""
    gate = gateway_limits([0.0], [None])
    for number in range(600):
        attempt = call(str(number))
        gate.leave(attempt, await gate.enter(attempt))

    with pytest.raises(Exhausted, match="600 a minute"):
        await gate.enter(call())


async def test_one_caller_with_a_full_queue_does_not_starve_another():
    """Ours: with two places and 60 waiting calls of one caller, another's call is at most third."""
    gate, order = gateway_limits([0.0], [None], concurrency=2), []

    async def one(id, principal):
        attempt = call(id, principal=principal, origin="gateway")
        slots = await gate.enter(attempt)
        order.append(principal)
        await asyncio.sleep(0)
        gate.leave(attempt, slots)

    greedy = [one(f"a{number}", "user:a") for number in range(60)]
    await asyncio.gather(*greedy, *(one(f"b{number}", "user:b") for number in range(3)))

    places = [number for number, principal in enumerate(order) if principal == "user:b"]
    assert places[0] <= 4
    assert places[-1] <= 10


async def test_nodes_of_a_gateway_count_a_caller_together():
    """Ours: two processes with one store let a caller through as often as one process does."""
    store, found = MemoryStore(), ServerLimits()
    nodes = [
        CallLimits(lambda _server: found, get_client_calls=lambda: 2.0, store=store)
        for _ in range(2)
    ]
    for node in nodes:
        await node.enter(call(origin="gateway"))

    with pytest.raises(Exhausted, match="by user:a"):
        await nodes[0].enter(call(origin="gateway"))
    await nodes[1].enter(call(origin="gateway", principal="user:b"))
