"""Logins of servers that were written for mcp and fastmcp: nothing is served over HTTP without a good token."""

import json
import time
from importlib import import_module
from pathlib import Path

import pytest

import isthmus.compat.mcp.auth as mcp_auth
from isthmus import Client
from isthmus.auth import StaticTokens
from isthmus.auth.client.grants.bearer_token import BearerToken
from isthmus.auth.net.challenge import parse_challenges
from isthmus.auth.resource_server.resource_auth import ResourceAuth
from isthmus.compat.fastmcp import FastMCP
from isthmus.compat.fastmcp.server.auth import (
    AccessToken,
    AuthProvider,
    BearerAuthProvider,
    DebugTokenVerifier,
    JWTVerifier,
    MultiAuth,
    OAuthProvider,
    OAuthProxy,
    RemoteAuthProvider,
    StaticTokenVerifier,
    TokenVerifier,
)
from isthmus.compat.fastmcp.server.auth.providers.jwt import RSAKeyPair
from isthmus.compat.fastmcp.server.dependencies import get_access_token
from isthmus.compat.fastmcp.server.http import create_sse_app, create_streamable_http_app
from isthmus.compat.mcp.lowlevel import Server as LowLevel
from isthmus.compat.mcp.mcpserver import FastMCP as Mcp1Server
from isthmus.compat.mcp.mcpserver import MCPServer
from isthmus.core.principal import Principal
from isthmus.errors import UsageError
from support.http.asgi_driver import fetch
from support.http.messages import INITIALIZE, legacy_head
from support.http.uvicorn_server import serve_uvicorn

REVISIONS = ["2025-11-25", "2026-07-28"]

DOCS = Path(__file__).parents[2] / "docs" / "guide"

TOKENS = {
    "good": {"client_id": "ada", "scopes": ["read"], "sub": "user-1", "team": "a"},
    "late": {"client_id": "ada", "scopes": ["read"], "expires_at": 1},
    "weak": {"client_id": "ada", "scopes": []},
}


class TableVerifier:
    """A verifier as programs for mcp write it: any class with ``verify_token``."""

    async def verify_token(self, token):
        known = TOKENS.get(token)
        return known and mcp_auth.AccessToken(
            token=token,
            client_id=known["client_id"],
            scopes=known["scopes"],
            expires_at=known.get("expires_at"),
            resource=known.get("resource"),
        )


def make_fastmcp(auth):
    """A server of fastmcp whose tool says who calls."""
    server = FastMCP("shop", auth=auth)

    @server.tool
    def who() -> str:
        found = get_access_token()
        return json.dumps([found.token, found.client_id, found.scopes, found.claims.get("team")])

    return server


def make_mcp(kind, **settings):
    """A server of mcp whose tool says who calls."""
    auth = mcp_auth.AuthSettings(issuer_url="https://login.example", **settings)
    server = kind("shop", auth=auth, token_verifier=TableVerifier())

    @server.tool()
    def who() -> str:
        found = mcp_auth.get_access_token()
        return json.dumps([found.token, found.client_id, found.scopes])

    return server


async def ask_without_client(app, token=None, path="/mcp"):
    """The answer to a handshake with a token."""
    head = legacy_head() if token is None else {**legacy_head(), "authorization": f"Bearer {token}"}
    return await fetch(app, path=path, headers=head, body=INITIALIZE)


def read_challenge(answer):
    """What the answer asks its client to bring."""
    return parse_challenges(value for name, value in answer.headers if name == "www-authenticate")[
        0
    ].params


APPS = {
    "fastmcp": lambda: make_fastmcp(StaticTokenVerifier(TOKENS)).http_app(),
    "fastmcp by itself": make_fastmcp(StaticTokenVerifier(TOKENS)).server.asgi,
    "fastmcp elsewhere": lambda: make_fastmcp(
        RemoteAuthProvider(
            StaticTokenVerifier(TOKENS), ["https://login.example"], "https://shop.example"
        )
    ).http_app(),
    "mcp 1": lambda: make_mcp(Mcp1Server, resource_server_url=None).streamable_http_app(),
    "mcp 2": lambda: make_mcp(
        MCPServer, resource_server_url="https://shop.example/mcp"
    ).streamable_http_app(),
    "lowlevel": lambda: LowLevel("shop").streamable_http_app(
        auth=mcp_auth.AuthSettings(
            issuer_url="https://login.example", resource_server_url="https://shop.example/mcp"
        ),
        token_verifier=TableVerifier(),
    ),
}


