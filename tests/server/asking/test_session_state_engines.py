"""Session state on each engine of a store: two nodes that have each a store of their own over it."""

import asyncio

import pytest

from isthmus import Context, Server
from isthmus.core.principal import Principal
from isthmus.errors import StoreUnavailable
from isthmus.runtime.channel import Origin
from isthmus.server import Limits
from support.http.asgi_driver import fetch
from support.http.messages import legacy_head, open_legacy_session, read_tool_text
from support.server.both_eras import MODERN, EraClient, tool_text
from support.store.cut_store import CutStore
from support.store.engines import ENGINE_PARAMS, ENGINES

ANN = Principal(issuer="https://login.example", subject="ann")
UNAVAILABLE = -31503


@pytest.fixture(params=ENGINE_PARAMS)
def engine(request, tmp_path):
    """One engine, empty."""
    return ENGINES[request.param](tmp_path)


async def show_all(ctx: Context) -> str:
    """A value, wherever it is asked for."""
    return str(await ctx.session.get("a"))


def make_node(store, **limits):
    """A server as one process would have it."""
    server = Server("shop", secret=b"s" * 32, store=store, limits=Limits(**limits))

    @server.tool
    async def put(key: str, ctx: Context) -> str:
        await ctx.session.set(key, key.upper())
        return "put"

    @server.tool
    async def show(key: str, ctx: Context) -> str:
        return str(await ctx.session.get(key))

    @server.tool
    async def empty(key: str, ctx: Context) -> bool:
        return await ctx.session.delete(key)

    server.add_resource(show_all, "cart://all", name="all")
    server.add_prompt(show_all, name="all")

    @server.tool
    async def careful(ctx: Context) -> str:
        try:
            return str(await ctx.session.get("a"))
        except StoreUnavailable as error:
            return f"without a cart: {error}"

    return server


@pytest.fixture
async def nodes(engine):
    """Two of them, open."""
    servers = [make_node(engine.make_store(real=True)) for _ in range(2)]
    for server in servers:
        await server.open()
    yield servers
    for server in servers:
        await server.close()


async def call(server, name, **arguments):
    """What a tool answers Ann, who has no session."""
    client = EraClient(server, MODERN, principal=ANN)
    return await client.call(name, arguments, origin=Origin("http", principal=ANN))


async def test_a_principal_finds_its_values_at_any_node(nodes):
    """What one node keeps another one reads, changes and deletes."""
    await call(nodes[0], "put", key="a")

    assert "A" == tool_text(await call(nodes[1], "show", key="a"))
    assert "true" == tool_text(await call(nodes[1], "empty", key="a"))
    assert "None" == tool_text(await call(nodes[0], "show", key="a"))


async def test_nodes_that_set_at_once_lose_no_key_of_each_other(nodes):
    """Each change is a compare-and-set, done again where another node was first."""
    await asyncio.gather(
        *(call(node, "put", key=f"{n}-{i}") for n, node in enumerate(nodes) for i in range(12))
    )
    places = [node._settings.state_places._find_shared(f"principal {ANN.owner}") for node in nodes]

    assert 24 == len(await places[0].load())
    assert await places[0].load() == await places[1].load()


async def test_values_live_as_long_as_a_session(engine):
    """``Limits(session_ttl=…)`` after they were last set, by the clock of the engine."""
    node = make_node(engine.make_store(), session_ttl=engine.span)
    await node.open()
    await call(node, "put", key="a")
    assert "A" == tool_text(await call(node, "show", key="a"))
    await engine.pass_time(engine.span)

    assert "None" == tool_text(await call(node, "show", key="a"))
    await node.close()


async def send(server, method, **params):
    """What a server answers to any request of Ann's."""
    client = EraClient(server, MODERN, principal=ANN)
    return await client.send(method, params, origin=Origin("http", principal=ANN))


async def call_in_session(app, session, name, **arguments):
    """What a tool answers in a session over HTTP; the status, where that is no 200."""
    params = {"name": name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = await fetch(app, headers=legacy_head(session), body=body)
    return answer.status if answer.status != 200 else read_tool_text(answer.json)


async def test_a_session_deleted_at_another_node_takes_its_values_with_it(engine):
    """Spec 2025-11-25 basic/transports: DELETE ends the session, here with all that was kept for it."""
    stores = [engine.make_store(real=True) for _ in range(2)]
    apps = [make_node(store).asgi() for store in stores]
    for app in apps:
        await app.start()
    session, other = await open_legacy_session(apps[0]), await open_legacy_session(apps[0])
    await call_in_session(apps[0], session, "put", key="a")
    await call_in_session(apps[1], other, "put", key="b")
    assert "A" == await call_in_session(apps[1], session, "show", key="a")
    assert 2 == len(await stores[0].kv.scan("session-state/", "", 100))

    await fetch(apps[1], "DELETE", headers=legacy_head(session))
    assert 404 == await call_in_session(apps[0], session, "show", key="a")
    assert "B" == await call_in_session(apps[0], other, "show", key="b")
    assert 1 == len(await stores[0].kv.scan("session-state/", "", 100))
    for app in apps:
        await app.close()


async def test_a_call_without_its_store_is_told_to_come_again(engine):
    """-31503 with the time to wait, unless the tool does without its state."""
    store = CutStore(engine.make_store(real=True))
    node = make_node(store)
    await node.open()
    await call(node, "put", key="a")
    store.cut()
    refused = [await call(node, name, key="a") for name in ("show", "put", "empty")]
    refused.append(await send(node, "resources/read", uri="cart://all"))
    refused.append(await send(node, "prompts/get", name="all"))
    careful = await call(node, "careful")
    store.mend()

    assert [UNAVAILABLE] * 5 == [one.code for one in refused]
    assert all(one.data["retryAfterMs"] > 0 for one in refused)
    assert "without a cart: the way to the store is cut" == tool_text(careful)
    assert "A" == tool_text(await call(node, "show", key="a"))
    await node.close()


async def test_a_change_whose_answer_was_lost_is_made_once(engine):
    """The caller is told to come again, and finds its value as it was set."""
    store = CutStore(engine.make_store(real=True))
    node = make_node(store)
    await node.open()
    await call(node, "put", key="b")
    store.lose_answer("cas")

    assert UNAVAILABLE == (await call(node, "put", key="a")).code
    assert "put" == tool_text(await call(node, "put", key="a"))
    assert "A" == tool_text(await call(node, "show", key="a"))
    await node.close()
