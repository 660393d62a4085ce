"""Fixed tokens, and several issuers side by side."""

import pytest

from isthmus.auth.resource_server.jwt import JWTVerifier
from isthmus.auth.resource_server.verifier import ByIssuer, Presented, StaticTokens
from isthmus.auth.tokens.jose import PrivateKey, sign_jwt
from isthmus.auth.tokens.secret import Secret
from isthmus.core.principal import Principal
from isthmus.errors import UsageError

RESOURCE, NOW = "https://mcp.example/mcp", 1_800_000_000.0
ADA = Principal(issuer="static", subject="ada")
BOB = Principal(issuer="static", subject="bob", expires_at=NOW)


def present_token(token):
    return Presented("bearer", Secret(token))


async def test_a_fixed_token_has_its_principal():
    """Ours: for development; one that is known is somebody's, any other nobody's."""
    verifier = StaticTokens({"ada-token": ADA, Secret("bob-token"): BOB}, clock=lambda: NOW - 1)

    assert ADA is await verifier.verify(present_token("ada-token"), RESOURCE)
    assert BOB is await verifier.verify(present_token("bob-token"), RESOURCE)
    for other in ("", "ada-toke", "ada-token ", "ADA-TOKEN", "\ud800"):
        assert None is await verifier.verify(present_token(other), RESOURCE)
    assert await verifier.lasts(BOB)


async def test_a_fixed_token_may_end():
    """Ours: what has an end is over then."""
    verifier = StaticTokens({"ada-token": ADA, "bob-token": BOB}, clock=lambda: NOW)

    assert None is await verifier.verify(present_token("bob-token"), RESOURCE)
    assert [True, False, False] == [
        await verifier.lasts(one) for one in (ADA, BOB, Principal(issuer="static", subject="eve"))
    ]


def test_no_text_of_a_fixed_token_is_kept():
    """Ours: a dump of the process shows hashes."""
    verifier = StaticTokens({"ada-token": ADA})

    assert "ada-token" not in repr(vars(verifier))


# --- several issuers ---------------------------------------------------------------------------

KEYS = {
    name: PrivateKey.generate("ES256", kid="k")
    for name in ("https://one.example", "https://two.example")
}


def judge(**options):
    """Both issuers, each with its own key under the same name."""
    verifiers = {
        name: JWTVerifier(name, jwks=[key.jwk], clock=lambda: NOW) for name, key in KEYS.items()
    }
    return ByIssuer(verifiers, **options)


def sign_token(issuer, key):
    claims = {"iss": issuer, "aud": RESOURCE, "sub": "ada", "client_id": "c", "exp": NOW + 9}
    return present_token(sign_jwt(claims, key, typ="at+jwt"))


@pytest.mark.covers("auth.threat.t22-forged-tokens")
async def test_each_issuer_vouches_for_its_own_alone():
    """Ours: the name in a token says who judges, and no key of another issuer is tried."""
    one, two = KEYS
    for issuer, key in ((one, KEYS[one]), (two, KEYS[two])):
        assert issuer == (await judge().verify(sign_token(issuer, key), RESOURCE)).issuer
    for issuer, key in (
        (one, KEYS[two]),
        ("https://three.example", KEYS[one]),
        (7, KEYS[one]),
        ([one], KEYS[one]),
    ):
        assert None is await judge().verify(sign_token(issuer, key), RESOURCE)


async def test_an_opaque_token_is_judged_by_the_other_verifier():
    """Ours: opaque tokens have a place of their own, or none."""
    other = StaticTokens({"opaque": ADA}, clock=lambda: NOW)

    assert ADA is await judge(other=other).verify(present_token("opaque"), RESOURCE)
    assert None is await judge().verify(present_token("opaque"), RESOURCE)
    assert await judge(other=other).lasts(ADA)
    assert await judge().lasts(Principal(issuer="https://one.example", subject="ada"))


async def test_a_verifier_that_answers_for_another_issuer_is_not_believed():
    """Ours: who is asked about one issuer's token may not say it is another's."""
    wrong = ByIssuer({"https://one.example": StaticTokens({"x": ADA})})

    class Lying:
        async def verify(self, presented, resource):
            return ADA

    assert None is await wrong.verify(
        sign_token("https://one.example", KEYS["https://one.example"]), RESOURCE
    )
    lying = ByIssuer({"https://one.example": Lying()})
    assert None is await lying.verify(
        sign_token("https://one.example", KEYS["https://one.example"]), RESOURCE
    )


@pytest.mark.parametrize(
    "tokens",
    [{"t"}, {"t": "ada"}, {"t": Principal(issuer="ours", subject="ada", scopes="files:read")}],
)
def test_a_fixed_token_is_somebodys(tokens):
    """Ours: said when it is given, and not by a 500 to whoever presents the token."""
    with pytest.raises(UsageError, match="each token is somebody's"):
        StaticTokens(tokens)