@pytest.mark.parametrize("kind", APPS)
async def test_nothing_is_served_without_a_good_token(kind):
    """Ours: no token, an unknown one and one that has expired are 401; only these two are called invalid."""
    app = APPS[kind]()

    answers = [await ask_without_client(app, token) for token in (None, "bad", "late", "good")]

    assert [one.status for one in answers] == [401, 401, 401, 200]
    errors = [read_challenge(one).get("error") for one in answers[:3]]
    assert errors == [None, "invalid_token", "invalid_token"]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("kind", ["fastmcp", "fastmcp elsewhere", "mcp 1", "mcp 2"])
async def test_a_tool_knows_who_calls(kind, revision):
    """Ours: the token is the one that the verifier gave, in every revision."""
    async with (
        serve_uvicorn(APPS[kind](), "auto") as port,
        Client(
            f"http://127.0.0.1:{port}/mcp", auth=BearerToken("good"), revision=revision
        ) as client,
    ):
        found = json.loads((await client.call_tool("who")).text)

    assert found[:3] == ["good", "ada", ["read"]]
    assert found[3:] == (["a"] if kind.startswith("fastmcp") else [])


async def test_a_stream_of_2024_needs_a_token_too():
    """Ours: the older transport has the same login."""
    app = make_fastmcp(StaticTokenVerifier(TOKENS)).sse_app()

    assert (await fetch(app, "GET", "/sse", headers={"host": "localhost"})).status == 401


async def test_a_token_that_lacks_a_required_scope_is_refused():
    """Ours: 401 where the verifier itself says no, as in fastmcp, and 403 where the server does."""
    required = RemoteAuthProvider(
        DebugTokenVerifier(scopes=["read"], required_scopes=["write"]),
        ["https://login.example"],
        "https://shop.example",
    )
    by_verifier = make_fastmcp(StaticTokenVerifier(TOKENS, required_scopes=["read"])).http_app()
    by_server = make_fastmcp(required).http_app()
    alone = make_fastmcp(DebugTokenVerifier(required_scopes=["write"])).http_app()

    assert (await ask_without_client(by_verifier, "weak")).status == 401
    for app in (by_server, alone):
        answer = await ask_without_client(app, "any")
        assert answer.status == 403
        found = read_challenge(answer)
        assert (found["error"], found["scope"]) == ("insufficient_scope", "write")


async def test_metadata_names_the_endpoint_by_its_path():
    """Ours: the resource is the base URL with the path that the app has."""
    auth = RemoteAuthProvider(
        StaticTokenVerifier(TOKENS, required_scopes=["read"]),
        ["https://login.example"],
        base_url="https://shop.example/x/",
        scopes_supported=["api://read"],
        resource_name="Shop",
    )
    app = make_fastmcp(auth).http_app(path="/tools")

    page = await fetch(
        app, "GET", "/.well-known/oauth-protected-resource/x/tools", headers={"host": "localhost"}
    )
    told = page.json
    challenge = read_challenge(await ask_without_client(app, path="/tools"))

    assert (told["resource"], told["authorization_servers"]) == (
        "https://shop.example/x/tools",
        ["https://login.example"],
    )
    assert (told["scopes_supported"], told["resource_name"]) == (["api://read"], "Shop")
    assert challenge["resource_metadata"].endswith("/.well-known/oauth-protected-resource/x/tools")


async def test_a_verifier_alone_names_no_metadata():
    """Ours: fastmcp has none there, and a page of it would name an authorization server that nobody gave."""
    app = make_fastmcp(StaticTokenVerifier(TOKENS)).http_app()

    page = await fetch(
        app, "GET", "/.well-known/oauth-protected-resource/mcp", headers={"host": "localhost"}
    )

    assert page.status == 404
    assert "resource_metadata" not in read_challenge(await ask_without_client(app))


async def test_a_verifier_that_fails_lets_nobody_in():
    """Ours: an exception is no token."""

    class Broken(TokenVerifier):
        async def verify_token(self, token):
            raise RuntimeError(token)

    assert (await ask_without_client(make_fastmcp(Broken()).http_app(), "good")).status == 500


async def test_tokens_of_another_resource_are_refused_where_settings_say_so(monkeypatch):
    """Ours: validate_token_resource= of mcp compares what the verifier says."""
    monkeypatch.setitem(
        TOKENS,
        "bound",
        {"client_id": "ada", "scopes": [], "resource": "https://shop.example/mcp/"},
    )
    app = make_mcp(
        MCPServer, resource_server_url="https://shop.example/mcp", validate_token_resource=True
    ).streamable_http_app()

    assert (await ask_without_client(app, "good")).status == 401
    assert (await ask_without_client(app, "bound")).status == 200


