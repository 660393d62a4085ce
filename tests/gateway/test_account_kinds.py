"""Kinds of accounts without a page: token exchange and identity assertions, by what the gateway says of a principal."""

import time

import pytest

from isthmus.auth.tokens.jose import PrivateKey, read_token
from isthmus.errors import IsthmusError
from isthmus.host.accounts.kinds import make_credentials
from isthmus.host.model.errors import ConfigError
from support.auth.oauth_town import take_machine_grants
from support.gateway.account_town import (
    ADA,
    BOB,
    make_account_entry,
    open_account_town,
)

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
US = {
    "clientId": "gateway",
    "clientSecret": "a-secret-of-the-gateway",
    "assertionIssuer": "https://gateway.example",
    "assertionKey": PrivateKey.generate("ES256").secret_jwk().reveal(),
}


def subjects(town):
    """The claims of the subject tokens that were exchanged."""
    forms = [form for form in town.here.authority.forms if form["grant_type"] == EXCHANGE]
    return [read_token(form["subject_token"]).claims for form in forms]


async def test_a_token_is_exchanged_for_each_principal():
    """RFC 8693: what is exchanged is the gateway's own word about the principal, for one minute."""
    async with open_account_town(kind="token-exchange", **US) as town:
        take_machine_grants(town.here.authority)
        assert ["hello", "hello"] == [await town.hello(ADA), await town.hello(BOB)]
        first, second = subjects(town)
        assert (ADA, BOB) == (first["sub"], second["sub"])
        assert ("https://gateway.example", town.here.authority.issuer) == (
            first["iss"],
            first["aud"],
        )
        assert 0 < first["exp"] - time.time() <= 60
        assert 2 == len(set(town.shown_tokens()))
        assert ("connected", "connected") == (await town.state(), await town.state(BOB))


async def test_users_of_one_issuer_may_be_named_by_their_subject():
    """Ours: and users of any other issuer are refused, since they would be taken for somebody else."""
    given = {**US, "subjectsOf": "login.example"}
    async with open_account_town(kind="token-exchange", **given) as town:
        take_machine_grants(town.here.authority)
        assert "hello" == await town.hello(ADA)
        assert ["ada"] == [claims["sub"] for claims in subjects(town)]
        with pytest.raises(IsthmusError, match=r"takes users of login\.example only"):
            await town.hello("user:ada@evil.example")
        assert 1 == len(subjects(town))


async def test_an_issuer_that_exchanges_nothing_is_an_account_that_is_refused():
    """Ours: no page can help there, and the state says it."""
    async with open_account_town(kind="token-exchange", **US) as town:
        take_machine_grants(town.here.authority)
        town.here.authority.refusal[EXCHANGE] = "invalid_grant"
        with pytest.raises(IsthmusError, match="refused a token"):
            await town.hello()
        for task in list(town.host.core.background.tasks):
            if "note_refused" in repr(task):
                await task
        assert "refused" == await town.state()


async def test_an_identity_provider_grants_access_for_each_principal():
    """ID-JAG: the gateway names the principal to the provider, and what that grants to the issuer."""
    async with open_account_town() as town:
        endpoint = town.here.authority.metadata["token_endpoint"]
    given = {**US, "idpTokenEndpoint": endpoint, "idpClientId": "us", "idpClientSecret": "x" * 20}
    async with open_account_town(kind="id-jag", **given) as town:
        authority = town.here.authority
        entry = town.host.config.servers["crm"]
        entry.options.auth["idpTokenEndpoint"] = authority.metadata["token_endpoint"]
        take_machine_grants(authority)
        issue = authority.token

        def answer(form):
            status, body = issue(form)
            if form["grant_type"] == EXCHANGE:
                body = {**body, "issued_token_type": ID_JAG, "token_type": "N_A"}
            return status, body

        authority.token = answer
        assert "hello" == await town.hello()
        assert [ADA] == [claims["sub"] for claims in subjects(town)]
        assert [EXCHANGE, BEARER] == [form["grant_type"] for form in authority.forms]


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        ({"kind": "token-exchange"}, "needs 'assertionIssuer'"),
        ({"kind": "token-exchange", **US, "assertionKey": "no key"}, "assertionKey"),
        ({"kind": "id-jag", **US}, "needs 'idpTokenEndpoint'"),
        ({"kind": "pasted-key", "header": "X Y"}, "the name of a header"),
        ({"kind": "pasted-key", "prefix": "a\r\nb"}, "the name of a header"),
    ],
)
async def test_an_entry_that_lacks_something_is_told(auth, message):
    """Ours: with the server's name and the member."""
    async with open_account_town() as town:
        entry = make_account_entry("https://crm.example/mcp", **auth)
        with pytest.raises(ConfigError, match=message) as caught:
            make_credentials(entry, ADA, town.accounts)
        assert str(caught.value).startswith("crm: ")


async def test_an_account_of_somebody_cannot_be_shared():
    """Ours: instance = "shared" and a kind that says whose it is contradict one another."""
    async with open_account_town() as town:
        entry = make_account_entry("https://crm.example/mcp", kind="pasted-key", instance="shared")
        with pytest.raises(ConfigError, match="belongs to one user"):
            make_credentials(entry, "", town.accounts)
        with pytest.raises(ConfigError, match="needs a host with accounts"):
            make_credentials(make_account_entry("https://a.example", kind="pasted-key"), ADA)
