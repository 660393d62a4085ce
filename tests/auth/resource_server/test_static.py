"""Fixed tokens, and several issuers side by side."""

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.auth.resource_server.credentials import is_token
from isthmus.auth.resource_server.jwt import JWTVerifier
from isthmus.auth.resource_server.verifier import ByIssuer, Presented, StaticTokens
from isthmus.auth.tokens.jose import PrivateKey, sign_jwt
from isthmus.auth.tokens.secret import Secret, name_token
from isthmus.core.principal import Principal
from isthmus.errors import UsageError
from support.profiling import profile_calls

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


tokens = st.text("ab-", max_size=3) | st.text(max_size=3)


@given(st.dictionaries(tokens, st.integers(0, 3), max_size=8), st.lists(tokens, max_size=8))
async def test_looking_a_token_up_finds_what_comparing_it_with_each_finds(known, asked):
    """Ours: a table is faster than a loop, and nothing else."""
    people = {token: Principal(issuer="static", subject=str(n)) for token, n in known.items()}
    verifier = StaticTokens(people)
    for token in [*known, *asked]:
        compared = [one for name, one in people.items() if hmac.compare_digest(
            name.encode("utf-8", "surrogatepass"), token.encode("utf-8", "surrogatepass")
        )]  # fmt: skip
        found = await verifier.verify(present_token(token), RESOURCE)
        assert compared == ([] if found is None else [found])
        sendable = is_token(token.encode("utf-8", "surrogatepass"))
        assert verifier.recall(name_token(token), RESOURCE) is (found if sendable else None)


@pytest.mark.parametrize("token", ["token-7", "unknown", "token-"])
def test_a_token_costs_the_same_however_many_are_known(token):
    """Ours: one look and one comparison, whether or not it is found."""
    costs = []
    for count in (10, 10_000):
        people = {f"token-{n}": Principal(issuer="static", subject=str(n)) for n in range(count)}
        verifier, calls = StaticTokens(people), []
        name = name_token(token)
        with profile_calls(lambda frame, event, function, to=calls: to.append((event, function))):
            verifier.recall(name, RESOURCE)
        costs.append((len(calls), calls.count(("c_call", hmac.compare_digest))))

    assert costs[0] == costs[1]
    assert 1 == costs[0][1]


def test_a_name_whose_beginning_is_known_is_compared_to_its_end():
    """Ours: what a table is looked up by is half of a name."""
    verifier = StaticTokens({"ada-token": ADA})
    name = name_token("ada-token")

    assert ADA is verifier.recall(name, RESOURCE)
    for at in range(len(name)):
        changed = bytearray(name)
        changed[at] ^= 1
        assert None is verifier.recall(bytes(changed), RESOURCE)
    for other in (b"", name[:16], name + b"x", bytes(32)):
        assert None is verifier.recall(other, RESOURCE)


def test_a_table_that_is_read_anew_knows_its_own_tokens_only():
    """Ours: what was taken out is over with the table that had it."""
    before = StaticTokens({"ada-token": ADA, "bob-token": ADA})
    after = StaticTokens({"bob-token": ADA})
    name = name_token("ada-token")

    assert ADA is before.recall(name, RESOURCE)
    assert None is after.recall(name, RESOURCE)


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
    with pytest.raises(UsageError, match="each token needs a Principal"):
        StaticTokens(tokens)


async def test_a_token_is_recalled_by_the_verifier_that_verified_it_and_by_no_other():
    """Ours: a token that names an issuer is never looked up in the table of those that name nobody."""
    signed = sign_token("https://one.example", KEYS["https://one.example"])
    name = name_token(signed.token)
    table = StaticTokens({signed.token: ADA, "opaque": BOB}, clock=lambda: NOW - 1)
    both = judge(other=table)

    assert None is both.recall(name, RESOURCE)
    principal = await both.verify(signed, RESOURCE)
    assert principal is both.recall(name, RESOURCE)
    assert "https://one.example" == principal.issuer
    assert None is both.recall(name, "https://other.example/mcp")

    assert None is both.recall(name_token("opaque"), RESOURCE)
    assert BOB is await both.verify(present_token("opaque"), RESOURCE)
    assert BOB is both.recall(name_token("opaque"), RESOURCE)


async def test_a_token_of_a_verifier_that_remembers_nothing_is_not_recalled():
    """Ours: one of an author's own is asked each time."""

    class Own:
        async def verify(self, presented, resource):
            return ADA

    both = judge(other=Own())
    assert ADA is await both.verify(present_token("opaque"), RESOURCE)
    assert None is both.recall(name_token("opaque"), RESOURCE)
