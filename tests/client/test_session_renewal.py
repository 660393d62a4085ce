"""Sessions that a server ends: what the client does about it, once, and what it does not do."""

import asyncio
import functools
import json

import pytest

from isthmus.client import handshake
from isthmus.client.client import Client
from isthmus.client.handshake import MIN_SESSION_S, SessionRenewal
from isthmus.client.targets import Target
from isthmus.errors import CallTimedOut, ConnectionLost, HttpRefused, MethodNotFound, OutOfPhase
from isthmus.testing import VirtualLoop
from isthmus.testing.faults import until
from isthmus.transports.http.client.channel import SESSION_END_GRACE_S, HttpClientChannel
from support.http.scripted_requests import HOLD, ScriptedReply, ScriptedRequests

LEGACY = "2025-11-25"
URL = "http://server.example/mcp"
CAPABILITIES = {
    "tools": {"listChanged": True},
    "logging": {},
    "resources": {"subscribe": True},
}


def virtual(test):
    """Run a test on a clock of its own."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


def make_reply(**members):
    return ScriptedReply(
        200, json.dumps({"jsonrpc": "2.0", **members}).encode(), kind="application/json"
    )


class Forgetful:
    """A server of sessions that it forgets when it is told to.

    Args:
        reply: ``(server, message) -> Reply`` for calls; None for an empty result; may be async.
        stream: what a GET brings; a function of the server.

    Attributes:
        alive: the id of the session it knows; 0 for none.
        heard: each message it took, with its session.
    """

    def __init__(self, reply=lambda _server, _message: None, stream=lambda _: ScriptedReply(405)):
        self.reply, self.stream = reply, stream
        self.alive = self.opened = 0
        self.heard = []
        self.requests = []
        self.refuses = False

    async def answer(self, method, _url, headers, body):
        session = int(headers.get("Mcp-Session-Id", 0))
        message = json.loads(body) if body else {}
        name = message.get("method", method)
        if name == "initialize":
            return self.greet(message)
        if session != self.alive:
            return ScriptedReply(404, b"no such session", kind="text/plain")
        self.heard.append((session, name, message))
        if method == "GET":
            return self.stream(self)
        if method == "DELETE" or "id" not in message:
            return ScriptedReply(202)
        reply = self.reply(self, message)
        reply = await reply if hasattr(reply, "__await__") else reply
        return make_reply(id=message["id"], result={"content": []}) if reply is None else reply

    def greet(self, message):
        if self.refuses:
            return ScriptedReply(503)
        self.opened += 1
        self.alive = self.opened
        self.heard.append((self.alive, "initialize", message))
        result = {
            "protocolVersion": LEGACY,
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "forgetful", "version": "1"},
        }
        reply = make_reply(id=message["id"], result=result)
        reply.headers["Mcp-Session-Id"] = str(self.alive)
        return reply

    def forget(self):
        self.alive = 0

    def all(self, name):
        """The sessions in which a method was heard."""
        return [session for session, method, _ in self.heard if method == name]

    def client(self, **options):
        """A client of it, over requests that need no network."""

        async def dial():
            self.requests.append(ScriptedRequests(self.answer))
            return HttpClientChannel(URL, requests=self.requests[-1])

        handshake.forget_target(URL)
        return Client(Target(URL, dial, URL, http=True), revision=LEGACY, **options)


async def read_on(changes):
    """Read changes until there are no more."""
    async for _ in changes:
        pass


@pytest.mark.covers("httpclient.session.anew")
@virtual
async def test_a_call_that_met_404_is_made_in_a_new_session(caplog):
    """Spec 2025-11-25 basic/transports#session-management: MUST start a new session."""
    server = Forgetful()
    async with server.client() as client:
        await client.call_tool("add")
        server.forget()
        assert [] == (await client.call_tool("add")).content
        await client.call_tool("add")

    assert [1, 2, 2] == server.all("tools/call")
    greetings = [message for _, name, message in server.heard if name == "initialize"]
    assert 2 == len(greetings)
    assert "has ended the session; a new one was started" in caplog.text
    assert all(requests.closed for requests in server.requests)
    assert [2] == server.all("DELETE")


@pytest.mark.covers("httpclient.session.without-id")
@virtual
async def test_the_new_session_is_asked_for_without_the_id_of_the_old_one():
    """Spec 2025-11-25 basic/transports#session-management: without a session ID attached."""
    server = Forgetful()
    async with server.client() as client:
        server.forget()
        await client.call_tool("add")

    again = server.requests[1].heard[0]
    assert b"initialize" in again[4]
    assert "Mcp-Session-Id" not in again[3]


