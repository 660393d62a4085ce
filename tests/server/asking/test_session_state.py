"""Session state: values that ``ctx.session`` keeps, for whom, how much, and never for anybody else."""

import gc
import json
from dataclasses import dataclass

import msgspec
import pytest

from isthmus import Accepted, Context, Server
from isthmus.core.principal import Principal
from isthmus.revisions import REVISIONS
from isthmus.runtime.channel import Origin
from isthmus.server import Limits
from isthmus.store import MemoryStore
from isthmus.testing import connect, every_revision, every_transport, script
from support.http.asgi_driver import fetch
from support.http.messages import (
    NEW,
    legacy_head,
    modern_body,
    modern_head,
    open_legacy_session,
    read_tool_text,
)
from support.server.both_eras import EraClient, tool_text

SECRET = b"s" * 32
ISSUER = "https://login.example"
ANN = Principal(issuer=ISSUER, subject="ann")
UNAUTHENTICATED = -31401


@dataclass
class Item:
    name: str
    count: int = 1


def make_server(**settings):
    """A server with a cart for each caller."""
    server = Server("shop", secret=SECRET, **settings)

    @server.tool
    async def add(item: str, ctx: Context) -> int:
        cart = await ctx.session.get("cart", [], type=list[Item])
        await ctx.session.set("cart", [*cart, Item(item)])
        return len(cart) + 1

    @server.tool
    async def show(ctx: Context) -> str:
        return ",".join(item.name for item in await ctx.session.get("cart", [], type=list[Item]))

    @server.tool
    async def put(key: str, value: str, ctx: Context) -> str:
        await ctx.session.set(key, value)
        return "put"

    @server.tool
    async def empty(ctx: Context) -> bool:
        return await ctx.session.delete("cart")

    return server


# One meaning in every revision, over every transport


@every_revision
@every_transport
async def test_values_last_from_call_to_call_for_one_caller(revision, transport):
    """A cart of one client is seen by its next call, and by no other client's."""
    server = make_server()
    async with connect(server, revision=revision, transport=transport) as client:
        if transport == "http" and revision == NEW:
            with pytest.raises(Exception, match=r"nobody has authenticated.*Server\(auth="):
                await client.call_tool("add", {"item": "tea"})
            return
        await client.call_tool("add", {"item": "tea"})
        assert "2" == (await client.call_tool("add", {"item": "milk"})).text
        async with connect(server, revision=revision, transport=transport) as other:
            # of a Unix socket, everybody knows which user is at the other end
            known = transport == "unix" and revision == NEW
            assert ("tea,milk" if known else "") == (await other.call_tool("show")).text
        assert "tea,milk" == (await client.call_tool("show")).text
        assert "true" == (await client.call_tool("empty")).text
        assert "" == (await client.call_tool("show")).text
        assert "false" == (await client.call_tool("empty")).text


# Values


async def call_in_memory(fn, **settings):
    """What a tool returns when it is called once."""
    server = Server("values", **settings)
    server.add_tool(fn, name="tool")
    async with connect(server) as client:
        result = await client.call_tool("tool")
        return result.structured["result"] if result.structured else result.text


async def test_a_value_is_read_as_the_type_that_is_named_or_as_plain_data():
    """Dataclasses, msgspec structs and plain data."""

    async def tool(ctx: Context) -> list[str]:
        await ctx.session.set("item", Item("tea", 2))
        plain = await ctx.session.get("item")
        typed = await ctx.session.get("item", type=Item)
        return [json.dumps(plain), repr(typed), repr(await ctx.session.get("none", 5))]

    assert [
        '{"name": "tea", "count": 2}',
        "Item(name='tea', count=2)",
        "5",
    ] == await call_in_memory(tool)


@pytest.mark.parametrize("key", ["", "k" * 257, "\0mine", 5])
async def test_a_key_that_is_none_is_refused(key):
    """Ours: the author is told."""

    async def tool(ctx: Context) -> str:
        await ctx.session.set(key, 1)
        return "set"

    assert "text of 1 to 256 characters" in await call_in_memory(tool, debug=True)


