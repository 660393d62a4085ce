"""Grants without a user: the servers they ask, the scopes, how often, and who shares a token."""

import asyncio

import pytest

from isthmus import Client
from isthmus.auth import ClientCredentials
from isthmus.errors import (
    AuthError,
    AuthRefused,
    AuthUnsafe,
    DiscoveryFailed,
    ScopeShortfall,
    UsageError,
)
from support.auth.oauth_town import open_machine_town, take_machine_grants


@pytest.fixture
async def place():
    """A town whose authorization server gives machines what they ask for."""
    async with open_machine_town() as here:
        yield here


def job(**more):
    """A machine with a secret."""
    return ClientCredentials("job", secret="the-secret-of-the-job", **more)


async def test_a_client_works_without_anybody_being_asked(place):
    """Ours: the challenge leads to the authorization server, and the token to the tools."""
    async with Client(place.url, auth=job()) as client:
        result = await client.call_tool("hello")

    assert "hello" == result.text
    assert [] == place.authority.asked
    assert [] == place.authority.registered
    assert {"client_credentials": 1} == place.authority.counts


@pytest.mark.covers("auth.client.resource-always")
async def test_the_resource_is_in_every_token_request(place):
    """C13: whether or not the authorization server knows about it, and also for the next token."""
    place.authority.life = 1e-6  # over before it is used, however fast the machine is
    async with Client(place.url, auth=job()) as client:
        await client.call_tool("hello")
        await client.call_tool("hello")

    assert {place.url} == {form["resource"] for form in place.authority.forms}
    assert 1 < len(place.authority.forms)


@pytest.mark.parametrize(
    ("own", "challenged", "listed", "expected"),
    [
        (None, "read", ["write"], "read"),
        (None, "", ["read", "write"], "read write"),
        (None, "", None, None),
        (["own"], "read", None, "own read"),
        (["own"], "", ["write"], "own"),
    ],
)
async def test_scopes_are_the_servers_unless_the_program_has_its_own(
    place, own, challenged, listed, expected
):
    """C27: the challenge's, else the resource's, else none; what the program names is added."""
    place.scope = challenged
    if listed is not None:
        place.resource["scopes_supported"] = listed
    async with Client(place.url, auth=job(scopes=own)):
        pass

    assert expected == place.authority.forms[0].get("scope")


@pytest.mark.parametrize("nonsense", ["\ud800", "a b", "", "x\r\ny", 'say "yes"', "ä"])
async def test_what_is_no_scope_is_not_asked_for(place, nonsense):
    """RFC 6749 3.3: what a server lists and is no scope goes nowhere, and breaks nothing."""
    place.scope = ""
    place.resource["scopes_supported"] = [nonsense, "read"]
    async with Client(place.url, auth=job()) as client:
        await client.call_tool("hello")

    assert ["read"] == [form["scope"] for form in place.authority.forms]


async def test_many_calls_wait_for_one_token(place):
    """Ours: one flight for everybody, and the next client goes on with what it brought."""
    auth = job()
    async with Client(place.url, auth=auth) as one, Client(place.url, auth=auth) as two:
        await asyncio.gather(*(c.call_tool("hello") for c in (one, two) for _ in range(10)))
    async with Client(place.url, auth=auth) as three:
        await three.call_tool("hello")

    assert {"client_credentials": 1} == place.authority.counts


async def test_a_token_that_was_revoked_is_replaced_once(place):
    """Ours: a 401 with a token leads to one new one."""
    async with Client(place.url, auth=job()) as client:
        await client.call_tool("hello")
        place.revoked |= set(place.authority.tokens)
        await client.call_tool("hello")

    assert {"client_credentials": 2} == place.authority.counts


async def test_a_server_that_takes_no_token_is_not_asked_for_ever(place):
    """Ours: after a token that was just issued has done nothing, the error says who disagrees."""
    place.authority.issued = lambda _scopes: {
        "access_token": "unknown-to-the-server", "token_type": "Bearer", "refresh_token": "",
    }  # fmt: skip
    with pytest.raises(AuthRefused, match="has just issued"):
        async with Client(place.url, auth=job()):
            pass

    assert {"client_credentials": 1} == place.authority.counts