@pytest.mark.covers("httpclient.session.shared")
@virtual
async def test_calls_that_meet_404_together_share_one_new_session():
    """Ours: one session for all, and each call is served once."""
    server = Forgetful()
    async with server.client() as client:
        server.forget()
        await asyncio.gather(*[client.call_tool("add") for _ in range(50)])

    assert (2, [2] * 50) == (server.opened, server.all("tools/call"))


@virtual
async def test_calls_that_meet_404_one_after_the_other_share_one_new_session():
    """Ours: also where the second answer comes when the new session is there already."""
    gates = [asyncio.Event(), asyncio.Event()]
    server = Forgetful()
    plain = server.answer

    async def slow(method, url, headers, body):
        name = json.loads(body)["params"].get("name") if body and b"tools/call" in body else None
        if name in {"0", "1"} and headers.get("Mcp-Session-Id") == "1":
            await gates[int(name)].wait()
        return await plain(method, url, headers, body)

    server.answer = slow
    async with server.client() as client:
        calls = [asyncio.create_task(client.call_tool(str(n))) for n in range(2)]
        await until(lambda: len(server.requests[0].heard) == 5)
        server.forget()
        gates[0].set()
        await calls[0]
        gates[1].set()
        await calls[1]

    assert (2, [2, 2]) == (server.opened, server.all("tools/call"))


@pytest.mark.covers("httpclient.session.in-flight")
@virtual
async def test_what_was_being_done_is_not_done_again():
    """Ours: a call whose answer is not known fails, soon, for it may have been served."""
    hold = asyncio.Event()

    async def reply(_server, message):
        if message["params"]["name"] == "slow":
            await hold.wait()

    server = Forgetful(reply)
    async with server.client() as client:
        slow = asyncio.create_task(client.call_tool("slow"))
        await until(lambda: server.all("tools/call") == [1])
        server.forget()
        await client.call_tool("quick")
        began = asyncio.get_running_loop().time()
        with pytest.raises(ConnectionLost, match="while waiting for tools/call"):
            await slow
        assert SESSION_END_GRACE_S >= asyncio.get_running_loop().time() - began
        hold.set()

    assert [1, 2] == server.all("tools/call")


@virtual
async def test_an_answer_that_is_on_its_way_is_still_taken():
    """Ours: the end of a session leaves a moment for what was served in it."""
    hold = asyncio.Event()

    async def reply(_server, message):
        if message["params"]["name"] == "slow":
            await hold.wait()

    server = Forgetful(reply)
    async with server.client() as client:
        slow = asyncio.create_task(client.call_tool("slow"))
        await until(lambda: server.all("tools/call") == [1])
        server.forget()
        await client.call_tool("quick")
        hold.set()
        assert [] == (await slow).content


@pytest.mark.covers("httpclient.session.once")
@virtual
async def test_a_second_404_right_after_is_the_end():
    """Ours: exactly once, with an error that says so."""
    server = Forgetful()
    async with server.client() as client:
        server.alive = -1
        server.greet = lambda message, greet=server.greet: (greet(message), server.forget())[0]
        with pytest.raises(ConnectionLost, match="a new session did not serve the call either"):
            await client.call_tool("add")
        with pytest.raises(ConnectionLost, match="ended a new session after"):
            await client.call_tool("add")
        await asyncio.sleep(1)

    assert (2, []) == (server.opened, server.all("tools/call"))


@virtual
async def test_a_session_that_lasted_may_be_followed_by_another():
    """Ours: a server may be restarted every night."""
    server = Forgetful()
    async with server.client() as client:
        for _ in range(3):
            server.forget()
            await asyncio.sleep(MIN_SESSION_S + 1)
            await client.call_tool("add")

    assert [2, 3, 4] == server.all("tools/call")


@virtual
async def test_no_new_session_is_told_and_tried_again_at_the_next_call():
    """Ours: a server that is away may come back."""
    server = Forgetful()
    async with server.client() as client:
        server.forget()
        server.refuses = True
        with pytest.raises(ConnectionLost, match=r"no new one could be started: .*HTTP 503"):
            await client.call_tool("add")
        server.refuses = False
        await client.call_tool("add")

    assert [2] == server.all("tools/call")


