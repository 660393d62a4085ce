"""T22: tokens that are signed otherwise than agreed, or that are meant for something else."""

import hashlib
import hmac
import json

import pytest

from isthmus.auth.resource_server.jwt import JWTVerifier
from isthmus.auth.resource_server.verifier import Presented
from isthmus.auth.tokens.jose import PrivateKey, sign_jwt
from isthmus.auth.tokens.secret import Secret
from isthmus.core.encoding import decode_base64url, encode_base64url
from isthmus.errors import UsageError

ISSUER, RESOURCE, NOW = "https://login.example", "https://mcp.example/mcp", 1_800_000_000.0
OURS = PrivateKey.generate("RS256", kid="one")
CURVE = PrivateKey.generate("ES256", kid="two")
THEIRS = PrivateKey.generate("RS256", kid="one")
CLAIMS = {
    "iss": ISSUER,
    "aud": [RESOURCE],
    "sub": "ada",
    "client_id": "desktop",
    "scope": "files:read files:write",
    "exp": NOW + 600,
    "iat": NOW,
    "jti": "7",
}


def verifier(**options):
    """A verifier that trusts two keys."""
    given = {"jwks": [OURS.jwk, CURVE.jwk], "algorithms": ("RS256", "ES256"), **options}
    return JWTVerifier(ISSUER, clock=lambda: NOW, **given)


def sign_token(key=OURS, typ="at+jwt", headers=None, without=(), **claims):
    """A token of the issuer's, but for what is said."""
    said = {name: value for name, value in {**CLAIMS, **claims}.items() if name not in without}
    return sign_jwt(said, key, typ=typ, headers=headers)


def part(value):
    """A part of a token."""
    return encode_base64url(json.dumps(value).encode())


def unsigned(alg):
    """A token without a signature."""
    return f"{part({'alg': alg, 'typ': 'at+jwt'})}.{part(CLAIMS)}."


def with_public_key_as_password():
    """Signed by HMAC with what everybody knows."""
    head = f"{part({'alg': 'HS256', 'typ': 'at+jwt', 'kid': 'one'})}.{part(CLAIMS)}"
    known = json.dumps(OURS.jwk).encode()
    return f"{head}.{encode_base64url(hmac.digest(known, head.encode(), hashlib.sha256))}"


def forge_token(change):
    """A good token, changed afterwards."""
    head, body, signature = sign_token().split(".")
    return ".".join(change(head, body, signature))


def rescoped(head, body, signature):
    claims = json.loads(decode_base64url(body))
    return head, part({**claims, "scope": "admin"}), signature


def renamed(head, body, signature):
    return part({"alg": "RS256", "typ": "at+jwt", "kid": "two"}), body, signature


