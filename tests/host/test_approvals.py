"""Approvals of a gateway's calls: one question, one decision, one dispatch, whoever of the clients stays."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from isthmus import Server
from isthmus.host import Denied, Host, Policy
from isthmus.host.model.entries import HostConfig, HostOptions
from isthmus.host.model.errors import ApprovalPending
from isthmus.host.model.gateway_options import ApprovalOptions, GatewayOptions
from isthmus.host.model.interaction import Decision
from isthmus.host.policy.rule_file import read_layers
from support.clock import ManualClock
from support.event_loop import run_until
from support.host.held_client import HeldClient, call_for_client

ASKS = """
[[rule]]
id = "calls"
effect = "ask"
when = { action = ["tool.call"] }
"""
ASKS_OTHERWISE = ASKS.replace('"calls"', '"others"')
SECOND = ASKS + 'obligations = { assurance = "second_person" }\n'

YES = Decision(verdict="allow", by="Bea", assurance="local_ui")
NO = Decision(verdict="deny", by="Bea", assurance="local_ui", reason="too dear")


def make_policy(text):
    """A policy of one text."""
    return Policy.of(read_layers(text, "user"))


class Shop:
    """A server that counts what was bought."""

    def __init__(self, text="Buy something."):
        self.bought = []
        self.server = Server("shop")

        @self.server.tool(description=text)
        async def buy(what: str) -> str:
            self.bought.append(what)
            return what


class Surface:
    """A surface whose decisions come from elsewhere."""

    name = "page"

    def __init__(self, assurance="authenticated_web"):
        self.assurance = assurance

    async def offer(self, interaction):
        """Show it, and wait."""
        del interaction
        return await asyncio.get_running_loop().create_future()


def make_host(
    shop, state=None, *, rules=ASKS, assurance="authenticated_web", clock=None, **approvals
):
    """A host with one server and one surface."""
    options = GatewayOptions(approvals=ApprovalOptions(**approvals))
    host = Host(
        HostConfig(options=HostOptions(gateway=options)),
        approver=Surface(assurance),
        policy=make_policy(rules),
        state=state,
        **({} if clock is None else {"clock": clock}),
    )
    host.add("shop", shop.server)
    return host


@asynccontextmanager
async def calling(host, client=None, **options):
    """A call that waits for a person."""
    client = client or HeldClient()
    call = asyncio.ensure_future(call_for_client(host, client, **options))
    await run_until(lambda: call.done() or client.waits.is_set())
    try:
        yield call, client
    finally:
        call.cancel()
        with suppress(BaseException):
            await call


async def leave(call):
    """The client of a call leaves."""
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call


async def get_pending(host, count=1):
    """The ids of the questions that wait, once there are so many."""
    await run_until(lambda: len(host.view.pending()) == count)
    return [one.id for one in host.view.pending()]


async def test_a_call_that_waits_is_dispatched_when_a_person_allows_it(tmp_path):
    """Ours: with the approval's name in the intent, and its row used up."""
    shop = Shop()
    async with make_host(shop, tmp_path) as host:
        async with calling(host) as (call, client):
            (id,) = await get_pending(host)
            assert id == client.approval.id
            assert await host.view.decide(id, YES)
            assert "tea" == (await call).text
        await run_until(lambda: host.core.approvals.find(id).state == "over")
        rows = await host.view.audit_tail(100)

    assert ["tea"] == shop.bought
    assert [id] == [row.detail["approval"] for row in rows if row.kind == "intent"]


async def test_a_client_that_gave_up_calls_again_for_the_decision(tmp_path):
    """Ours: it is told to, with the page; what was decided meanwhile is done, and nobody is asked again."""
    shop = Shop()
    async with make_host(shop, tmp_path) as host:
        with pytest.raises(ApprovalPending, match=r"https://gateway\.example/approvals/1") as told:
            await call_for_client(host, HeldClient(0))
        (id,) = await get_pending(host)
        assert id == told.value.approval
        assert await host.view.decide(id, YES)
        await run_until(lambda: host.core.approvals.find(id).state == "decided")
        assert [] == shop.bought

        assert "tea" == (await call_for_client(host, HeldClient(0))).text
        with pytest.raises(ApprovalPending):
            await call_for_client(host, HeldClient(0))
        assert [id] != await get_pending(host)
    assert ["tea"] == shop.bought


