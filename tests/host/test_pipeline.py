"""The one way: what is asked of whom, and what is left behind."""

import asyncio

import pytest

from isthmus import Server
from isthmus.errors import Refused
from isthmus.host import BadArguments, Decision, Denied, Exhausted, Host
from isthmus.host.approvals.grants import STALE_AFTER_S, Grants
from isthmus.host.model.entries import Labels, ServerLimits
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.state.database import HostState
from isthmus.testing.faults import until


def shop():
    """A server that sells something."""
    server = Server("shop")

    @server.tool
    async def buy(what: str) -> str:
        """Buy something."""
        return what

    @server.resource("shop://list")
    async def listed() -> str:
        """What there is."""
        return "tea"

    return server


def says(answer):
    """A function that is asked, and what it was asked."""
    asked = []

    async def person(interaction):
        asked.append(interaction)
        return answer

    person.asked = asked
    return person


def make_asking_policy():
    """A policy that asks about calls, once and for all where the person wants it."""
    text = """
        [[rule]]
        id = "calls"
        effect = "ask"
        when = { action = ["tool.call"] }
        obligations = { remember = ["once", "tool_always"] }
    """
    return Policy.of(read_layers(text, "user"))


@pytest.mark.covers("hostkernel.runs.shared")
async def test_the_words_of_an_error_are_words_of_the_server():
    """Ours: a server that only ever refuses could otherwise say anything without being heard."""
    host = Host(approver=says(True))
    host.add("shop", shop(), labels=Labels(reads=("private",), returns=("untrusted",)))
    async with host:
        with host.run() as run, pytest.raises(Refused):
            await host.read("shop://gone", server="shop", run=run)

    assert {"private", "untrusted"} <= run.labels


async def test_rows_say_what_a_run_had_read_by_then():
    """Ours: a replay decides again on what was known, also where nothing came of it."""
    host = Host(approver=says(True))
    host.add("shop", shop(), labels=Labels(reads=("private",)))
    async with host:
        with host.run() as run:
            await host.read("shop://list", server="shop", run=run)
            await host.call("shop__buy", {"what": "tea"}, run=run)
            with pytest.raises(BadArguments):
                await host.call("shop__buy", {}, run=run)
        rows = await host.view.audit_tail(100)
    found = [(row.kind, row.labels) for row in rows if row.object == "buy"]

    assert [
        ("decision", ()),
        ("intent", ("private", "untrusted")),
        ("outcome", ("private", "untrusted")),
        ("outcome", ("private", "untrusted")),
    ] == found


async def test_what_is_over_is_no_longer_under_way():
    """Ours: who asks us something later does not do so in the course of it."""
    seen, host = [], Host(approver=says(True))
    server = Server("shop")

    @server.tool
    async def look(*, fail: bool) -> str:
        seen.append(len(host.core.pipeline.flying.at("shop")))
        if fail:
            raise ValueError("broken")
        return "seen"

    host.add("shop", server)
    async with host:
        for fail in (False, True):
            await host.call("shop__look", {"fail": fail})
            assert () == host.core.pipeline.flying.at("shop")
    assert [1, 1] == seen


async def test_what_a_person_gives_as_reason_is_told():
    """Ours: to whoever wanted it, with who said no."""
    person = says(Decision(verdict="deny", by="Ann", reason="not on Mondays"))
    host = Host(approver=person)
    host.add("shop", shop())
    async with host:
        with pytest.raises(Denied, match=r"was not allowed \(Ann\): not on Mondays") as told:
            await host.call("shop__buy", {"what": "tea"})

    assert ("deny", "not on Mondays") == (told.value.verdict, told.value.reason)


@pytest.mark.covers("hostpolicy.grants.revoked")
async def test_what_was_taken_back_elsewhere_is_asked_about_again(tmp_path, monkeypatch):
    """Ours: what was read too long ago is read again before it counts, not passed over."""
    monkeypatch.setattr("isthmus.host.approvals.grants.REFRESH_INTERVAL_S", 3600)
    person = says(Decision(verdict="allow", remember="tool_always", assurance="local_ui"))
    elsewhere = HostState(tmp_path)
    host = Host(approver=person, state=tmp_path, policy=make_asking_policy())
    host.add("shop", shop())
    async with host:
        grants, late = host.core.grants, [0.0]
        steady = grants._steady
        monkeypatch.setattr(grants, "_steady", lambda: steady() + late[0])
        await host.call("shop__buy", {"what": "tea"})
        late[0] += STALE_AFTER_S + 1
        await host.call("shop__buy", {"what": "tea"})
        before = len(person.asked)
        others = Grants(elsewhere)
        await others.refresh()
        await others.revoke(others.all()[0].id)
        late[0] += STALE_AFTER_S + 1
        await host.call("shop__buy", {"what": "tea"})

    await elsewhere.close()
    assert (1, 2) == (before, len(person.asked))


@pytest.mark.covers("hostpolicy.grants.revoked")
async def test_a_host_keeps_up_with_what_others_take_back(tmp_path, monkeypatch):
    """Ours: also while nothing is called."""
    monkeypatch.setattr("isthmus.host.approvals.grants.REFRESH_INTERVAL_S", 0.001)
    person = says(Decision(verdict="allow", remember="tool_always", assurance="local_ui"))
    host = Host(approver=person, state=tmp_path, policy=make_asking_policy())
    host.add("shop", shop())
    async with host:
        await host.call("shop__buy", {"what": "tea"})
        elsewhere = HostState(tmp_path)
        others = Grants(elsewhere)
        await others.refresh()
        await others.revoke(others.all()[0].id)
        async with asyncio.timeout(10):
            while await host.view.grants():
                await others.refresh()

    await elsewhere.close()
    assert 1 == len(person.asked)