FORGED = {
    "alg none": lambda: unsigned("none"),
    "alg None": lambda: unsigned("None"),
    "alg missing": lambda: f"{part({'typ': 'at+jwt'})}.{part(CLAIMS)}.AAAA",
    "alg is a list": lambda: f"{part({'alg': ['RS256'], 'typ': 'at+jwt'})}.{part(CLAIMS)}.AAAA",
    "hmac with the public key": with_public_key_as_password,
    "another key of the same name": lambda: sign_token(THEIRS),
    "its own key in the header": lambda: sign_token(
        THEIRS, headers={"jwk": THEIRS.jwk, "kid": None}
    ),
    "a URL of its own keys": lambda: sign_token(
        THEIRS, headers={"jku": "https://evil.example/jwks"}
    ),
    "a certificate of its own": lambda: sign_token(
        THEIRS, headers={"x5u": "https://evil.example/c"}
    ),
    "a path for a kid": lambda: sign_token(headers={"kid": "../../../../dev/null"}),
    "a query for a kid": lambda: sign_token(headers={"kid": "x' OR '1'='1"}),
    "an object for a kid": lambda: sign_token(headers={"kid": {"a": 1}}),
    "the kid of a key of another type": lambda: forge_token(renamed),
    "an allowed key by another algorithm": lambda: sign_token(
        PrivateKey(OURS.secret_jwk().reveal().replace("RS256", "RS512"))
    ),
    "crit": lambda: sign_token(headers={"crit": ["exp"]}),
    "b64": lambda: sign_token(headers={"b64": False, "crit": ["b64"]}),
    "other scopes under the signature": lambda: forge_token(rescoped),
    "no signature": lambda: forge_token(lambda h, b, _: (h, b, "")),
    "half a signature": lambda: forge_token(lambda h, b, s: (h, b, s[:100])),
    "padded parts": lambda: forge_token(lambda h, b, s: (h, b, s + "==")),
    "five parts": lambda: sign_token() + ".a.b",
    "an ID token": lambda: sign_token(typ="JWT", aud="desktop", nonce="n"),
    "an ID token with the right audience": lambda: sign_token(typ="JWT", at_hash="x"),
    "a token without a type": lambda: sign_token(typ=None),
    "a logout token": lambda: sign_token(typ="logout+jwt"),
    "a proof": lambda: sign_token(typ="dpop+jwt"),
    "another issuer": lambda: sign_token(iss="https://login.example.evil.example"),
    "the issuer with a slash": lambda: sign_token(iss=f"{ISSUER}/"),
    "another audience": lambda: sign_token(aud="https://mcp.example/mcp2"),
    "an audience that begins the same": lambda: sign_token(aud=f"{RESOURCE}/"),
    "no audience": lambda: sign_token(without=["aud"]),
    "an audience that is an object": lambda: sign_token(aud={RESOURCE: 1}),
    "expired": lambda: sign_token(exp=NOW - 31),
    "no end": lambda: sign_token(without=["exp"]),
    "an end in words": lambda: sign_token(exp="never"),
    "an endless end": lambda: sign_token(exp=10**300),
    "an end that is true": lambda: sign_token(exp=True),
    "not yet": lambda: sign_token(nbf=NOW + 31),
    "nobody's": lambda: sign_token(without=["sub"]),
    "no client": lambda: sign_token(without=["client_id"]),
    "bound to a certificate": lambda: sign_token(cnf={"x5t#S256": "abc"}),
    "bound to two things": lambda: sign_token(cnf={"jkt": "abc", "x5t#S256": "abc"}),
    "bound to nonsense": lambda: sign_token(cnf=7),
    "too long": lambda: sign_token(more="x" * 20_000),
    "a body that is a list": lambda: f"{part({'alg': 'RS256', 'typ': 'at+jwt'})}.{part([1])}.AAAA",
    "no JSON": lambda: "a.b.c",
    "nothing": lambda: "",
    "half a surrogate": lambda: "\ud800.\ud800.\ud800",
}


@pytest.mark.covers("auth.threat.t22-forged-tokens", "auth.resource.audience-checked")
@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
async def test_a_forged_token_is_nobodys(forge):
    """Ours: what a token says of itself decides nothing, and each thing that must hold is held."""
    assert None is await verifier().verify(Presented("bearer", Secret(forge())), RESOURCE)


@pytest.mark.parametrize("key", [OURS, CURVE], ids=["RSA", "EC"])
async def test_an_honest_token_is_its_users(key):
    """RFC 9068 4: what all the forgeries were made of is good."""
    principal = await verifier().verify(Presented("bearer", Secret(sign_token(key))), RESOURCE)

    assert ("ada", "desktop", {"files:read", "files:write"}) == (
        principal.subject,
        principal.client_id,
        principal.scopes,
    )


@pytest.mark.covers("auth.threat.t22-forged-tokens")
@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
async def test_no_forgery_gets_in_after_an_honest_token(forge):
    """Ours: what is remembered of one token helps no other."""
    judge = verifier(profile="compat")
    await judge.verify(Presented("bearer", Secret(sign_token())), RESOURCE)
    allowed = forge is FORGED["a token without a type"]  # which this profile is for

    assert allowed == bool(await judge.verify(Presented("bearer", Secret(forge())), RESOURCE))


@pytest.mark.parametrize("algorithms", [("HS256",), ("none",), ("RS256", "HS512"), ()])
def test_no_symmetric_algorithm_can_be_allowed(algorithms):
    """Ours: who can check a token must not be able to make one."""
    with pytest.raises(UsageError, match="cannot be signed with"):
        verifier(algorithms=algorithms)


async def test_a_symmetric_key_in_a_set_is_no_key():
    """Ours: an issuer's set may hold keys for other purposes, which sign nothing here."""
    with pytest.raises(UsageError, match="no public key"):
        verifier(jwks={"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "one"}]})