async def test_isthmus_own_authorizer_may_be_given():
    """Ours: a program may take ResourceAuth before it takes the rest."""
    ada = Principal(issuer="ours", subject="ada", client_id="c", scopes=frozenset({"read"}))
    auth = ResourceAuth(
        "http://localhost:8000/mcp", ["https://login.example"], StaticTokens({"own": ada})
    )
    app = make_fastmcp(auth).http_app()

    assert (await ask_without_client(app)).status == 401
    assert (await ask_without_client(app, "own")).status == 200


def test_a_principal_shows_no_token():
    """Ours: what is written into logs of a principal has no secret in it."""
    from isthmus.compat.tokens import make_principal

    found = make_principal(AccessToken(token="hush", client_id="c", scopes=["read"]))

    assert "hush" not in repr(found)
    assert found.claims.access_token.token == "hush"


# Logins that cannot be had


class OwnPages(TokenVerifier):
    """A verifier with pages, which the façade cannot serve."""

    def get_routes(self, mcp_path=None):
        return []


class Silent(OAuthProvider):
    """A provider that does not call the constructor above it."""

    def __init__(self):
        pass


def tell_secret() -> str:
    """A tool that not everybody may call."""
    return "secret"


REFUSED = {
    "proxy": lambda: FastMCP("x", auth=OAuthProxy(upstream_client_id="x")),
    "silent": lambda: FastMCP("x", auth=Silent()),
    "several": lambda: FastMCP("x", auth=MultiAuth(verifiers=[])),
    "pages": lambda: FastMCP("x", auth=OwnPages()),
    "unknown": lambda: FastMCP("x", auth=object()),
    "plain HTTP": lambda: FastMCP(
        "x", auth=RemoteAuthProvider(AuthProvider(), ["https://login.example"], "http://shop")
    ),
    "2.x": lambda: FastMCP("x", auth_server_provider=object()),
    "app": lambda: create_streamable_http_app(FastMCP("x"), "/mcp", auth=AuthProvider()),
    "older app": lambda: create_sse_app(FastMCP("x"), "/m", "/sse", auth=AuthProvider()),
    "mcp provider": lambda: MCPServer("x", auth_server_provider=object()),
    "mcp settings": lambda: MCPServer("x", auth={"a": 1}, token_verifier=TableVerifier()),
    "component": lambda: FastMCP("x").tool(tell_secret, auth="admin"),
    "lowlevel": lambda: LowLevel("x").streamable_http_app(auth_server_provider=object()),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_login_that_cannot_be_enforced_ends_the_program(kind):
    """Ours: no server is made without the login that it asks for."""
    with pytest.raises(UsageError, match=r"docs/guide|use https|pass auth="):
        REFUSED[kind]()


@pytest.mark.parametrize("kind", [MCPServer, Mcp1Server])
def test_settings_without_a_verifier_are_refused(kind):
    """Ours: with the words of mcp, also where they are set later."""
    settings = mcp_auth.AuthSettings(issuer_url="https://a.example", resource_server_url=None)
    with pytest.raises(ValueError, match="Must specify either"):
        kind("x", auth=settings)
    with pytest.raises(ValueError, match="without auth settings"):
        kind("x", token_verifier=TableVerifier())
    late = kind("x")
    late.settings.auth = settings
    with pytest.raises(ValueError, match="Must specify either"):
        late.streamable_http_app()


def test_a_login_of_the_environment_is_refused(monkeypatch):
    """Ours: 2.x makes one of a variable; a server must not run open for that it is not read here."""
    monkeypatch.setenv("FASTMCP_SERVER_AUTH", "fastmcp.server.auth.providers.jwt.JWTVerifier")

    with pytest.raises(UsageError, match="FASTMCP_SERVER_AUTH"):
        FastMCP("x")
    assert FastMCP("x", auth=None).auth is None


def test_a_login_in_an_env_file_is_refused(monkeypatch, tmp_path):
    """Ours: 2.x reads the file, and a check that is left out is a lock that is open."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("X=1\nexport FASTMCP_SERVER_AUTH_JWT_AUDIENCE=shop\n")

    with pytest.raises(UsageError, match=r"FASTMCP_SERVER_AUTH_JWT_AUDIENCE stands in \.env"):
        FastMCP("x")
    monkeypatch.setenv("FASTMCP_SERVER_AUTH_JWT_AUDIENCE", "shop")
    assert FastMCP("x").auth is None


@pytest.mark.parametrize(
    ("name", "ours", "page"),
    [
        ("providers.github.GitHubProvider", "UpstreamLogin(GITHUB", "github"),
        ("providers.google.GoogleProvider", "UpstreamLogin(GOOGLE", "google"),
        ("providers.azure.AzureProvider", "ENTRA", "entra"),
        ("providers.auth0.Auth0Provider", "AUTH0", "auth0"),
        ("providers.workos.AuthKitProvider", "WORKOS", "workos"),
        ("providers.aws.AWSCognitoProvider", "COGNITO", "cognito"),
        ("providers.keycloak.KeycloakAuthProvider", "KEYCLOAK", "keycloak"),
        (
            "providers.in_memory.InMemoryOAuthProvider",
            "AuthorizationServer",
            "authorization-server",
        ),
        ("providers.descope.DescopeProvider", "ResourceAuth", "resource-server"),
        ("oauth_proxy.OAuthProxy", "UpstreamLogin", "authorization-server"),
        ("oidc_proxy.OIDCProxy", "UpstreamLogin", "authorization-server"),
    ],
)
def test_ready_providers_say_what_isthmus_has(facades, name, ours, page):
    """Ours: by the names that programs import them by, with a page that is there."""
    module, _, kind = f"fastmcp.server.auth.{name}".rpartition(".")

    with pytest.raises(UsageError) as refusal:
        getattr(import_module(module), kind)(client_id="x")

    assert f"fastmcp's {kind} is not offered" in str(refusal.value)
    assert ours in str(refusal.value)
    assert (DOCS / f"auth-{page}.md").exists()
    assert f"see docs/guide/auth-{page}.md" in str(refusal.value)


# Tokens that are signed


@pytest.fixture(scope="module")
def keys():
    """A key pair of RSA."""
    return RSAKeyPair.generate()


async def test_a_signed_token_is_verified(keys):
    """Ours: signature, issuer, audience, end and scopes decide."""
    verifier = BearerAuthProvider(
        public_key=keys.public_key, issuer="https://login.example", audience="shop"
    )
    good = {"issuer": "https://login.example", "audience": ["shop", "x"], "scopes": ["read"]}

    found = await verifier.verify_token(keys.create_token(**good, kid="k1", subject="u"))
    assert (found.client_id, found.subject, found.scopes) == ("u", "u", ["read"])
    for change in (
        {"issuer": "https://other.example"},
        {"audience": "other"},
        {"audience": None},
        {"expires_in_seconds": -1},
        {"additional_claims": {"nbf": time.time() + 600}},
        {"additional_claims": {"exp": "never"}},
    ):
        assert await verifier.verify_token(keys.create_token(**{**good, **change})) is None
    assert await verifier.verify_token(RSAKeyPair.generate().create_token(**good)) is None
    assert await verifier.verify_token("no.token") is None
    needs = JWTVerifier(public_key=keys.public_key, required_scopes="write")
    assert await needs.verify_token(keys.create_token(**good)) is None


async def test_a_public_key_is_no_shared_secret(keys):
    """Ours: a token that a public key was taken for the secret of is refused (algorithm confusion)."""
    from joserfc import jwk, jwt

    secret = "a secret of at least thirty-two bytes"
    signed = jwt.encode({"alg": "HS256"}, {"sub": "u"}, jwk.import_key(secret, "oct"))

    assert (await JWTVerifier(public_key=secret, algorithm="HS256").verify_token(signed)).subject
    assert await JWTVerifier(public_key="x" * 40, algorithm="HS256").verify_token(signed) is None
    assert await JWTVerifier(public_key=keys.public_key).verify_token(signed) is None
    with pytest.raises(ValueError, match="not a public key"):
        JWTVerifier(public_key=keys.public_key, algorithm="HS256")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "Either public_key or jwks_uri"),
        ({"public_key": "k", "jwks_uri": "https://x.example"}, "not both"),
        ({"public_key": "k", "algorithm": "none"}, "Unsupported algorithm"),
        ({"public_key": "no key"}, "no public key for RS256"),
        ({"jwks_uri": "http://keys.example/jwks"}, "unencrypted"),
        ({"jwks_uri": "https://x.example", "algorithm": "HS256"}, "cannot be used with jwks_uri"),
        ({"jwks_uri": "https://x.example", "http_client": object()}, "http_client"),
    ],
)
def test_a_verifier_that_could_verify_nothing_is_refused(given, words):
    """Ours: when it is made, and not when the first token comes."""
    with pytest.raises((ValueError, UsageError), match=words):
        JWTVerifier(**given)


def test_variables_of_the_environment_fill_what_is_not_given(monkeypatch, keys):
    """Ours: what 2.x reads from them is checked here, too."""
    for name, value in {
        "AUDIENCE": "shop",
        "ISSUER": '["https://a.example", "https://b.example"]',
        "REQUIRED_SCOPES": "read,write",
    }.items():
        monkeypatch.setenv(f"FASTMCP_SERVER_AUTH_JWT_{name}", value)

    verifier = JWTVerifier(public_key=keys.public_key)

    assert (verifier.audience, verifier.issuer, verifier.required_scopes) == (
        "shop",
        ["https://a.example", "https://b.example"],
        ["read", "write"],
    )