@pytest.mark.covers("httpclient.session.restored")
@virtual
async def test_a_new_session_is_as_the_old_one_was():
    """Ours: log level, subscriptions and the standing stream; and everybody looks anew."""
    told, again = [], []
    server = Forgetful(stream=lambda _: ScriptedReply(200, HOLD))
    async with server.client(on_change=told.append, log_level="error") as client:
        client.on_reconnect(again.append)
        await client.subscribe("file:///a")
        await client.set_log_level("warning")
        async with client.listen(tools=True, uris=["file:///b"]) as changes:
            server.forget()
            await client.call_tool("add")
            await until(lambda: again == [client])
            seen = [str((await anext(changes)).kind) for _ in range(2)]
        assert {"tools", "resource"} == set(seen)

    assert [1, 2] == server.all("GET")
    levels = [m["params"]["level"] for _, name, m in server.heard if name == "logging/setLevel"]
    assert ["error", "warning", "warning"] == levels
    uris = [
        (session, message["params"]["uri"])
        for session, name, message in server.heard
        if name == "resources/subscribe"
    ]
    assert [(1, "file:///a"), (1, "file:///b"), (2, "file:///a"), (2, "file:///b")] == uris
    assert [2] == server.all("resources/unsubscribe")
    assert {"tools", "resources", "resource"} >= {change.kind for change in told}


@pytest.mark.covers("httpclient.session.idle")
@virtual
async def test_the_standing_stream_hears_of_the_end_when_nobody_calls():
    """Spec 2025-11-25 basic/transports#session-management: 404 to any request."""
    server = Forgetful(stream=lambda _: ScriptedReply(200, b"retry: 10\n\n"))
    async with server.client():
        server.forget()
        await asyncio.sleep(5)

    assert 2 == server.opened


@virtual
async def test_sessions_that_end_for_ever_are_not_started_for_ever():
    """Ours: nobody calls, and nobody is hammered; who listens is told."""
    server = Forgetful(stream=lambda server: ScriptedReply(200, server.forget, b"retry: 1\n\n"))
    async with server.client() as client, client.listen(tools=True) as changes:
        with pytest.raises(ConnectionLost, match="ended a new session after"):
            await read_on(changes)
        await asyncio.sleep(3600)

    assert 2 == server.opened


@virtual
async def test_a_subscription_that_meets_404_is_made_in_the_new_session():
    """Ours: listening is a call like any other."""
    server = Forgetful()
    async with server.client() as client:
        server.forget()
        async with client.listen(uris=["file:///a"]):
            assert [2] == server.all("resources/subscribe")


@virtual
async def test_a_custom_request_that_meets_404_is_made_in_the_new_session():
    """Ours: the same for methods of one's own."""
    server = Forgetful()
    async with server.client() as client:
        server.forget()
        assert {"content": []} == await client.request("x/y")


@pytest.mark.covers("httpclient.session.resumed-404")
@virtual
async def test_a_call_whose_stream_cannot_be_resumed_is_not_made_again():
    """Ours: 404 to the GET says nothing of the POST before, which was accepted."""
    server = Forgetful(
        lambda server, _: ScriptedReply(200, b"id: 1\nretry: 1\ndata:\n\n", server.forget)
    )
    async with server.client() as client:
        with pytest.raises(ConnectionLost, match="has ended the session"):
            await client.call_tool("add")
        server.reply = lambda *_: None
        await client.call_tool("add")

    assert [1, 2] == server.all("tools/call")


@virtual
async def test_an_answer_to_our_id_is_an_answer_whatever_its_status():
    """Ours: a server that puts 404 on an unknown method has not forgotten us."""

    def unknown(_server, message):
        reply = make_reply(id=message["id"], error={"code": -32601, "message": "no"})
        reply.status = 404
        return reply

    server = Forgetful(unknown)
    async with server.client() as client:
        with pytest.raises(MethodNotFound):
            await client.call_tool("add")

    assert 1 == server.opened


@pytest.mark.parametrize("code", [-32600, -32000, -32001])
@virtual
async def test_an_error_may_say_that_the_session_is_unknown(code):
    """Spec 2025-11-25 basic/transports#session-management: some servers name our id in it."""
    server = Forgetful()
    plain = server.answer

    async def named(method, url, headers, body):
        reply = await plain(method, url, headers, body)
        if reply.status == 404 and body and "id" in (message := json.loads(body)):
            reply = make_reply(
                id=message["id"], error={"code": code, "message": "Session not found"}
            )
            reply.status = 404
        return reply

    server.answer = named
    async with server.client() as client:
        server.forget()
        await client.call_tool("add")

    assert [2] == server.all("tools/call")


@virtual
async def test_another_status_does_not_end_a_session():
    """Ours: 404 alone does; a call that failed so is not made again."""
    server = Forgetful(lambda *_: ScriptedReply(500, b"boom"))
    async with server.client() as client:
        with pytest.raises(HttpRefused):
            await client.call_tool("add")

    assert (1, [1]) == (server.opened, server.all("tools/call"))


