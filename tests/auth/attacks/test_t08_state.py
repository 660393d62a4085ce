"""T8: callbacks that nobody has asked for."""

from urllib.parse import urlencode

import aiohttp
import pytest

from isthmus import Client
from isthmus.auth import ByHand, MemoryTokenStore, OAuth
from isthmus.errors import AuthUnsafe
from support.auth.oauth_town import TownBrowser, open_town


class Stray(TownBrowser):
    """A browser that is sent elsewhere before it comes back."""

    def __init__(self, *queries):
        super().__init__()
        self.queries = queries
        self.strays = []

    async def __call__(self, url):
        self.visited.append(url)
        asked = self.params()
        async with aiohttp.ClientSession() as session:
            for query in self.queries:
                where = f"{asked['redirect_uri']}?{query.format(**asked)}"
                async with session.get(where) as page:
                    self.strays.append((page.status, await page.text()))
        self.visited.pop()
        await super().__call__(url)


@pytest.mark.covers("auth.threat.t08-state-forgery", "auth.client.state-checked")
async def test_a_stray_callback_is_refused_and_the_right_one_succeeds():
    """The spec: what has another state is discarded; the first one's code goes nowhere."""
    browser = Stray(
        "code=stolen&state=guessed",
        "code=stolen",
        "error=access_denied&state=",
        "code=stolen&state={state}&state={state}",
        "code=a&code=b&state={state}",
        urlencode([("state", "x")] * 60),
    )
    async with open_town() as here:
        auth = OAuth(open_browser=browser, store=MemoryTokenStore())
        async with Client(here.url, auth=auth) as client:
            assert "hello" == (await client.call_tool("hello")).text
        assert 1 == len(here.authority.forms)
        assert "stolen" != here.authority.forms[0]["code"]
    assert {400} == {status for status, _ in browser.strays}
    assert "stolen" not in "".join(text for _, text in browser.strays)
    assert [200] == [status for status, _ in browser.answers]


@pytest.mark.covers("auth.client.state-checked")
async def test_an_address_that_was_brought_by_hand_has_our_state_too():
    """The spec: or it is thrown away."""

    async def visit(_url):
        return "https://app.example/callback?code=stolen&state=guessed"

    auth = OAuth(redirect=ByHand("https://app.example/callback", visit), store=MemoryTokenStore())
    async with open_town() as here:
        with pytest.raises(AuthUnsafe, match="a state that is not the one of this login"):
            await Client(here.url, auth=auth).open()
        assert [] == here.authority.forms
