"""HTTP+SSE at several nodes: a POST reaches the node of its stream, wherever it arrives."""

import asyncio

import msgspec
import pytest

from isthmus import Accepted, Context, Server
from isthmus.core.principal import Principal
from isthmus.errors import StoreUnavailable
from isthmus.store import MemoryStore
from isthmus.testing.faults import until
from isthmus.transports.http import sse_mail
from isthmus.transports.http.sse_mail import SSE_TOPIC, SseLetter, make_letter_origin
from isthmus.transports.http.sse_server import FULL_STREAM, MAX_HELD_REQUESTS
from support.http.messages import INITIALIZE, INITIALIZED, legacy_call_body, read_tool_text
from support.http.sse_visitor import Visitor

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


def make_server(store):
    server = Server("nodes", secret=b"s" * 32, store=store)

    @server.tool
    async def where(ctx: Context) -> str:
        return f"{ctx._inbound.origin.transport} {ctx._inbound.origin.principal}"

    @server.tool
    async def hello() -> str:
        return "hello"

    @server.tool
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Which?", str)
        return answer.value if isinstance(answer, Accepted) else "no"

    @server.tool
    async def wait(ctx: Context) -> str:
        await asyncio.Event().wait()
        return "never"

    @server.tool
    async def big() -> str:
        return "x" * (FULL_STREAM + 1)

    return server


async def open_apps(count, store=None, **options):
    """Apps that serve together, and the store they share."""
    store = store or MemoryStore()
    apps = [make_server(store).asgi(**options) for _ in range(count)]
    for app in apps:
        await app.start()
    return store, apps


async def close_apps(apps):
    for app in apps:
        await app.close()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_posts_in_turn_over_nodes_are_one_session(revision):
    """2024-11-05 basic/transports#http-with-sse: what is posted is answered on the stream, from any node."""
    _, apps = await open_apps(3)
    visitor = Visitor(apps[0])
    await visitor.arrive()
    visitor.target = apps[1]
    params = {**INITIALIZE["params"], "protocolVersion": revision}
    await visitor.say({**INITIALIZE, "params": params})
    opened = await visitor.message()
    visitor.target = apps[2]
    await visitor.say(INITIALIZED)
    texts = []
    for number in range(6):
        visitor.target = apps[number % 3]
        await visitor.say(legacy_call_body("hello", id=number + 1))
        texts.append(read_tool_text(await visitor.message()))

    assert revision == opened["result"]["protocolVersion"]
    assert ["hello"] * 6 == texts
    await visitor.leave()
    await close_apps(apps)


@pytest.mark.parametrize("node", [0, 1])
async def test_an_answer_posted_at_any_node_ends_the_question(node):
    """Spec 2025-06-18 client/elicitation: the answer reaches whoever asked."""
    _, apps = await open_apps(2)
    visitor = Visitor(apps[0])
    await visitor.open("2025-06-18")
    await visitor.say(legacy_call_body("ask"))
    question = await visitor.message()
    visitor.target = apps[node]
    answer = {"action": "accept", "content": {"value": "blue"}}
    await visitor.say({"jsonrpc": "2.0", "id": question["id"], "result": answer})

    assert "blue" == read_tool_text(await visitor.message())
    await visitor.leave()
    await close_apps(apps)


async def test_a_cancellation_posted_elsewhere_ends_the_call():
    """2024-11-05 basic/utilities/cancellation: the receiver SHOULD stop processing."""
    _, apps = await open_apps(2)
    visitor = Visitor(apps[0])
    await visitor.open()
    await visitor.say(legacy_call_body("wait", id=5))
    (stream,) = apps[0]._sse._streams.values()
    await until(lambda: len(stream.peer._serving) == 1)
    visitor.target = apps[1]
    await visitor.say(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    )
    await until(lambda: not stream.peer._serving)

    assert 0 == len(stream.peer._tasks)
    await visitor.leave()
    await close_apps(apps)


async def test_a_stream_of_a_node_that_is_gone_is_unknown():
    """Ours: its client opens another stream; nothing hangs."""
    _, apps = await open_apps(2)
    visitor = Visitor(apps[0])
    await visitor.open()
    await apps[0].close()
    visitor.target = apps[1]
    answer = await visitor.post(legacy_call_body()).done()

    assert 404 == answer.status
    assert "open an event stream again" in answer.json["error"]["message"]
    await close_apps(apps[1:])


async def test_a_stream_that_ended_is_unknown_at_every_node():
    """Ours: the node is there, and the stream is not."""
    _, apps = await open_apps(2)
    visitor = Visitor(apps[0])
    await visitor.open()
    await visitor.leave()
    visitor.target = apps[1]

    assert 404 == (await visitor.post(legacy_call_body()).done()).status
    await close_apps(apps)


@pytest.mark.parametrize(
    "id", ["n0123456789.abc", "n0123456789", "x.y", "../..", ".", "n" * 5000 + ".a", "%00.%00"]
)
async def test_forged_ids_are_unknown(id):
    """Ours: an id that no node gave reaches none."""
    _, apps = await open_apps(1)
    visitor = await Visitor(apps[0]).arrive()
    visitor.endpoint = f"/messages?session_id={id}"

    assert 404 == (await visitor.post(legacy_call_body()).done()).status
    await close_apps(apps)