@virtual
async def test_a_caller_who_leaves_does_not_keep_others_from_the_new_session():
    """Ours: it is everybody's."""
    server = Forgetful()
    gate, plain = asyncio.Event(), server.answer

    async def slow(method, url, headers, body):
        if server.opened and body and b'"initialize"' in body:
            await gate.wait()
        return await plain(method, url, headers, body)

    server.answer = slow
    async with server.client() as client:
        server.forget()
        calls = [asyncio.create_task(client.call_tool("add")) for _ in range(2)]
        await until(lambda: len(server.requests) == 2)
        calls[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls[0]
        gate.set()
        await calls[1]

    assert [2] == server.all("tools/call")


@virtual
async def test_closing_while_a_new_session_begins():
    """Decision D20: in bounded time, with a typed error, and nothing is left open."""
    server = Forgetful()
    plain = server.answer

    async def stuck(method, url, headers, body):
        if server.opened and body and b'"initialize"' in body:
            await asyncio.Event().wait()
        return await plain(method, url, headers, body)

    server.answer = stuck
    client = server.client()
    await client.open()
    server.forget()
    calls = [asyncio.create_task(client.call_tool("add")) for _ in range(3)]
    await until(lambda: len(server.requests) == 2)
    await asyncio.sleep(0.1)
    await client.close()
    for call in calls:
        with pytest.raises(ConnectionLost):
            await call
    assert all(requests.closed for requests in server.requests)
    assert {asyncio.current_task()} == asyncio.all_tasks()


@virtual
async def test_a_new_session_that_never_comes_is_given_up():
    """Decision D20: opening again is as bounded as opening."""
    server = Forgetful()
    plain = server.answer

    async def stuck(method, url, headers, body):
        if server.opened and body and b'"initialize"' in body:
            await asyncio.Event().wait()
        return await plain(method, url, headers, body)

    server.answer = stuck
    async with server.client(connect_timeout=3.0) as client:
        server.forget()
        with pytest.raises(ConnectionLost, match=r"no connection within 3 s"):
            await client.call_tool("add")
        with pytest.raises((ConnectionLost, CallTimedOut)):
            await client.call_tool("add", timeout=1.0)


@virtual
async def test_a_channel_that_was_given_is_not_dialled_again():
    """Ours: whoever made the channel knows how to make another."""
    server = Forgetful()
    channel = HttpClientChannel(URL, requests=ScriptedRequests(server.answer))
    async with Client(channel, revision=LEGACY) as client:
        server.forget()
        with pytest.raises(ConnectionLost, match="has ended the session"):
            await client.call_tool("add")

    assert 1 == server.opened


@pytest.mark.covers("httpclient.close.bounded")
@virtual
async def test_a_server_that_does_not_hear_the_end_is_not_waited_for_long():
    """Spec 2025-11-25 basic/transports#session-management: DELETE is a courtesy."""
    server = Forgetful()
    plain = server.answer

    async def deaf(method, url, headers, body):
        if method == "DELETE":
            await asyncio.Event().wait()
        return await plain(method, url, headers, body)

    server.answer = deaf
    client = server.client()
    await client.open()
    began = asyncio.get_running_loop().time()
    await asyncio.gather(*[asyncio.create_task(client.close()) for _ in range(3)])

    assert 2.0 >= asyncio.get_running_loop().time() - began
    assert {asyncio.current_task()} == asyncio.all_tasks()


@virtual
async def test_a_call_that_learns_of_the_end_while_the_client_closes():
    """Ours: no session is started for nobody."""
    server = Forgetful()
    client = server.client()
    await client.open()
    server.forget()
    call = asyncio.create_task(client.call_tool("add"))
    await until(lambda: len(server.requests[0].heard) == 4)
    await client.close()
    with pytest.raises((ConnectionLost, OutOfPhase)):
        await call

    assert 1 == server.opened
    assert {asyncio.current_task()} == asyncio.all_tasks()


class Leaving:
    """A link that was replaced, and counts how often it is ended."""

    def __init__(self):
        self.ends = 0

    async def over(self):
        """Never by itself."""
        await asyncio.Event().wait()

    async def end(self):
        """End it."""
        self.ends += 1


@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_a_link_that_was_just_replaced_is_ended_with_its_client(turns):
    """Ours: also where the task that ends it is cancelled before it began."""
    link, renewal = Leaving(), SessionRenewal(lambda: None, lambda _: None)
    renewal.leave(link)
    for _ in range(turns):
        await asyncio.sleep(0)
    await renewal.close()

    assert link.ends >= 1
