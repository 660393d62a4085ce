"""Broadcast of changes: what changes at one node is told at all of them, once."""

import asyncio
import threading

import msgspec
import pytest

from isthmus.runtime.inbound import Inbound
from isthmus.server import Server, change_broadcast, subscriptions
from isthmus.server.change_broadcast import CHANGES_CHANNEL, MAX_CHANGES_PER_MESSAGE
from isthmus.store import MemoryStore, StoreUnavailable
from isthmus.wire import InitializedParams
from support.event_loop import run_turns
from support.server.both_eras import LEGACY, EraClient

TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
COMPLETE = "notifications/elicitation/complete"
SECRET = b"s" * 32


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Changes of lists are told in the next turns of the loop, and nothing waits to be sent."""
    monkeypatch.setattr(subscriptions, "LIST_CHANGE_DELAY_S", 0)
    monkeypatch.setattr(change_broadcast, "BROADCAST_RETRY_S", 0)


class CountingStore(MemoryStore):
    """A store whose bus keeps what was published on the channel of changes, and may fail."""

    def __init__(self):
        super().__init__()
        self.published = []
        self.is_lost = False
        publish = self.bus.publish

        async def count(channel, message):
            if channel != CHANGES_CHANNEL:
                return await publish(channel, message)
            if self.is_lost:
                raise StoreUnavailable("the store is lost")
            self.published.append(message)
            return await publish(channel, message)

        self.bus.publish = count


def make_server(store):
    server = Server("full", secret=SECRET, store=store)
    server.add_tool(lambda: None, name="t")
    server.add_resource(lambda: "", "a://b", name="r")
    server.add_prompt(lambda: "", name="p")
    return server


async def open_nodes(count, store=None):
    """Servers of one store, each with everything that a process of its own would have."""
    store = store or CountingStore()
    servers = [make_server(store) for _ in range(count)]
    for server in servers:
        assert server.router is not None
        await server.open()
    return store, servers


def open_session(server, revision=LEGACY):
    """A client whose session hears of changes at one node."""
    client = EraClient(server, revision)
    inbound = Inbound(0, "", None, client.caller, client.link)
    server._changes.add_session(InitializedParams(), inbound)
    return client


async def open_stream(server, **wanted):
    """A client with an open stream of changes, and the task that serves it."""
    client = EraClient(server)
    task = asyncio.create_task(client.once("subscriptions/listen", {"notifications": wanted}))
    await run_turns(20)
    return client, task


async def close_nodes(servers, *tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for server in servers:
        await server.close()


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY])
async def test_sessions_hear_of_lists_that_changed_at_another_node(revision):
    """Spec 2025-11-25 server/tools#list-changed-notification: a change is told to clients of all nodes."""
    _, servers = await open_nodes(2)
    here, there = [open_session(server, revision) for server in servers]
    servers[0].add_tool(lambda: None, name="u")
    await run_turns(20)

    assert [(TOOLS, {})] == here.link.notes
    assert [(TOOLS, {})] == there.link.notes
    await close_nodes(servers)


async def test_streams_of_changes_hear_of_other_nodes():
    """Spec 2026-07-28 basic/patterns/subscriptions: a stream tells what it was asked for, from any node."""
    _, servers = await open_nodes(3)
    client, task = await open_stream(
        servers[2], promptsListChanged=True, resourceSubscriptions=["a://b"]
    )
    servers[0].remove_prompt("p")
    servers[0].remove_tool("t")
    servers[1].notify_resource_updated("a://b")
    servers[1].notify_resource_updated("a://c")
    await run_turns(20)

    told = [method for method, _ in client.link.notes]
    assert ["notifications/subscriptions/acknowledged", PROMPTS, UPDATED] == sorted(
        told, key=lambda method: (method != "notifications/subscriptions/acknowledged", method)
    )
    await close_nodes(servers, task)


async def test_a_subscriber_at_another_node_hears_of_an_update():
    """Spec 2025-11-25 server/resources#subscriptions: whoever subscribed is told, at any node."""
    store, servers = await open_nodes(2)
    client = open_session(servers[1])
    await client.once("resources/subscribe", {"uri": "a://b"})
    servers[0].notify_resource_updated("a://b")
    servers[0].notify_resource_updated("a://c")
    await run_turns(20)

    assert [(UPDATED, {"uri": "a://b"})] == client.link.notes
    assert 1 == len(store.published), "updates of one turn are one message"
    await close_nodes(servers)


async def test_a_page_that_was_dealt_with_is_told_where_it_was_asked_for():
    """Spec 2025-11-25 client/elicitation: completion MUST only go to the client that was asked."""
    _, servers = await open_nodes(2)
    asked, other = open_session(servers[1]), open_session(servers[1])
    servers[1]._changes.add_page(asked.link, "e-1")
    servers[0].notify_elicitation_complete("e-1")
    await run_turns(20)

    assert [(COMPLETE, {"elicitationId": "e-1"})] == asked.link.notes
    assert [] == other.link.notes
    await close_nodes(servers)