async def test_a_value_without_a_json_form_or_of_another_type_is_refused():
    """Ours: the author is told what and where."""

    async def unwritable(ctx: Context) -> str:
        await ctx.session.set("thing", object())
        return "set"

    async def misread(ctx: Context) -> str:
        await ctx.session.set("thing", "text")
        return str(await ctx.session.get("thing", type=Item))

    assert "ctx.session.set('thing')" in await call_in_memory(unwritable, debug=True)
    assert "ctx.session.get('thing')" in await call_in_memory(misread, debug=True)


async def test_a_plain_function_waits_for_its_session():
    """Ours: ``ctx.wait`` in a thread."""

    def tool(ctx: Context) -> str:
        ctx.wait(ctx.session.set("a", "b"))
        return ctx.wait(ctx.session.get("a"))

    assert "b" == await call_in_memory(tool)


# Bounds


async def test_one_caller_has_so_many_values_and_bytes_and_keeps_what_was_there():
    """Ours: Limits.session_values and session_size; what is refused changes nothing."""
    server = make_server(limits=Limits(session_values=2, session_size=50))
    async with connect(server) as client:
        await client.call_tool("put", {"key": "a", "value": "1"})
        long = await client.call_tool("put", {"key": "a", "value": "x" * 50})
        await client.call_tool("put", {"key": "b", "value": "2"})
        many = await client.call_tool("put", {"key": "c", "value": "3"})
        again = await client.call_tool("put", {"key": "b", "value": "4"})

    assert "Limits.session_size" in long.text
    assert "Limits.session_values" in many.text
    assert not again.is_error


async def test_what_is_set_before_a_question_is_set_once_more_and_is_the_same():
    """The replay of a body: setting is idempotent (strict replay asks every round twice)."""
    server = Server("asks")

    @server.tool
    async def name_it(ctx: Context) -> str:
        await ctx.session.set("step", "asked")
        answer = await ctx.elicit("Name?", str)
        await ctx.session.set("step", "done")
        return f"{await ctx.session.get('step')} {answer.value}"

    for revision in ("2025-11-25", NEW):
        async with connect(
            server, revision=revision, elicit=script(Accepted({"value": "Ann"}))
        ) as client:
            assert "done Ann" == (await client.call_tool("name_it")).text


async def test_a_server_that_keeps_nothing_imports_nothing_and_a_closed_connection_keeps_nothing():
    """Ours: the places are made when they are first asked for, and let go."""
    server = make_server()
    async with connect(server) as client:
        assert server._settings.state_places is None
        await client.call_tool("add", {"item": "tea"})
        places = server._settings.state_places
        assert 1 == len(places._memory)
    places._memory.drop("link/")  # which a timer does some seconds later
    del client
    gc.collect()
    assert not places._memory._slots
    assert not places._locks


# Whose they are


def make_client(server, principal=None, revision=NEW, origin=None):
    """A client over HTTP whose token says who it is."""
    client = EraClient(server, revision, principal=principal)
    origin = origin or Origin("http", principal=principal)
    return lambda name, **arguments: client.call(name, arguments, origin=origin)


@pytest.mark.parametrize("store", [False, True])
async def test_a_principal_has_its_state_over_any_connection_since_2026_07_28(store):
    """Every request is another connection, perhaps at another node; a newer token is the same principal."""
    shared = MemoryStore() if store else None
    server = make_server(store=shared)
    await server.open()
    await make_client(server, ANN)("add", item="tea")
    newer = msgspec.structs.replace(ANN, scopes=frozenset({"more"}), expires_at=9e9)

    assert "tea" == tool_text(await make_client(server, newer)("show"))
    if store:
        node = make_server(store=shared)
        await node.open()
        assert "tea" == tool_text(await make_client(node, ANN)("show"))
        await node.close()
    await server.close()


@pytest.mark.parametrize(
    "other",
    [
        Principal(issuer="https://evil.example", subject="ann"),
        Principal(issuer=ISSUER, subject="bob"),
        Principal(issuer=ISSUER, subject="ann", client_id="another"),
        Principal(issuer=ISSUER + '","ann', subject=""),
    ],
)
@pytest.mark.parametrize("store", [False, True])
async def test_nobody_else_sees_what_a_principal_keeps(other, store):
    """Attack: the same subject of another issuer, the same user by another client."""
    server = make_server(store=MemoryStore() if store else None)
    await server.open()
    await make_client(server, ANN)("add", item="tea")

    assert "" == tool_text(await make_client(server, other)("show"))
    await server.close()