async def test_nothing_is_dispatched_for_a_client_that_has_left(tmp_path):
    """Ours: the question stays, and the next call attaches while it is pending."""
    shop = Shop()
    async with make_host(shop, tmp_path) as host:
        async with calling(host) as (call, _):
            (id,) = await get_pending(host)
            await leave(call)
        assert [id] == await get_pending(host)
        async with calling(host) as (call, client):
            assert id == client.approval.id
            await leave(call)
        assert await host.view.decide(id, YES)
        await run_until(lambda: host.core.approvals.find(id).state == "decided")
        assert [] == shop.bought
        await call_for_client(host, HeldClient())
    assert ["tea"] == shop.bought


async def test_a_question_ends_with_its_client_where_the_configuration_says_so():
    """Ours: ``on_leave = "cancel"``."""
    shop = Shop()
    async with make_host(shop, on_leave="cancel") as host:
        async with calling(host) as (call, _):
            await get_pending(host)
            await leave(call)
        assert [] == await get_pending(host, 0)
        assert [] == list(host.core.approvals.list())


async def test_two_same_calls_have_an_approval_each():
    """Ours: one row is one dispatch, so that a yes to one is none to the other."""
    shop = Shop()
    async with (
        make_host(shop) as host,
        calling(host) as (first, one),
        calling(host) as (second, other),
    ):
        assert one.approval.id != other.approval.id
        await get_pending(host, 2)
        await host.view.decide(other.approval.id, YES)
        assert "tea" == (await second).text
        assert not first.done()
        assert 1 == len(shop.bought)
        await host.view.decide(one.approval.id, NO)
        with pytest.raises(Denied, match="too dear"):
            await first
    assert ["tea"] == shop.bought


@pytest.mark.parametrize(
    "other",
    [
        {"arguments": {"what": "coffee"}},
        {"principal": "user:bob@example"},
        {"principal": "user:ann@elsewhere"},
    ],
)
async def test_an_approval_is_for_one_caller_and_its_arguments(other):
    """Ours: approval swap."""
    shop = Shop()
    async with make_host(shop) as host:
        with pytest.raises(ApprovalPending):
            await call_for_client(host, HeldClient(0))
        (id,) = await get_pending(host)
        await host.view.decide(id, YES)
        with pytest.raises(ApprovalPending):
            await call_for_client(host, HeldClient(0), **other)
    assert [] == shop.bought


async def test_an_approval_is_for_one_version_of_the_policy():
    """Ours: under other rules a person is asked again."""
    shop = Shop()
    async with make_host(shop) as host:
        with pytest.raises(ApprovalPending) as told:
            await call_for_client(host, HeldClient(0))
        await host.view.decide(told.value.approval, YES)
        host.core.pipeline.policy = make_policy(ASKS_OTHERWISE)
        with pytest.raises(ApprovalPending) as again:
            await call_for_client(host, HeldClient(0))
        assert told.value.approval != again.value.approval
    assert [] == shop.bought


async def test_an_approval_is_for_one_definition_of_the_tool(tmp_path):
    """Ours: the server that comes back with another one has people asked again."""
    before, after = Shop(), Shop("Buy something, and tell everybody.")
    async with make_host(before, tmp_path) as host:
        with pytest.raises(ApprovalPending) as told:
            await call_for_client(host, HeldClient(0))
        await host.view.decide(told.value.approval, YES)
        await run_until(lambda: host.core.approvals.find(told.value.approval).state == "decided")
    async with make_host(after, tmp_path) as host:
        await host.core.approvals.open()
        call = asyncio.ensure_future(call_for_client(host, HeldClient(0)))
        (change,) = await get_pending(host)
        assert "tool.change" == host.view.pending()[0].attempt.action
        await host.view.decide(change, YES)
        with pytest.raises(ApprovalPending) as again:
            await call
        assert told.value.approval != again.value.approval
    assert [] == before.bought + after.bought


async def test_a_denial_is_told_once_and_then_a_person_is_asked_again():
    """Ours: also to a client that comes again for it."""
    shop = Shop()
    async with make_host(shop) as host:
        with pytest.raises(ApprovalPending) as told:
            await call_for_client(host, HeldClient(0))
        await host.view.decide(told.value.approval, NO)
        await run_until(lambda: host.core.approvals.find(told.value.approval).state == "decided")
        with pytest.raises(Denied, match=r"was not allowed \(Bea\): too dear"):
            await call_for_client(host, HeldClient(0))
        with pytest.raises(ApprovalPending) as again:
            await call_for_client(host, HeldClient(0))
        assert told.value.approval != again.value.approval
    assert [] == shop.bought


