"""T31: a server that names another authorization server, to get what the first one gave."""

import pytest

from isthmus import Client
from isthmus.auth import ClientCredentials, MemoryTokenStore, OAuth, Secret, Tokens
from isthmus.auth.client.registration import StaticClient
from isthmus.errors import IssuerChanged
from support.auth.oauth_town import TownBrowser, open_machine_town, open_town, take_machine_grants


@pytest.mark.covers("auth.threat.t31-server-change", "auth.client.credentials-by-issuer")
@pytest.mark.parametrize("restart", [False, True])
async def test_the_new_one_sees_nothing_of_the_old_one(restart):
    """The spec: neither client id, nor secret, nor any token; also after a restart."""
    store = MemoryTokenStore()
    auth = OAuth(open_browser=TownBrowser(), store=store)
    async with open_town() as here:
        first = here.authority
        first.register = lambda document: (
            201,
            {
                **document, "client_id": "first-id", "client_secret": "first-secret",
                "token_endpoint_auth_method": "client_secret_post",
            },
        )  # fmt: skip
        client = Client(here.url, auth=auth)
        await client.open()
        first_secrets = [*first.tokens, *first.refreshes, "first-id", "first-secret"]
        evil = here.found("/evil")
        evil.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post", "none"]
        here.resource["authorization_servers"] = [evil.issuer]
        here.revoked |= set(first.tokens)
        if restart:
            await client.close()
            client = Client(here.url, auth=OAuth(open_browser=TownBrowser(), store=store))
            await client.open()
        assert "hello" == (await client.call_tool("hello")).text
        await client.close()
        shown = repr([*evil.asked, *evil.forms, *evil.registered])
    assert [] == [text for text in first_secrets if text in shown]
    assert {"grant_type": "authorization_code"}.items() <= evil.forms[0].items()


async def test_a_secret_that_was_given_by_hand_goes_nowhere_else():
    """The spec: an error rather than a mismatched credential."""
    async with open_town() as here:
        clients = {here.authority.issuer: StaticClient("by-hand", secret="hand-secret")}
        auth = OAuth(open_browser=TownBrowser(), store=MemoryTokenStore(), clients=clients)
        async with Client(here.url, auth=auth) as client:
            evil = here.found("/evil")
            here.resource["authorization_servers"] = [evil.issuer]
            here.revoked |= set(here.authority.tokens)
            with pytest.raises(IssuerChanged):
                await client.call_tool("hello")
        assert [] == evil.asked == evil.forms == evil.registered


@pytest.mark.covers("auth.threat.t31-server-change")
async def test_the_secret_of_a_machine_stays_with_the_server_that_took_it():
    """The spec: credentials belong to one authorization server, whatever a server names later."""
    job = ClientCredentials("job", secret="the-secret-of-the-job")
    async with open_machine_town() as here, Client(here.url, auth=job) as client:
        evil = here.found("/evil")
        take_machine_grants(evil)
        here.resource["authorization_servers"] = [evil.issuer]
        here.revoked |= set(here.authority.tokens)
        with pytest.raises(IssuerChanged, match="the secret of 'job' is that of"):
            await client.call_tool("hello")
        here.resource["authorization_servers"] = [here.authority.issuer]
        assert "hello" == (await client.call_tool("hello")).text
    assert [] == evil.forms


@pytest.mark.covers("auth.threat.t31-server-change")
async def test_a_server_below_another_logs_nobody_out_of_that():
    """Ours: the other's tokens were tried here, since they cover it; they stay the other's."""
    store = MemoryTokenStore()
    async with open_town() as here:
        above = Tokens(
            access=Secret("of-the-one-above"), issuer="https://login.example", client_id="c",
            resource=here.origin, refresh=Secret("refresh-of-the-one-above"),
        )  # fmt: skip
        await store.put(above.key, above)
        async with Client(here.url, auth=OAuth(open_browser=TownBrowser(), store=store)) as client:
            assert "hello" == (await client.call_tool("hello")).text
    assert above == await store.get(above.key)
