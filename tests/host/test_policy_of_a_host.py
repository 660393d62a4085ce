"""Policy and grants where they are used: in a host with servers in the same process."""

import pytest

from isthmus import Server
from isthmus.host import Decision, Denied, Host, Policy
from isthmus.host.approvals.grants import Grants
from isthmus.host.model.entries import Labels
from isthmus.host.model.events import HostNotice, QuestionAnswered
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.state.database import HostState


def notes():
    """A server that keeps notes, and tells them."""
    server = Server("notes")

    @server.tool
    async def add(text: str) -> str:
        return text

    return server


def make_host(approver, **options):
    """A host with that server."""
    host = Host(approver=approver, **options)
    host.add("notes", notes())
    return host


def person(answer):
    """Answers each question, and keeps what was asked."""
    asked = []

    async def approver(interaction):
        asked.append(interaction)
        return answer

    approver.asked = asked
    return approver


ONCE = """
[[rule]]
id = "careful"
effect = "ask"
obligations = { remember = ["once"] }
"""
ALL = '[[rule]]\nid = "all"\neffect = "allow"\nwhen = { action = "*" }\n'


@pytest.mark.covers("hostpolicy.grants.no-override")
async def test_a_yes_lasts_no_longer_than_a_rule_lets_it():
    """Ours: whatever a surface makes of it, and also once the rule is gone."""
    asks = person(Decision(verdict="allow", remember="tool_always"))
    async with make_host(asks, policy=Policy.of(read_layers(ONCE, "user"))) as host:
        await host.call("notes__add", {"text": "a"})
        await host.call("notes__add", {"text": "a"})

        assert 2 == len(asks.asked)
        assert [] == list(await host.view.grants())


async def test_a_yes_that_holds_for_less_than_it_says_is_told():
    """Ours: whoever says yes for a session learns that the policy offers none."""
    async with make_host(person(Decision(verdict="allow", remember="session", by="me"))) as host:
        events = host.events()
        await host.call("notes__add", {"text": "a"})
        told = [event.text async for event in until_told(events) if isinstance(event, HostNotice)]

    assert [
        (
            "the yes of me to tool.call 'add' holds once, not for session: the rule changes offers "
            "once, arguments, shape, tool_run, tool_always"
        )
    ] == told


async def until_told(events):
    """What happens, until a question is answered."""
    async for event in events:
        yield event
        if isinstance(event, QuestionAnswered):
            return


@pytest.mark.covers("hostpolicy.grants.always")
async def test_the_policy_without_any_configuration_offers_always_this_tool(tmp_path):
    """Ours: with any arguments, also in the next session, until the tool is another one."""
    asks = person(Decision(verdict="allow", remember="tool_always"))
    for text in ("a", "b"):
        async with make_host(asks, state=tmp_path) as host:
            await host.call("notes__add", {"text": text})

    assert 1 == len(asks.asked)


@pytest.mark.covers("hostpolicy.grants.revoked")
async def test_what_another_process_takes_back_is_asked_again(tmp_path):
    """Ours: as soon as the host looks, which it does all the time."""
    asks = person(Decision(verdict="allow", remember="session"))
    other = HostState(tmp_path)
    async with make_host(asks, policy=Policy.of([]), state=tmp_path) as host:
        await host.call("notes__add", {"text": "a"})
        await host.call("notes__add", {"text": "b"})
        assert 1 == len(asks.asked)

        elsewhere = Grants(other)
        await elsewhere.refresh()
        assert await elsewhere.revoke(elsewhere.all()[0].id)
        await host.grants.refresh()
        await host.call("notes__add", {"text": "c"})
        assert 2 == len(asks.asked)
    await other.close()


@pytest.mark.covers("hostpolicy.labels.guard", "hostpolicy.labels.taken")
async def test_what_a_run_has_read_decides_what_it_may_send():
    """Ours: over a rule that allows everything; in a run of its own the same call goes through."""
    asks = person(Decision(verdict="deny"))
    host = Host(approver=asks, policy=Policy.of(read_layers(ALL, "user")))
    host.add("files", notes(), labels=Labels(reads=("private",)))
    host.add("mail", notes(), labels=Labels(egress=True))
    async with host:
        with host.run() as run:
            await host.call("mail__add", {"text": "before"}, run=run)
            await host.call("files__add", {"text": "secret"}, run=run)
            with pytest.raises(Denied):
                await host.call("mail__add", {"text": "secret"}, run=run)
        await host.call("mail__add", {"text": "elsewhere"})

    assert ["data-flow"] == [one.trace.rule for one in asks.asked]
    assert (
        "untrusted: tool.call 'add' of 'mail'",
        "private: tool.call 'add' of 'files'",
        "egress: tool.call 'add' of 'mail' sends it out",
    ) == asks.asked[0].trace.chain


@pytest.mark.covers("hostpolicy.broken.locked-down")
async def test_a_host_whose_policy_cannot_be_read_does_next_to_nothing(tmp_path):
    """Ours: it starts, and says what is wrong, and a tool that may change something is denied."""
    asks = person(Decision(verdict="allow"))
    async with make_host(asks, policy=tmp_path / "gone.toml") as host:
        assert "gone.toml cannot be read" in host.policy.policy.broken[0]
        with pytest.raises(Denied, match="locked down"):
            await host.call("notes__add", {"text": "a"})

    assert [] == asks.asked