async def test_a_node_does_not_hear_its_own_changes_twice():
    """Ours: what comes back from the bus is the sender's own, and was told already."""
    _, servers = await open_nodes(2)
    client = open_session(servers[0])
    servers[0].add_tool(lambda: None, name="u")
    await run_turns(20)
    told = list(client.link.notes)
    await run_turns(20)

    assert [(TOOLS, {})] == told
    assert told == client.link.notes
    await close_nodes(servers)


async def test_changes_of_threads_are_told_at_other_nodes():
    """Ours: notify_resource_updated is called from any thread."""
    _, servers = await open_nodes(2)
    client = open_session(servers[1])
    await client.once("resources/subscribe", {"uri": "a://b"})
    thread = threading.Thread(target=servers[0].notify_resource_updated, args=["a://b"])
    thread.start()
    thread.join()
    await run_turns(20)

    assert [(UPDATED, {"uri": "a://b"})] == client.link.notes
    await close_nodes(servers)


async def test_after_a_gap_everything_may_have_changed_and_is_told_once():
    """Ours: what was published during a gap is lost, so each list and each subscribed resource is read again."""
    store, servers = await open_nodes(1)
    client = open_session(servers[0])
    await client.once("resources/subscribe", {"uri": "a://b"})
    store.bus.report_gap()
    store.bus.report_gap()
    await run_turns(20)

    assert sorted([TOOLS, PROMPTS, RESOURCES, UPDATED]) == sorted(
        method for method, _ in client.link.notes
    )
    await close_nodes(servers)


async def test_what_changes_while_the_store_is_lost_is_told_when_it_is_back():
    """Ours: a change that could not be published is published later."""
    store, servers = await open_nodes(2)
    client = open_session(servers[1])
    store.is_lost = True
    servers[0].add_tool(lambda: None, name="u")
    await run_turns(20)
    before = list(client.link.notes)
    store.is_lost = False
    await run_turns(20)

    assert [] == before
    assert [(TOOLS, {})] == client.link.notes
    await close_nodes(servers)


async def test_more_changes_than_are_kept_are_everything():
    """Ours: what waits for a lost store is bounded, and what is dropped is told as a gap."""
    store, servers = await open_nodes(2)
    client = open_session(servers[1])
    store.is_lost = True
    for number in range(change_broadcast.MAX_PENDING_CHANGES + 2):
        servers[0].notify_resource_updated(f"a://{number}")
    await run_turns(5)
    store.is_lost = False
    await run_turns(20)

    assert 1 == len(store.published)
    assert {TOOLS, PROMPTS, RESOURCES} == {method for method, _ in client.link.notes}
    await close_nodes(servers)


async def test_many_changes_are_several_messages():
    """Ours: a message has a bounded number of changes."""
    store, servers = await open_nodes(2)
    for number in range(MAX_CHANGES_PER_MESSAGE + 1):
        servers[0].notify_resource_updated(f"a://{number}")
    await run_turns(20)

    assert 2 == len(store.published)
    await close_nodes(servers)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xc1",
        b"\x91",
        msgspec.msgpack.encode(["n1"]),
        msgspec.msgpack.encode(["n1", [[1, 2]]]),
        msgspec.msgpack.encode(["n1", [["notifications/tools/list_changed"]]]),
        msgspec.msgpack.encode(["n1", [["tools/call", None]], "more"]),
        msgspec.msgpack.encode(["n1", [["notifications/cancelled", None], ["exit", "now"]]]),
        msgspec.msgpack.encode(["n1", [[UPDATED, None]] * (MAX_CHANGES_PER_MESSAGE + 1)]),
    ],
)
async def test_hostile_messages_do_nothing(message):
    """Ours: what another hand wrote on the bus is data, and is told to nobody."""
    _, servers = await open_nodes(2)
    client = open_session(servers[0])
    await servers[1]._settings.node.bus.publish(CHANGES_CHANNEL, message)
    await run_turns(10)
    servers[0].add_tool(lambda: None, name="u")
    await run_turns(10)

    assert [(TOOLS, {})] == client.link.notes
    await close_nodes(servers)


async def test_without_a_store_nothing_is_broadcast():
    """Ours: one process needs no bus."""
    server = make_server(None)
    assert server.router is not None
    await server.open()
    server.add_tool(lambda: None, name="u")

    assert server._changes._broadcast is None
    await server.close()


async def test_a_node_that_left_publishes_nothing():
    """Ours: a server that stopped tells nobody anything."""
    store, servers = await open_nodes(2)
    client = open_session(servers[1])
    await servers[0].close()
    servers[0].add_tool(lambda: None, name="u")
    await run_turns(10)

    assert [] == store.published
    assert [] == client.link.notes
    await close_nodes(servers[1:])
