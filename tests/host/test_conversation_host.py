"""A conversation through a whole host: policy, consent, labels and the audit log see each call."""

import pytest

from isthmus import Server
from isthmus.host.chat.conversation import Conversation
from isthmus.host.host import Host
from isthmus.host.providers.scripted import Scripted
from isthmus.host.turns import Ended, Question, ToolDone
from isthmus.wire import ToolUseContent


def trips():
    """A server with a tool that changes something."""
    server = Server("trips")

    @server.tool
    def book(day: str) -> str:
        """Book a day."""
        return f"booked {day}"

    return server


async def turn(approver):
    """What happens when the model books a day: the events, the host's audit rows, the labels."""
    host = Host(approver=approver)
    host.add("trips", trips())
    async with host:
        use = ToolUseContent(id="1", name="trips__book", input={"day": "May 1"})
        talk = Conversation(host, Scripted([use, "Well."]), "m")
        events = [event async for event in talk.say("book May 1")]
        rows = await host.view.audit_tail()
        return events, [row for row in rows if row.run == talk.run.id], talk.run.labels


@pytest.mark.covers("hostchat.talk.asked")
async def test_a_person_is_asked_about_what_the_model_wants():
    """Ours: the question is an event of the turn, the call is written down, its labels stay."""
    asked = []

    def yes(interaction):
        asked.append((interaction.attempt.object, dict(interaction.payload.arguments)))
        return True

    events, rows, labels = await turn(yes)

    assert [("book", {"day": "May 1"})] == asked
    assert ["book"] == [e.interaction.attempt.object for e in events if isinstance(e, Question)]
    assert [False] == [e.failed for e in events if isinstance(e, ToolDone)]
    assert ["intent", "outcome"] == [r.kind for r in rows if r.kind in {"intent", "outcome"}]
    assert "untrusted" in labels


async def test_no_is_told_to_the_model_and_nothing_is_sent():
    """Ours: a call that was denied has no intent in the audit log."""
    events, rows, _ = await turn(lambda _interaction: False)

    done = next(e for e in events if isinstance(e, ToolDone))
    assert (True, "Denied") == (done.failed, done.error)
    assert "was not allowed" in done.result.content[0].text
    assert "intent" not in {row.kind for row in rows}
    assert "done" == next(e for e in events if isinstance(e, Ended)).why


def growing():
    """A server with a tool that makes another one."""
    server = Server("shop")

    async def price() -> str:
        """The price."""
        return "three"

    @server.tool
    async def unlock() -> str:
        """Make another tool."""
        server.tool(price)
        return "there is price now"

    return server


@pytest.mark.covers("hostchat.catalog.appeared")
async def test_a_tool_that_has_only_just_appeared_can_be_called_at_once():
    """Ours: a result told the model of it, and its server tells the host beside that, or later."""
    host = Host(approver=lambda _interaction: True)
    host.add("shop", growing())
    async with host:
        unlock = ToolUseContent(id="1", name="shop__unlock", input={})
        price = ToolUseContent(id="2", name="shop__price", input={})
        talk = Conversation(host, Scripted([unlock, price, "Three."]), "m")
        events = [event async for event in talk.say("what does it cost?")]

    assert [False, False] == [e.failed for e in events if isinstance(e, ToolDone)]
    assert "done" == next(e for e in events if isinstance(e, Ended)).why


@pytest.mark.covers("hostchat.catalog.appeared")
@pytest.mark.parametrize("name", [("shop__price", ""), ("price", "shop")])
async def test_a_program_calls_a_tool_that_has_only_just_appeared(name):
    """Ours: by its name in the catalog, and by its server's."""
    tool, server = name
    host = Host(approver=lambda _interaction: True)
    host.add("shop", growing())
    async with host:
        await host.call("shop__unlock")
        result = await host.call(tool, server=server)

    assert "three" == result.text