@pytest.mark.parametrize("revision", [revision.name for revision in REVISIONS])
async def test_a_stranger_without_a_session_is_refused_and_gets_no_shared_place(revision):
    """Attack: state that strangers share would show one of them what another one left."""
    server = make_server()
    for name, arguments in (("show", {}), ("add", {"item": "tea"}), ("empty", {})):
        answer = await make_client(server, revision=revision)(name, **arguments)
        assert UNAUTHENTICATED == answer.code
        assert "Server(auth=…)" in answer.message


# In a store


async def read_raw(store):
    """All that is kept in a store for callers."""
    return await store.kv.scan("session-state/", "", 100)


async def test_a_store_sees_neither_values_nor_keys_nor_whose_they_are():
    """Ours: sealed as all that is written there."""
    store = MemoryStore()
    server = make_server(store=store)
    await server.open()
    await make_client(server, ANN)("put", key="password", value="hunter2")
    ((key, entry),) = await read_raw(store)
    await server.close()

    for word in (b"hunter2", b"password", b"ann", b"login.example"):
        assert word not in entry.value + key.encode()


async def test_state_that_is_moved_to_another_caller_in_the_store_does_not_open():
    """Attack: who writes to the store gives one caller's state to another."""
    store = MemoryStore()
    server = make_server(store=store)
    await server.open()
    bob = Principal(issuer=ISSUER, subject="bob")
    await make_client(server, ANN)("add", item="secret")
    ((ann_key, ann),) = await read_raw(store)
    await make_client(server, bob)("add", item="tea")
    (bob_key,) = {key for key, _ in await read_raw(store)} - {ann_key}
    await store.kv.put(bob_key, ann.value)

    assert "" == tool_text(await make_client(server, bob)("show"))
    await store.kv.put(bob_key, b"garbage")
    assert "" == tool_text(await make_client(server, bob)("show"))
    await server.close()


async def test_of_two_that_set_at_once_each_keeps_its_own_keys():
    """Last wins per key, and nothing of another key is lost."""
    import asyncio

    store = MemoryStore()
    servers = [make_server(store=store) for _ in range(2)]
    for server in servers:
        await server.open()
    await asyncio.gather(
        *(
            make_client(server, ANN)("put", key=f"{n}-{i}", value="v")
            for n, server in enumerate(servers)
            for i in range(30)
        )
    )
    place = servers[0]._settings.state_places._find_shared(f"principal {ANN.owner}")
    assert 60 == len(await place.load())
    for server in servers:
        await server.close()


# Sessions over HTTP


