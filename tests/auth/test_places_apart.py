"""MCP servers in one place, their authorization server in another, and our client going between them."""

import contextlib
import time

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette

from isthmus import Client, Server
from isthmus.auth import (
    BearerToken,
    FileTokenStore,
    IntrospectionVerifier,
    JWTVerifier,
    MemoryAuthStore,
    MemoryTokenStore,
    OAuth,
    Principal,
    RegisteredClient,
    RegistrationPolicy,
    ResourceAuth,
    Secret,
)
from isthmus.auth.tokens.dpop import Nonces
from isthmus.auth.tokens.jose import read_token
from isthmus.errors import AuthRefused
from isthmus.testing.person import Person
from support.auth.authority import PASSWORD, SCOPES, make_authority, make_users
from support.browser.chromium import serve_in_browser

READ, WRITE = SCOPES
ERAS = ("2025-11-25", "2026-07-28")
EVERY = ("2024-11-05", "2025-03-26", "2025-06-18", *ERAS)
ASKER = RegisteredClient(
    client_id="rs",
    auth_method="client_secret_basic",
    secret=Secret("a secret with a + and a : in it, long enough"),
    grant_types=(),
    introspects=True,
)
KINDS = ("jwt", "introspection")


class Later:
    """An ASGI app that is made once it is known where it is."""

    def __init__(self, _url):
        self.app = None

    async def __call__(self, scope, receive, send):
        """Serve it."""
        await self.app(scope, receive, send)


class Land:
    """An authorization server, two MCP servers elsewhere that trust it, and one clock for all."""

    def __init__(self, issuer, places, users, *, kind="jwt", guard=None, **options):
        self.ahead = 0.0
        self.issuer = issuer
        self.kind = kind
        self.urls = [f"{place}/mcp" for place in places]
        self.older = [f"{place}/sse" for place in places]
        self.authority = make_authority(
            issuer, users, resources=[*self.urls, *self.older], clock=self.clock,
            store=MemoryAuthStore(clock=self.clock),
            registration=RegistrationPolicy(static=[ASKER]), **options,
        )  # fmt: skip
        self.apps = [
            self.server(url, older, **(guard or {})).asgi()
            for url, older in zip(self.urls, self.older, strict=True)
        ]

    def clock(self):
        """The time here."""
        return time.time() + self.ahead

    def verifier(self):
        """Knows nothing of the authorization server but what it tells everybody."""
        if self.kind == "jwt":
            return JWTVerifier(self.issuer, clock=self.clock)
        return IntrospectionVerifier(
            f"{self.issuer}/introspect", client_id="rs", client_secret=ASKER.secret,
            issuer=self.issuer, fresh=0, clock=self.clock,
        )  # fmt: skip

    def server(self, url, older, **guard):
        """An MCP server at a URL."""
        auth = ResourceAuth(
            url, [self.issuer], self.verifier(),
            scopes={READ}, sse=older, clock=self.clock, **guard,
        )  # fmt: skip
        server = Server("files", auth=auth)

        @server.tool
        def who(caller: Principal) -> str:
            """Say who calls, and whether the token is bound to a key."""
            return f"{caller.subject} {'bound' if caller.jkt else 'free'}"

        @server.tool(scopes={WRITE})
        def write(caller: Principal) -> str:
            """Write."""
            return f"{caller.subject} writes"

        return server

    def ada(self, store, name="ada", **options):
        """A user at a browser, and their program."""
        person = Person(name, PASSWORD)
        auth = OAuth("desk", open_browser=person.open, store=store, **options)
        auth.login.clock = self.clock
        return person, auth


@pytest.fixture
async def land(tmp_path):
    """Founds lands that are there until the test is over."""
    async with contextlib.AsyncExitStack() as stack:

        async def founded(**options):
            three = [await stack.enter_async_context(serve_in_browser(Later)) for _ in range(3)]
            (issuer, authority), *others = three
            users = make_users(tmp_path, "ada", "bob")
            made = Land(issuer, [url for url, _ in others], users, **options)
            stack.push_async_callback(made.authority.close)
            authority.app = made.authority
            for (_, later), app in zip(others, made.apps, strict=True):
                later.app = app
                stack.push_async_callback(app.close)
            return made

        yield founded


def shape(here, revision, number=0):
    """The URL of an MCP server for clients of a revision."""
    return (here.older if revision == "2024-11-05" else here.urls)[number]


async def call_tools_with(url, auth, *tools, revision=None):
    """What tools say."""
    async with Client(url, auth=auth, revision=revision) as client:
        return [(await client.call_tool(tool)).text for tool in tools]


async def find_token(store, resource):
    """The access token that a client has for a resource."""
    (key,) = [key for key in await store.keys() if key.resource == resource]
    return (await store.get(key)).access


