"""The sizes of tokens and of request heads agree: what is issued is taken, and what is taken has room."""

import pytest

from isthmus import Server
from isthmus.auth import Presented, Secret
from isthmus.auth.resource_server.jwt import JWTVerifier
from isthmus.auth.tokens.jose import PrivateKey, sign_jwt
from isthmus.errors import UsageError
from support.auth.protected_server import READ, Files, make_guard
from support.auth.small_authority import RESOURCE, SmallAuthority
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

KEY = PrivateKey.generate("ES256", kid="k")
NOW = 1_800_000_000.0
ISSUER = "https://login.example"


def make_token_of_size(size):
    """A good token of about a size."""
    claims = {
        "iss": ISSUER, "aud": "http://localhost:8000/mcp", "sub": "ada", "client_id": "c",
        "scope": READ, "exp": NOW + 600,
    }  # fmt: skip
    room = size - len(sign_jwt({**claims, "more": ""}, KEY, typ="at+jwt"))
    return sign_jwt({**claims, "more": "x" * (room * 3 // 4)}, KEY, typ="at+jwt")


def files(**options):
    """A server that takes JWTs."""
    verifier = JWTVerifier(ISSUER, jwks=[KEY.jwk], clock=lambda: NOW)
    return Files(make_guard(verifier=verifier, **options))


async def present_to_server(server, text):
    """The status with which a server answers a token."""
    head = {**modern_head(name="read"), "authorization": f"Bearer {text}"}
    body = modern_body(params={"name": "read", "arguments": {"path": "a"}})
    return (await fetch(server.app, headers=head, body=body)).status


@pytest.mark.parametrize(("size", "status"), [(9_000, 200), (16_000, 200), (17_000, 400)])
async def test_a_token_may_be_as_long_in_a_header_as_it_may_be_at_all(size, status):
    """Ours: one limit, of 16 KiB; a header had 8 KiB before, and a JWT 16."""
    assert status == await present_to_server(files(), make_token_of_size(size))


async def test_the_limit_is_a_setting():
    """Ours: enterprise tokens have hundreds of groups."""
    assert 400 == await present_to_server(files(max_token_bytes=4_000), make_token_of_size(5_000))
    with pytest.raises(UsageError, match="head_limit=32768 has no room for the tokens"):
        files(max_token_bytes=40_000)
    server = files(max_token_bytes=28_000)
    assert [200, 400] == [
        await present_to_server(server, make_token_of_size(size)) for size in (27_000, 29_000)
    ]


def test_a_head_that_has_no_room_for_its_tokens_is_told_when_it_is_set_up():
    """Ours: such a server would answer 431 to whoever it gave a token."""
    with pytest.raises(UsageError, match="20480 or more"):
        Server("s", auth=make_guard()).asgi(head_limit=20_000)
    with pytest.raises(UsageError, match="28672 or more"):
        Server("s", auth=make_guard(dpop="allow")).asgi(head_limit=21_000)
    with pytest.raises(UsageError, match="max_token_bytes"):
        make_guard(max_token_bytes=10)


async def test_a_token_that_no_server_would_take_is_not_issued():
    """Ours: the client learns it at once, and not by a refusal of every request."""
    scopes = {f"scope-{number:03}-{'x' * 50}": "" for number in range(300)}
    async with SmallAuthority(scopes=scopes) as small:  # who names none is granted all
        id = await small.public()
        few = " ".join(list(scopes)[:20])
        refused = await small.redeem(await small.code(id, scope=None), id)
        assert (400, "invalid_scope") == (refused.status, refused.json["error"])
        tokens = await small.tokens(id, scope=few)
        assert few == tokens["scope"]
    async with SmallAuthority(scopes=scopes, max_token_bytes=30_000) as small:
        id = await small.public()
        tokens = await small.tokens(id, scope=None)
        guarded = small.app.resource_auth(RESOURCE)
        assert 30_000 == guarded.max_credential_bytes
        assert 20_000 < len(Secret(tokens["access_token"]).reveal()) < 30_000
        shown = Presented("bearer", Secret(tokens["access_token"]), limit=30_000)
        assert await small.app.verifier.verify(shown, RESOURCE)
