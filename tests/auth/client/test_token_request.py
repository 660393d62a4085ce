"""The request that every grant comes down to."""

import json

import pytest

from isthmus.auth import PrivateKey, Secret
from isthmus.auth.client.store.records import Tokens
from isthmus.auth.client.token_request import DpopProofs, request_token
from isthmus.auth.net.network import Fetched
from isthmus.auth.protocol import (
    ClientIdentity,
    authenticate_form,
    choose_auth_method,
    quote_foreign,
)
from isthmus.auth.tokens.dpop import DpopKey
from isthmus.auth.tokens.jose import read_token, verify_jwt
from isthmus.errors import AuthRefused, AuthRequired, AuthUnsafe

ISSUER, ENDPOINT = "https://login.example", "https://login.example/token"
GOOD = {"access_token": "a", "token_type": "Bearer", "expires_in": 60}


class Till:
    """Answers token requests, one after the other."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.forms = []

    async def form(self, url, fields, headers=None):
        self.forms.append((dict(fields), dict(headers or {})))
        answer = self.answers.pop(0)
        status, body, more = answer if isinstance(answer, tuple) else (200, answer, {})
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Fetched(status, more, data, url)


def request_with(till, identity=None, **options):
    return request_token(
        till, ENDPOINT, {"grant_type": "x"}, identity or ClientIdentity(client_id="c"), issuer=ISSUER,
        **options,
    )  # fmt: skip


SECRET, KEY = Secret("s3:c /r+t"), None


@pytest.mark.parametrize(
    ("identity", "methods", "expected"),
    [
        ({}, (), "none"),
        ({}, ("client_secret_basic",), "none"),
        ({"secret": SECRET}, (), "client_secret_basic"),
        ({"secret": SECRET}, ("client_secret_post",), "client_secret_post"),
        ({"secret": SECRET}, ("client_secret_post", "client_secret_basic"), "client_secret_basic"),
        ({"secret": SECRET, "method": "client_secret_post"}, (), "client_secret_post"),
        ({"secret": SECRET}, ("none", "private_key_jwt"), None),
        ({"key": "k"}, ("private_key_jwt",), "private_key_jwt"),
        ({"key": "k", "secret": SECRET}, ("client_secret_post",), "client_secret_post"),
        ({"key": "k"}, ("tls_client_auth",), None),
    ],
)
def test_a_client_takes_the_best_way_that_the_server_takes(identity, methods, expected):
    """Ours: with what it has; what cannot be is an error that says what is missing."""
    one = ClientIdentity(client_id="c", **identity)
    if expected is None:
        with pytest.raises(
            AuthRequired, match="cannot authenticate: the authorization server takes"
        ):
            choose_auth_method(one, methods)
    else:
        assert expected == choose_auth_method(one, methods)


def test_basic_encodes_both_parts():
    """RFC 6749 2.3.1: as in a form, before they are put together."""
    identity = ClientIdentity(client_id="a:b", secret=SECRET)
    form, headers = authenticate_form({"x": "y"}, identity, issuer=ISSUER)

    assert {"x": "y", "client_id": "a:b"} == form
    assert {"Authorization": "Basic YSUzQWI6czMlM0FjKyUyRnIlMkJ0"} == headers


def test_a_secret_in_the_form_is_in_the_form_alone():
    """RFC 6749 2.3: one method for each request."""
    identity = ClientIdentity(client_id="c", secret=Secret("s"), method="client_secret_post")

    assert ({"client_id": "c", "client_secret": "s"}, {}) == authenticate_form(
        {}, identity, issuer=ISSUER
    )


def test_an_assertion_is_for_the_issuer_and_good_once():
    """RFC 7523: who, for whom, until when, and an id of its own."""
    key = PrivateKey.generate("ES256")
    identity = ClientIdentity(client_id="c", key=key)
    forms = [authenticate_form({}, identity, issuer=ISSUER)[0] for _ in range(2)]
    claims = [verify_jwt(form["client_assertion"], [key.jwk]) for form in forms]

    assert {"c"} == {claims[0]["iss"], claims[0]["sub"], forms[0]["client_id"]}
    assert ISSUER == claims[0]["aud"]
    assert 60 == claims[0]["exp"] - claims[0]["iat"]
    assert claims[0]["jti"] != claims[1]["jti"]


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "private_key_jwt"])
def test_a_method_without_what_it_takes_is_an_error(method):
    """Ours: it says what to give."""
    with pytest.raises(AuthRequired, match="and has no"):
        authenticate_form({}, ClientIdentity(client_id="c", method=method), issuer=ISSUER)


@pytest.mark.parametrize(
    ("answer", "life", "scopes"),
    [
        (GOOD, 60.0, None),
        ({**GOOD, "expires_in": "60", "scope": "a b"}, 60.0, {"a", "b"}),
        ({**GOOD, "expires_in": -1, "scope": ""}, None, None),
        ({**GOOD, "expires_in": "soon", "scope": 5}, None, None),
        ({**GOOD, "expires_in": int("9" * 400), "scope": "a\u001b[2J b"}, None, {"b"}),
        ((201, GOOD, {}), 60.0, None),
    ],
)
async def test_a_token_response_is_read_as_servers_write_it(answer, life, scopes):
    """Ours: 201, numbers as text and empty scopes are met in practice."""
    granted = await request_with(Till(answer))

    assert (life, scopes) == (granted.expires_in, granted.scopes)
    assert Secret("a") == granted.access
    assert "access" not in repr(granted)


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"<html>", [], {}, {"access_token": 5, "token_type": "Bearer"}, b"[" * 100_000,
        {**GOOD, "access_token": ""}, {**GOOD, "access_token": "a\r\nCookie: b"},
        {**GOOD, "access_token": "a b"}, {**GOOD, "access_token": "\u00e4"},
    ],
)  # fmt: skip
async def test_a_malformed_token_response_is_refused(answer):
    """Ours: nothing raises but the exception for it."""
    with pytest.raises(AuthUnsafe, match="no token response"):
        await request_with(Till(answer))


async def test_a_token_of_another_type_cannot_be_shown():
    """RFC 6749 7.1: a client must not use a type it does not know."""
    with pytest.raises(AuthUnsafe, match="of the type mac"):
        await request_with(Till({**GOOD, "token_type": "mac"}))


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ((400, {"error": "invalid_grant"}, {}), "invalid_grant", "refused a token: invalid_grant"),
        ((400, {"error": "invalid_target"}, {}), "invalid_target", "register its URL"),
        ((401, {"error": "invalid_client", "error_description": "who?"}, {}), "invalid_client",
         "invalid_client: who?"),
        ((500, b"oops", {}), "", "HTTP 500 and no reason"),
        ((400, {"error": 5}, {}), "", "HTTP 400 and no reason"),
        ((302, GOOD, {}), "", "HTTP 302"),
    ],
)  # fmt: skip
@pytest.mark.covers("divergences.client.token-errors")
async def test_a_refusal_says_what_the_server_said(answer, code, words):
    """Ours: with the code, and a hint where one is known."""
    with pytest.raises(AuthRefused, match=words) as caught:
        await request_with(Till(answer))
    assert code == caught.value.error


def test_words_of_others_are_short_and_of_one_line():
    """Ours: an error is no place for a server's control characters."""
    assert "a b" == quote_foreign("a\nb")
    assert 200 == len(quote_foreign("x" * 999))
    assert "None" == quote_foreign(None)


