"""Several hosts on one store: what one decides, remembers or takes back counts at all of them."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from isthmus import Server
from isthmus.errors import UsageError
from isthmus.host import Host, Policy
from isthmus.host.model.errors import Denied, Exhausted
from isthmus.host.model.interaction import Decision
from isthmus.host.policy.rule_file import read_layers
from isthmus.store.store import StoreUnavailable
from support.event_loop import run_until
from support.store.cut_store import CutStore
from support.store.engines import ENGINE_PARAMS, ENGINES

ASKS = """
[[rule]]
id = "calls"
effect = "ask"
when = { action = ["tool.call"] }
obligations = { remember = ["once", "tool_always", "session"] }
"""
DENIES = '[[rule]]\nid = "none"\neffect = "deny"\nwhen = { action = ["tool.call"] }\n'
ALLOWS = '[[rule]]\nid = "all"\neffect = "allow"\nwhen = { action = ["tool.call"] }\n'


def make_policy(text=ASKS):
    """A policy of one text."""
    return Policy.of(read_layers(text, "user"))


class Shop:
    """A server in memory that counts what was bought."""

    def __init__(self):
        self.bought = []
        self.server = Server("shop")

        @self.server.tool
        async def buy(what: str) -> str:
            """Buy something."""
            self.bought.append(what)
            return what


class Surface:
    """A surface that shows questions, and answers when it is told to, or as it was told to."""

    def __init__(self, name, says=None):
        self.name = name
        self.assurance = "local_ui"
        self.says = says
        self.shown = []

    async def offer(self, interaction):
        self.shown.append(interaction.id)
        if self.says is not None:
            return self.says
        return await asyncio.get_running_loop().create_future()


class Hosts:
    """Some hosts of one store, each with a surface of its own and the same server."""

    def __init__(self, make_store, count=2, *, says=None, policies=(), **options):
        self.make_store = make_store
        self.stores = [make_store() for _ in range(count)]
        self.shop = Shop()
        self.surfaces = [Surface(f"screen {n}", says) for n in range(count)]
        policies = policies or [make_policy()] * count
        self.all = [
            Host(approver=surface, policy=policy, store=store, name="desk")
            for surface, policy, store in zip(self.surfaces, policies, self.stores, strict=True)
        ]
        for host in self.all:
            host.add("shop", self.shop.server, **options)
        self._stack = AsyncExitStack()

    async def __aenter__(self):
        for host in self.all:
            await self._stack.enter_async_context(host)
        return self

    async def __aexit__(self, *error):
        await self._stack.aclose()

    async def ask(self, host, what="tea"):
        """Call at one host; its task, and the id of the question once all hosts show it."""
        call = asyncio.ensure_future(self.all[host].call("shop__buy", {"what": what}))
        await run_until(lambda: all(one.view.pending() for one in self.all) or call.done())
        assert not call.done(), call
        return call, self.all[host].view.pending()[0].id


@pytest.fixture(params=ENGINE_PARAMS)
def make_store(request, tmp_path):
    """Makes stores over one engine, a store for each host."""
    engine = ENGINES[request.param](tmp_path)
    return lambda: engine.make_store(real=True)


YES = Decision(verdict="allow", by="Ann", assurance="local_ui")
NO = Decision(verdict="deny", by="Bob", assurance="local_ui")
ALWAYS = Decision(verdict="allow", by="Ann", assurance="local_ui", remember="tool_always")


@pytest.mark.parametrize("where", [0, 1, 2])
async def test_a_question_is_decided_at_any_host(make_store, where):
    """Ours: all hosts show it, one decision takes it off all, and the call goes on where it waits."""
    async with Hosts(make_store, 3) as hosts:
        call, id = await hosts.ask(0)

        assert await hosts.all[where].view.decide(id, YES)
        assert "tea" == (await call).text
        await run_until(lambda: not any(one.view.pending() for one in hosts.all))
        assert ["tea"] == hosts.shop.bought
        assert [[id]] * 3 == [surface.shown for surface in hosts.surfaces]


async def test_a_decision_is_written_down_where_it_was_made_and_where_the_call_waited(make_store):
    """Ours: each process has an audit log of its own, and each row names the process."""
    async with Hosts(make_store, 2) as hosts:
        call, id = await hosts.ask(0)
        await hosts.all[1].view.decide(id, YES)
        await call
        nodes = [one.core.shared.node.id for one in hosts.all]
        for one, node in zip(hosts.all, nodes, strict=True):
            await one.audit.flush()
            [row] = [row for row in await one.audit.tail() if row.kind == "decision"]
            assert ("allow", node) == (row.effect, one.audit.node.rsplit(":", 1)[1])
            assert row.approver


async def test_a_second_decision_is_told_who_decided_first(make_store):
    """Ours: the first one counts, whatever the second says, at whatever host."""
    async with Hosts(make_store, 3) as hosts:
        call, id = await hosts.ask(0)
        first, second = await asyncio.gather(
            hosts.all[1].view.decide(id, NO), hosts.all[2].view.decide(id, YES)
        )

        assert {True, False} == {first, second}
        late, by = (hosts.all[2], "Bob") if first else (hosts.all[1], "Ann")
        assert by == late.broker.said(id).by
        if first:
            with pytest.raises(Denied, match="Bob"):
                await call
        else:
            await call
        assert not await hosts.all[0].view.decide(id, YES)
        assert ([] if first else ["tea"]) == hosts.shop.bought


async def test_who_can_be_asked_elsewhere_is_asked(make_store):
    """Ours: a host without a surface asks at the others; where they have none either, it is a no."""
    async with Hosts(make_store, 2) as hosts:
        hosts.all[0].broker.detach(hosts.surfaces[0])
        await run_until(lambda: hosts.all[0].broker.attended)
        call, id = await hosts.ask(0)
        assert await hosts.all[1].view.decide(id, YES)
        await call
        call, id = await hosts.ask(0, "cake")
        hosts.all[1].broker.detach(hosts.surfaces[1])
        with pytest.raises(Denied, match="nobody is there"):
            await call

    assert ["tea"] == hosts.shop.bought


async def test_a_caller_that_goes_takes_its_question_back_everywhere(make_store):
    """Ours: nobody decides what nobody waits for."""
    async with Hosts(make_store, 2) as hosts:
        call, id = await hosts.ask(0)
        call.cancel()
        await run_until(lambda: not any(one.view.pending() for one in hosts.all))

        assert not await hosts.all[1].view.decide(id, YES)
        assert [] == hosts.shop.bought


async def test_a_question_that_the_store_has_lost_is_denied(make_store):
    """Ours: nobody can tell any more who decided it, so nobody decides it."""
    async with Hosts(make_store, 2) as hosts:
        call, id = await hosts.ask(0)
        assert await hosts.stores[1].kv.delete(f"host/question/{id}")
        assert not await hosts.all[1].view.decide(id, YES)
        assert not await hosts.all[0].view.decide(id, YES)
        with pytest.raises(Denied, match="the store has lost this question"):
            await call

    assert [] == hosts.shop.bought


async def test_a_host_that_joins_later_shows_what_waits(make_store):
    """Ours: and may decide it."""
    async with Hosts(make_store, 1) as hosts:
        call, id = await hosts.ask(0)
        late = Host(approver=Surface("late"), policy=make_policy(), store=make_store(), name="desk")
        async with late:
            assert [id] == [one.id for one in late.view.pending()]
            assert await late.view.decide(id, YES)
            assert "tea" == (await call).text


async def test_a_surface_that_only_decides_answers_no_question_of_another_host(make_store):
    """Ours: a form is asked where a host has somebody who can fill it in, and else it is not kept waiting."""
    hosts = Hosts(make_store, 1)
    hosts.surfaces[0].only_decides = True
    async with hosts:
        late = Host(policy=make_policy(), store=make_store(), name="desk")
        async with late:
            broker = late.broker
            await run_until(lambda: broker.attended)
            assert not broker.answers_questions

            hosts.all[0].broker.attach(Surface("terminal"))
            await run_until(lambda: broker.answers_questions)


async def test_a_host_that_closes_denies_what_waits_at_it(make_store):
    """Ours: also on the surfaces of the others."""
    async with Hosts(make_store, 2) as hosts:
        call, id = await hosts.ask(0)
        await hosts.all[0].close()
        with pytest.raises(Denied):
            await call

        await run_until(lambda: not hosts.all[1].view.pending())
        assert not await hosts.all[1].view.decide(id, YES)


async def test_a_yes_that_lasts_holds_at_all_hosts_until_it_is_revoked_at_one(make_store):
    """Ours: within a second, either way."""
    async with Hosts(make_store, 3, says=ALWAYS) as hosts:
        await hosts.all[0].call("shop__buy", {"what": "tea"})
        await asyncio.gather(*(one.grants.refresh() for one in hosts.all))
        hosts.surfaces[1].says = NO
        await hosts.all[1].call("shop__buy", {"what": "tea"})
        grant = hosts.all[2].grants.all()[0]

        assert await hosts.all[2].view.revoke(grant.id)
        hosts.surfaces[0].says = hosts.surfaces[2].says = NO
        await asyncio.gather(*(one.grants.refresh() for one in hosts.all))
        for host in hosts.all:
            with pytest.raises(Denied):
                await host.call("shop__buy", {"what": "tea"})
        assert ["revoked"] == [one.ended for one in await hosts.all[0].grants.history()]


async def test_a_session_is_that_of_all_hosts(make_store):
    """Ours: what holds for a session holds at each, also when the one that was asked has closed."""
    async with Hosts(make_store, 2, says=Decision(verdict="allow", remember="session")) as hosts:
        await hosts.all[0].call("shop__buy", {"what": "tea"})
        await hosts.all[0].close()
        hosts.surfaces[1].says = NO
        await hosts.all[1].grants.refresh()

        assert "tea" == (await hosts.all[1].call("shop__buy", {"what": "tea"})).text


async def test_a_host_that_cannot_reach_the_store_refuses(make_store):
    """Ours: a grant that cannot be verified is none, and neither is a policy."""
    async with Hosts(lambda: CutStore(make_store()), 2, says=ALWAYS) as hosts:
        await hosts.all[0].call("shop__buy", {"what": "tea"})
        hosts.stores[0].cut()
        shared = hosts.all[0].core.pipeline._shared
        shared._read_at -= 1.0
        with pytest.raises(StoreUnavailable):
            await hosts.all[0].call("shop__buy", {"what": "tea"})
        hosts.stores[0].mend()
        await hosts.all[0].call("shop__buy", {"what": "tea"})

    assert 2 == len(hosts.shop.bought)


async def test_a_policy_that_one_host_reads_is_in_force_at_all(make_store):
    """Ours: the host that starts with another one takes over the one in force, and says so."""
    policies = [make_policy(ALLOWS), make_policy(DENIES)]
    async with Hosts(make_store, 2, policies=policies) as hosts:
        await hosts.all[1].call("shop__buy", {"what": "tea"})
        hosts.all[0].core.pipeline.policy = make_policy(DENIES)
        shared = [one.core.pipeline._shared for one in hosts.all]
        await hosts.all[0].core.pipeline._refresh_rules()
        shared[1]._read_at -= 1.0
        with pytest.raises(Denied, match="none"):
            await hosts.all[1].call("shop__buy", {"what": "tea"})
        assert 1 == len({one.core.pipeline.policy.version for one in hosts.all})


async def test_what_this_machine_manages_holds_beside_the_policy_of_others(make_store):
    """Ours: another process cannot take an administrator's rules away."""
    managed = Policy.of([*read_layers(DENIES, "managed"), *read_layers(ALLOWS, "user")])
    async with Hosts(make_store, 2, policies=[make_policy(ALLOWS), managed]) as hosts:
        await hosts.all[0].call("shop__buy", {"what": "tea"})
        with pytest.raises(Denied, match="none"):
            await hosts.all[1].call("shop__buy", {"what": "tea"})


