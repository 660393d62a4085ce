"""What authorization demands of every role at once, over whole servers and clients."""

import sys

import pytest

from isthmus import Client, Command, Context, Server
from isthmus.auth import BearerToken, Principal, ResourceAuth, StaticTokens
from isthmus.errors import UsageError
from isthmus.testing import connect, serving
from support.auth.small_authority import SmallAuthority, redirect_parameters
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

RESOURCE = "http://127.0.0.1:8000/mcp"
TOKEN = "a-token-of-adas"
ADA = Principal(issuer="ours", subject="ada", client_id="desk", scopes=frozenset({"a"}))


def guarded(kind=ResourceAuth, **options):
    """A server that takes one token."""
    auth = kind(
        RESOURCE,
        authorization_servers=["http://127.0.0.1:8000"],
        verifier=StaticTokens({TOKEN: ADA}),
        scopes={"a"},
        **options,
    )
    server = Server("guarded", auth=auth)

    @server.tool
    def hello(who: Principal | None, ctx: Context) -> str:
        """Say who calls, and what the client calls itself."""
        return (
            f"{who.subject if who else 'nobody'}, who says {ctx.client.name if ctx.client else ''}"
        )

    return server


@pytest.mark.parametrize("transport", ["memory", "stdio"])
@pytest.mark.covers("auth.all.stdio-environment")
async def test_whoever_started_a_server_needs_no_token(transport):
    """2026-07-28 basic/authorization: stdio does not follow it."""
    async with connect(guarded(), transport=transport, name="me") as client:
        assert "nobody, who says me" == (await client.call_tool("hello")).text


@pytest.mark.covers("auth.all.stdio-environment")
async def test_a_client_takes_no_authorization_to_a_command():
    """2026-07-28 basic/authorization: credentials come from the environment there."""
    with pytest.raises(UsageError, match="auth="):
        Client(Command(sys.executable, "-c", ""), auth=BearerToken(TOKEN))


@pytest.mark.covers("auth.all.never-in-query")
async def test_a_token_in_the_url_is_none():
    """2026-07-28 basic/authorization: access tokens MUST NOT be in the query string."""
    app = guarded().asgi()
    for query in (f"access_token={TOKEN}", f"token={TOKEN}", f"authorization=Bearer+{TOKEN}"):
        answer = await fetch(
            app,
            headers=modern_head(),
            body=modern_body(),
            scope={"query_string": query.encode()},
        )
        assert (401, None) == (answer.status, answer.header("mcp-session-id"))


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"])
@pytest.mark.covers(
    "auth.all.never-in-query", "auth.all.every-request", "auth.all.other-transports"
)
async def test_a_client_sends_its_token_in_the_header_of_every_request(revision):
    """2026-07-28 basic/authorization: in every request, and never in the query string."""
    seen = []

    class Watched(ResourceAuth):
        """Sees each request's head."""

        async def admit(self, scope):
            head = dict(scope["headers"])
            seen.append((scope["method"], head.get(b"authorization"), scope["query_string"]))
            return await super().admit(scope)

    server = guarded(kind=Watched)
    async with serving(server) as url:
        target = url.removesuffix("/mcp") + "/sse" if revision == "2024-11-05" else url
        async with Client(target, auth=BearerToken(TOKEN), revision=revision) as client:
            assert (await client.call_tool("hello")).text.startswith("ada")
            await client.list_tools()

    assert 3 <= len(seen)
    assert {f"Bearer {TOKEN}".encode()} == {authorization for _, authorization, _ in seen}
    assert not any(TOKEN.encode() in query for _, _, query in seen)


