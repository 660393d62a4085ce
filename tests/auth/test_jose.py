"""Signed tokens and their keys: what is made here is read here, and by others."""

import json
import subprocess
import sys
from functools import partial

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc import jwt
from joserfc.jwk import ECKey

from isthmus.auth.arguments import missing_library_error
from isthmus.auth.resource_server.introspection import IntrospectionVerifier
from isthmus.auth.resource_server.jwt import JWTVerifier
from isthmus.auth.resource_server.verifier import ByIssuer, StaticTokens
from isthmus.auth.tokens.audience import audiences_of
from isthmus.auth.tokens.jose import (
    ALGORITHMS,
    InvalidToken,
    KeySet,
    PrivateKey,
    UnknownKey,
    check_times,
    jwk_thumbprint,
    load_joserfc,
    sign_jwt,
    verify_jwt,
)
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import UsageError


def pem(key):
    """A key as files have it."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize("alg", ALGORITHMS)
def test_what_a_key_signs_its_public_half_verifies(alg):
    """RFC 7515, 7518, 8037: by every algorithm that can be allowed."""
    key = PrivateKey.generate(alg, kid="thumbprint")
    token = sign_jwt({"sub": "ada"}, key, typ="at+jwt", headers={"x": None})
    claims = verify_jwt(token, {"keys": [key.jwk]}, algorithms=[alg], typ="application/AT+JWT")

    assert {"sub": "ada"} == claims
    assert {"typ": "at+jwt", "alg": alg, "kid": jwk_thumbprint(key.jwk)} == claims.header
    assert "d" not in key.jwk


def test_other_libraries_read_what_we_write():
    """RFC 7519: a token is a token."""
    key = PrivateKey.generate("ES256")
    token = sign_jwt({"sub": "ada"}, key, typ="JWT")

    assert {"sub": "ada"} == jwt.decode(token, ECKey.import_key(dict(key.bare)), ["ES256"]).claims


@pytest.mark.parametrize(
    ("make_key", "alg"),
    [
        (partial(ec.generate_private_key, ec.SECP256R1()), "ES256"),
        (partial(ec.generate_private_key, ec.SECP384R1()), "ES384"),
        (partial(rsa.generate_private_key, 65537, 2048), "RS256"),
        (ed25519.Ed25519PrivateKey.generate, "EdDSA"),
    ],
    ids=["ES256", "ES384", "RS256", "EdDSA"],
)
def test_keys_come_from_files_and_go_to_safe_places(make_key, alg):
    """Ours: PEM as text, bytes or secret, or JWK; the algorithm is told by the key unless named."""
    made = make_key()
    key = PrivateKey(pem(made))
    again = PrivateKey(key.secret_jwk())

    assert alg == key.alg == again.alg == PrivateKey(pem(made).decode(), alg=alg).alg
    assert key.thumbprint == again.thumbprint == PrivateKey(Secret(pem(made).decode())).thumbprint
    assert "named" == PrivateKey(json.loads(key.secret_jwk().reveal()), kid="named").kid
    assert f"PrivateKey(alg={alg!r}, kid=None)" == repr(key)


@pytest.mark.parametrize(
    "material",
    [
        "",
        "nonsense",
        b"\xff",
        "{",
        "{}",
        "[]",
        {"kty": "oct", "k": "a"},
        {"kty": "EC", "crv": "P-256"},
    ],
)
def test_material_that_is_no_private_key_is_refused(material):
    """Ours: a wrong file is found when it is read, with what would be right."""
    with pytest.raises(UsageError, match="PEM or JWK"):
        PrivateKey(material)


def test_a_public_key_and_one_of_another_type_sign_nothing():
    """Ours: a key is for its algorithm, and half of one is not enough."""
    key = PrivateKey.generate("ES256")
    with pytest.raises(UsageError, match="no private key"):
        PrivateKey(key.jwk)
    with pytest.raises(UsageError, match="does not sign RS256"):
        PrivateKey(key.secret_jwk(), alg="RS256")


def test_a_set_keeps_usable_keys_only():
    """Ours: an issuer's set may hold anything, and the good keys in it are good."""
    good = PrivateKey.generate("ES256", kid="good")
    junk = [
        None, 7, "x", {}, {"kty": 7}, {"kty": "oct", "k": "AA"}, {"kty": "RSA"}, {**good.jwk, "x": "AA"},
        {**good.jwk, "use": "enc"}, {**good.jwk, "use": ["sig"]}, {**good.jwk, "key_ops": ["sign"]},
        {**good.jwk, "key_ops": 7}, {**good.jwk, "crv": "P-999"}, {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
    ]  # fmt: skip

    assert 1 == len(KeySet([*junk, good.jwk]))
    assert 0 == len(KeySet({"keys": 7})) == len(KeySet({}))
    assert 100 == len(KeySet([good.jwk] * 200))
    assert {"n": 1} == verify_jwt(sign_jwt({"n": 1}, good), KeySet([*junk, good.jwk]))


def test_an_unknown_key_is_told_from_a_wrong_signature():
    """Ours: for one it is worth asking the issuer again, for the other never."""
    one, other = PrivateKey.generate(kid="a"), PrivateKey.generate(kid="b")

    with pytest.raises(UnknownKey):
        verify_jwt(sign_jwt({}, one), [other.jwk])
    with pytest.raises(InvalidToken, match="signature is wrong"):
        verify_jwt(sign_jwt({}, one, headers={"kid": "b"}), [other.jwk])


def test_a_token_that_names_no_key_is_tried_with_few():
    """Ours: without a kid each key of the type may be meant, but not a hundred of them."""
    keys = [PrivateKey.generate("ES256") for _ in range(6)]

    assert verify_jwt(sign_jwt({"n": 1}, keys[3]), [key.jwk for key in keys])
    with pytest.raises(InvalidToken):
        verify_jwt(sign_jwt({"n": 1}, keys[5]), [key.jwk for key in keys])


def test_a_thumbprint_is_that_of_the_rfc():
    """RFC 7638 3.1: the RFC's own example, but shorter; RFC 8037 A.3: the RFC's own."""
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}

    assert "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" == jwk_thumbprint({**jwk, "use": "sig"})
    for bad in ({}, {"kty": "oct", "k": "a"}, {"kty": "EC", "x": 1}, {"kty": ["EC"]}):
        with pytest.raises(InvalidToken):
            jwk_thumbprint(bad)


