"""Calls that people make from the page of a tool: begun, waited for, stopped, and shown to their own."""

import asyncio

import pytest

from isthmus import Server
from isthmus.console.pages.tool_tries import (
    MAX_TRIES,
    MAX_TRIES_AT_ONCE,
    ToolTries,
    TooManyTries,
    find_waiting,
    make_try,
)
from isthmus.host import Host
from isthmus.host.model.interaction import Decision
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from support.event_loop import run_until

RULES = """
[[rule]]
id = "reads"
effect = "allow"
when = { action = "tool.call", tool = ["look", "hang"] }
"""


class TriedHost:
    """A host with a shop, and the calls from its pages."""

    def __init__(self):
        shop = Server("shop")
        self.cut = []
        self.hanging = False

        @shop.tool
        async def look(what: str) -> str:
            """Look at something."""
            return f"saw {what}"

        @shop.tool
        async def buy(what: str) -> str:
            """Buy something."""
            return f"bought {what}"

        @shop.tool
        async def hang() -> str:
            """Never answer."""
            self.hanging = True
            try:
                await asyncio.Event().wait()
            finally:
                self.cut.append(True)

        self.host = Host(policy=Policy.of(read_layers(RULES, "user")))
        self.host.add("shop", shop)
        self.tries = ToolTries()

    async def __aenter__(self):
        await self.host.__aenter__()
        return self

    async def __aexit__(self, *error):
        await self.tries.close()
        await self.host.__aexit__(*error)

    def make(self, tool, **arguments):
        """A call of a tool, from the browser `mine`."""
        return make_try(
            session="mine",
            server="shop",
            tool=tool,
            name=f"shop__{tool}",
            principal="user:local",
            arguments=arguments,
        )


async def test_a_call_that_ends_at_once_has_its_result():
    """Ours: the page that follows the form shows what the tool gave."""
    async with TriedHost() as tried:
        made = tried.make("look", what="it")
        await tried.tries.begin(tried.host.view, made)

    assert made.result.text == "saw it"
    assert made.seconds >= 0


async def test_a_call_that_needs_approval_goes_on_and_names_its_question():
    """Ours: the page does not hang; it leads to the card, and shows the result after a yes."""
    async with TriedHost() as tried, tried.host.view.attend("test"):
        made = tried.make("buy", what="it")
        begun = asyncio.ensure_future(tried.tries.begin(tried.host.view, made))
        await run_until(tried.host.view.pending)
        question = find_waiting(made, tried.host.view.pending())
        await tried.host.view.decide(question.id, Decision(verdict="allow", by="test"))
        await begun
        await run_until(lambda: made.seconds is not None)

    assert made.result.text == "bought it"
    assert find_waiting(made, [question]) is None


async def test_a_refusal_is_told_in_words():
    """Ours: what policy, a person or a schema says against it stands on the page."""
    async with TriedHost() as tried:
        made = tried.make("look", wrong="it")
        await tried.tries.begin(tried.host.view, made)

    assert made.result is None
    assert "schema" in made.error


async def test_a_call_can_be_stopped():
    """Ours: the upstream call is cut, and the page says so."""
    async with TriedHost() as tried:
        made = tried.make("hang")
        begun = asyncio.ensure_future(tried.tries.begin(tried.host.view, made))
        await run_until(lambda: tried.hanging)
        assert tried.tries.stop(made.id)
        await begun
        await run_until(lambda: tried.cut)

    assert made.error == "it was stopped"
    assert not tried.tries.stop(made.id)


async def test_a_call_is_shown_to_its_own_browser_only():
    """Ours: an id that somebody else has got leads to nothing."""
    async with TriedHost() as tried:
        made = tried.make("look", what="it")
        await tried.tries.begin(tried.host.view, made)

        assert tried.tries.find(made.id, "mine") is made
        assert tried.tries.find(made.id, "other") is None
        assert tried.tries.find("none", "mine") is None


async def test_calls_of_pages_are_bounded():
    """Ours: neither those under way nor those that are kept grow without end."""
    async with TriedHost() as tried:
        made = [tried.make("hang") for _ in range(MAX_TRIES_AT_ONCE)]
        begun = [asyncio.ensure_future(tried.tries.begin(tried.host.view, one)) for one in made]
        await asyncio.sleep(0)
        with pytest.raises(TooManyTries):
            await tried.tries.begin(tried.host.view, tried.make("look", what="it"))
        for one in made:
            tried.tries.stop(one.id)
        await asyncio.gather(*begun)
        kept = [tried.make("look", what=str(n)) for n in range(MAX_TRIES + 1)]
        for one in kept:
            await tried.tries.begin(tried.host.view, one)

        assert tried.tries.find(kept[0].id, "mine") is None
        assert tried.tries.find(kept[-1].id, "mine") is kept[-1]
