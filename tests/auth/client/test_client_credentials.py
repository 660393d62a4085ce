"""Client credentials: a signature, or a secret in one of two places."""

from base64 import b64decode

import pytest
from joserfc.jwk import ECKey, OKPKey, RSAKey

from isthmus import Client
from isthmus.auth import ClientCredentials, PrivateKey, Secret, StaticClient
from isthmus.auth.tokens.jose import verify_jwt
from isthmus.errors import AuthRequired, UsageError
from support.auth.oauth_town import open_machine_town

RSA = RSAKey.generate_key(2048)
KEYS = {
    "ES256": ECKey.generate_key("P-256"),
    "EdDSA": OKPKey.generate_key("Ed25519"),
    "RS256": RSA,
    "PS256": RSA,
}


@pytest.fixture
async def place():
    """A town whose authorization server gives machines what they ask for."""
    async with open_machine_town() as here:
        yield here


@pytest.mark.covers("auth.extension.client-credentials-client")
@pytest.mark.parametrize("alg", KEYS)
async def test_a_client_authenticates_by_private_key_jwt(place, alg):
    """1.4: iss and sub are the client, the audience is the issuer, it ends soon, and is new each time."""
    place.authority.metadata["token_endpoint_auth_methods_supported"] = ["private_key_jwt"]
    place.authority.life = 1e-6  # over before it is used, however fast the machine is
    key = PrivateKey(KEYS[alg].as_pem(private=True), alg=alg)
    async with Client(place.url, auth=ClientCredentials("job", key=key)) as client:
        await client.call_tool("hello")
    forms = place.authority.forms
    claims = [verify_jwt(f["client_assertion"], [key.jwk], algorithms=[alg]) for f in forms]

    assert {("job", "job", place.authority.issuer)} == {
        (c["iss"], c["sub"], c["aud"]) for c in claims
    }
    assert {True} == {0 < c["exp"] - c["iat"] <= 60 for c in claims}
    assert 1 < len(forms) == len({c["jti"] for c in claims})
    assert {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"} == {
        form["client_assertion_type"] for form in forms
    }
    assert {place.url} == {form["resource"] for form in forms}
    assert [] == [form for form in forms if "Authorization" in form or "client_secret" in form]
    assert [] == place.authority.registered


@pytest.mark.covers("auth.extension.client-credentials-client")
@pytest.mark.parametrize("methods", [["client_secret_basic"], ["client_secret_post"], []])
async def test_a_secret_goes_where_the_server_wants_it(place, methods):
    """1.4: Basic where it is taken, both parts form-encoded; in the form where only that is."""
    place.authority.metadata["token_endpoint_auth_methods_supported"] = methods
    auth = ClientCredentials("the job", secret=Secret("s:e%c r+et"))
    async with Client(place.url, auth=auth):
        pass
    [form] = place.authority.forms
    scheme, _, sent = form.get("Authorization", "").partition(" ")

    if methods == ["client_secret_post"]:
        assert ("the job", "s:e%c r+et") == (form["client_id"], form["client_secret"])
    else:
        assert ("Basic", b"the+job:s%3Ae%25c+r%2Bet") == (scheme, b64decode(sent))
        assert "client_secret" not in form


async def test_a_server_that_wants_signatures_is_shown_no_secret(place):
    """Ours: a client with a secret at a server that wants signatures is told so, and shows neither."""
    place.authority.metadata["token_endpoint_auth_methods_supported"] = ["private_key_jwt"]
    with pytest.raises(AuthRequired, match="private_key_jwt"):
        async with Client(place.url, auth=ClientCredentials("job", secret="a-secret-of-the-job")):
            pass

    assert [] == place.authority.forms


def test_a_client_without_anything_to_prove_it_is_refused():
    """Ours: whoever gets tokens for what they are has to prove what they are."""
    with pytest.raises(UsageError, match="has to authenticate itself"):
        ClientCredentials("job")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"method": "magic"}, "it is one of"),
        ({"method": "private_key_jwt"}, "PrivateKey"),
        ({"method": "client_secret_post"}, "secret="),
        ({"key": "-----BEGIN PRIVATE KEY-----"}, r"PrivateKey\(…\) of that"),
    ],
)
def test_a_static_client_has_what_its_method_takes(more, words):
    """Ours: what does not add up is said when it is written, not at the first login."""
    with pytest.raises(UsageError, match=words):
        StaticClient("desktop", **more)
    with pytest.raises(UsageError, match="client_id"):
        StaticClient("")


def test_no_secret_is_seen_in_what_is_printed():
    """T29: a client in a log shows its name and nothing else."""
    auth = ClientCredentials("job", secret="the-secret-in-question")

    assert "ClientCredentials('job')" == repr(auth)
    assert "StaticClient('job')" == repr(StaticClient("job", secret="the-secret-in-question"))
    assert "the-secret-in-question" not in repr(auth._client.identity)