RULES = '[[rule]]\nid = "calls"\neffect = "{}"\nwhen = {{ action = ["tool.call"] }}\n'


def rules(effect, more=""):
    """A policy that says one thing about calls."""
    return Policy.of(read_layers(RULES.format(effect) + more, "user"))


class Queue:
    """A host whose server does one call at a time: one is inside, others wait for its place."""

    def __init__(self, policy, person=True):
        self.gate, self.inside, self.done = asyncio.Event(), asyncio.Event(), []
        server = Server("shop")

        @server.tool
        async def buy(what: str) -> str:
            """Buy something."""
            self.inside.set()
            await self.gate.wait()
            self.done.append(what)
            return what

        self.host = Host(approver=person, policy=policy)
        self.host.add("shop", server, limits=ServerLimits(concurrency=1))

    async def around(self, change, **call):
        """What becomes of a call that waits while something changes."""
        async with self.host:
            first = asyncio.create_task(self.host.call("shop__buy", {"what": "first"}))
            await self.inside.wait()
            second = asyncio.create_task(self.host.call("shop__buy", {"what": "second"}, **call))
            slots = self.host.core.limits._place("shop").slots
            await until(lambda: slots.waiting or second.done())
            await change()
            self.gate.set()
            said = await asyncio.gather(first, second, return_exceptions=True)
            rows = await self.host.view.audit_tail(100)
        self.rows = [row.kind for row in rows if row.object == "buy"]
        return said[1]


@pytest.mark.covers("hostkernel.limits.judged-again")
async def test_a_call_that_waited_for_a_place_is_denied_by_rules_of_now():
    """Ours: they were changed while it stood in the queue; nothing is sent, and its place is free."""
    queue = Queue(rules("allow"))

    async def change():
        queue.host.core.pipeline.policy = rules("deny")

    found = await queue.around(change)

    assert isinstance(found, Denied)
    assert ["first"] == queue.done
    assert ["intent", "outcome", "outcome"] == sorted(queue.rows)
    assert 0 == queue.host.core.limits._place("shop").slots.taken


@pytest.mark.covers("hostkernel.limits.judged-again")
@pytest.mark.parametrize("verdict", ["allow", "deny"])
async def test_a_call_that_waited_for_a_place_is_asked_about_by_rules_of_now(verdict):
    """Ours: nobody waits for the answer, since the place is given back meanwhile."""
    person = says(Decision(verdict=verdict, by="ada"))
    queue = Queue(rules("allow"), person)

    async def change():
        queue.host.core.pipeline.policy = rules("ask")

    found = await queue.around(change)

    assert 1 == len(person.asked)
    assert (["first", "second"] if verdict == "allow" else ["first"]) == queue.done
    assert isinstance(found, Denied) == (verdict == "deny")


@pytest.mark.covers("hostkernel.limits.judged-again")
async def test_a_grant_that_was_taken_back_meanwhile_lets_nothing_through():
    """Ours: also for the call that it had let through into the queue."""
    answers = [Decision(verdict="allow", remember="tool_always", by="ada"), False]
    asked = []

    async def person(interaction):
        asked.append(interaction)
        return answers[len(asked) - 1]

    queue = Queue(make_asking_policy(), person)

    async def change():
        for grant in await queue.host.view.grants():
            await queue.host.view.revoke(grant.id)

    found = await queue.around(change)

    assert isinstance(found, Denied)
    assert 2 == len(asked)
    assert ["first"] == queue.done


@pytest.mark.covers("hostkernel.limits.judged-again")
@pytest.mark.parametrize("stricter", [True, False])
async def test_the_last_use_of_a_grant_counts_for_the_rules_that_it_was_used_under(stricter):
    """Ours: a call that used it, and then waited, is asked about where another rule asks by now."""
    answers = [Decision(verdict="allow", remember="tool_always", by="ada"), False]
    asked = []

    async def person(interaction):
        asked.append(interaction)
        return answers[len(asked) - 1]

    once = 'obligations = { remember = ["once", "tool_always"], max_calls = 1 }\n'
    queue = Queue(rules("ask", once), person)

    async def change():
        if stricter:
            text = RULES.format("ask").replace("calls", "stricter")
            queue.host.core.pipeline.policy = Policy.of(read_layers(text, "user"))

    found = await queue.around(change, run=queue.host.run())

    assert stricter == isinstance(found, Denied)
    assert (2 if stricter else 1) == len(asked)
    assert (["first"] if stricter else ["first", "second"]) == queue.done


@pytest.mark.covers("hostkernel.limits.judged-again")
async def test_a_run_that_ended_meanwhile_sends_nothing():
    """Ours: what was let through in it waited for its place."""
    queue = Queue(rules("allow"))
    run = queue.host.run()

    async def change():
        run.end()

    found = await queue.around(change, run=run)

    assert isinstance(found, Exhausted)
    assert ["first"] == queue.done


@pytest.mark.covers("hostkernel.limits.judged-again")
@pytest.mark.parametrize("policy", ["once", "allow", "counted"])
async def test_a_call_that_waited_is_done_where_nothing_changed(policy):
    """Ours: a yes for this once is asked for once, and a count that it used itself is none against it."""
    person = says(Decision(verdict="allow", by="ada"))
    chosen = {
        "once": make_asking_policy(),
        "allow": rules("allow"),
        "counted": rules("allow", "obligations = { max_calls = 2 }\n"),
    }[policy]
    queue = Queue(chosen, person)

    async def change():
        pass

    assert not isinstance(await queue.around(change), Exception)
    assert (2 if policy == "once" else 0) == len(person.asked)
    assert ["first", "second"] == queue.done