@pytest.mark.parametrize("path", ["/sse", "/messages", "/mcp"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.covers("auth.all.other-transports", "auth.resource.status-codes")
async def test_no_door_is_open_without_a_token(path, method):
    """2026-07-28 basic/authorization: every transport is protected, HTTP+SSE too."""
    answer = await fetch(guarded().asgi(), method, path, headers={"host": "localhost:8000"})

    assert 401 == answer.status or (405 == answer.status and path != "/mcp"), answer.body
    if answer.status == 401:
        assert "resource_metadata=" in answer.header("www-authenticate")


@pytest.mark.covers("auth.all.https-or-loopback")
@pytest.mark.parametrize(
    "url", ["http://mcp.example.com/mcp", "http://10.0.0.1/mcp", "ftp://mcp.example.com/", "mcp"]
)
def test_nothing_is_protected_where_others_read_along(url):
    """2026-07-28 security-considerations: tokens travel over https, or not at all."""
    verifier = StaticTokens({TOKEN: ADA})
    with pytest.raises(UsageError):
        ResourceAuth(url, authorization_servers=["https://login.example.com"], verifier=verifier)
    with pytest.raises(UsageError):
        ResourceAuth(RESOURCE, authorization_servers=[url], verifier=verifier)


@pytest.mark.covers("auth.resource.identity-verified")
async def test_who_calls_is_what_the_token_says():
    """2025-11-25 client/elicitation: never what the client says of itself."""
    async with (
        serving(guarded()) as url,
        Client(url, auth=BearerToken(TOKEN), name="bob") as client,
    ):
        (tool,) = await client.list_tools()
        said = await client.call_tool("hello", {"who": {"issuer": "ours", "subject": "bob"}})

    assert {} == tool.input_schema.get("properties", {})
    assert "ada, who says bob" == said.text or said.is_error


@pytest.mark.covers("auth.all.oauth-practice")
async def test_ways_that_oauth_2_1_gave_up_are_closed():
    """OAuth 2.1: no implicit grant, no password grant, and no code without PKCE."""
    async with SmallAuthority() as small:
        client = await small.public()
        for response_type in ("token", "id_token", "code token"):
            assert "error" in redirect_parameters(
                await small.ask(client, response_type=response_type)
            )
        assert (
            "invalid_request"
            == redirect_parameters(await small.ask(client, code_challenge=None))["error"]
        )
        password = {"username": "ada", "password": "correct horse", "client_id": client}
        asked = await small.post("/token", {"grant_type": "password", **password})
        metadata = (await small.get("/.well-known/oauth-authorization-server")).json

    assert (400, "unsupported_grant_type") == (asked.status, asked.json["error"])
    assert ["code"] == metadata["response_types_supported"]
    assert not {"password", "implicit"} & set(metadata["grant_types_supported"])


@pytest.mark.covers("auth.all.oauth-practice")
async def test_no_token_stands_in_a_url():
    """OAuth 2.1: what is in a redirect is a code, and nothing that opens a server."""
    async with SmallAuthority() as small:
        client = await small.public()
        redirect = redirect_parameters(await small.ask(client))
        tokens = (await small.redeem(redirect["code"], client)).json

    assert {"code", "state", "iss"} == set(redirect)
    assert not {tokens["access_token"], tokens["refresh_token"]} & set(redirect.values())


@pytest.mark.covers("auth.all.https-or-loopback")
@pytest.mark.parametrize("url", ["http://login.example.com", "http://10.0.0.1:8000"])
def test_no_authorization_server_answers_where_others_read_along(url):
    """2026-07-28 security-considerations: its endpoints are https, or on this machine."""
    with pytest.raises(UsageError):
        SmallAuthority(issuer=url)


@pytest.mark.covers("auth.all.https-or-loopback")
@pytest.mark.parametrize(
    ("uri", "status"),
    [
        ("https://app.example.com/cb", 201),
        ("http://127.0.0.1/cb", 201),
        ("http://localhost:3000/cb", 201),
        ("http://[::1]:3000/cb", 201),
        ("http://app.example.com/cb", 400),
        ("http://127.0.0.1.example.com/cb", 400),
        ("http://10.0.0.1/cb", 400),
    ],
)
async def test_redirect_uris_are_https_or_this_machine(uri, status):
    """2026-07-28 security-considerations: all redirect URIs MUST be localhost or HTTPS."""
    async with SmallAuthority() as small:
        answer = await small.registering({"redirect_uris": [uri]})

    assert status == answer.status, answer.body