def test_times_have_a_little_play():
    """RFC 7519 4.1: clocks differ by some seconds, and no more."""
    assert 100.0 == check_times({"exp": 100}, 129.9)
    assert 100.0 == check_times({"exp": 100, "nbf": 80}, 50.0)
    for claims, now in (
        ({"exp": 100}, 130),
        ({"exp": 100, "nbf": 80}, 49),
        ({"exp": 100, "nbf": "x"}, 90),
    ):
        with pytest.raises(InvalidToken):
            check_times(claims, now)


@pytest.mark.parametrize(
    ("aud", "whom"),
    [("a", {"a"}), (["a", "b", 7], {"a", "b"}), (None, set()), ({"a": 1}, set()), (7, set())],
)
def test_an_audience_is_one_or_several(aud, whom):
    """RFC 7519 4.1.3: a text or a list of texts."""
    assert whom == audiences_of({"aud": aud})


def test_nothing_heavy_is_imported_before_a_key_is():
    """Ours: who serves without tokens does not pay for cryptography, nor need it installed."""
    code = (
        "import sys, isthmus.auth.tokens.jose, isthmus.auth.tokens.dpop, isthmus.auth.tokens.jwks, isthmus.auth as a;"
        "a.JWTVerifier('https://h'), a.StaticTokens({}), a.ByIssuer({}), a.Network();"
        "print({'joserfc', 'cryptography', 'aiohttp', 'authlib', 'keyring', 'argon2', 'sqlite3'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "set()" == done.stdout.strip()


def test_a_missing_library_is_named_with_the_way_to_get_it():
    """Ours: the plain installation says what to install, and for what."""
    error = missing_library_error(
        "Reading tokens", ModuleNotFoundError("No module", name="joserfc")
    )

    assert "Reading tokens takes joserfc: pip install 'isthmus[auth]'" == str(error)


def test_without_the_library_the_rest_works(monkeypatch):
    """Ours: what needs signatures says what to install when it is set up, and nothing else breaks."""
    for name in [one for one in sys.modules if one.partition(".")[0] == "joserfc"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "joserfc", None)
    load_joserfc.cache_clear()

    with pytest.raises(
        UsageError, match=r"JWTVerifier takes joserfc: pip install 'isthmus\[auth\]'"
    ):
        JWTVerifier("https://login.example")
    with pytest.raises(UsageError, match=r"takes joserfc: pip install"):
        PrivateKey.generate()
    StaticTokens({})
    ByIssuer({})
    IntrospectionVerifier("https://h/", client_id="a", client_secret="b", issuer="https://h")
    load_joserfc.cache_clear()