async def test_rates_count_over_all_hosts(make_store):
    """Ours: two hosts are not allowed twice as much."""
    from isthmus.host.model.entries import ServerLimits

    policies = [make_policy(ALLOWS)] * 2
    async with Hosts(make_store, 2, policies=policies, limits=ServerLimits(calls=3)) as hosts:
        for n in range(3):
            await hosts.all[n % 2].call("shop__buy", {"what": "tea"})
        for host in hosts.all:
            with pytest.raises(Exhausted, match="too often"):
                await host.call("shop__buy", {"what": "tea"})


async def test_what_a_rule_lets_through_counts_over_all_hosts(make_store):
    """Ours: of calls at once, at two hosts, no more are let through unasked than the rule says."""
    policy = make_policy(ALLOWS + "obligations = { max_calls = 3 }")
    async with Hosts(make_store, 2, policies=[policy] * 2, says=NO) as hosts:
        calls = [hosts.all[n % 2].call("shop__buy", {"what": "tea"}) for n in range(6)]
        ended = await asyncio.gather(*calls, return_exceptions=True)

    assert 3 == len(hosts.shop.bought)
    assert 3 == sum(isinstance(one, Denied) for one in ended)


async def test_hosts_of_two_names_or_secrets_do_not_share(make_store):
    """Ours: one that is something else does not start, and says why."""
    async with Host(store=make_store(), name="desk", secret=b"1" * 16):
        with pytest.raises(UsageError, match="belongs to the host 'desk'"):
            await Host(store=make_store(), name="other", secret=b"1" * 16).open()
        with pytest.raises(UsageError, match="same secret"):
            await Host(store=make_store(), name="desk", secret=b"2" * 16).open()
    with pytest.raises(UsageError, match="16 random bytes"):
        Host(store=make_store(), secret=b"short")


async def test_what_nobody_of_the_host_wrote_allows_nothing(make_store):
    """Ours: whoever can write to the store cannot say yes, nor move a record of ours."""
    async with Hosts(make_store, 2, says=ALWAYS) as hosts:
        await hosts.all[0].call("shop__buy", {"what": "tea"})
        kv = hosts.stores[0].kv
        [(key, entry)] = await kv.scan("host/grant/", "", 10)
        assert await hosts.all[0].view.revoke(key.removeprefix("host/grant/"))
        await kv.put("host/grant/another", entry.value)
        await kv.put("host/grant/forged", b'{"id":"forged","scope":"tool_always"}')
        await hosts.all[1].core.grants._storage.read(-1)
        hosts.all[1].grants._changes = -1
        await hosts.all[1].grants.refresh()

        assert [] == hosts.all[1].grants.all()
