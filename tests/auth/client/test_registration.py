"""Client registration, and the records that are kept of it."""

import json

import pytest

from isthmus.auth import ByHand, Key, Loopback, MemoryTokenStore, PrivateKey, Registration, Secret
from isthmus.auth.client.discovery import DiscoveryResult, ServerMetadata
from isthmus.auth.client.registration import ClientProfile, Registrar, StaticClient
from isthmus.auth.client.store.records import Tokens
from isthmus.auth.net.network import Fetched
from isthmus.errors import AuthRefused, AuthUnsafe

ISSUER, LANDING = "https://login.example", "http://127.0.0.1:4711/callback"


class Desk:
    """Answers registrations."""

    def __init__(self, answer=None, status=201):
        self.answer = answer
        self.status = status
        self.documents = []

    async def fetch(self, method, url, *, headers, body):
        self.documents.append(json.loads(body))
        answer = {**self.documents[-1], "client_id": "made", **(self.answer or {})}
        if not isinstance(self.answer, dict | None):
            answer = self.answer
        return Fetched(self.status, {}, json.dumps(answer).encode(), url)


def place(**more):
    server = ServerMetadata(issuer=ISSUER, registration_endpoint=f"{ISSUER}/register", **more)
    return DiscoveryResult(resource="https://mcp.example", server=server)


def registrar(desk, store=None, redirect=None, **program):
    return Registrar(
        ClientProfile(name="desk", **program),
        redirect or Loopback(),
        store or MemoryTokenStore(),
        desk,
        lambda: 1000.0,
    )


@pytest.mark.parametrize(
    ("listed", "asked"),
    [
        (None, "none"),
        (["client_secret_post", "none"], "none"),
        (["client_secret_post", "client_secret_basic"], "client_secret_basic"),
        (["client_secret_post"], "client_secret_post"),
        (["private_key_jwt"], "none"),
        (["tls_client_auth"], "none"),
    ],
)
async def test_the_best_method_that_the_server_lists_is_asked_for(listed, asked):
    """Ours: of those that a program on its user's machine can do."""
    desk = Desk({"client_secret": "s"})
    at = place(token_endpoint_auth_methods_supported=listed)
    await registrar(desk).identity(at, LANDING, None)

    assert asked == desk.documents[0]["token_endpoint_auth_method"]


async def test_a_key_is_registered_where_the_server_takes_keys():
    """Ours: its public half alone."""
    desk, key = Desk(), PrivateKey.generate("ES256")
    at = place(token_endpoint_auth_methods_supported=["private_key_jwt", "none"])
    await registrar(desk, key=key, uri="https://desk.example").identity(at, LANDING, None)
    document = desk.documents[0]

    assert "private_key_jwt" == document["token_endpoint_auth_method"]
    assert "d" not in document["jwks"]["keys"][0]
    assert "https://desk.example" == document["client_uri"]


@pytest.mark.parametrize(
    ("answer", "listed", "method"),
    [
        ({}, None, "none"),
        ({"client_secret": "s", "token_endpoint_auth_method": None}, None, "client_secret_basic"),
        (
            {"client_secret": "s", "token_endpoint_auth_method": None},
            ["client_secret_post"],
            "client_secret_post",
        ),
        (
            {"client_secret": "s", "token_endpoint_auth_method": "client_secret_post"},
            None,
            "client_secret_post",
        ),
    ],
)
async def test_the_registration_response_counts(answer, listed, method):
    """RFC 7591 3.2.1: it may have changed what was asked for; Basic where it does not say."""
    at = place(token_endpoint_auth_methods_supported=listed)
    identity = await registrar(Desk(answer)).identity(at, LANDING, None)

    assert ("made", method) == (identity.client_id, identity.method)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([], "nonsense"),
        ({"client_id": 5}, "nonsense"),
        ({"redirect_uris": ["https://evil.example/cb"]}, "registered other redirect URIs"),
        ({"token_endpoint_auth_method": "client_secret_basic"}, "gave it nothing to do that with"),
        ({"token_endpoint_auth_method": "tls_client_auth"}, "gave it nothing to do that with"),
    ],
)
async def test_an_unusable_registration_is_not_kept(answer, words):
    """Ours: nothing is left behind."""
    store = MemoryTokenStore()
    with pytest.raises(AuthUnsafe, match=words):
        await registrar(Desk(answer), store).identity(place(), LANDING, None)
    assert [] == await store.keys()