@pytest.mark.parametrize(
    ("revision", "kind"),
    [*((revision, "jwt") for revision in EVERY), *((revision, KINDS[1]) for revision in ERAS)],
)
@pytest.mark.covers("auth.resource.audience-checked", "auth.client.own-tokens-only")
async def test_two_servers_share_an_authorization_server_and_no_tokens(land, kind, revision):
    """Spec 2026-07-28 basic/authorization#token-handling: a token is for the server it was issued for."""
    here, store = await land(kind=kind), MemoryTokenStore()
    first, second = (shape(here, revision, number) for number in (0, 1))
    person, auth = here.ada(store)
    found = await call_tools_with(first, auth, "who", "write", "who", revision=revision)
    found += await call_tools_with(second, auth, "who", revision=revision)

    assert ["ada free", "ada writes", "ada free", "ada free"] == found
    assert 3 == len(person.opened)  # a login, more scopes, and a login at the other
    for mine, other in ((first, second), (second, first)):
        with pytest.raises(AuthRefused):
            await call_tools_with(
                other, BearerToken(await find_token(store, mine)), "who", revision=revision
            )


@pytest.mark.parametrize("revision", ERAS)
async def test_keys_change_while_tokens_are_out_and_nobody_logs_in_again(land, revision):
    """Ours: what was signed before stays good, and what is signed after is good at once."""
    here, store = await land(), MemoryTokenStore()
    person, auth = here.ada(store)
    async with Client(here.urls[0], auth=auth, revision=revision) as client:
        assert "ada free" == (await client.call_tool("who")).text
        before = await find_token(store, here.urls[0])
        await here.authority.rotate_keys()
        assert "ada free" == (await client.call_tool("who")).text
        here.ahead = 595.0  # the token is renewed
        assert "ada free" == (await client.call_tool("who")).text
        after = await find_token(store, here.urls[0])

    assert 2 == len({read_token(one).header["kid"] for one in (before, after)})
    assert 1 == len(person.opened)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_restart_with_a_token_that_is_over_opens_no_browser(land, kind, revision, tmp_path):
    """Ours: the refresh token in the file is good, so that nobody is asked."""
    here = await land(kind=kind)

    def kept():
        return FileTokenStore(tmp_path / "tokens", key="k" * 43)

    person, auth = here.ada(kept())
    await call_tools_with(here.urls[0], auth, "who", revision=revision)
    before = await find_token(kept(), here.urls[0])
    here.ahead = 700.0
    with pytest.raises(AuthRefused):
        await call_tools_with(here.urls[0], BearerToken(before), "who", revision=revision)
    later, again = here.ada(kept())

    assert ["ada free"] == await call_tools_with(here.urls[0], again, "who", revision=revision)
    assert (1, 0) == (len(person.opened), len(later.opened))
    assert before != await find_token(kept(), here.urls[0])


async def test_two_accounts_of_a_user_are_kept_apart(land):
    """Ours: one store, one server, one program, and each account has its own tokens."""
    here, store = await land(), MemoryTokenStore()
    for name in ("ada", "bob"):
        _, auth = here.ada(store, name, account=name)
        assert [f"{name} free"] == await call_tools_with(here.urls[0], auth, "who")

    for name in ("bob", "ada"):
        nobody, auth = here.ada(store, "nobody", account=name)
        assert [f"{name} free"] == await call_tools_with(here.urls[0], auth, "who")
        assert [] == nobody.opened


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("revision", ["2024-11-05", *ERAS])
@pytest.mark.covers("auth.extension.dpop-client", "auth.extension.dpop-resource")
async def test_all_three_sides_bind_tokens_and_want_nonces(land, kind, revision):
    """RFC 9449 8 and 9: a server elsewhere reads from the token, or is told, which key it is bound to."""
    here = await land(kind=kind, dpop_nonce=True, guard={"dpop": "require", "nonces": Nonces()})
    store, url = MemoryTokenStore(), shape(here, revision)
    _, auth = here.ada(store)

    assert ["ada bound", "ada writes"] == await call_tools_with(
        url, auth, "who", "write", revision=revision
    )
    with pytest.raises(AuthRefused):
        await call_tools_with(
            url, BearerToken(await find_token(store, url)), "who", revision=revision
        )


@pytest.mark.covers("auth.resource.validates-first")
async def test_a_server_elsewhere_hears_of_a_logout_by_introspection(land):
    """RFC 7662 2.2: a revoked token is not active."""
    here, store = await land(kind="introspection"), MemoryTokenStore()
    _, auth = here.ada(store)
    await call_tools_with(here.urls[0], auth, "who")
    gone = BearerToken(await find_token(store, here.urls[0]))
    assert ["ada free"] == await call_tools_with(here.urls[0], gone, "who")
    await auth.logout(here.urls[0])

    with pytest.raises(AuthRefused):
        await call_tools_with(here.urls[0], gone, "who")


# One origin


