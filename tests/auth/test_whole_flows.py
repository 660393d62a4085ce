"""Our client at our server with our authorization server, over sockets, in every revision."""

import contextlib
import socket
import time

import pytest

from isthmus import Client, Server
from isthmus.auth import MemoryTokenStore, OAuth, Principal
from isthmus.client.subscriptions import Change
from isthmus.errors import AuthError, AuthRefused
from isthmus.testing.connections import run_until_left
from isthmus.testing.person import Person
from isthmus.transports.http.serve import serve
from support.auth.authority import PASSWORD, SCOPES, make_authority, make_users

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
READ, WRITE = SCOPES


class Place:
    """A server, what issues its tokens, and where both are."""

    def __init__(self, folder, port, resource="/mcp", sockets=False, **options):
        self.origin = f"http://127.0.0.1:{port}"
        self.users = make_users(folder, "ada")
        url = self.origin + resource
        guard = {name: options.pop(name) for name in ("dpop", "list_visibility") if name in options}
        older = f"{self.origin}/sse"
        self.authority = make_authority(self.origin, self.users, resources=[url, older], **options)
        auth = self.authority.resource_auth(url, scopes={READ}, sse=older, **guard)
        # lists may be kept for a minute, by those who see the same
        self.server = Server("files", auth=auth, list_ttl_ms=60_000)
        self.app = self.server.asgi(websocket=sockets)
        self.port = port

        @self.server.tool
        def read(who: Principal) -> str:
            """Read."""
            return f"{who.subject} reads"

        @self.server.tool
        def bound(who: Principal) -> str:
            """Say whether the token is bound to a key."""
            return "bound" if who.jkt else "free"

        @self.server.tool(scopes={WRITE})
        def write(who: Principal) -> str:
            """Write."""
            return f"{who.subject} writes"


@pytest.fixture
async def place(tmp_path):
    """Opens places on free ports until the test is over."""
    async with contextlib.AsyncExitStack() as stack:

        async def opened(**options):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            made = Place(tmp_path, port, **options)
            await stack.enter_async_context(
                run_until_left(lambda told: serve(made.app, port=port, on_bound=told))
            )
            stack.push_async_callback(made.authority.close)
            return made

        yield opened


def ada(**options):
    """The user, and the way their programs log in."""
    person = Person("ada", PASSWORD, approve=options.pop("approve", True))
    return person, OAuth("desk", open_browser=person.open, **options)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.covers("auth.client.step-up", "auth.authority.both-client-kinds")
async def test_a_user_logs_in_once_and_is_asked_for_more_once(place, revision):
    """2026-07-28 basic/authorization: login, step-up, and neither again, also in a new process."""
    here, store = await place(), MemoryTokenStore()
    person, auth = ada(store=store)
    async with Client(f"{here.origin}/mcp", auth=auth, revision=revision) as client:
        said = [(await client.call_tool(name)).text for name in ("read", "write", "read")]
    later, again = ada(store=store)
    async with Client(f"{here.origin}/mcp", auth=again, revision=revision) as client:
        said += [(await client.call_tool(name)).text for name in ("write", "read")]

    assert ["ada reads", "ada writes", "ada reads", "ada writes", "ada reads"] == said
    assert (2, 0) == (len(person.opened), len(later.opened))


@pytest.mark.covers("auth.all.other-transports")
async def test_the_transport_of_2024_11_05_takes_the_same_tokens(place):
    """Ours: HTTP+SSE is behind the same door, beside the endpoint of the newer transport."""
    here, store = await place(), MemoryTokenStore()
    person, auth = ada(store=store)
    async with Client(f"{here.origin}/sse", auth=auth, revision="2024-11-05") as client:
        said = [(await client.call_tool(name)).text for name in ("read", "write", "read")]
    later, again = ada(store=store)
    async with Client(f"{here.origin}/sse", auth=again, revision="2024-11-05") as client:
        said.append((await client.call_tool("write")).text)

    assert ["ada reads", "ada writes", "ada reads", "ada writes"] == said
    assert (2, 0) == (len(person.opened), len(later.opened))