async def test_without_a_store_another_process_knows_no_stream():
    """Ours: one process is as it was."""
    apps = [make_server(None).asgi() for _ in range(2)]
    visitor = Visitor(apps[0])
    await visitor.open()
    visitor.target = apps[1]

    assert 404 == (await visitor.post(legacy_call_body()).done()).status
    await close_apps(apps)


async def test_what_is_no_message_is_refused_where_it_arrives():
    """Ours: another node is bothered with messages only."""
    _, apps = await open_apps(2, body_limit=2000)
    visitor = Visitor(apps[0])
    await visitor.open()
    visitor.target = apps[1]
    garbled = await visitor.post(b"{").done()
    huge = await visitor.post(b" " * 2001).done()

    assert [400, 413] == [garbled.status, huge.status]
    await visitor.leave()
    await close_apps(apps)


class LossyStore(MemoryStore):
    """A store that can be lost."""

    is_lost = False

    def __init__(self):
        super().__init__()
        publish = self.bus.publish

        async def publish_or_fail(channel, message):
            if self.is_lost:
                raise StoreUnavailable("the store is lost")
            return await publish(channel, message)

        self.bus.publish = publish_or_fail


async def test_a_lost_store_is_said_with_the_time_to_come_back():
    """Ours: nothing falls back to this process."""
    store, apps = await open_apps(2, LossyStore())
    visitor = Visitor(apps[0])
    await visitor.open()
    store.is_lost = True
    visitor.target = apps[1]
    answer = await visitor.post(legacy_call_body("hello", id=1)).done()
    visitor.target = apps[0]
    await visitor.say(legacy_call_body("hello", id=2))

    assert 503 == answer.status
    assert "2" == answer.header("retry-after")
    assert "hello" == read_tool_text(await visitor.message())
    store.is_lost = False
    await visitor.leave()
    await close_apps(apps)


async def test_a_client_that_does_not_read_waits_at_other_nodes_too(monkeypatch):
    """Ours: what is asked elsewhere is taken in when the stream has room, and refused where many wait."""
    monkeypatch.setattr(sse_mail, "ROOM_WAIT_S", 0.01)
    _, apps = await open_apps(2)
    visitor = Visitor(apps[0])
    await visitor.open()
    (stream,) = apps[0]._sse._streams.values()
    stream._unread = FULL_STREAM + 1
    visitor.target = apps[1]
    posts = [
        visitor.post(legacy_call_body("hello", id=id)) for id in range(1, MAX_HELD_REQUESTS + 1)
    ]
    await until(lambda: MAX_HELD_REQUESTS == stream.held)
    refused = await visitor.post(legacy_call_body("hello", id=99)).done()
    assert not any(post.started.is_set() for post in posts)
    stream._unread = 0
    stream._room.set()
    for post in posts:
        await post.done()

    assert 503 == refused.status
    assert "read the event stream" in refused.json["error"]["message"]
    assert {202} == {post.status for post in posts}
    await visitor.leave()
    await close_apps(apps)


ALICE = Principal(issuer="https://as.example", subject="alice", scopes=frozenset({"a", "b"}))


async def test_somebody_elses_stream_looks_like_none_at_every_node():
    """Ours: the digest of the owner travels with the message, and must fit."""
    _, apps = await open_apps(2)
    visitor = await Visitor(apps[0]).arrive()
    (stream,) = apps[0]._sse._streams.values()
    stream._principal = ALICE
    visitor.target = apps[1]

    assert 404 == (await visitor.post(legacy_call_body()).done()).status
    await visitor.leave()
    await close_apps(apps)


def test_a_message_may_do_no_more_than_the_token_it_came_with():
    """Ours: scopes that the stream's token has, and the message's has not, are left out."""
    letter = SseLetter("n.s", b"", ["b", "c"], b"")
    full = SseLetter("n.s", b"", ["a", "b", "c"], b"")

    assert frozenset({"b"}) == make_letter_origin(letter, ALICE).principal.scopes
    assert ALICE is make_letter_origin(full, ALICE).principal


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode([]),
        msgspec.msgpack.encode(["s", None, None, 1]),
        msgspec.msgpack.encode(["s", None, None, b"{}", "more"]),
        msgspec.msgpack.encode(["s", "text", None, b"{}"]),
        msgspec.msgpack.encode({"stream": "s"}),
    ],
)
async def test_letters_of_another_shape_are_refused(body):
    """Ours: a letter is data, decoded strictly."""
    _, apps = await open_apps(2)
    with pytest.raises(sse_mail.MailRefused):
        await apps[0].node.mailbox.send(apps[1].node.id, SSE_TOPIC, body)
    await close_apps(apps)


async def test_a_letter_with_what_is_no_message_is_refused():
    """Ours: a node does not rely on another to have looked."""
    _, apps = await open_apps(2)
    visitor = await Visitor(apps[0]).arrive()
    (stream,) = apps[0]._sse._streams
    letter = SseLetter(stream, None, None, b"{")
    answer = await apps[1].node.mailbox.send(
        apps[0].node.id, SSE_TOPIC, msgspec.msgpack.encode(letter)
    )

    assert 400 == msgspec.msgpack.decode(answer)["status"]
    await visitor.leave()
    await close_apps(apps)
