"""T33, the check itself: a DPoP proof is good once, for one request and one key."""

import json

import pytest

from isthmus.auth.tokens.dpop import (
    DpopKey,
    InvalidProof,
    NonceNeeded,
    Nonces,
    ReplayCache,
    check_proof,
)
from isthmus.auth.tokens.jose import PrivateKey, jwk_thumbprint, sign_jwt
from isthmus.auth.tokens.secret import Secret, s256
from isthmus.core.encoding import encode_base64url

URL, NOW, TOKEN = "https://mcp.example/mcp", 1_800_000_000.0, Secret("the-access-token")
KEY = PrivateKey.generate("ES256")
SMALL = {"kty": "RSA", "n": encode_base64url(b"\xc5" * 128), "e": "AQAB"}


def check(proof, replays=None, **options):
    """Hold a proof against the request that it should be for."""
    asked = {"method": "POST", "url": URL, "token": TOKEN, "now": NOW, **options}
    return check_proof(proof, replays=ReplayCache() if replays is None else replays, **asked)


def proof(key=KEY, typ="dpop+jwt", headers=None, without=(), **claims):
    """A proof for that request, but for what is said."""
    said = {"jti": "1", "htm": "POST", "htu": URL, "iat": NOW, "ath": s256(TOKEN), **claims}
    said = {name: value for name, value in said.items() if name not in without}
    return sign_jwt(said, key, typ=typ, headers={"jwk": key.bare, "kid": None, **(headers or {})})


def symmetric():
    head = encode_base64url(
        json.dumps({"typ": "dpop+jwt", "alg": "HS256", "jwk": {"kty": "oct", "k": "a"}}).encode()
    )
    return f"{head}.{encode_base64url(b'{}')}.AAAA"


def unsigned():
    head = encode_base64url(
        json.dumps({"typ": "dpop+jwt", "alg": "none", "jwk": dict(KEY.bare)}).encode()
    )
    return f"{head}.{encode_base64url(b'{}')}."


BAD = {
    "no JWT": lambda: "proof",
    "an empty one": lambda: "",
    "too long": lambda: proof(more="x" * 9000),
    "typ missing": lambda: proof(typ=None),
    "typ of an access token": lambda: proof(typ="at+jwt"),
    "alg none": unsigned,
    "a symmetric key": symmetric,
    "no key": lambda: proof(headers={"jwk": None}),
    "a key that is text": lambda: proof(headers={"jwk": "key"}),
    "the private key": lambda: proof(headers={"jwk": json.loads(KEY.secret_jwk().reveal())}),
    "a key that is too small": lambda: proof(headers={"jwk": SMALL}),
    "a key that did not sign": lambda: proof(headers={"jwk": PrivateKey.generate().bare}),
    "a point on no curve": lambda: proof(headers={"jwk": {**KEY.bare, "x": KEY.bare["y"]}}),
    "crit": lambda: proof(headers={"crit": ["x"]}),
    "another method": lambda: proof(htm="GET"),
    "the method in small letters": lambda: proof(htm="post"),
    "another URL": lambda: proof(htu="https://mcp.example/other"),
    "another host": lambda: proof(htu="https://mcp.example.evil.example/mcp"),
    "another port": lambda: proof(htu="https://mcp.example:8443/mcp"),
    "plain http": lambda: proof(htu="http://mcp.example/mcp"),
    "no URL": lambda: proof(without=["htu"]),
    "a URL that is none": lambda: proof(htu="mcp"),
    "no method": lambda: proof(without=["htm"]),
    "too old": lambda: proof(iat=NOW - 301),
    "too new": lambda: proof(iat=NOW + 301),
    "no time": lambda: proof(without=["iat"]),
    "a time that is text": lambda: proof(iat=str(NOW)),
    "a time that is true": lambda: proof(iat=True),
    "no jti": lambda: proof(without=["jti"]),
    "an empty jti": lambda: proof(jti=""),
    "a long jti": lambda: proof(jti="x" * 257),
    "a jti that is a number": lambda: proof(jti=7),
    "no ath": lambda: proof(without=["ath"]),
    "another token's ath": lambda: proof(ath=s256("another")),
}


@pytest.mark.covers("auth.threat.t33-proof-replay")
@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_a_bad_proof_proves_nothing(make):
    """RFC 9449 4.3: each of the twelve things that are checked is."""
    with pytest.raises(InvalidProof):
        check(make())


