"""T30: a server that always asks for more."""

import pytest

from isthmus import Client
from isthmus.auth import MemoryTokenStore, OAuth
from isthmus.errors import ScopeShortfall
from support.auth.oauth_town import TownBrowser, open_town


class Greedy(dict):
    """Takes another scope each time it is looked at."""

    def get(self, name, _default=None):
        if name != "write":
            return set()
        self["write"] = self.setdefault("write", set()) | {f"more{len(self.get('asked', ()))}"}
        self.count = getattr(self, "count", 0) + 1
        return {f"more{self.count}"}


@pytest.mark.covers("auth.threat.t30-scope-phishing", "auth.client.step-up")
async def test_it_opens_the_browser_twice_at_most():
    """Ours: and not again when the call is made again."""
    browser = TownBrowser()
    auth = OAuth(open_browser=browser, store=MemoryTokenStore())
    async with open_town() as here, Client(here.url, auth=auth) as client:
        here.needs = Greedy()
        for _ in range(3):
            with pytest.raises(ScopeShortfall, match="after 2 attempt"):
                await client.call_tool("write")
        assert 1 + 2 == len(browser.visited)
        assert "hello" == (await client.call_tool("hello")).text


async def test_it_stops_where_nothing_was_gained():
    """Ours: a user who grants no more is not asked again."""
    browser = TownBrowser()
    auth = OAuth(open_browser=browser, store=MemoryTokenStore())
    async with open_town() as here:
        here.authority.grants = lambda _scopes: frozenset({"read"})
        async with Client(here.url, auth=auth) as client:
            here.needs = {"write": {"admin"}}
            with pytest.raises(ScopeShortfall, match="granted nothing new") as caught:
                await client.call_tool("write")
    assert 2 == len(browser.visited)
    assert frozenset({"admin"}) == caught.value.missing


async def test_scopes_that_are_there_are_not_asked_for():
    """Ours: a server that refuses what it has itself granted asks for nothing that would help."""
    browser = TownBrowser()
    auth = OAuth(open_browser=browser, store=MemoryTokenStore())
    async with open_town() as here, Client(here.url, auth=auth) as client:
        issued = here.authority.tokens
        here.needs = {"write": {"read"}}
        for token in issued:
            issued[token] = frozenset()
        with pytest.raises(ScopeShortfall, match="were granted already"):
            await client.call_tool("write")
    assert 1 == len(browser.visited)