async def test_an_approval_that_was_not_used_in_time_counts_no_more():
    """Ours: by the clock of the host."""
    shop, clock = Shop(), ManualClock()
    async with make_host(shop, clock=clock, expiry=60) as host:
        with pytest.raises(ApprovalPending) as told:
            await call_for_client(host, HeldClient(0))
        assert 1060 == told.value.until
        await host.view.decide(told.value.approval, YES)
        await run_until(lambda: host.core.approvals.find(told.value.approval).state == "decided")
        clock.now += 61
        assert host.core.approvals.find(told.value.approval) is None
        with pytest.raises(ApprovalPending) as again:
            await call_for_client(host, HeldClient(0))
        assert told.value.approval != again.value.approval
    assert [] == shop.bought


async def test_a_question_that_nobody_answers_is_a_no_to_who_waits():
    """Ours: said as such."""
    shop = Shop()
    async with make_host(shop, expiry=0.05) as host:
        with pytest.raises(Denied, match="nobody answered in time"):
            await call_for_client(host, HeldClient())
    assert [] == shop.bought


async def test_edited_arguments_are_what_runs_and_the_client_is_told():
    """Ours: also where it attaches to the decision later."""
    shop = Shop()
    async with make_host(shop) as host:
        with pytest.raises(ApprovalPending) as told:
            await call_for_client(host, HeldClient(0))
        edited = Decision(verdict="allow", by="Bea", assurance="local_ui", edited={"what": "milk"})
        await host.view.decide(told.value.approval, edited)
        client = HeldClient()
        assert "milk" == (await call_for_client(host, client)).text
        assert {"what": "milk"} == client.edited
    assert ["milk"] == shop.bought


async def test_pending_and_decided_approvals_are_there_after_a_restart(tmp_path):
    """Ours: the question is put again under its name, and a decision is used by the next call."""
    shop = Shop()
    async with make_host(shop, tmp_path) as host:
        with pytest.raises(ApprovalPending) as told:
            await call_for_client(host, HeldClient(0))
        await get_pending(host)
    async with make_host(shop, tmp_path) as host:
        await host.core.approvals.open()
        assert [told.value.approval] == await get_pending(host)
        assert await host.view.decide(told.value.approval, YES)
        await run_until(lambda: host.core.approvals.find(told.value.approval).state == "decided")
    async with make_host(shop, tmp_path) as host:
        assert [] == shop.bought
        await call_for_client(host, HeldClient(0))
        with pytest.raises(ApprovalPending):
            await call_for_client(host, HeldClient(0))
    assert ["tea"] == shop.bought


async def test_a_host_of_a_plain_program_asks_nothing_that_a_gateway_left(tmp_path):
    """Ours: its people would approve calls that nobody there makes."""
    shop = Shop()
    async with make_host(shop, tmp_path) as host:
        with pytest.raises(ApprovalPending):
            await call_for_client(host, HeldClient(0))
    async with make_host(shop, tmp_path) as host:
        assert [] == list(host.view.pending())


@pytest.mark.parametrize(
    ("decider", "assurance", "counts"),
    [
        ("user:bob@example", "second_person", True),
        ("user:ann@example", "second_person", False),
        ("", "second_person", False),
        ("user:bob@example", "authenticated_web", False),
    ],
)
async def test_a_second_person_is_somebody_else_than_the_caller(decider, assurance, counts):
    """Ours: ``assurance = "second_person"`` of a rule."""
    shop = Shop()
    async with (
        make_host(shop, rules=SECOND, assurance="second_person") as host,
        calling(host) as (call, client),
    ):
        await get_pending(host)
        said = Decision(verdict="allow", by="page", assurance=assurance, principal=decider)
        assert counts is await host.view.decide(client.approval.id, said)
        if counts:
            assert "tea" == (await call).text
        else:
            assert not call.done()
    assert (["tea"] if counts else []) == shop.bought


async def test_a_surface_that_comes_later_is_asked():
    """Ours: where nobody is there, the question waits for somebody."""
    shop = Shop()
    host = make_host(shop)
    async with host:
        surface = host.core.broker._approvers[0]
        async with calling(host) as (call, _):
            host.core.broker.detach(surface)
            await run_until(lambda: not host.view.pending())
            host.core.broker.attach(surface)
            (id,) = await get_pending(host)
            await host.view.decide(id, YES)
            assert "tea" == (await call).text