@pytest.mark.covers("auth.threat.t33-proof-replay")
def test_a_proof_is_good_once():
    """RFC 9449 11.1: who overhears a proof cannot use it, not even in the same second."""
    replays = ReplayCache()
    first = proof()

    assert KEY.thumbprint == check(first, replays)
    with pytest.raises(InvalidProof, match="used before"):
        check(first, replays)
    assert KEY.thumbprint == check(proof(jti="2"), replays)
    assert check(proof(PrivateKey.generate()), replays), "another key has names of its own"


@pytest.mark.parametrize("alg", ["ES256", "RS256", "EdDSA"])
def test_what_a_key_makes_is_taken(alg):
    """RFC 9449 4.2: proof and check are two halves of one thing, by any algorithm that is listed."""
    key = DpopKey(PrivateKey.generate(alg))
    made = key.proof("POST", f"{URL}?a=1#b", token=TOKEN, now=NOW)

    assert key.jkt == check(made)
    assert key.jkt == DpopKey.load(key.secret_jwk()).jkt


@pytest.mark.parametrize(
    "htu",
    [
        "HTTPS://MCP.EXAMPLE/mcp",
        "https://mcp.example:443/mcp",
        "https://mcp.example/a/../mcp",
        "https://mcp.example/./mcp?x=1#y",
        "https://mcp.example/%6dcp",
    ],
)
def test_a_url_is_compared_by_what_it_means(htu):
    """RFC 9449 4.3: normalised by syntax and scheme, without query and fragment."""
    assert check(proof(htu=htu))


@pytest.mark.covers("auth.threat.t33-proof-replay")
def test_a_full_memory_takes_no_more_rather_than_forget():
    """Ours: memory has a bound, and reaching it gives nobody a second use of a proof."""
    replays = ReplayCache(limit=3)
    for name in "abc":
        check(proof(jti=name), replays)

    with pytest.raises(InvalidProof, match="too many"):
        check(proof(jti="d"), replays)
    with pytest.raises(InvalidProof, match="used before"):
        check(proof(jti="a"), replays)
    later = NOW + 301
    assert check(proof(jti="d", iat=later), replays, now=later)
    assert 1 == len(replays)


def test_one_key_does_not_take_the_room_of_all_others():
    """Ours: a user of our own with a token cannot lock the others out."""
    replays = ReplayCache(limit=1000)
    for number in range(500):
        assert replays.first("greedy", f"{number}", NOW, NOW + 300)
    with pytest.raises(InvalidProof, match="too many"):
        replays.first("greedy", "one more", NOW, NOW + 300)

    assert [True, False] == [replays.first("modest", "a", NOW, NOW + 300) for _ in range(2)]
    assert not replays.first("greedy", "1", NOW, NOW + 300)
    assert replays.first("greedy", "later", NOW + 301, NOW + 601)


def test_proofs_by_another_key_than_the_tokens_are_not_remembered():
    """Ours: one token and many keys fill no memory; whoever asked compares the key."""
    replays, other = ReplayCache(), PrivateKey.generate()

    assert KEY.thumbprint != check(proof(other), replays, bound=KEY.thumbprint)
    assert 0 == len(replays)
    assert KEY.thumbprint == check(proof(), replays, bound=KEY.thumbprint)
    assert 1 == len(replays)


def test_a_nonce_shows_that_a_proof_was_made_just_now():
    """RFC 9449 8: without a nonce of ours, or with an old one, the client is told to use a new one."""
    nonces = Nonces()
    given = nonces.current(NOW)

    assert check(proof(nonce=given), nonce=nonces)
    assert check(proof(nonce=given, iat=NOW + 300), nonce=nonces, now=NOW + 300)
    for bad in ({}, {"nonce": "x"}, {"nonce": 7}, {"nonce": nonces.current(NOW - 600)}):
        with pytest.raises(NonceNeeded):
            check(proof(**bad), nonce=nonces)
    with pytest.raises(NonceNeeded):
        check(proof(nonce=Nonces().current(NOW)), nonce=nonces)
    assert check(proof(nonce="fixed"), nonce="fixed")
    assert check(proof(nonce="fixed"), nonce=lambda given: given == "fixed")


def test_servers_that_share_a_key_take_each_others_nonces():
    """Ours: behind a load balancer nobody remembers anything, and nobody is sent round in circles."""
    one, other = Nonces(b"k" * 32), Nonces(b"k" * 32)

    assert other.accepts(one.current(NOW), NOW + 299)
    assert not other.accepts(one.current(NOW), NOW + 900)


def test_no_token_needs_no_hash():
    """RFC 9449 5: at the token endpoint there is no access token yet."""
    assert jwk_thumbprint(KEY.bare) == check(proof(without=["ath"]), token=None)
