"""Changes: told to whoever wants to know, once, in the way of the revision."""

import asyncio
import threading

import pytest

from isthmus.server import Context, Server, subscriptions
from isthmus.wire import InitializedParams
from support.event_loop import run_turns
from support.profiling import profile_calls
from support.server.both_eras import LEGACY, EraClient, tool_text

ID = "io.modelcontextprotocol/subscriptionId"
TOOLS = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Changes of lists are told in the next turns of the loop."""
    monkeypatch.setattr(subscriptions, "LIST_CHANGE_DELAY_S", 0)


def full():
    server = Server("full")
    server.add_tool(lambda: None, name="t")
    server.add_resource(lambda: "", "a://b", name="r")
    server.add_prompt(lambda: "", name="p")
    return server


def session(server, revision=LEGACY):
    """A client whose session hears of changes."""
    client = EraClient(server, revision)
    server._changes.add_session(InitializedParams(), inbound(client))
    return client


def inbound(client):
    from isthmus.runtime.inbound import Inbound

    return Inbound(0, "", None, client.caller, client.link)


async def open_stream(server, **wanted):
    """A client with an open stream, and the task that serves it."""
    client = EraClient(server)
    task = asyncio.create_task(client.once("subscriptions/listen", {"notifications": wanted}))
    await run_turns(20)
    return client, task


async def stop(task):
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# --- sessions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2024-11-05", LEGACY])
@pytest.mark.covers("changes.lists.told")
async def test_every_session_hears_of_changed_lists(revision):
    """Bare notifications, to all (spec 2025-11-25: list changed)."""
    server = full()
    clients = [session(server, revision), session(server, revision)]
    server.add_tool(lambda: None, name="u")
    server.remove_resource("a://b")
    await run_turns(20)

    for client in clients:
        assert {
            (TOOLS, "{}"),
            ("notifications/resources/list_changed", "{}"),
        } == {(method, str(params)) for method, params in client.link.notes}


@pytest.mark.covers("changes.lists.debounced")
async def test_many_changes_are_told_once():
    """A burst is one notification (ours)."""
    server = full()
    client = session(server)
    for n in range(50):
        server.add_tool(lambda: None, name=f"t{n}")
    await run_turns(20)

    assert [(TOOLS, {})] == client.link.notes


@pytest.mark.covers("changes.resources.only-subscribed")
async def test_a_resource_is_only_told_to_who_subscribed():
    """And no longer after they took it back (spec 2025-11-25: subscriptions)."""
    server = full()
    one, other = session(server), session(server)
    await one.once("resources/subscribe", {"uri": "a://b"})
    await one.once("resources/subscribe", {"uri": "a://c"})
    await one.once("resources/unsubscribe", {"uri": "a://c"})
    await other.once("resources/unsubscribe", {"uri": "a://never"})
    server.notify_resource_updated("a://b")
    server.notify_resource_updated("a://c")
    await run_turns(20)

    assert [(UPDATED, {"uri": "a://b"})] == one.link.notes
    assert [] == other.link.notes


async def test_a_session_that_is_over_is_forgotten():
    """Nothing is kept for it (decision D25)."""
    server = full()
    client = session(server)
    client.link.close()
    server.add_tool(lambda: None, name="u")
    await run_turns(20)

    assert [] == client.link.notes
    assert {} == server._changes._sessions


@pytest.mark.covers("changes.sessions.after-the-handshake", "lifecycle.opening.only-pings")
async def test_a_session_without_a_finished_handshake_hears_nothing():
    """SHOULD NOT be sent anything before ``initialized`` (spec 2025-11-25: lifecycle)."""
    server = full()
    client = EraClient(server, LEGACY)
    server.add_tool(lambda: None, name="u")
    await run_turns(20)

    assert [] == client.link.notes


@pytest.mark.covers("changes.slow.holds-up-nobody")
async def test_a_slow_session_holds_up_nobody():
    """What waits for it is what it wants, each once (ours)."""
    server, gate = full(), asyncio.Event()
    slow, quick = session(server), session(server)
    note = slow.link.note

    async def slowly(*args, **how):
        await gate.wait()
        await note(*args, **how)

    slow.link.note = slowly
    for client in (slow, quick):
        await client.once("resources/subscribe", {"uri": "a://b"})
    for _ in range(3):
        server.notify_resource_updated("a://b")
        await run_turns(20)

    assert 3 == len(quick.link.notes)
    gate.set()
    await run_turns(20)
    assert 2 == len(slow.link.notes)


# --- streams ----------------------------------------------------------------------------------


@pytest.mark.covers("changes.streams.acknowledged-first")
async def test_a_stream_is_acknowledged_first():
    """With its id, before anything else on it (spec: subscriptions, acknowledgment)."""
    client, task = await open_stream(full(), toolsListChanged=True, resourceSubscriptions=["a://b"])
    await stop(task)

    assert [
        (
            "notifications/subscriptions/acknowledged",
            {
                "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["a://b"]},
                "_meta": {ID: 1},
            },
        )
    ] == client.link.notes


@pytest.mark.covers("changes.streams.only-what-was-asked", "changes.streams.carry-their-id")
async def test_a_stream_gets_what_it_asked_for_and_nothing_else():
    """MUST NOT get other types; everything carries its id (spec: subscriptions)."""
    server = full()
    client, task = await open_stream(server, toolsListChanged=True, resourceSubscriptions=["a://b"])
    server.add_tool(lambda: None, name="u")
    server.remove_prompt("p")
    server.notify_resource_updated("a://b")
    server.notify_resource_updated("a://c")
    await run_turns(20)
    await stop(task)

    assert [
        (TOOLS, {"_meta": {ID: 1}}),
        (UPDATED, {"uri": "a://b", "_meta": {ID: 1}}),
    ] == client.link.notes[1:]


@pytest.mark.covers("changes.streams.honoured-subset")
async def test_lists_that_are_not_offered_are_not_granted():
    """Left out of the acknowledgment (spec: subscriptions, acknowledgment)."""
    client, task = await open_stream(
        Server("empty"),
        toolsListChanged=True,
        promptsListChanged=True,
        resourcesListChanged=False,
        resourceSubscriptions=["a://b"],
    )
    await stop(task)

    assert {} == client.link.notes[0][1]["notifications"]


@pytest.mark.covers("changes.streams.acknowledged-first")
async def test_nothing_overtakes_the_acknowledgment():
    """Not even a change that happens while it is sent (spec: a MUST)."""
    server = full()
    client = EraClient(server)
    note = client.link.note

    async def meanwhile(method, *args, **how):
        if "acknowledged" in method:
            server.notify_resource_updated("a://b")
            await run_turns(20)
        await note(method, *args, **how)

    client.link.note = meanwhile
    wanted = {"resourceSubscriptions": ["a://b"]}
    task = asyncio.create_task(client.once("subscriptions/listen", {"notifications": wanted}))
    await run_turns(60)
    await stop(task)

    assert ["notifications/subscriptions/acknowledged", UPDATED] == [
        method for method, _ in client.link.notes
    ]


@pytest.mark.parametrize("way", ["server", "link"])
@pytest.mark.covers(
    "changes.streams.end-in-order", "cancellation.listen.only-what-a-server-cancels"
)
async def test_a_stream_ends_in_good_order(way):
    """All that happened is told, the stream is cancelled, the request answered (spec: both)."""
    server = full()
    client, task = await open_stream(server, resourceSubscriptions=["a://b"])
    server.notify_resource_updated("a://b")
    if way == "server":
        await server.close()
    else:
        client.link.close()
    result = await task

    assert [UPDATED, "notifications/cancelled"] == [note[0] for note in client.link.notes[-2:]]
    assert ("complete", 1) == (result["resultType"], result["_meta"][ID])
    assert set() == server._changes._streams


async def test_a_stream_that_was_cancelled_is_forgotten():
    """With its place on the link (decision D25)."""
    server = full()
    client, task = await open_stream(server, toolsListChanged=True)
    await stop(task)
    server.add_tool(lambda: None, name="u")
    await run_turns(20)

    assert 1 == len(client.link.notes)
    assert [] == client.link.closers


# --- how much it costs ---


def count_calls(function, *given):
    """How many Python functions run while one does."""
    calls = []

    def note(frame, event, _arg):
        if event == "call":
            calls.append(frame.f_code.co_qualname)

    with profile_calls(note):
        function(*given)
    return calls


@pytest.mark.covers("changes.resources.only-subscribed")
async def test_an_update_touches_its_subscribers_and_nobody_else():
    """Ours: sessions that did not subscribe cost an update nothing, however many there are."""
    server = full()
    one = session(server)
    await one.once("resources/subscribe", {"uri": "a://b"})
    stream, task = await open_stream(server, resourceSubscriptions=["a://b"])
    few = count_calls(server.notify_resource_updated, "a://b")
    nobody = count_calls(server.notify_resource_updated, "a://c")
    await run_turns(20)
    others = [session(server) for _ in range(300)]
    for other in others[:100]:
        await other.once("resources/subscribe", {"uri": "a://other"})
    await run_turns(20)

    assert few == count_calls(server.notify_resource_updated, "a://b")
    assert nobody == count_calls(server.notify_resource_updated, "a://c")
    assert 2 == few.count("ChangeListener.hear")
    assert "ChangeListener.hear" not in nobody
    await run_turns(20)
    await stop(task)
    assert [UPDATED] * 2 == [method for method, _ in one.link.notes]
    assert [UPDATED] * 2 == [method for method, _ in stream.link.notes[1:]]
    assert not any(other.link.notes for other in others)


@pytest.mark.parametrize("way", ["session", "unsubscribe", "cancelled", "link"])
async def test_who_no_longer_listens_leaves_nothing_behind(way):
    """Ours: a server that runs for months has the subscriptions of now and no others."""
    server = full()
    if way in ("session", "unsubscribe"):
        client = session(server)
        await client.once("resources/subscribe", {"uri": "a://b"})
        await client.once("resources/subscribe", {"uri": "a://b"})
        server._changes.add_page(client.link, "e1")
        server.notify_elicitation_complete("e1")
        if way == "session":
            server._changes.add_page(client.link, "e2")
            client.link.close()
        else:
            await client.once("resources/unsubscribe", {"uri": "a://b"})
    else:
        client, task = await open_stream(server, resourceSubscriptions=["a://b", "a://c"])
        assert 2 == len(server._changes._topics._listeners)
        if way == "cancelled":
            await stop(task)
        else:
            client.link.close()
            await task

    assert {} == server._changes._topics._listeners


# --- from everywhere --------------------------------------------------------------------------


@pytest.mark.covers("changes.lists.from-any-thread")
async def test_a_tool_may_change_what_there_is():
    """From the loop and from a thread (conformance: test_trigger_tool_change)."""
    server = full()

    @server.tool
    def grow(name: str, ctx: Context) -> str:
        server.add_tool(lambda: None, name=name)
        ctx.notify_resource_updated("a://b")
        return threading.current_thread().name

    client, task = await open_stream(server, toolsListChanged=True, resourceSubscriptions=["a://b"])

    assert "isthmus" in tool_text(await EraClient(server).call("grow", {"name": "new"}))
    await run_turns(20)
    await stop(task)
    assert {TOOLS, UPDATED} == {method for method, _ in client.link.notes[1:]}


async def test_a_change_after_the_loop_is_gone_is_told_to_nobody():
    """A session of an event loop that was closed cannot hear (ours)."""
    server = full()

    def elsewhere():
        async def join():
            session(server)

        asyncio.run(join())

    await asyncio.to_thread(elsewhere)
    server.add_tool(lambda: None, name="u")

    assert {"t", "u"} == {tool.name for tool in server._declared.tools.listing}


@pytest.mark.covers("elicitation.complete.own-session")
async def test_a_page_that_was_dealt_with_is_told_to_its_session_alone():
    """MUST only go to the client that was asked (spec 2025-11-25: elicitation complete)."""
    server = full()

    @server.tool
    async def sign_in(ctx: Context) -> str:
        await ctx.elicit_url("Sign in", "https://a.example/", elicitation_id="e1")
        return "done"

    one, other = session(server), session(server)
    one.link.answer = lambda *_: {"action": "accept"}
    await one.call("sign_in")
    server.notify_elicitation_complete("e1")
    server.notify_elicitation_complete("e1")
    server.notify_elicitation_complete("e2")
    await run_turns(20)

    assert [("notifications/elicitation/complete", {"elicitationId": "e1"})] == one.link.notes
    assert [] == other.link.notes


@pytest.mark.covers("changes.lists.only-declared")
async def test_a_list_that_was_not_declared_is_not_told_of():
    """The spec: servers that declared listChanged tell, and a session knows what was declared."""
    server = Server("small")
    server.add_tool(lambda: None, name="t")
    client = session(server)
    server.add_prompt(lambda: "", name="p")
    server.add_tool(lambda: None, name="u")
    await run_turns(20)

    assert [TOOLS] == [method for method, _ in client.link.notes]
    later = session(server)
    server.remove_prompt("p")
    await run_turns(20)
    assert ["notifications/prompts/list_changed"] == [method for method, _ in later.link.notes]


@pytest.mark.covers("changes.lists.debounced", "changes.lists.from-any-thread")
@pytest.mark.parametrize("era", ["session", "stream"])
async def test_of_changes_in_many_threads_the_last_is_always_told(era):
    """Ours: whoever lists after the last notification has seen every change."""
    server = full()
    if era == "session":
        client, task = session(server), None
    else:
        client, task = await open_stream(server, toolsListChanged=True)
    seen = []
    note = client.link.note

    async def listing(method, params=None, **related):
        await note(method, params, **related)
        if method == TOOLS:
            seen.append(len((await EraClient(server).once("tools/list"))["tools"]))

    client.link.note = listing

    def change(thread):
        for n in range(20):
            server.add_tool(lambda: None, name=f"{thread}-{n}")

    await asyncio.gather(*(asyncio.to_thread(change, n) for n in range(5)))
    await run_turns(50)

    assert 101 == seen[-1]
    assert len(seen) <= 100
    if task is not None:
        await stop(task)
