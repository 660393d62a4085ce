"""Our client at our server whose users log in at a provider: the seven steps, over sockets, in every revision."""

import contextlib

import pytest

from isthmus import Client, Context, Server
from isthmus.auth import MemoryTokenStore, OAuth
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from isthmus.auth.authorization_server.upstream.login import UpstreamLogin
from isthmus.testing.person import Person
from support.auth.authority import SCOPES, make_authority
from support.browser.chromium import serve_in_browser

READ, WRITE = SCOPES


class Journey:
    """An MCP server, and its authorization server, on one origin; and what a user has of them."""

    def __init__(self, origin, acme, clock):
        url, older = f"{origin}/mcp", f"{origin}/sse"
        self.authority = make_authority(
            origin, UpstreamLogin(acme), resources=[url, older],
            store=MemoryAuthStore(clock=clock), clock=clock,
        )  # fmt: skip
        guard = self.authority.resource_auth(url, scopes={READ}, sse=older)
        server = Server("files", auth=guard)

        @server.tool
        async def whoami(ctx: Context) -> str:
            """Say who the caller is at the provider."""
            api = await ctx.upstream(acme.name)
            return str((await api.json("/user"))["login"])

        @server.tool(scopes={WRITE})
        async def write(ctx: Context) -> str:
            """Write."""
            return ctx.authenticated.client_id

        self.app = server.asgi()

    async def __call__(self, scope, receive, send):
        """Serve it."""
        await self.app(scope, receive, send)


@pytest.fixture
async def journey(acme, clock):
    """The whole of it: its origin, and what serves it."""
    async with serve_in_browser(lambda origin: Journey(origin, acme, clock)) as found:
        yield found
        await found[1].authority.close()


class Traveller(Person):
    """Somebody who is sent on to a provider, and back."""

    def __init__(self, remote):
        super().__init__("alice", "")
        self.remote = remote

    def follow(self, url):
        """Go to whatever is neither ours nor the provider's."""
        where = super().follow(url)
        while where.startswith(self.remote.url):
            _, back, _ = self.request("GET", where)
            where = super().follow(back)
        return where


@contextlib.asynccontextmanager
async def visiting(origin, clock, store, revision, remote):
    """A client, and the user who sits before it."""
    person = Traveller(remote)
    auth = OAuth("desk", open_browser=person.open, store=store)
    auth.login.clock = clock
    end = "/sse" if revision == "2024-11-05" else "/mcp"
    async with Client(f"{origin}{end}", auth=auth, revision=revision) as client:
        yield client, person


async def call_tools(client, *tools):
    """What tools answer."""
    return [(await client.call_tool(tool)).text for tool in tools]


@pytest.mark.parametrize(
    "revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
)
@pytest.mark.covers("auth.authority.third-party-bound", "auth.authority.third-party-kept")
async def test_a_client_gets_our_tokens_for_a_login_at_a_provider(journey, remote, clock, revision):
    """Spec 2025-03-26 basic/authorization#flow-description: all seven steps; later both are renewed."""
    (origin, _), store = journey, MemoryTokenStore()
    async with visiting(origin, clock, store, revision, remote) as (client, person):
        assert "alice" == (await call_tools(client, "whoami"))[0]
        assert (await call_tools(client, "write"))[0]
        assert 2 == len(person.opened)
    clock.now += 4000.0  # ours is over, and so is the provider's
    async with visiting(origin, clock, store, revision, remote) as (client, later):
        assert ["alice"] == await call_tools(client, "whoami")

    kept = [await store.get(key) for key in await store.keys() if key.resource]
    assert [] == later.opened
    assert kept
    assert not {one.access.reveal() for one in kept} & {*remote.access, *remote.bearers}


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"])
@pytest.mark.covers("auth.authority.third-party-bound")
async def test_a_login_that_the_provider_ends_is_over_here(journey, remote, clock, revision):
    """Spec 2025-03-26 basic/authorization#session-binding-requirements: status is asked before ours is honoured."""
    (origin, _), store = journey, MemoryTokenStore()
    async with visiting(origin, clock, store, revision, remote) as (client, _):
        assert ["alice"] == await call_tools(client, "whoami")
    remote.refresh.clear()
    clock.now += 4000.0  # its token is over, and cannot be renewed
    remote.claims = {"iat": int(clock()), "exp": int(clock()) + 600}
    async with visiting(origin, clock, store, revision, remote) as (client, later):
        assert ["alice"] == await call_tools(client, "whoami")

    assert 1 == len(later.opened)
