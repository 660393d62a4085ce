"""JWTs as access tokens: two profiles, several ways to keys, and what is remembered."""

import pytest

from isthmus.auth.resource_server.jwt import JWTVerifier
from isthmus.auth.resource_server.verifier import Presented
from isthmus.auth.tokens.jose import KeySet, PrivateKey, sign_jwt
from isthmus.auth.tokens.secret import Secret, name_token
from isthmus.errors import UsageError
from support.clock import ManualClock

ISSUER, RESOURCE, NOW = "https://login.example/", "https://mcp.example/mcp", 1_800_000_000.0
KEY = PrivateKey.generate("ES256", kid="one")
CLAIMS = {"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "client_id": "desk", "exp": NOW + 600}


def judge(clock=None, **options):
    """A verifier with one key."""
    return JWTVerifier(ISSUER, jwks=KeySet([KEY.jwk]), clock=clock or ManualClock(NOW), **options)


def present_token(typ="at+jwt", without=(), **claims):
    """A token."""
    said = {name: value for name, value in {**CLAIMS, **claims}.items() if name not in without}
    return Presented("bearer", Secret(sign_jwt(said, KEY, typ=typ)))


@pytest.mark.covers("auth.resource.audience-checked")
async def test_the_claims_of_a_token_make_its_principal():
    """RFC 9068 2.2, 4: issuer, user, client, scopes, end, and the key that it is bound to."""
    principal = await judge().verify(
        present_token(scope="a b", cnf={"jkt": "print"}, tenant="t"), RESOURCE
    )

    assert (ISSUER, "ada", "desk", {"a", "b"}, NOW + 600, "print", "t") == (
        principal.issuer,
        principal.subject,
        principal.client_id,
        principal.scopes,
        principal.expires_at,
        principal.jkt,
        principal.claims["tenant"],
    )
    assert not hasattr(principal, "token")


async def test_a_token_without_scopes_has_none():
    """RFC 9068 2.2.3: scope is there if it was asked for."""
    assert frozenset() == (await judge().verify(present_token(), RESOURCE)).scopes


@pytest.mark.parametrize(
    ("claims", "scopes", "client"),
    [
        ({"scope": "a b"}, {"a", "b"}, "desk"),
        ({"scp": "a b"}, {"a", "b"}, "desk"),
        ({"scp": ["a", "b", 7]}, {"a", "b"}, "desk"),
        ({"scope": "", "azp": "other", "client_id": None}, set(), "other"),
        ({"scp": "a", "appid": "entra", "client_id": ""}, {"a"}, "entra"),
        ({"scp": ["a"], "cid": "okta", "client_id": None}, {"a"}, "okta"),
    ],
)
async def test_providers_have_spellings_of_their_own(claims, scopes, client):
    """Ours: scope or scp, text or list; client_id or what others call it."""
    for typ in ("JWT", None, "at+jwt"):
        principal = await judge(profile="compat").verify(present_token(typ, **claims), RESOURCE)
        assert (scopes, client) == (principal.scopes, principal.client_id)


@pytest.mark.parametrize(
    "claims", [{}, {"scope": "a", "client_id": None}, {"scope": "a", "at_hash": "x"}]
)
async def test_an_id_token_is_no_access_token(claims):
    """Ours: without a type of its own, scopes and a client tell an access token."""
    assert None is await judge(profile="compat").verify(present_token("JWT", **claims), RESOURCE)


async def test_an_audience_may_have_a_name_of_its_own():
    """Ours: some issuers name audiences by no URL; then that name is what must be there."""
    verifier = judge(audience="api://files")

    assert await verifier.verify(present_token(aud=["x", "api://files"]), RESOURCE)
    assert None is await verifier.verify(present_token(), RESOURCE)
    assert await judge(audience=["a", "b"]).verify(present_token(aud="b"), RESOURCE)


async def test_a_token_is_remembered_until_it_ends_and_for_its_resource():
    """Ours: a second verification costs a microsecond, and is worth no more than the first."""
    clock = ManualClock(NOW)
    verifier, token = judge(clock), present_token()
    first = await verifier.verify(token, RESOURCE)

    assert first is await verifier.verify(token, RESOURCE)
    assert None is await verifier.verify(token, "https://other.example/mcp")
    clock.now += 629
    assert first is await verifier.verify(token, RESOURCE)
    clock.now += 1
    assert None is await verifier.verify(token, RESOURCE)


async def test_what_is_remembered_is_bounded_and_can_be_nothing():
    """Ours: memory has a limit, and who wants each token verified anew says so."""
    few, none = judge(remember=3), judge(remember=0)
    for number in range(10):
        await few.verify(present_token(jti=str(number)), RESOURCE)
        await none.verify(present_token(jti=str(number)), RESOURCE)

    assert 3 == len(few._remembered)
    assert 0 == len(none._remembered)


def test_a_mistake_in_the_settings_is_told_at_once():
    """Ours: not by the first user who cannot log in."""
    with pytest.raises(UsageError, match="no http:// or https:// URL"):
        JWTVerifier("login.example")
    with pytest.raises(UsageError, match="no public key"):
        JWTVerifier(ISSUER, jwks=[])


def test_an_issuer_with_a_query_is_a_mistake_told_at_once():
    """RFC 8414 2: it has none, and so there is nowhere to look for its keys."""
    with pytest.raises(UsageError, match="no query"):
        JWTVerifier("https://login.example/?tenant=1")


def test_a_profile_that_nobody_knows_is_refused_when_it_is_given():
    """Ours: said before the first token comes."""
    with pytest.raises(UsageError, match="'rfc9068' or 'compat', not 'keycloak'"):
        JWTVerifier("https://login.example.com", profile="keycloak")


async def test_a_token_is_recalled_once_it_was_verified_until_it_ends():
    """Ours: what is remembered is good for its resource and its time, and no longer."""
    clock = ManualClock(NOW)
    verifier, presented = judge(clock, leeway=60), present_token()
    name = name_token(presented.token)

    assert None is verifier.recall(name, RESOURCE)
    principal = await verifier.verify(presented, RESOURCE)
    assert principal is verifier.recall(name, RESOURCE)
    assert None is verifier.recall(name, "https://other.example/mcp")
    assert None is verifier.recall(name_token("another"), RESOURCE)
    clock.now = NOW + 659
    assert principal is verifier.recall(name, RESOURCE)
    clock.now = NOW + 660
    assert None is verifier.recall(name, RESOURCE)
    assert None is await verifier.verify(presented, RESOURCE)


async def test_no_token_is_recalled_that_is_not_to_be_remembered():
    """Ours: remember=0 has each request verified."""
    verifier, presented = judge(remember=0), present_token()
    assert await verifier.verify(presented, RESOURCE)
    assert None is verifier.recall(name_token(presented.token), RESOURCE)


async def test_no_more_tokens_are_recalled_than_are_to_be_remembered():
    """Ours: who sends many good ones makes us forget, and no larger."""
    verifier = judge(remember=2)
    many = [present_token(jti=str(number)) for number in range(4)]
    for presented in many:
        await verifier.verify(presented, RESOURCE)
    recalled = [verifier.recall(name_token(one.token), RESOURCE) for one in many]
    assert [False, False, True, True] == [one is not None for one in recalled]


async def test_a_token_that_was_refused_is_not_recalled():
    """Ours: only what is good is remembered."""
    verifier, presented = judge(), present_token(exp=NOW - 600)
    assert None is await verifier.verify(presented, RESOURCE)
    assert None is verifier.recall(name_token(presented.token), RESOURCE)
