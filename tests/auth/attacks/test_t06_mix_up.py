"""T6: an authorization server that has users log in at another one, to get the code."""

import pytest

from isthmus import Client
from isthmus.auth import MemoryTokenStore, OAuth
from isthmus.errors import AuthUnsafe
from support.auth.oauth_town import TownBrowser, open_town


def oauth(browser):
    return OAuth(open_browser=browser, store=MemoryTokenStore())


@pytest.mark.covers(
    "auth.threat.t06-mix-up", "auth.client.iss-compared", "auth.client.issuer-recorded"
)
async def test_a_code_of_the_honest_server_is_never_posted_to_the_other():
    """The spec: the answer says who it is from, and the code stays here where that is another."""
    browser = TownBrowser()
    async with open_town() as here:
        honest, attacker = here.authority, here.found("/attacker")
        attacker.metadata["authorization_endpoint"] = honest.metadata["authorization_endpoint"]
        here.resource["authorization_servers"] = [attacker.issuer]
        with pytest.raises(AuthUnsafe, match="the answer to the login is not from"):
            await Client(here.url, auth=oauth(browser)).open()
    assert 1 == len(honest.asked)
    assert [] == attacker.forms == honest.forms


@pytest.mark.covers("auth.client.iss-compared", "auth.client.iss-byte-exact")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda iss: iss + "/",
        lambda iss: iss.replace("http", "HTTP"),
        lambda iss: iss.replace("127.0.0.1", "127.0.0.01"),
        lambda iss: iss.replace("1", "%31", 1),
        lambda iss: "",
    ],
)
@pytest.mark.parametrize("advertised", [True, False])
async def test_an_issuer_that_is_nearly_right_is_wrong(spoil, advertised):
    """The spec: compared letter by letter, whether or not it was advertised."""
    async with open_town() as here:
        here.authority.metadata["authorization_response_iss_parameter_supported"] = advertised
        here.authority.response = lambda p: {**p, "iss": spoil(p["iss"])}
        with pytest.raises(AuthUnsafe, match="is not from"):
            await Client(here.url, auth=oauth(TownBrowser())).open()
        assert [] == here.authority.forms


@pytest.mark.covers("auth.client.iss-compared")
async def test_an_issuer_that_was_promised_and_is_missing_ends_it():
    """The spec: reject; where none was promised, go on."""
    async with open_town() as here:
        here.authority.response = lambda p: {k: v for k, v in p.items() if k != "iss"}
        with pytest.raises(AuthUnsafe, match="does not say that it is from"):
            await Client(here.url, auth=oauth(TownBrowser())).open()
        assert [] == here.authority.forms
        del here.authority.metadata["authorization_response_iss_parameter_supported"]
        async with Client(here.url, auth=oauth(TownBrowser())) as client:
            assert "hello" == (await client.call_tool("hello")).text


@pytest.mark.covers("auth.client.metadata-issuer-same")
async def test_metadata_of_another_issuer_are_not_used():
    """The spec: none of their endpoints."""
    browser = TownBrowser()
    async with open_town() as here:
        here.authority.metadata["issuer"] = "https://honest.example"
        with pytest.raises(AuthUnsafe, match="none of their endpoints is used"):
            await Client(here.url, auth=oauth(browser)).open()
        assert [] == browser.visited
        assert [] == here.authority.registered
