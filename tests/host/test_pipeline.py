"""The one way: what is asked of whom, and what is left behind."""

import asyncio

import pytest

from isthmus import Server
from isthmus.errors import Refused
from isthmus.host import BadArguments, Decision, Denied, Host
from isthmus.host.config.entries import Labels
from isthmus.host.grants import STALE, Grants
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.reading import read_layers
from isthmus.host.state import HostState


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


def asking():
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
        seen.append(len(host.kernel.pipeline.flying.at("shop")))
        if fail:
            raise ValueError("broken")
        return "seen"

    host.add("shop", server)
    async with host:
        for fail in (False, True):
            await host.call("shop__look", {"fail": fail})
            assert () == host.kernel.pipeline.flying.at("shop")
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
    monkeypatch.setattr("isthmus.host.grants.EVERY", 3600)
    person = says(Decision(verdict="allow", remember="tool_always", assurance="local_ui"))
    elsewhere = HostState(tmp_path)
    host = Host(approver=person, state=tmp_path, policy=asking())
    host.add("shop", shop())
    async with host:
        grants, late = host.kernel.grants, [0.0]
        steady = grants._steady
        monkeypatch.setattr(grants, "_steady", lambda: steady() + late[0])
        await host.call("shop__buy", {"what": "tea"})
        late[0] += STALE + 1
        await host.call("shop__buy", {"what": "tea"})
        before = len(person.asked)
        others = Grants(elsewhere)
        await others.refresh()
        await others.revoke(others.all()[0].id)
        late[0] += STALE + 1
        await host.call("shop__buy", {"what": "tea"})

    await elsewhere.close()
    assert (1, 2) == (before, len(person.asked))


@pytest.mark.covers("hostpolicy.grants.revoked")
async def test_a_host_keeps_up_with_what_others_take_back(tmp_path, monkeypatch):
    """Ours: also while nothing is called."""
    monkeypatch.setattr("isthmus.host.grants.EVERY", 0.001)
    person = says(Decision(verdict="allow", remember="tool_always", assurance="local_ui"))
    host = Host(approver=person, state=tmp_path, policy=asking())
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