@pytest.mark.covers("auth.all.other-transports")
async def test_a_websocket_takes_the_same_tokens(place):
    """Ours: the handshake has the token; what it lacks later is refused by an error."""
    here = await place(sockets=True)
    _, auth = ada(store=MemoryTokenStore())
    url = here.origin.replace("http:", "ws:") + "/mcp"
    async with Client(url, auth=auth) as client:
        assert "ada reads" == (await client.call_tool("read")).text


@pytest.mark.parametrize("dpop", ["allow", "require"])
@pytest.mark.covers("auth.extension.dpop-client", "auth.extension.dpop-resource")
async def test_tokens_are_bound_where_both_sides_can(place, dpop):
    """RFC 9449: the client finds out by itself, and proves its key with every request."""
    here = await place(dpop=dpop)
    _, auth = ada(store=MemoryTokenStore())
    async with Client(f"{here.origin}/mcp", auth=auth) as client:
        assert "ada reads" == (await client.call_tool("read")).text
        assert "ada writes" == (await client.call_tool("write")).text
        assert "bound" == (await client.call_tool("bound")).text


async def test_tokens_are_not_bound_where_the_server_takes_none(place):
    """Ours: an authorization server that can do DPoP makes no server refuse the client."""
    here = await place(dpop="off")
    _, auth = ada(store=MemoryTokenStore())
    async with Client(f"{here.origin}/mcp", auth=auth) as client:
        assert "free" == (await client.call_tool("bound")).text


async def test_a_user_who_says_no_is_believed(place):
    """RFC 6749 4.1.2.1: access_denied, and no second window."""
    here = await place()
    person, auth = ada(store=MemoryTokenStore(), approve=False)
    with pytest.raises(AuthRefused) as refused:
        await Client(f"{here.origin}/mcp", auth=auth).open()

    assert "access_denied" == refused.value.error
    assert 1 == len(person.opened)


async def test_a_disabled_user_is_shut_out(place):
    """Ours: what they granted is honoured for two seconds more, and no login helps."""
    now = [time.time()]
    here = await place(clock=lambda: now[0])
    _, auth = ada(store=MemoryTokenStore())
    async with Client(f"{here.origin}/mcp", auth=auth) as client:
        assert "ada reads" == (await client.call_tool("read")).text
        here.users.disable("ada")
        now[0] += 3
        with pytest.raises((AuthError, RuntimeError)):
            await client.call_tool("read")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.covers("auth.resource.private-lists", "auth.threat.t40-shared-cache")
async def test_lists_grow_with_what_was_granted(place, revision):
    """2026-07-28 server/tools: lists may differ by authorization; then nobody shares them."""
    here, store = await place(list_visibility="granted"), MemoryTokenStore()
    _, auth = ada(store=store)
    async with Client(f"{here.origin}/mcp", auth=auth, revision=revision) as client:
        before = [tool.name for tool in await client.list_tools()]
        await client.call_tool("write")
        after = [tool.name for tool in await client.list_tools()]

    assert (["bound", "read"], ["bound", "read", "write"]) == (sorted(before), sorted(after))


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
@pytest.mark.covers("auth.resource.private-lists")
async def test_who_hears_of_a_change_sees_of_it_what_they_may_use(place, revision):
    """2026-07-28 server/tools: the change is told to all, and the list is made for each reader."""
    here = await place(list_visibility="granted")
    _, auth = ada(store=MemoryTokenStore())
    url = f"{here.origin}/sse" if revision == "2024-11-05" else f"{here.origin}/mcp"
    lists = []
    async with (
        Client(url, auth=auth, revision=revision) as client,
        client.listen(tools=True) as changes,
    ):
        lists.append({tool.name for tool in await client.list_tools()})
        for name, scopes in (("erase", {WRITE}), ("count", {READ})):
            here.server.add_tool(lambda: "", name=name, description="Added.", scopes=scopes)
            assert Change("tools") == await anext(aiter(changes))
            lists.append({tool.name for tool in await client.list_tools()})
        await client.call_tool("write")
        lists.append({tool.name for tool in await client.list_tools()})

    few = {"bound", "read"}
    assert [few, few, few | {"count"}, few | {"count", "write", "erase"}] == lists