# --- proofs -----------------------------------------------------------------------------------


@pytest.mark.covers("auth.extension.dpop-client")
async def test_a_proof_goes_along_and_again_with_the_nonce_that_is_wanted():
    """RFC 9449 8: once more, with another jti."""
    proofs = DpopProofs(DpopKey.generate())
    wanted = (400, {"error": "use_dpop_nonce"}, {"dpop-nonce": "n1"})
    till = Till(wanted, {**GOOD, "token_type": "DPoP"}, GOOD)
    granted = await request_with(till, proofs=proofs)
    await request_with(till, proofs=proofs)
    claims = [read_token(headers["DPoP"]).claims for _, headers in till.forms]

    assert "DPoP" == granted.kind
    assert [None, "n1", "n1"] == [one.get("nonce") for one in claims]
    assert 3 == len({one["jti"] for one in claims})
    assert {("POST", ENDPOINT)} == {(one["htm"], one["htu"]) for one in claims}


async def test_a_server_that_wants_nonce_after_nonce_is_refused():
    """Ours: it is asked twice at most."""
    till = Till(
        *((400, {"error": "use_dpop_nonce"}, {"dpop-nonce": f"n{n}"}) for n in range(5)),
    )
    with pytest.raises(AuthRefused, match="use_dpop_nonce"):
        await request_with(till, proofs=DpopProofs(DpopKey.generate()))
    assert 2 == len(till.forms)


@pytest.mark.covers("auth.extension.dpop-client")
def test_a_bound_token_is_shown_with_a_proof_of_its_own_key():
    """RFC 9449 7: the scheme DPoP, a fresh proof with ath; after a restart as well."""
    key, url = DpopKey.generate(), "https://mcp.example/mcp?x=1"
    tokens = Tokens(
        access=Secret("a"), issuer="i", client_id="c", resource="r", kind="DPoP",
        proof_key=key.secret_jwk(),
    )  # fmt: skip
    proofs = DpopProofs()
    proofs.learn(url, {"DPoP-Nonce": "n1"})
    shown = [proofs.presented(tokens, "GET", url) for _ in range(2)]
    claims = [read_token(one["DPoP"]).claims for one in shown]

    assert {"DPoP a"} == {one["Authorization"] for one in shown}
    assert "https://mcp.example/mcp" == claims[0]["htu"]
    assert "n1" == claims[0]["nonce"]
    assert "ath" in claims[0]
    assert claims[0]["jti"] != claims[1]["jti"]


@pytest.mark.parametrize("nonce", ["", "x" * 2000, "a\nb", "ü"])
def test_a_malformed_nonce_is_not_remembered(nonce):
    """Ours: it would stand in a header of ours."""
    proofs = DpopProofs(DpopKey.generate())
    proofs.learn(ENDPOINT, {"DPoP-Nonce": nonce})

    assert {} == proofs._serving


@pytest.mark.covers("auth.threat.t29-secrets-shown")
def test_words_of_others_repeat_no_secret():
    """Ours: a server may say which code or refresh token it does not know."""
    secret = Secret("rt-5f0c1d2e3b4a")

    assert "unknown token [redacted]" == quote_foreign(f"unknown token {secret.reveal()}")