async def call_over_http(app, session, name, **arguments):
    """The text that a tool answers in a session."""
    params = {"name": name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = await fetch(app, headers=legacy_head(session), body=body)
    return answer.status if answer.status != 200 else read_tool_text(answer.json)


@pytest.mark.parametrize("store", [False, True])
async def test_a_session_that_is_deleted_takes_its_state_with_it(store):
    """Deleting a session deletes what was kept for it, in the store, too."""
    shared = MemoryStore() if store else None
    server = make_server(store=shared)
    app = server.asgi()
    session, other = await open_legacy_session(app), await open_legacy_session(app)
    await call_over_http(app, session, "add", item="tea")
    await call_over_http(app, other, "add", item="milk")
    memory = server._settings.state_places._memory
    assert 2 == len(await read_raw(shared) if store else memory._slots)

    await fetch(app, "DELETE", headers=legacy_head(session))
    assert 404 == await call_over_http(app, session, "show")
    assert "milk" == await call_over_http(app, other, "show")
    assert 1 == len(await read_raw(shared) if store else memory._slots)
    await app.close()


async def test_any_node_sees_the_state_of_a_session():
    """With a store, a session is adopted with what is kept for it."""
    store = MemoryStore()
    apps = [make_server(store=store).asgi() for _ in range(2)]
    for app in apps:
        await app.start()
    session = await open_legacy_session(apps[0])
    await call_over_http(apps[0], session, "add", item="tea")
    await call_over_http(apps[1], session, "add", item="milk")

    assert "tea,milk" == await call_over_http(apps[0], session, "show")
    for app in apps:
        await app.close()


async def test_a_session_that_loses_its_memory_has_ended_rather_than_lost_its_state():
    """Without a store: 404, and the client opens another one."""
    server = make_server()
    app = server.asgi()
    session, plain = await open_legacy_session(app), await open_legacy_session(app)
    await call_over_http(app, session, "add", item="tea")
    for held in [*app._book.list_all()]:
        app._book._release(held)

    assert 404 == await call_over_http(app, session, "show")
    assert "" == await call_over_http(app, plain, "show")
    await app.close()


async def test_a_session_id_on_a_modern_request_opens_nothing():
    """Attack: a stranger since 2026-07-28 sends the id of somebody's session."""
    app = make_server().asgi()
    session = await open_legacy_session(app)
    await call_over_http(app, session, "add", item="tea")
    head = {**modern_head(name="show"), "mcp-session-id": session}
    answer = await fetch(
        app, headers=head, body=modern_body(params={"name": "show", "arguments": {}})
    )

    assert UNAUTHENTICATED == answer.json["error"]["code"]
    await app.close()


async def test_a_principal_who_changes_within_a_connection_starts_empty():
    """Attack: a connection goes on under another token."""
    from isthmus.runtime.peer import Peer
    from isthmus.transports.memory import open_pair

    server = make_server()
    client = EraClient(server, "2025-11-25", principal=ANN)
    client.link = Peer(open_pair()[0], server.router, side="server")
    await client.call("add", {"item": "tea"}, origin=Origin("websocket", principal=ANN))
    bob = Origin("websocket", principal=Principal(issuer=ISSUER, subject="bob"))

    assert "" == tool_text(await client.call("show", origin=bob))
    assert "tea" == tool_text(await client.call("show", origin=Origin("websocket", principal=ANN)))


async def test_a_session_that_has_ended_keeps_nothing_more():
    """Ours: a call that outlives its session is told so, and leaves nothing behind."""
    from isthmus.runtime.peer import Peer
    from isthmus.transports.memory import open_pair

    server = make_server()
    client = EraClient(server, "2025-11-25")
    client.link = Peer(open_pair()[0], server.router, side="server")
    await client.link.finish()
    answer = await client.call("add", {"item": "tea"}, origin=Origin("http", session="s"))

    assert answer["isError"]
    assert "has ended" in tool_text(answer)


@pytest.mark.parametrize("store", [False, True])
async def test_a_mounted_server_keeps_its_own_values_of_the_same_caller(store):
    """A key of the one is none of the other's, in memory and in the store that both have."""
    inner = Server("inner")

    @inner.tool
    async def show(ctx: Context) -> str:
        before = await ctx.session.get("cart")
        await ctx.session.set("cart", "inner")
        return repr(before)

    shared = MemoryStore() if store else None
    server = make_server(store=shared)
    server.mount(inner, "in")
    await server.open()
    await make_client(server, ANN)("add", item="tea")

    assert "None" == tool_text(await make_client(server, ANN)("in_show"))
    assert "'inner'" == tool_text(await make_client(server, ANN)("in_show"))
    assert "tea" == tool_text(await make_client(server, ANN)("show"))
    if shared is not None:
        assert 2 == len(await read_raw(shared))
    await server.close()


async def test_a_session_that_is_deleted_takes_the_state_of_mounted_servers_with_it():
    """What is mounted keeps its values beside those of the server around it."""
    inner, store = Server("inner"), MemoryStore()

    @inner.tool
    async def keep(ctx: Context) -> str:
        await ctx.session.set("cart", "inner")
        return "kept"

    server = make_server(store=store)
    server.mount(inner, "in")
    app = server.asgi()
    session = await open_legacy_session(app)
    await call_over_http(app, session, "add", item="tea")
    await call_over_http(app, session, "in_keep")
    assert 2 == len(await read_raw(store))
    await fetch(app, "DELETE", headers=legacy_head(session))

    assert [] == await read_raw(store)
    await app.close()
