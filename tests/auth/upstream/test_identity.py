"""Tests of who a provider's user is found to be."""

import time

import msgspec
import pytest

from isthmus.auth.authorization_server.upstream.api import UpstreamDenied, UpstreamUnavailable
from isthmus.auth.authorization_server.upstream.identity import identify, is_token_alive, make_user
from isthmus.auth.authorization_server.upstream.provider import Endpoints
from isthmus.auth.authorization_server.users.users import User
from isthmus.auth.tokens.secret import Secret
from support.auth.upstream_flow import log_in_user, make_upstream
from support.auth.upstream_provider import UpstreamProvider


async def test_an_id_token_identifies_the_user(remote, acme):
    """Ours: OpenID Connect: the subject, and what to call them."""
    tokens, told, nonce = await log_in_user(remote, acme)

    assert ("id-of-alice", "Alice") == await identify(acme, tokens, told, nonce)


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "another-client"},
        {"aud": ["our-static-id", "another-client"]},
        {"aud": ["our-static-id", "another-client"], "azp": "another-client"},
        {"exp": time.time() - 3600},
        {"exp": None},
        {"nonce": "another"},
        {"nonce": None},
        {"nonce": 5},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "x" * 256},
    ],
)
async def test_an_id_token_with_a_wrong_claim_is_refused(remote, acme, claims):
    """Ours: OpenID Connect Core 3.1.3.7, claim by claim."""
    remote.claims = claims
    tokens, told, nonce = await log_in_user(remote, acme)

    with pytest.raises(UpstreamDenied):
        await identify(acme, tokens, told, nonce)


async def test_an_id_token_signed_by_another_key_is_refused(remote, acme):
    """Ours: the keys are those of the provider's metadata."""
    from joserfc import jwt
    from joserfc.jwk import ECKey

    tokens, told, nonce = await log_in_user(remote, acme)
    key = ECKey.generate_key("P-256")
    claims = {
        "iss": remote.url,
        "sub": "id-of-admin",
        "aud": remote.client_id,
        "exp": int(time.time()) + 300,
        "nonce": nonce.reveal(),
    }
    forged = jwt.encode({"alg": "ES256"}, claims, key)

    with pytest.raises(UpstreamDenied):
        await identify(acme, tokens, {**told, "id_token": forged}, nonce)


async def test_a_missing_id_token_is_refused(remote, acme):
    """Ours: where we asked for one, leaving it out is no way around its checks."""
    tokens, told, nonce = await log_in_user(remote, acme)
    told = {name: value for name, value in told.items() if name != "id_token"}

    with pytest.raises(UpstreamDenied):
        await identify(acme, tokens, told, nonce)


async def test_without_openid_user_info_identifies_the_user(remote, clock):
    """Ours: a provider with userinfo and no ID tokens."""
    provider = make_upstream(remote, clock, scopes=["files"])
    tokens, told, nonce = await log_in_user(remote, provider)

    assert ("id-of-alice", "Alice") == await identify(provider, tokens, told, nonce)
    await provider.close()


def github(remote, clock, **more):
    """A provider of bare endpoints, whose API says who somebody is."""

    async def user_id(api):
        return (await api.json("/user"))["login"]

    endpoints = Endpoints(authorize=f"{remote.url}/authorize", token=f"{remote.url}/token")
    return make_upstream(
        remote,
        clock,
        **{"issuer": None, "endpoints": endpoints, "scopes": ["repo"], "user_id": user_id, **more},
    )


async def test_without_openid_a_function_identifies_the_user(clock):
    """Ours: as with GitHub, by an Upstream with the new token."""
    async with UpstreamProvider(oidc=False) as remote:
        provider = github(remote, clock)
        tokens, told, nonce = await log_in_user(remote, provider)

        assert ("alice", "") == await identify(provider, tokens, told, nonce)
        assert [tokens.access.reveal()] == remote.bearers
        await provider.close()


