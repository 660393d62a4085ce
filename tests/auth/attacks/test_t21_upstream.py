"""T21, upstream: what came in goes to nobody, what is upstream gets its own, and neither is the other."""

import pytest

from isthmus import Context, Server
from isthmus.auth import UpstreamLogin
from support.auth.authority import make_authority, request_url
from support.auth.upstream_flow import Traveller, make_upstream, redeem_code
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

ISSUER = "http://127.0.0.1:8000"

pytestmark = [
    pytest.mark.covers("auth.threat.t21-wrong-audience"),
    pytest.mark.covers("auth.resource.no-passthrough"),
]


@pytest.fixture
async def authority(remote):
    """Our authorization server in front of it."""
    made = make_authority(ISSUER, UpstreamLogin(make_upstream(remote)))
    yield made
    await made.close()


async def call_curious_tool(authority, token, reached):
    """The answer of a tool that shows all it can get at, and calls the provider's API."""
    server = Server("s", auth=authority.resource_auth(f"{ISSUER}/mcp"))

    @server.tool
    async def look(ctx: Context) -> str:
        api = await ctx.upstream("acme")
        await api.json("/user")
        reached.append((ctx, api))
        return f"{ctx.principal!r} {dict(ctx.headers)!r} {api!r} {vars(api)!r}"

    head = modern_head(name="look", authorization=f"Bearer {token}")
    body = modern_body(params={"name": "look", "arguments": {}})
    return await fetch(server.asgi(), headers=head, body=body)


async def test_the_provider_sees_its_own_token_and_never_ours(authority, remote):
    """Spec: MCP servers must not pass through the token they received."""
    browser, reached = Traveller(authority, ISSUER), []
    sent = await browser.log_in_upstream(request_url(ISSUER))
    tokens = (await redeem_code(authority, ISSUER, sent)).json

    answered = await call_curious_tool(authority, tokens["access_token"], reached)

    assert 200 == answered.status
    assert 1 == len(remote.bearers)
    assert set(remote.bearers) <= set(remote.access)
    assert not set(remote.bearers) & {tokens["access_token"], tokens["refresh_token"]}


async def test_no_answer_of_ours_has_a_token_of_the_providers(authority, remote):
    """Ours: not in the tokens we issue, not in what a tool can show of its context."""
    browser, reached = Traveller(authority, ISSUER), []
    sent = await browser.log_in_upstream(request_url(ISSUER))
    redeeming = await redeem_code(authority, ISSUER, sent)

    answered = await call_curious_tool(authority, redeeming.json["access_token"], reached)

    seen = f"{sent.headers} {redeeming.body!r} {answered.body!r}"
    for token in [*remote.access, *remote.refresh]:
        assert token not in seen
    assert redeeming.json["access_token"] not in answered.body.decode()
    assert "accept" in reached[0][0].headers
    assert not hasattr(reached[0][0].principal, "token")


async def test_a_token_of_the_providers_opens_nothing_of_ours(authority, remote):
    """Spec: a token that was not issued for this server is refused; also its ID token."""
    browser, reached = Traveller(authority, ISSUER), []
    await browser.log_in_upstream(request_url(ISSUER))

    for token in [*remote.access, *remote.refresh, remote._id_token("alice", None)]:
        assert 401 == (await call_curious_tool(authority, token, reached)).status
    assert [] == reached