class Silent:
    """A server of 2025-03-26 that says nothing of where anything is.

    Args:
        app: the server.
        slash: its endpoints are where a slash is at the end, and nowhere else.
    """

    def __init__(self, app, *, slash):
        self.app, self.slash = app, slash
        self.asked = []

    async def __call__(self, scope, receive, send):
        """Serve all but metadata."""
        path = scope["path"]
        self.asked.append(path)
        if "/.well-known/" in path:
            scope = {**scope, "path": "/nothing"}
        elif self.slash and path in {"/authorize", "/token", "/register"}:
            scope = {**scope, "path": f"{path}/", "raw_path": f"{path}/".encode()}

        async def quiet(message):
            if message["type"] == "http.response.start":
                told = [one for one in message["headers"] if one[0] != b"www-authenticate"]
                message = {**message, "headers": told}
            await send(message)

        await self.app(scope, receive, quiet)


@pytest.mark.parametrize("slash", [False, True])
@pytest.mark.parametrize("revision", ["2025-03-26", "2026-07-28"])
@pytest.mark.covers("auth.client.default-endpoints", "auth.authority.default-endpoints")
async def test_a_client_without_metadata_finds_the_default_endpoints(tmp_path, slash, revision):
    """Spec 2025-03-26 basic/authorization#fallbacks-for-servers-without-metadata-discovery."""
    person = Person("ada", PASSWORD)
    auth = OAuth("desk", open_browser=person.open, store=MemoryTokenStore())

    def silent(origin):
        authority = make_authority(origin, make_users(tmp_path, "ada"))
        server = Server("old", auth=authority.resource_auth(f"{origin}/mcp", scopes={READ}))

        @server.tool
        def who(caller: Principal) -> str:
            return caller.subject

        return Silent(server.asgi(), slash=slash)

    async with serve_in_browser(silent) as (origin, app):
        assert ["ada"] == await call_tools_with(f"{origin}/mcp", auth, "who", revision=revision)
        assert ["/register", "/authorize", "/token"] == [
            path
            for path in dict.fromkeys(app.asked)
            if path in {"/register", "/authorize", "/token"}
        ]


@pytest.mark.parametrize(
    ("framework", "revision"),
    [*((Starlette, revision) for revision in EVERY), (FastAPI, "2024-11-05"), (FastAPI, ERAS[1])],
)
async def test_an_attached_server_and_its_authorization_server_are_one_origin(
    tmp_path, framework, revision
):
    """Ours: attach() puts metadata, endpoints and pages where clients and browsers look for them."""
    person = Person("ada", PASSWORD)
    auth = OAuth("desk", open_browser=person.open, store=MemoryTokenStore())

    def outer(origin):
        url, older = f"{origin}/tools", f"{origin}/tools/sse"
        authority = make_authority(origin, make_users(tmp_path, "ada"), resources=[url, older])
        server = Server("files", auth=authority.resource_auth(url, scopes={READ}, sse=older))

        @server.tool(scopes={WRITE})
        def write(caller: Principal) -> str:
            return f"{caller.subject} writes"

        whole = framework()
        server.asgi().attach(whole, "/tools")
        return whole

    async with serve_in_browser(outer) as (origin, _):
        url = f"{origin}/tools" + "/sse" * (revision == "2024-11-05")
        assert ["ada writes"] == await call_tools_with(url, auth, "write", revision=revision)


def teller(place):
    """A tool that says who calls, and where."""

    def who(caller: Principal) -> str:
        """Say who calls, and where."""
        return f"{caller.subject} at {place}"

    return who


@pytest.mark.parametrize("revision", EVERY)
async def test_two_servers_in_one_application_have_one_authorization_server(tmp_path, revision):
    """Ours: each has its own metadata and tokens, and the endpoints are there once."""
    store, person = MemoryTokenStore(), Person("ada", PASSWORD)
    auth = OAuth("desk", open_browser=person.open, store=store)
    names = ("one", "two")

    def outer(origin):
        resources = [f"{origin}/{name}{end}" for name in names for end in ("", "/sse")]
        authority = make_authority(origin, make_users(tmp_path, "ada"), resources=resources)
        whole = Starlette()
        for name in names:
            url = f"{origin}/{name}"
            guard = authority.resource_auth(url, scopes={READ}, sse=f"{url}/sse", alone=False)
            server = Server(name, auth=guard)
            server.add_tool(teller(name), name="who")
            server.asgi().attach(whole, f"/{name}")
        return whole

    async with serve_in_browser(outer) as (origin, _):
        urls = [f"{origin}/{name}" + "/sse" * (revision == "2024-11-05") for name in names]
        found = [(await call_tools_with(url, auth, "who", revision=revision))[0] for url in urls]
        swapped = BearerToken(await find_token(store, urls[0]))
        with pytest.raises(AuthRefused):
            await call_tools_with(urls[1], swapped, "who", revision=revision)

    assert ["ada at one", "ada at two"] == found
    assert 2 == len(person.opened)
