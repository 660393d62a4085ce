"""Approvals of hosts that share a store: a call comes again to another process than the one that asked."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from isthmus import Server
from isthmus.host import Host, Policy
from isthmus.host.model.errors import ApprovalPending
from isthmus.host.model.interaction import Decision
from isthmus.host.policy.rule_file import read_layers
from support.event_loop import run_until
from support.host.held_client import HeldClient, call_for_client
from support.store.engines import ENGINE_PARAMS, ENGINES

ASKS = '[[rule]]\nid = "calls"\neffect = "ask"\nwhen = { action = ["tool.call"] }\n'
YES = Decision(verdict="allow", by="Bea", assurance="local_ui")


class Surface:
    """A surface whose decisions come from elsewhere."""

    name = "page"
    assurance = "local_ui"

    async def offer(self, interaction):
        """Wait."""
        del interaction
        return await asyncio.get_running_loop().create_future()


@pytest.fixture(params=ENGINE_PARAMS)
async def hosts(request, tmp_path):
    """Two hosts of one store, and what was bought at both."""
    engine, bought = ENGINES[request.param](tmp_path), []
    shop = Server("shop")

    @shop.tool
    async def buy(what: str) -> str:
        bought.append(what)
        return what

    async with AsyncExitStack() as stack:
        found = []
        for _ in range(2):
            policy = Policy.of(read_layers(ASKS, "user"))
            store = engine.make_store(real=True)
            host = Host(approver=Surface(), policy=policy, store=store, name="desk")
            host.add("shop", shop)
            found.append(await stack.enter_async_context(host))
            await host.core.approvals.open()
        yield *found, bought


async def test_a_call_attaches_at_another_process(hosts):
    """Ours: asked at one, decided at either, used at the other, once."""
    one, other, bought = hosts
    with pytest.raises(ApprovalPending) as told:
        await call_for_client(one, HeldClient(0))
    id = told.value.approval
    await run_until(lambda: other.core.broker.find(id) is not None, pause=0.01)
    with pytest.raises(ApprovalPending) as again:
        await call_for_client(other, HeldClient(0))
    assert id == again.value.approval
    assert await other.view.decide(id, YES)
    await run_until(lambda: other.core.approvals.find(id).state == "decided", pause=0.01)

    results = await asyncio.gather(
        *(call_for_client(host, HeldClient(0)) for host in (one, other)), return_exceptions=True
    )
    assert 1 == len(bought)
    assert 1 == sum(isinstance(result, ApprovalPending) for result in results)


async def test_a_question_goes_on_when_its_process_ends(hosts):
    """Ours: another process puts it under its name."""
    one, other, bought = hosts
    with pytest.raises(ApprovalPending) as told:
        await call_for_client(one, HeldClient(0))
    id = told.value.approval
    await one.close()
    desk = other.core.approvals
    await run_until(
        lambda: (row := desk.find(id)) is not None and row.node == desk._storage.node, pause=0.01
    )
    await run_until(lambda: other.core.broker.find(id) is not None, pause=0.01)
    assert await other.view.decide(id, YES)
    assert "tea" == (await call_for_client(other, HeldClient())).text
    assert ["tea"] == bought
