"""T35: registrations are limited, typed, and expire unused."""

import pytest

from isthmus.auth.authorization_server.core.settings import DcrPolicy, RegistrationPolicy
from support.auth.small_authority import BACK, SmallAuthority

pytestmark = pytest.mark.covers(
    "auth.threat.t35-registration-flood", "auth.authority.registers-clients"
)

BAD = [
    b"",
    b"null",
    b'"x"',
    b"[]",
    b"{",
    b"\xff",
    b"[" * 10_000,
    {},
    {"redirect_uris": []},
    {"redirect_uris": "x"},
    {"redirect_uris": [1]},
    {"redirect_uris": [None]},
    {"redirect_uris": [{}]},
    {"redirect_uris": [BACK] * 21},
    {"redirect_uris": [BACK + "x" * 2000]},
    {"redirect_uris": ["javascript:alert(1)"]},
    {"redirect_uris": ["javascript://app.example/%0aalert(1)"]},
    {"redirect_uris": ["data:text/html,x"]},
    {"redirect_uris": ["file:///etc/passwd"]},
    {"redirect_uris": ["http://evil.example/cb"]},
    {"redirect_uris": ["https://ada@evil.example/cb"]},
    {"redirect_uris": [BACK + "#f"]},
    {"redirect_uris": ["x"]},
    {"redirect_uris": ["unheard-of:/cb"]},
    {"redirect_uris": [BACK], "grant_types": 5},
    {"redirect_uris": [BACK], "grant_types": ["implicit"]},
    {"redirect_uris": [BACK], "grant_types": ["client_credentials"]},
    {"redirect_uris": [BACK], "response_types": ["token"]},
    {"redirect_uris": [BACK], "token_endpoint_auth_method": "tls_client_auth"},
    {"redirect_uris": [BACK], "token_endpoint_auth_method": "private_key_jwt"},
    {"redirect_uris": [BACK], "jwks": {"keys": [{"kty": "oct", "k": "AA"}]}},
    {"redirect_uris": [BACK], "jwks": {"keys": 1}},
    {"redirect_uris": [BACK], "client_name": 1},
    {"redirect_uris": [BACK], "scope": ["read"]},
    {"redirect_uris": [BACK], "application_type": "toaster"},
    {"redirect_uris": [BACK], "application_type": "web"},
]


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
async def test_what_is_no_client_is_told_so(body):
    """RFC 7591 3.2.2: invalid_client_metadata or invalid_redirect_uri, never a fault of ours."""
    async with SmallAuthority() as small:
        answer = await small.registering(body)

        assert 400 == answer.status
        assert answer.json["error"] in {"invalid_client_metadata", "invalid_redirect_uri"}


@pytest.mark.parametrize(
    "uri",
    [
        "https://app.example/cb",
        "http://localhost/cb",
        "http://[::1]:1/cb",
        "com.example.app:/cb",
        "cursor://anysphere.cursor-mcp/oauth/callback",
    ],
)
async def test_redirect_uris_of_real_clients_are_taken(uri):
    """RFC 8252 7: https, this machine, and an app's own scheme."""
    async with SmallAuthority() as small:
        assert 201 == (await small.registering({"redirect_uris": [uri]})).status


async def test_the_twenty_first_registration_of_an_hour_is_too_many():
    """Ours: by address; others go on registering."""
    async with SmallAuthority() as small:
        done = [await small.registering({"redirect_uris": [BACK]}) for _ in range(21)]
        other = await small.registering(
            {"redirect_uris": [BACK]}, scope={"client": ("192.0.2.7", 1)}
        )

        assert [201] * 20 + [429] == [one.status for one in done]
        assert int(done[-1].header("retry-after")) > 0
        assert 201 == other.status


async def test_a_client_that_was_never_used_is_gone_after_a_day():
    """Ours: what nobody needs takes no room; one that got a token stays."""
    async with SmallAuthority() as small:
        unused, used = await small.public(), await small.public()
        await small.tokens(used)
        small.clock.now += 86_401

        assert 400 == (await small.ask(unused)).status
        assert 302 == (await small.ask(used)).status


async def test_there_are_only_so_many_clients():
    """Ours: many addresses together fill no disk."""
    policy = RegistrationPolicy(dcr=DcrPolicy(most=2))
    async with SmallAuthority(registration=policy) as small:
        for _ in range(2):
            await small.tokens(await small.public())
        third = await small.registering({"redirect_uris": [BACK]})

        assert 503 == third.status


async def later(small):
    """A client that registers a second after the one before."""
    small.clock.now += 1
    return await small.public()


async def test_a_flood_of_registrations_closes_the_door_to_nobody():
    """Ours: who is of no use gives way, and who was granted something does not."""
    policy = RegistrationPolicy(dcr=DcrPolicy(most=3))
    async with SmallAuthority(registration=policy) as small:
        used = await small.public()
        await small.tokens(used)
        first, *_, last = [await later(small) for _ in range(8)]

        assert 302 == (await small.ask(used)).status
        assert 400 == (await small.ask(first)).status
        assert 302 == (await small.ask(last)).status


async def test_a_client_whose_grants_are_over_gives_way_after_those_that_never_had_any():
    """Ours: otherwise a server would take no new clients after some years."""
    policy = RegistrationPolicy(dcr=DcrPolicy(most=2))
    async with SmallAuthority(registration=policy) as small:
        over = await small.public()
        tokens = await small.tokens(over)
        await small.post("/revoke", {"token": tokens["refresh_token"], "client_id": over})
        for _ in range(3):
            await small.public()
        assert await small.app.known_client(over)

        await small.tokens(await small.public())
        await small.public()
        assert not await small.app.known_client(over)


async def test_registration_can_be_turned_off():
    """2026-07-28: it may be there, and is deprecated."""
    policy = RegistrationPolicy(dcr=DcrPolicy(enabled=False))
    async with SmallAuthority(registration=policy) as small:
        document = (await small.get("/.well-known/oauth-authorization-server")).json

        assert 404 == (await small.registering({"redirect_uris": [BACK]})).status
        assert "registration_endpoint" not in document


async def test_a_body_is_not_longer_than_it_has_to_be():
    """Ours: 16 KiB."""
    async with SmallAuthority() as small:
        assert 413 == (await small.registering(b" " * 16_385)).status


async def test_a_secret_is_kept_as_a_digest():
    """Ours: whoever reads the file cannot be the client."""
    async with SmallAuthority() as small:
        client = await small.register(token_endpoint_auth_method="client_secret_basic")
        found = await small.app.store.read(lambda records: records.client(client["client_id"]))

        assert client["client_secret"].encode() not in found[1]
        assert None is found[0].secret
        assert 0 == client["client_secret_expires_at"]
