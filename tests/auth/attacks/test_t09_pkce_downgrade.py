"""T9, the client's half: an authorization server that does not say it checks S256."""

import pytest

from isthmus import Client
from isthmus.auth import Compat, MemoryTokenStore, OAuth
from isthmus.errors import AuthUnsafe
from support.auth.oauth_town import TownBrowser, open_town


@pytest.mark.covers("auth.client.pkce-must-be-listed", "auth.threat.t09-pkce-downgrade")
@pytest.mark.parametrize("listed", [None, [], ["plain"]])
async def test_no_browser_is_opened_without_s256(listed):
    """The spec: clients MUST refuse."""
    browser = TownBrowser()
    async with open_town() as here:
        if listed is None:
            del here.authority.metadata["code_challenge_methods_supported"]
        else:
            here.authority.metadata["code_challenge_methods_supported"] = listed
        auth = OAuth(open_browser=browser, store=MemoryTokenStore())
        with pytest.raises(AuthUnsafe, match="code_challenge_methods_supported"):
            await Client(here.url, auth=auth).open()
        assert [] == here.authority.registered
    assert [] == browser.visited


@pytest.mark.parametrize(("listed", "goes_on"), [(None, True), (["plain"], False)])
async def test_a_server_that_is_known_to_check_it_may_be_named(listed, goes_on):
    """Ours: for those that forget to say so; not for those that say they do not."""
    browser = TownBrowser()
    async with open_town() as here:
        metadata = here.authority.metadata
        metadata["code_challenge_methods_supported"] = listed
        compat = Compat(assume_s256=frozenset({here.authority.issuer}))
        auth = OAuth(open_browser=browser, store=MemoryTokenStore(), compat=compat)
        if goes_on:
            async with Client(here.url, auth=auth):
                assert "S256" == browser.params()["code_challenge_method"]
        else:
            with pytest.raises(AuthUnsafe, match="code_challenge_methods_supported"):
                await Client(here.url, auth=auth).open()
