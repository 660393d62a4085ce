"""Tokens as Keycloak and Entra make them, held to the settings of the guide page."""

import time

import pytest

from isthmus.auth.resource_server.verifier import Presented
from isthmus.auth.tokens.jose import KeySet, PrivateKey, sign_jwt
from isthmus.auth.tokens.secret import Secret
from support.docs.blocks import ROOT, list_blocks

PAGE = ROOT / "docs" / "guide" / "auth-external-providers.md"
RESOURCE = "https://mcp.example.com/mcp"
REALM = "https://keycloak.example.com/realms/tools"
TENANT = "11111111-2222-3333-4444-555555555555"
API = "66666666-7777-8888-9999-000000000000"


@pytest.fixture
def page():
    """What the page's own blocks make."""
    namespace = {}
    for block in list_blocks(PAGE, "python"):
        exec(block.code, namespace)  # noqa: S102 - our own documentation
    return namespace


@pytest.fixture(scope="module")
def key():
    """The provider's key."""
    return PrivateKey.generate("RS256", kid="k1")


def keycloak(**changed):
    """The claims of an access token of Keycloak, with the audience mapper."""
    now = int(time.time())
    return {
        "iss": REALM, "aud": [RESOURCE, "account"], "typ": "Bearer", "azp": "desk", "sid": "s",
        "sub": "8a0c", "scope": "openid files:read profile", "exp": now + 300, "iat": now,
        "jti": "j1", "preferred_username": "ada", **changed,
    }  # fmt: skip


def entra(**changed):
    """The claims of an access token of Entra, version 2."""
    now = int(time.time())
    return {
        "iss": f"https://login.microsoftonline.com/{TENANT}/v2.0", "aud": API, "azp": "desk",
        "sub": "pairwise", "oid": "person", "tid": TENANT, "scp": "files.read", "ver": "2.0",
        "exp": now + 3600, "iat": now, "nbf": now, **changed,
    }  # fmt: skip


async def judge_claims(auth, key, claims, typ="JWT"):
    """Whom the page's settings take a token for."""
    auth._verifier._keys = KeySet([key.jwk])
    token = Secret(sign_jwt({k: v for k, v in claims.items() if v is not None}, key, typ=typ))
    return await auth._verifier.verify(Presented("bearer", token), RESOURCE)


async def test_keycloak_tokens_are_taken(page, key):
    """Ours: with the settings of the page, and what the realm has to add."""
    who = await judge_claims(page["keycloak"], key, keycloak())

    assert ("8a0c", "desk") == (who.subject, who.client_id)
    assert page["keycloak"].scopes.satisfied(who.scopes, frozenset({"files:read"}))


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": None},  # neither mapper nor feature
        {"aud": "account"},
        {"iss": REALM + "/"},
        {"iss": "http://localhost:8080/realms/tools"},  # KC_HOSTNAME is not set
        {"scope": None, "aud": "desk", "at_hash": "x"},  # the ID token
        {"exp": 1},
    ],
)
@pytest.mark.covers("auth.resource.audience-checked")
async def test_keycloak_tokens_for_something_else_are_not(page, key, changed):
    """2025-11-25 basic/authorization: what was not issued for this server is refused."""
    assert None is await judge_claims(page["keycloak"], key, keycloak(**changed))


async def test_entra_tokens_are_taken_and_their_scopes_spelt_in_full(page, key):
    """Ours: a challenge names the scope as a client has to ask for it."""
    who = await judge_claims(page["entra"], key, entra())

    assert frozenset({f"{RESOURCE}/files.read"}) == who.scopes
    assert ("person", TENANT) == (who.claims["oid"], who.claims["tid"])


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": f"https://sts.windows.net/{TENANT}/", "aud": f"api://{API}"},  # version 1
        {"aud": "00000003-0000-0000-c000-000000000000"},  # for Microsoft Graph
        {"iss": "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0"},
        {"scp": None, "roles": ["files.read"]},  # an application without a user
    ],
)
@pytest.mark.covers("auth.resource.audience-checked")
async def test_entra_tokens_for_something_else_are_not(page, key, changed):
    """2025-11-25 basic/authorization: what was not issued for this server is refused."""
    assert None is await judge_claims(page["entra"], key, entra(**changed))