async def test_a_function_that_fails_says_nothing_about_the_user(clock):
    """Ours: an API that is down lets nobody in, and ends nobody's login."""
    async with UpstreamProvider(oidc=False) as remote:
        provider = github(remote, clock)
        tokens, told, nonce = await log_in_user(remote, provider)
        remote.api_status = 502

        with pytest.raises(UpstreamUnavailable):
            await identify(provider, tokens, told, nonce)
        await provider.close()


async def test_a_provider_that_identifies_nobody_is_refused_with_advice(clock):
    """Ours: without openid, userinfo or user_id= a login has no user."""
    async with UpstreamProvider(oidc=False) as remote:
        provider = github(remote, clock, user_id=None)
        tokens, told, nonce = await log_in_user(remote, provider)

        with pytest.raises(UpstreamDenied, match="give the provider user_id="):
            await identify(provider, tokens, told, nonce)
        assert ("", "") == await identify(provider, tokens, told, nonce, required=False)
        await provider.close()


async def test_whether_a_token_is_alive_is_asked_by_introspection_first(remote, acme):
    """Ours: RFC 7662 where it is offered."""
    tokens, _, _ = await log_in_user(remote, acme)

    assert await is_token_alive(acme, tokens)
    remote.revoke_all()
    assert not await is_token_alive(acme, tokens)
    assert 2 == remote.count("POST /introspect")


async def test_whether_a_token_is_alive_is_asked_by_the_function_else(clock):
    """Ours: an API that refuses the token has ended the login; another user's is not this one."""
    async with UpstreamProvider(oidc=False) as remote:
        provider = github(remote, clock)
        tokens, _, _ = await log_in_user(remote, provider)

        assert await is_token_alive(provider, tokens)
        remote.revoke_all()
        assert not await is_token_alive(provider, tokens)
        await provider.close()


async def test_a_token_of_another_user_is_not_alive_for_this_one(clock):
    """Ours: a provider that honours it, but for somebody else, does not honour this login."""
    async with UpstreamProvider(oidc=False) as remote:
        provider = github(remote, clock)
        tokens, told, nonce = await log_in_user(remote, provider)
        subject, _ = await identify(provider, tokens, told, nonce)

        assert await is_token_alive(provider, msgspec.structs.replace(tokens, subject=subject))
        assert not await is_token_alive(
            provider, msgspec.structs.replace(tokens, subject="mallory")
        )
        await provider.close()


def test_users_of_two_providers_are_never_the_same(acme, remote, clock):
    """Ours: (issuer, subject) is who somebody is."""
    other = make_upstream(remote, clock, issuer="https://other.example")

    assert make_user(acme, "7", "A").id != make_user(other, "7", "A").id
    assert User(id=f"{remote.url}|7", name="A") == make_user(acme, "7", "A")
    assert 255 >= len(make_user(acme, "7" * 255, "").id)


async def test_the_nonce_of_a_login_is_its_own(remote, acme):
    """Ours: an ID token of another login is not taken."""
    tokens, told, _ = await log_in_user(remote, acme)

    with pytest.raises(UpstreamDenied):
        await identify(acme, tokens, told, Secret.random())


@pytest.mark.parametrize("status", [403, 404, 429])
async def test_a_page_in_place_of_the_user_info_endpoint_ends_no_login(remote, clock, status):
    """RFC 6750 3.1: a token that is over is a 401; anything else may be a proxy's page."""
    endpoints = Endpoints(
        authorize=f"{remote.url}/authorize",
        token=f"{remote.url}/token",
        userinfo=f"{remote.url}/userinfo",
    )
    provider = make_upstream(remote, clock, issuer=None, endpoints=endpoints, scopes=["files"])
    tokens, _, _ = await log_in_user(remote, provider)
    remote.fault = status

    with pytest.raises(UpstreamUnavailable):
        await is_token_alive(provider, tokens)
    await provider.close()
