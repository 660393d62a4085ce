"""T5: a client's metadata document that is not what it has to be is refused without a redirect."""

import pytest

from isthmus.auth.authorization_server.core.lookups import ClientDocuments
from isthmus.auth.authorization_server.core.settings import CimdPolicy, RegistrationPolicy
from support.auth.documents import DocumentShelf
from support.auth.small_authority import BACK, SmallAuthority, redirect_parameters

pytestmark = pytest.mark.covers(
    "auth.threat.t05-document-abuse", "auth.authority.metadata-documents"
)

ID = "https://app.example/client.json"
GOOD = {"client_id": ID, "client_name": "Notes", "redirect_uris": [BACK]}

BAD = {
    "another id": GOOD | {"client_id": "https://app.example/other.json"},
    "an id spelt otherwise": GOOD | {"client_id": "https://APP.example/client.json"},
    "no id": {"client_name": "Notes", "redirect_uris": [BACK]},
    "no name": {"client_id": ID, "redirect_uris": [BACK]},
    "no redirect URI": {"client_id": ID, "client_name": "Notes"},
    "an empty list of them": GOOD | {"redirect_uris": []},
    "a number among them": GOOD | {"redirect_uris": [1]},
    "a dangerous one": GOOD | {"redirect_uris": [BACK, "javascript:alert(1)"]},
    "plain http elsewhere": GOOD | {"redirect_uris": ["http://app.example/cb"]},
    "a secret": GOOD | {"client_secret": "s"},
    "the end of a secret": GOOD | {"client_secret_expires_at": 0},
    "authentication by a secret": GOOD | {"token_endpoint_auth_method": "client_secret_basic"},
    "no key to authenticate with": GOOD | {"token_endpoint_auth_method": "private_key_jwt"},
    "a private key": GOOD
    | {
        "token_endpoint_auth_method": "private_key_jwt",
        "jwks": {"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "d": "AA"}]},
    },
    "no code": GOOD | {"grant_types": ["client_credentials"]},
    "a list": [GOOD],
    "no JSON": b"<html>",
    "too much": GOOD | {"client_name": "N" * 6000},
    "deep nesting": b"[" * 5000,
}


@pytest.mark.parametrize("flaw", BAD)
async def test_a_bad_document_is_a_page(flaw):
    """2026-07-28: a document is valid JSON with what is required, and about its own URL."""
    shelf = DocumentShelf()
    shelf.put(ID, BAD[flaw])
    async with SmallAuthority(network=shelf) as small:
        answer = await small.ask(ID)

        assert (400, None) == (answer.status, answer.header("location"))
        assert [] == small.asked


@pytest.mark.parametrize(
    "headers",
    [
        {"content_type": "text/html"},
        {"content_type": "text/plain"},
        {"status": "302", "location": "https://169.254.169.254/"},
        {"status": "404"},
        {"status": "201"},
    ],
)
async def test_a_bad_answer_is_a_page(headers):
    """CIMD 4: 200, JSON, and no redirect is followed."""
    shelf = DocumentShelf()
    shelf.put(ID, GOOD, **headers)
    async with SmallAuthority(network=shelf) as small:
        assert 400 == (await small.ask(ID)).status


@pytest.mark.parametrize(
    "id",
    [
        "https://app.example",
        "https://app.example/",
        "https://app.example/client.json#x",
        "https://ada:pw@app.example/client.json",
        "https://app.example/a/../client.json",
        "https://app.example/./client.json",
        "https://app.example/a/%2e%2e/client.json",
        "HTTPS://app.example/client.json",
        "http://app.example/client.json",
        "https://app.example\\@evil.example/client.json",
        "https://app.example:0/client.json",
        "https:///client.json",
    ],
)
async def test_a_bad_id_is_not_even_asked_for(id):
    """CIMD 3: https, a path, and neither fragment, user nor dot segments."""
    shelf = DocumentShelf()
    shelf.put(id, GOOD | {"client_id": id})
    async with SmallAuthority(network=shelf) as small:
        assert 400 == (await small.ask(id)).status
        assert {} == shelf.asked


async def test_a_good_document_is_a_client():
    """2026-07-28: its redirect URIs are its own, and the page says that its name is nobody's word."""
    shelf = DocumentShelf()
    shelf.put(ID, GOOD)
    async with SmallAuthority(network=shelf) as small:
        code = redirect_parameters(await small.ask(ID))["code"]
        tokens = (await small.redeem(code, ID)).json

        assert ("document", "Notes") == (small.asked[0].client_kind, small.asked[0].client_name)
        assert ID == (await small.verified(tokens["access_token"])).client_id


@pytest.mark.parametrize(
    ("said", "after", "times"),
    [
        ("max-age=600", 599, 1),
        ("max-age=600", 601, 2),
        ("max-age=1", 59, 1),
        ("max-age=99999999", 86_401, 2),
        ("no-store", 0, 2),
        ("", 299, 1),
        ("", 301, 2),
    ],
)
async def test_a_document_is_believed_as_long_as_it_says_within_bounds(said, after, times):
    """2026-07-28: HTTP cache headers are respected; neither for ever nor for each request."""
    shelf, now = DocumentShelf(), [0.0]
    shelf.put(ID, GOOD, cache_control=said)
    documents = ClientDocuments(CimdPolicy(), shelf, clock=lambda: now[0])
    await documents.find(ID)
    now[0] += after
    await documents.find(ID)

    assert times == shelf.asked[ID]


async def test_domains_can_be_limited_and_documents_turned_off():
    """Ours: an operator says whose documents are taken."""
    shelf = DocumentShelf()
    shelf.put(ID, GOOD)
    for policy in (CimdPolicy(allow_domains=frozenset({"own.example"})), CimdPolicy(enabled=False)):
        async with SmallAuthority(
            network=shelf, registration=RegistrationPolicy(cimd=policy)
        ) as small:
            assert 400 == (await small.ask(ID)).status
    assert {} == shelf.asked
