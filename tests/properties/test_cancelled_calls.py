"""Whoever gives up a call, at whatever moment: nothing is left hanging, and the log says so."""

import asyncio

import pytest

from isthmus import Server
from isthmus.host import Host
from isthmus.host.model.entries import ServerLimits
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers

RULES = """
[[rule]]
id = "calls"
effect = "EFFECT"
when = { action = "*" }
"""

MOST = 400
"""Turns of the loop after which a call that nobody cancels has long ended."""


def shop(done):
    """A server whose tool takes its time."""
    server = Server("shop")

    @server.tool
    async def buy(what: str) -> str:
        """Buy."""
        done.append(what)
        await asyncio.sleep(0)
        return what

    return server


async def cancelled_after(host, turns, what):
    """A call that is given up after so many turns of the loop; whether it had ended by then."""
    calling = asyncio.ensure_future(host.call("shop__buy", {"what": what}))
    for _ in range(turns):
        await asyncio.sleep(0)
    over = calling.done()
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    return over


def faults(host, rows):
    """What is left that should not be."""
    core = host.core
    kinds = {}
    for row in rows:
        kinds.setdefault(row.call, []).append(row.kind)
    yield from (one.id for one in host.view.pending())
    yield from core.limits._inside
    yield from core.pipeline.flying._at
    yield from core.pipeline.flying._depth
    yield from (1 for _ in range(core.limits._place("shop").slots.taken))
    for call, said in kinds.items():
        if said.count("outcome") != 1 or said[-1] != "outcome" or said.count("intent") > 1:
            yield f"{call}: {said}"


@pytest.mark.covers("hostkernel.cancelled.anywhere")
@pytest.mark.parametrize("effect", ["allow", "ask"])
@pytest.mark.parametrize("kept", [True, False])
async def test_a_call_can_be_given_up_at_any_moment(effect, kept, tmp_path):
    """Ours: no question, place or row is left, and what reached the server stands in the log."""
    done = []

    async def person(_interaction):
        await asyncio.sleep(0)
        return True

    policy = Policy.of(read_layers(RULES.replace("EFFECT", effect), "user"))
    host = Host(approver=person, policy=policy, state=tmp_path if kept else None)
    host.add("shop", shop(done), limits=ServerLimits(concurrency=1))
    async with host:
        await host.call("shop__buy", {"what": "first"})
        turns = 0
        while turns < MOST and not await cancelled_after(host, turns, str(turns)):
            turns += 1
        await host.call("shop__buy", {"what": "last"})
        rows = [
            row
            for row in await host.view.audit_tail(5_000)
            if row.kind in {"intent", "decision", "outcome"}
        ]
        left = list(faults(host, rows))

    intended = {row.call for row in rows if row.kind == "intent"}
    assert [] == left
    assert turns > 3
    assert len(done) <= len(intended)
    assert ("first", "last") == (done[0], done[-1])