async def test_more_scopes_are_asked_for_once(place):
    """C29: a machine's step-up is one try, with the scopes of before and those of the challenge."""
    place.needs = {"write": {"write"}}
    async with Client(place.url, auth=job()) as client:
        result = await client.call_tool("write")

    assert "written" == result.text
    assert ["read", "read write"] == [form["scope"] for form in place.authority.forms]


async def test_more_scopes_that_are_not_granted_are_a_shortfall(place):
    """C29: where asking brings nothing the call fails, and the next one does not ask again."""
    place.needs = {"write": {"write"}}
    place.authority.grants = lambda _scopes: frozenset({"read"})
    async with Client(place.url, auth=job()) as client:
        for _ in range(3):
            with pytest.raises(ScopeShortfall):
                await client.call_tool("write")
        result = await client.call_tool("hello")

    assert "hello" == result.text
    assert 2 == len(place.authority.forms)


async def test_a_refusal_is_told_with_what_helps(place):
    """Ours: the code of the authorization server, and a hint; no second request."""
    place.authority.refusal = {"client_credentials": "unauthorized_client"}
    with pytest.raises(AuthRefused, match="may not use this grant") as caught:
        async with Client(place.url, auth=job()):
            pass

    assert "unauthorized_client" == caught.value.error
    assert 1 == len(place.authority.forms)


async def test_metadata_of_somebody_else_get_no_secret(place):
    """C8: machines believe no more than users do: nothing is sent where the issuer is another."""
    place.authority.metadata["issuer"] = "https://somebody-else.example"
    with pytest.raises(AuthUnsafe):
        async with Client(place.url, auth=job()):
            pass

    assert [] == place.authority.forms


@pytest.mark.parametrize("odd", [7, None, "", "\ud800", "https://", [], ["\ud800"], {"a": {}}])
async def test_metadata_may_say_anything(place, odd):
    """Ours: whatever a member holds, the client goes on or says what is wrong, by an error of ours."""
    good, told = (place.resource, place.authority.metadata), []
    for name in (*good[0], *good[1]):
        place.resource = {**good[0], name: odd} if name in good[0] else good[0]
        place.authority.metadata = {**good[1], name: odd} if name in good[1] else good[1]
        try:
            async with Client(place.url, auth=job()) as client:
                await client.call_tool("hello")
        except AuthError as error:
            told.append(str(error))

    assert [] == [line for line in told if not line.isprintable()]


async def test_metadata_without_a_token_endpoint_are_of_no_use(place):
    """Ours: the error names what is missing."""
    del place.authority.metadata["token_endpoint"]
    with pytest.raises(AuthUnsafe, match="token_endpoint"):
        async with Client(place.url, auth=job()):
            pass


async def test_an_issuer_that_was_named_is_the_only_one_asked(place):
    """Ours: with authorization_server= the resource's metadata are not looked at."""
    other = place.found("/other")
    take_machine_grants(other)
    async with Client(place.url, auth=job(authorization_server=other.issuer)):
        pass

    assert (0, 1) == (len(place.authority.forms), len(other.forms))
    assert [] == [path for _, path, _ in place.seen if "oauth-protected-resource" in path]


async def test_an_authorization_server_without_metadata_is_said(place):
    """Ours: where nobody publishes anything the client does not guess for ever."""
    place.resource["authorization_servers"] = [f"{place.origin}/nobody"]
    with pytest.raises(DiscoveryFailed, match="publishes no metadata"):
        async with Client(place.url, auth=job()):
            pass


def test_scopes_are_a_set():
    """Ours: a text in place of a set would be asked for letter by letter."""
    with pytest.raises(UsageError, match="scopes= is a set"):
        job(scopes="files:read")