@pytest.mark.parametrize("answer", [{"error": "x" * 999}, [], {"error": 5}])
async def test_a_refusal_is_told_whatever_it_says(answer):
    """The spec: in a way that helps, with the redirect URI to register by hand."""
    with pytest.raises(AuthRefused, match=r"register it there by hand with the redirect URI") as e:
        await registrar(Desk(answer, 400)).identity(place(), LANDING, None)
    assert len(str(e.value)) < 700


@pytest.mark.covers("auth.client.credentials-by-issuer")
async def test_a_registration_is_kept_under_its_issuer_as_it_is_spelt():
    """The spec: and found under no other; a secret that has ended is found no more."""
    store, one = MemoryTokenStore(), Desk({"client_secret": "s", "client_secret_expires_at": 2000})
    made = registrar(one, store)
    await made.identity(place(), LANDING, None)

    assert [Key(ISSUER, "made", redirect="http://127.0.0.1:0/callback")] == await store.keys()
    assert "made" == (await made.load(ISSUER)).client_id
    assert await made.load(f"{ISSUER}/") is None
    made._now = lambda: 2000.0
    assert await made.load(ISSUER) is None


async def test_a_registration_for_another_port_is_not_used():
    """Ours: some servers compare it; a new one is made."""
    kept = Registration(issuer=ISSUER, client_id="old", redirect_uri="http://127.0.0.1:1/callback")
    one = registrar(desk := Desk())

    assert "made" == (await one.identity(place(), LANDING, kept)).client_id
    assert "old" == (await one.identity(place(), kept.redirect_uri, kept)).client_id
    assert 1 == len(desk.documents)


async def test_two_logins_at_once_leave_two_clients_that_both_work():
    """Ours: each is on a port of its own, and tokens are renewed by the client they are of."""
    store, desk = MemoryTokenStore(), Desk()
    one = registrar(desk, store)
    for name, port in (("first", 1), ("second", 2)):
        desk.answer = {"client_id": name}
        await one.identity(place(), f"http://127.0.0.1:{port}/callback", None)
    tokens = Tokens(access=Secret("a"), issuer=ISSUER, client_id="first", resource="r")

    assert "first" == (await one.find_identity(tokens)).client_id
    assert "second" == (await one.load(ISSUER)).client_id
    await one.doubt(ISSUER, "second")
    assert "first" == (await one.load(ISSUER)).client_id


async def test_a_web_application_says_that_it_is_one():
    """The spec: application_type."""
    redirect = ByHand("https://app.example/cb", None)
    await registrar(desk := Desk(), redirect=redirect).identity(place(), redirect.uri, None)

    assert "web" == desk.documents[0]["application_type"]


async def test_tokens_are_renewed_by_the_client_they_were_issued_to():
    """Ours: one that was replaced meanwhile cannot."""
    url = "https://desk.example/client.json"
    clients = {"https://known.example": StaticClient("known", secret="s-1")}
    store = MemoryTokenStore()
    one = registrar(Desk(), store, metadata_url=url, clients=clients)
    kept = Registration(
        issuer=ISSUER, client_id="dyn", redirect="http://127.0.0.1:0/callback", secret=Secret("s-2")
    )
    await store.put(kept.key, kept)

    async def of(issuer, client_id):
        tokens = Tokens(access=Secret("a"), issuer=issuer, client_id=client_id, resource="r")
        return await one.find_identity(tokens)

    assert Secret("s-1") == (await of("https://known.example/", "known")).secret
    assert await of("https://known.example", "other") is None
    assert "none" == (await of(ISSUER, url)).method
    assert Secret("s-2") == (await of(ISSUER, "dyn")).secret
    assert await of(ISSUER, "older") is None
    assert await of("https://else.example", "dyn") is None
