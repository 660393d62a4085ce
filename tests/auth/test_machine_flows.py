"""Our machines at our authorization server: each grant from the 401 to the tool, over sockets."""

import time

import pytest
from joserfc.jwk import ECKey

from isthmus import Client, Principal, Server
from isthmus.auth import (
    AuthorizationServer,
    ClientCredentials,
    EnterpriseManaged,
    JwtBearer,
    MemoryAuthStore,
    PrivateKey,
    RegisteredClient,
    RegistrationPolicy,
    Secret,
    StaticClient,
)
from isthmus.auth.authorization_server.core.settings import TrustedIdp, Workload
from isthmus.auth.tokens.jose import sign_jwt
from isthmus.errors import AuthRefused
from support.browser.chromium import serve_in_browser
from support.http.loopback_pages import json_page, serve_pages

IDP, PLATFORM = "https://idp.example", "https://platform.example"
JAG = "urn:ietf:params:oauth:token-type:id-jag"
KEY = PrivateKey(ECKey.generate_key("P-256").as_pem(private=True), alg="ES256", kid="one")
JWKS = {"keys": [dict(KEY.jwk)]}
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"

CLIENTS = (
    RegisteredClient(client_id="signing", grant_types=("client_credentials",),
                     auth_method="private_key_jwt", jwks=JWKS),
    RegisteredClient(client_id="knowing", grant_types=("client_credentials",),
                     auth_method="client_secret_basic", secret=Secret("the-secret-of-knowing")),
    RegisteredClient(client_id="robot", grant_types=(JWT_BEARER,)),
    RegisteredClient(client_id="chat", grant_types=(JWT_BEARER,),
                     auth_method="client_secret_basic", secret=Secret("the-secret-of-chat")),
)  # fmt: skip


def log_in_with_dpop(origin):
    """The same, for tokens that are of no use without a key."""
    return guarded(origin, dpop="require")


def guarded(origin, **more):
    """A server that says who calls, and the authorization server that knows."""
    authority = AuthorizationServer(
        issuer=origin,
        resources=[f"{origin}/mcp"],
        scopes={"read": "Read", "write": "Write"},
        users=None,
        store=MemoryAuthStore(),
        registration=RegistrationPolicy(static=CLIENTS),
        trusted_idps=[TrustedIdp(issuer=IDP, jwks=JWKS)],
        workloads=[
            Workload(issuer=PLATFORM, subject="ns:robot", client_id="robot", jwks=JWKS)
        ],
    )  # fmt: skip
    server = Server("who", auth=authority.resource_auth(f"{origin}/mcp", scopes={"read"}, **more))

    @server.tool
    def who(caller: Principal) -> str:
        return f"{caller.subject} by {caller.client_id}"

    @server.tool(scopes={"write"})
    def write(caller: Principal) -> str:
        return " ".join(sorted(caller.scopes))

    return server.asgi()


@pytest.fixture
async def origin():
    """Where both are."""
    async with serve_in_browser(guarded) as (url, _):
        yield url


def claims(issuer, audience, **more):
    """The usual claims of an assertion."""
    now = int(time.time())
    made = {"iss": issuer, "aud": audience, "iat": now, "exp": now + 60}
    return {**made, "jti": Secret.random().reveal(), **more}


async def call_tool_with(origin, auth, tool="who", revision=None):
    """What the server says about a caller."""
    async with Client(f"{origin}/mcp", auth=auth, revision=revision) as client:
        return (await client.call_tool(tool)).text


@pytest.mark.covers("auth.extension.client-credentials-client")
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_signature_gets_in_in_every_revision(origin, revision):
    """1.4: client credentials by private_key_jwt, in every revision that has authorization."""
    auth = ClientCredentials("signing", key=KEY)

    assert "signing by signing" == await call_tool_with(origin, auth, revision=revision)


async def test_a_secret_gets_in_and_steps_up(origin):
    """1.4: client credentials by Basic; a 403 leads to one more token, with more scopes."""
    auth = ClientCredentials("knowing", secret="the-secret-of-knowing")

    assert "read write" == await call_tool_with(origin, auth, "write")


@pytest.mark.covers("auth.extension.workload-client")
async def test_a_workload_gets_in(origin):
    """1.4: the platform's JWT becomes a token for the client that it stands for."""

    async def workload(issuer):
        return sign_jwt(claims(PLATFORM, issuer, sub="ns:robot"), KEY)

    assert (await call_tool_with(origin, JwtBearer(workload, client="robot"))).endswith(" by robot")


@pytest.mark.covers("auth.extension.workload-client")
async def test_another_workload_does_not(origin):
    """1.4: a JWT for another program is refused, and told as that."""

    async def workload(issuer):
        return sign_jwt(claims(PLATFORM, issuer, sub="ns:somebody"), KEY)

    with pytest.raises(AuthRefused, match="invalid_grant"):
        await call_tool_with(origin, JwtBearer(workload, client="robot"))


@pytest.mark.covers("auth.extension.enterprise-client")
async def test_an_employee_gets_in(origin):
    """1.4: the provider's grant becomes a token for its user, without a browser."""

    def exchange(asked):
        form = asked.form
        grant = claims(
            IDP, form["audience"], sub="alice", resource=form["resource"], client_id="chat",
            scope="read",
        )  # fmt: skip
        jag = sign_jwt(grant, KEY, typ="oauth-id-jag+jwt")
        return json_page({"access_token": jag, "issued_token_type": JAG, "token_type": "N_A"})

    async def id_token():
        return "what-the-provider-said-of-alice"

    async with serve_pages() as provider:
        provider.pages["/token"] = exchange
        auth = EnterpriseManaged(
            f"{provider.url}/token",
            idp_client=StaticClient("chat-at-the-provider"),
            subject_token=id_token,
            client=StaticClient("chat", secret="the-secret-of-chat"),
        )
        found = await call_tool_with(origin, auth)

    assert f"{IDP}|alice by chat" == found


@pytest.mark.covers("auth.extension.dpop-client")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_machine_binds_its_tokens_where_that_is_wanted(revision):
    """1.4: a server that takes bound tokens only gets them, with a proof for every request."""
    async with serve_in_browser(log_in_with_dpop) as (url, _):
        auth = ClientCredentials("signing", key=KEY)

        assert "signing by signing" == await call_tool_with(url, auth, revision=revision)
