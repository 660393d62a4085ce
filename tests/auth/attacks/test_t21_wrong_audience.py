"""T21: a token that was issued for somebody else, and a token of ours in somebody else's hands."""

import pytest

from isthmus import Context, Principal, Server
from isthmus.auth import JWTVerifier, PrivateKey
from isthmus.auth.tokens.jose import sign_jwt
from support.auth.protected_server import ISSUER, RESOURCE, list_challenges, make_guard
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

OLDER = "http://localhost:8000/sse"
NOW = 1_800_000_000.0
KEY = PrivateKey.generate("ES256", kid="one")
CLAIMS = {
    "iss": ISSUER,
    "sub": "ada",
    "client_id": "app",
    "scope": "files:read",
    "exp": NOW + 600,
    "iat": NOW,
    "jti": "7",
}


def sign_token(audience, issuer=ISSUER):
    """A token of the issuer's for somebody."""
    return sign_jwt({**CLAIMS, "aud": audience, "iss": issuer}, KEY, typ="at+jwt")


def app(seen):
    """A server whose tool writes down all it can get at."""
    verifier = JWTVerifier(ISSUER, jwks=[KEY.jwk], clock=lambda: NOW)
    server = Server("files", auth=make_guard(verifier=verifier, clock=lambda: NOW))

    @server.tool
    async def look(who: Principal, ctx: Context) -> str:
        seen.append((who, ctx))
        return who.subject

    return server.asgi()


async def ask(target, bearer):
    """A call with a token."""
    head = {**modern_head(name="look"), "authorization": f"Bearer {bearer}"}
    body = modern_body(params={"name": "look", "arguments": {}})
    return await fetch(target, headers=head, body=body)


@pytest.mark.covers("auth.threat.t21-wrong-audience", "auth.resource.audience-checked")
@pytest.mark.parametrize(
    ("audience", "issuer"),
    [
        ("https://other.example/mcp", ISSUER),
        (["https://other.example/mcp", "https://third.example"], ISSUER),
        (RESOURCE + "2", ISSUER),
        (RESOURCE, "https://upstream.example"),
        ([], ISSUER),
    ],
)
async def test_a_token_for_another_resource_or_of_another_issuer_is_401(audience, issuer):
    """Spec 2025-11-25 basic/authorization#token-handling: MUST have been issued for this server."""
    seen = []

    answer = await ask(app(seen), sign_token(audience, issuer))

    assert (401, []) == (answer.status, seen)
    assert 'error="invalid_token"' in list_challenges(answer)[0]


@pytest.mark.covers("auth.threat.t21-wrong-audience", "auth.resource.no-passthrough")
async def test_a_handler_is_told_who_calls_and_not_by_which_token():
    """Ours: what is not there cannot be handed on by accident."""
    seen, given = [], sign_token([RESOURCE, "https://other.example"])

    answer = await ask(app(seen), given)

    assert 200 == answer.status
    who, ctx = seen[0]
    assert ("ada", "app", ISSUER) == (who.subject, who.client_id, who.issuer)
    assert who == ctx.principal
    assert not hasattr(who, "token")
    assert given not in repr(who)
    assert given not in repr(ctx.principal.claims)


@pytest.mark.covers("auth.threat.t21-wrong-audience", "auth.resource.audience-checked")
@pytest.mark.parametrize(
    ("path", "audience", "status"),
    [
        ("/mcp", RESOURCE, 200),
        ("/mcp", OLDER, 401),
        ("/messages", RESOURCE, 401),
        ("/messages", OLDER, 404),  # there is no such session, which takes a good token to find out
        ("/sse", RESOURCE, 401),
        ("/sse", OLDER, 406),  # and no stream of events is asked for
    ],
)
async def test_the_two_transports_of_a_server_are_two_resources(path, audience, status):
    """Ours: a token that was issued for one of the two URLs is none for the other."""
    verifier = JWTVerifier(ISSUER, jwks=[KEY.jwk], clock=lambda: NOW)
    auth = make_guard(verifier=verifier, clock=lambda: NOW, sse=OLDER)
    server = Server("files", auth=auth)

    @server.tool
    async def look() -> str:
        return "seen"

    head = {**modern_head(name="look"), "authorization": f"Bearer {sign_token(audience)}"}
    head["accept"] = "application/json" if path == "/sse" else head["accept"]
    body = modern_body(params={"name": "look", "arguments": {}})
    way = "GET" if path == "/sse" else "POST"
    scope = {"query_string": b"session_id=0"}
    answer = await fetch(server.asgi(), way, path, headers=head, body=body, scope=scope)

    assert status == answer.status
    if status == 401:
        place = "mcp" if path == "/mcp" else "sse"
        assert f"oauth-protected-resource/{place}" in list_challenges(answer)[0]
