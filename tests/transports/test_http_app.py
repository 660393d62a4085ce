"""Modern POSTs: one request, one response, and nothing left behind."""

import asyncio
import gc
import logging

import pytest

from isthmus.errors import NotInRevision, Refuse, UsageError
from isthmus.revisions import BY_NAME, REVISIONS
from isthmus.runtime.router import Router
from isthmus.transports.http.app import HttpApp
from isthmus.wire import EmptyResult, LogMessageParams, PingParams, ProgressParams
from support.heap import own_heap
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import (
    NEW,
    begin_modern_call,
    hello,
    legacy_call_body,
    legacy_head,
    make_http_app,
    make_router,
    modern_body,
    modern_head,
    read_tool_text,
)

pytestmark = pytest.mark.usefixtures("carrier")
ASGI_ONLY = frozenset(
    {
        "test_a_send_that_fails_ends_no_call",
        "test_a_handler_sees_headers_and_where_the_request_came_from",
        "test_a_call_leaves_no_reference_cycle",
        "test_a_watched_call_that_is_answered_is_watched_no_longer",
        "test_a_server_that_cannot_receive_any_more_says_the_client_left",
    }
)


async def talk(inbound):
    """A tool that reports progress before it answers."""
    for done in (1, 2):
        params = ProgressParams(progress_token=inbound.progress_token, progress=done)
        await inbound.link.note("notifications/progress", params, relates_to=inbound.id)
    return "talked"


class Slow:
    """A tool that runs until it is told to answer, and knows how it ended."""

    def __init__(self) -> None:
        self.running = asyncio.Event()
        self.go = asyncio.Event()
        self.ended = None

    async def __call__(self, inbound):
        """Run until told otherwise."""
        self.running.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise
        self.ended = "answered"
        return "slow"


# Plain answers


@pytest.mark.covers("routing.post.either-form")
async def test_a_call_is_answered_with_one_json_body():
    """2026-07-28 basic/transports/streamable-http#sending-messages, point 6."""
    answer = await begin_modern_call(make_http_app(hello=hello)).done()

    assert 200 == answer.status
    assert "application/json" == answer.header("content-type")
    assert str(len(answer.body)) == answer.header("content-length")
    assert (1, "hello") == (answer.json["id"], read_tool_text(answer.json))
    assert 2 == len(answer.messages)


@pytest.mark.covers("routing.earlier.no-sessions")
async def test_no_session_is_made_for_a_modern_request():
    """2026-07-28: session ids are neither minted nor echoed; one that is sent is ignored."""
    head = modern_head(mcp_session_id="whatever", last_event_id="7")

    answer = await fetch(make_http_app(hello=hello), headers=head, body=modern_body())

    assert 200 == answer.status
    assert answer.header("mcp-session-id") is None


@pytest.mark.covers("messages.ids.kinds")
@pytest.mark.parametrize("id", [0, "", "a-1", 2**53])
async def test_an_id_comes_back_as_it_was_sent(id):
    """JSON-RPC: the answer has the request's id, of the same type."""
    assert id == (await begin_modern_call(make_http_app(hello=hello), id=id).done()).json["id"]


@pytest.mark.covers("routing.method.unknown")
async def test_an_unknown_method_is_404_with_its_id():
    """2026-07-28 basic/transports/streamable-http#protocol-version-header."""
    head = modern_head("acme/none", None)

    answer = await fetch(make_http_app(), headers=head, body=modern_body("acme/none", {}))

    assert (404, -32601, 1) == (answer.status, answer.json["error"]["code"], answer.json["id"])


async def test_a_tool_may_refuse_with_any_code_and_the_status_follows():
    """An error of the application travels as a plain JSON-RPC answer."""

    async def refuse(_inbound):
        raise Refuse(4711, "not today", {"until": "tomorrow"})

    answer = await begin_modern_call(make_http_app(refuse=refuse), "refuse").done()

    assert 200 == answer.status
    error = {"code": 4711, "message": "not today", "data": {"until": "tomorrow"}}
    assert {"jsonrpc": "2.0", "id": 1, "error": error} == answer.json


@pytest.mark.covers("routing.headers.compared")
async def test_headers_that_contradict_the_body_are_refused_under_its_id():
    """2026-07-28 basic/transports/streamable-http#server-validation."""
    head = modern_head(name="another")

    answer = await fetch(make_http_app(hello=hello), headers=head, body=modern_body(id="x"))

    assert (400, -32020, "x") == (answer.status, answer.json["error"]["code"], answer.json["id"])


@pytest.mark.covers("routing.headers.compared")
async def test_a_header_given_twice_matches_nothing():
    """Of two values, no proxy and no server may each believe another one."""
    head = modern_head()
    head["mcp-name"] = ["hello", "hello"]

    assert 400 == (await fetch(make_http_app(hello=hello), headers=head, body=modern_body())).status


@pytest.mark.covers("versions.modern.unsupported")
async def test_an_unsupported_revision_is_told_which_there_are():
    """2026-07-28 basic/versioning: -32022 with the supported list."""
    meta = {"io.modelcontextprotocol/protocolVersion": "v999.0.0"}
    head = modern_head(mcp_protocol_version="v999.0.0")

    answer = await fetch(make_http_app(hello=hello), headers=head, body=modern_body(**meta))

    assert (400, -32022) == (answer.status, answer.json["error"]["code"])
    assert {"supported": [NEW], "requested": "v999.0.0"} == answer.json["error"]["data"]


@pytest.mark.covers("routing.post.refused")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"", -32700),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
    ],
)
async def test_what_is_no_message_is_refused_with_400(body, code):
    """Bad input is answered, never dropped, and never ends anything."""
    answer = await fetch(make_http_app(), headers=modern_head("ping", None), body=body)

    assert (400, code) == (answer.status, answer.json["error"]["code"])


@pytest.mark.covers("routing.post.one-message")
async def test_an_answer_is_no_modern_message():
    """2026-07-28: the client MUST NOT send JSON-RPC responses."""
    body = {"jsonrpc": "2.0", "id": 1, "result": {}}

    assert 400 == (await fetch(make_http_app(), headers=modern_head(), body=body)).status


@pytest.mark.covers("routing.post.notification")
async def test_a_notification_is_accepted_without_a_body():
    """2026-07-28 basic/transports/streamable-http#sending-messages, point 5: 202, no body."""
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}

    answer = await fetch(
        make_http_app(), headers=modern_head("notifications/cancelled", None), body=body
    )

    assert (202, b"") == (answer.status, answer.body)


async def test_a_notification_reaches_whoever_acts_on_it():
    """With the revision that its header names."""
    heard = []

    def hear(params, inbound):
        heard.append((params.request_id, inbound.caller.revision.name))

    target = HttpApp(Router({}, {"notifications/cancelled": hear}))
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}

    await fetch(target, headers=modern_head("notifications/cancelled", None), body=body)

    assert [(1, NEW)] == heard


async def test_a_client_that_leaves_within_its_body_is_forgotten():
    """There is nobody to answer and nothing to serve."""
    exchange = Exchange(make_http_app(hello=hello), headers=modern_head(), body=[b"{"], whole=False)
    exchange.leave()
    await exchange.done()

    assert [] == exchange.messages


async def test_a_body_in_pieces_is_put_together():
    """Servers hand over what they have."""
    whole = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    target = make_http_app()
    parts = [whole[:7], b"", whole[7:20], whole[20:]]

    answer = await fetch(target, headers=legacy_head(), body=parts)

    assert "Mcp-Session-Id" in answer.json["error"]["message"]


# What the client takes


@pytest.mark.covers("routing.post.either-form")
@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        ("application/json, text/event-stream", "application/json"),
        ("text/event-stream", "text/event-stream"),
    ],
)
async def test_the_answer_has_a_form_the_client_takes(accept, kind):
    """Users' pain 14: a client that lists one type is served with it."""
    body = modern_body()

    answer = await fetch(make_http_app(hello=hello), headers=modern_head(accept=accept), body=body)

    assert (200, kind) == (answer.status, answer.header("content-type"))


async def test_a_client_that_takes_neither_form_is_told():
    """406 names what there is to accept."""
    answer = await fetch(make_http_app(hello=hello), headers=modern_head(accept="text/html"))

    assert 406 == answer.status
    assert "text/event-stream" in answer.json["error"]["message"]


async def test_an_error_for_a_client_that_takes_streams_only_keeps_its_status():
    """The status says more than the form."""
    head = modern_head("acme/none", None, accept="text/event-stream")

    assert (
        404
        == (await fetch(make_http_app(), headers=head, body=modern_body("acme/none", {}))).status
    )


# Streams


@pytest.mark.covers(
    "routing.post.either-form", "routing.stream.before-the-answer", "routing.stream.not-buffered"
)
async def test_a_notification_before_the_answer_opens_a_stream():
    """2026-07-28 basic/transports/streamable-http#receiving-messages."""
    answer = await begin_modern_call(make_http_app(talk=talk), "talk", progressToken="p").done()

    assert 200 == answer.status
    assert "text/event-stream" == answer.header("content-type")
    assert "no-cache" == answer.header("cache-control")
    assert "no" == answer.header("x-accel-buffering")
    assert [1, 2] == [event["params"]["progress"] for event in answer.events[:2]]
    assert ["p", "p"] == [event["params"]["progressToken"] for event in answer.events[:2]]
    assert "talked" == read_tool_text(answer.events[2])
    assert 3 == len(answer.events)
    assert answer.complete.is_set()


async def test_a_notification_arrives_before_the_call_ends():
    """Progress that comes with the answer is none."""
    slow = Slow()

    async def report(inbound):
        await talk(inbound)
        return await slow(inbound)

    exchange = begin_modern_call(make_http_app(report=report), "report", progressToken=0)

    assert 1 == (await exchange.event())["params"]["progress"]
    assert 0 == (await exchange.event())["params"]["progressToken"]
    slow.go.set()
    assert "slow" == read_tool_text(await exchange.event())
    await exchange.done()


async def test_an_error_after_the_stream_began_travels_in_it():
    """The status was sent already."""

    async def stumble(inbound):
        await talk(inbound)
        raise Refuse(-32602, "stumbled")

    answer = await begin_modern_call(
        make_http_app(stumble=stumble), "stumble", progressToken=1
    ).done()

    assert 200 == answer.status
    assert (1, -32602) == (answer.events[-1]["id"], answer.events[-1]["error"]["code"])


async def test_a_client_that_takes_no_streams_gets_the_answer_alone():
    """Notifications are a courtesy; the answer is not."""
    head = modern_head(name="talk", accept="application/json")
    body = modern_body(params={"name": "talk", "arguments": {}}, progressToken=1)

    answer = await fetch(make_http_app(talk=talk), headers=head, body=body)

    assert (200, "talked") == (answer.status, read_tool_text(answer.json))


async def test_notifications_of_several_tasks_come_whole_and_after_the_head():
    """A tool may report from tasks of its own."""

    async def crowd(inbound):
        await asyncio.gather(*(talk(inbound) for _ in range(10)))
        return "all"

    answer = await begin_modern_call(make_http_app(crowd=crowd), "crowd", progressToken=1).done()

    assert 21 == len(answer.events)
    assert "all" == read_tool_text(answer.events[-1])


@pytest.mark.covers("routing.stream.before-the-answer")
async def test_what_is_said_after_the_answer_goes_nowhere():
    """A task that outlives its call has nobody to talk to."""
    late = []

    async def leave(inbound):
        late.append(inbound)
        return "left"

    answer = await begin_modern_call(make_http_app(leave=leave), "leave", progressToken=1).done()
    await talk(late[0])

    assert 2 == len(answer.messages)


async def test_a_notification_the_revision_lacks_is_our_own_mistake():
    """The link refuses before anything is sent."""
    caught = []

    async def wrong(inbound):
        try:
            await inbound.link.note("notifications/elicitation/complete", None)
        except NotInRevision as error:
            caught.append(str(error))
        return "none"

    answer = await begin_modern_call(make_http_app(wrong=wrong), "wrong").done()

    assert "application/json" == answer.header("content-type")
    assert NEW in caught[0]


@pytest.mark.covers("rounds.no-requests.server")
async def test_a_modern_response_carries_no_requests():
    """2026-07-28: a server MUST NOT send requests on the stream; asks travel in results."""

    async def ask(inbound):
        with pytest.raises(UsageError, match="ask in the result"):
            await inbound.link.call("ping", PingParams(), EmptyResult)
        return "not asked"

    assert "not asked" == read_tool_text(
        (await begin_modern_call(make_http_app(ask=ask), "ask").done()).json
    )


# Clients that leave


@pytest.mark.covers("cancellation.disconnect.modern")
async def test_a_client_that_leaves_cancels_its_call_and_nothing_is_sent():
    """2026-07-28 basic/transports/streamable-http#cancellation: a disconnect is a cancel."""
    slow = Slow()
    exchange = begin_modern_call(make_http_app(slow=slow), "slow")
    await slow.running.wait()

    exchange.leave()
    await exchange.done()

    assert "cancelled" == slow.ended
    assert [] == exchange.messages


@pytest.mark.covers("cancellation.disconnect.modern")
async def test_a_client_that_leaves_an_open_stream_gets_nothing_more():
    """The same after notifications were sent."""
    slow = Slow()

    async def report(inbound):
        await talk(inbound)
        try:
            return await slow(inbound)
        finally:
            await talk(inbound)

    exchange = begin_modern_call(make_http_app(report=report), "report", progressToken=1)
    await exchange.event()
    await slow.running.wait()

    exchange.leave()
    await exchange.done()

    assert "cancelled" == slow.ended
    assert 2 == len(exchange.events)
    assert not exchange.complete.is_set()


async def test_a_tool_that_does_not_mind_being_cancelled_is_not_answered_either():
    """The request's task comes out clean although the cancellation was swallowed."""
    running = asyncio.Event()

    async def deaf(_inbound):
        running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "never mind"

    exchange = begin_modern_call(make_http_app(deaf=deaf), "deaf")
    await running.wait()
    exchange.leave()
    await exchange.done()

    assert [] == exchange.messages
    assert 0 == exchange.task.cancelling()


async def test_a_cancellation_from_outside_stays_one():
    """A server that cancels the request's task means it."""
    slow = Slow()
    exchange = begin_modern_call(make_http_app(slow=slow), "slow")
    await slow.running.wait()

    exchange.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await exchange.task

    assert "cancelled" == slow.ended


async def test_a_quick_call_never_looks_whether_its_client_is_there():
    """What a plain call does not need, it does not pay for."""
    exchange = await begin_modern_call(make_http_app(hello=hello)).done()

    assert 1 == exchange.read
    assert 1 == len([task for task in asyncio.all_tasks() if not task.done()])


async def test_a_watched_call_that_is_answered_is_watched_no_longer():
    """The watch ends with the call, not with the connection."""
    slow = Slow()
    exchange = begin_modern_call(make_http_app(slow=slow), "slow")
    await exchange.watched.wait()

    slow.go.set()
    await exchange.done()
    await exchange.unwatched.wait()

    assert "answered" == slow.ended


async def test_whoever_wants_to_know_is_told_when_the_link_ends():
    """By its answer as by a client that leaves; what was taken back is not called."""
    told = []
    slow = Slow()

    async def curious(inbound):
        inbound.link.on_close(lambda: told.append(inbound.id))
        inbound.link.on_close(lambda: told.append("never"))()
        return "told" if inbound.id == 1 else await slow(inbound)

    target = make_http_app(curious=curious)
    await begin_modern_call(target, "curious", id=1).done()
    assert [1] == told

    exchange = begin_modern_call(target, "curious", id=2)
    await slow.running.wait()
    exchange.leave()
    await exchange.done()
    assert [1, 2] == told

    slow.running.clear()
    exchange = begin_modern_call(target, "curious", id=3)
    await slow.running.wait()
    await target.close(drain=0)
    await exchange.done()
    assert [1, 2, 3] == told


async def test_a_server_that_cannot_receive_any_more_says_the_client_left():
    """Servers differ in how they say it."""
    slow = Slow()
    exchange = begin_modern_call(make_http_app(slow=slow), "slow")
    await slow.running.wait()

    async def receive():
        raise OSError("gone")

    exchange.receive = receive
    await exchange.done()

    assert "cancelled" == slow.ended


async def test_a_send_that_fails_ends_no_call():
    """Notifications to a client that left go nowhere; the tool goes on."""
    failed = []

    async def report(inbound):
        await talk(inbound)
        failed.append(True)
        return "done"

    exchange = begin_modern_call(make_http_app(report=report), "report", progressToken=1)

    async def send(_message):
        raise OSError("broken pipe")

    exchange.send = send
    await exchange.done()

    assert [True] == failed


# Heartbeats


async def test_a_long_call_shows_signs_of_life():
    """Users' pain 21: a silent call is taken for dead by something on the way."""
    slow = Slow()
    exchange = begin_modern_call(make_http_app({"heartbeat": 0.01}, slow=slow), "slow")

    await exchange.bytes_sent(b":\n\n:\n\n")
    slow.go.set()
    await exchange.done()

    assert "text/event-stream" == exchange.header("content-type")
    assert ["slow"] == [read_tool_text(event) for event in exchange.events]


async def test_a_client_without_streams_waits_in_silence():
    """There is nothing that could be sent before a JSON body."""
    slow = Slow()
    target = make_http_app({"heartbeat": 0.01}, slow=slow)
    head = modern_head(name="slow", accept="application/json")
    exchange = Exchange(
        target, headers=head, body=modern_body(params={"name": "slow", "arguments": {}})
    )
    other = begin_modern_call(target, "slow")
    await other.bytes_sent(b":\n\n:\n\n")

    slow.go.set()
    await exchange.done()
    await other.done()

    assert ("application/json", "slow") == (
        exchange.header("content-type"),
        read_tool_text(exchange.json),
    )


# Listening


async def begin_listening(target):
    """Begin to listen to changed tools."""
    params = {"notifications": {"toolsListChanged": True}}
    head = modern_head("subscriptions/listen", None)
    exchange = Exchange(
        target, headers=head, body=modern_body("subscriptions/listen", params, id="s")
    )
    assert "notifications/subscriptions/acknowledged" == (await exchange.event())["method"]
    return exchange


@pytest.mark.covers("changes.streams.acknowledged-first")
async def test_listening_is_a_long_call_that_streams():
    """2026-07-28 basic/patterns/subscriptions: the acknowledgment comes first."""
    target = make_http_app()
    exchange = await begin_listening(target)

    assert "text/event-stream" == exchange.header("content-type")
    exchange.leave()
    await exchange.done()


@pytest.mark.covers("changes.streams.end-in-order")
async def test_a_stop_ends_a_listening_stream_with_its_answer():
    """2026-07-28 basic/patterns/subscriptions#graceful-closure."""
    target = make_http_app()
    exchange = await begin_listening(target)

    await target.close()

    last = exchange.events[-1]
    assert ("s", "complete") == (last["id"], last["result"]["resultType"])
    assert exchange.complete.is_set()


async def test_listening_without_taking_streams_is_refused():
    """It would be a call that never says anything."""
    head = modern_head("subscriptions/listen", None, accept="application/json")
    body = modern_body("subscriptions/listen", {"notifications": {}})

    answer = await fetch(make_http_app(), headers=head, body=body)

    assert 406 == answer.status
    assert "text/event-stream" in answer.json["error"]["message"]


# Starting and stopping


async def test_a_stop_lets_calls_finish():
    """Work in hand gets its time."""
    slow = Slow()
    target = make_http_app(slow=slow)
    exchange = begin_modern_call(target, "slow")
    await slow.running.wait()

    asyncio.get_running_loop().call_soon(slow.go.set)
    await target.close()

    assert "answered" == slow.ended
    assert 200 == exchange.status


async def test_a_stop_cuts_short_what_does_not_finish():
    """Whoever waits is told; nobody waits for ever."""
    slow = Slow()
    target = make_http_app(slow=slow)
    exchange = begin_modern_call(target, "slow")
    await slow.running.wait()

    await target.close(drain=0)
    await exchange.done()

    assert "cancelled" == slow.ended
    assert (503, -32603) == (exchange.status, exchange.json["error"]["code"])


async def test_an_app_that_was_stopped_starts_again():
    """A test client enters and leaves the lifespan of one app many times."""
    target = make_http_app(hello=hello)
    for _ in range(2):
        assert 200 == (await begin_modern_call(target).done()).status
        await target.close()


def test_one_app_serves_on_one_event_loop_after_the_other():
    """Tests share an app between loops; timers and sessions belong to theirs."""
    target = make_http_app(hello=hello)
    for _ in range(2):
        assert 200 == asyncio.run(modern_status(target))


async def modern_status(target):
    """The status of one call."""
    return (await begin_modern_call(target).done()).status


async def test_the_first_request_starts_what_the_author_needs():
    """Users' pain 14: no lifespan has to be wired up."""
    started = []

    async def on_start():
        started.append("start")

    async def on_stop():
        started.append("stop")

    target = make_http_app({"on_start": on_start, "on_stop": on_stop}, hello=hello)
    await begin_modern_call(target).done()
    await begin_modern_call(target).done()
    await target.close()

    assert ["start", "stop"] == started


async def test_a_start_that_fails_is_told_and_tried_again(caplog):
    """One bad moment is not for ever, and its text stays in the log."""
    attempts = []

    async def on_start():
        attempts.append(1)
        if len(attempts) == 1:
            raise RuntimeError("database is down")

    target = make_http_app({"on_start": on_start}, hello=hello)
    with caplog.at_level(logging.ERROR, "isthmus"):
        first = await begin_modern_call(target).done()

    assert (500, -32603) == (first.status, first.json["error"]["code"])
    assert b"database" not in first.body
    assert "database is down" in caplog.text
    assert 200 == (await begin_modern_call(target).done()).status


@pytest.mark.covers("http.endpoint.one-path")
async def test_paths_other_than_the_endpoint_are_404():
    """The refusal says where the endpoint is."""
    target = make_http_app({"path": "/tools"}, hello=hello)
    answer = await fetch(target, path="/other", headers=modern_head(), body=modern_body())

    assert 404 == answer.status
    assert "/tools" in answer.json["error"]["message"]
    for path in ("/tools", "/tools/", "/"):
        good = await fetch(target, path=path, headers=modern_head(), body=modern_body())
        assert 200 == good.status


# What handlers see, and what is left behind


@pytest.mark.covers("http.headers.any-case")
async def test_a_handler_sees_headers_and_where_the_request_came_from():
    """Headers are read when somebody wants them, by names in any case."""
    seen = []

    async def look(inbound):
        seen.append(inbound.origin)
        return "seen"

    head = modern_head(name="look", x_tenant="acme")
    head["x-twice"] = ["1", "2"]
    body = modern_body(params={"name": "look", "arguments": {}})
    await fetch(make_http_app(look=look), headers=head, body=body)

    origin = seen[0]
    assert "http" == origin.transport
    assert "acme" == origin.headers["X-Tenant"]
    assert "1, 2" == origin.headers["x-twice"]
    assert "x-none" not in origin.headers
    assert len(head) == len(dict(origin.headers))


@pytest.mark.covers("routing.earlier.version-needed")
async def test_only_modern_revisions_can_be_supported():
    """A server without legacy revisions refuses their verbs and their opening."""
    only = (BY_NAME[NEW],)
    target = HttpApp(make_router(only, hello=hello))

    assert 200 == (await begin_modern_call(target).done()).status
    assert 405 == (await fetch(target, "GET", headers=legacy_head("x"))).status
    assert 400 == (await fetch(target, headers=legacy_head(), body=legacy_call_body())).status


async def test_a_call_leaves_no_reference_cycle():
    """The collector has nothing to do for plain calls, for streams, or for watched calls."""
    slow = Slow()
    target = HttpApp(make_router(REVISIONS, hello=hello, talk=talk, slow=slow))

    async def each():
        await begin_modern_call(target).done()
        await begin_modern_call(target, "talk", progressToken=1).done()
        slow.go.clear()
        exchange = begin_modern_call(target, "slow")
        await exchange.watched.wait()
        slow.go.set()
        await exchange.done()
        await exchange.unwatched.wait()

    await each()
    with own_heap():
        found = []
        for _ in range(3):  # what others in this process leave behind is not there every time
            await each()
            found.append(gc.collect())

    assert 0 == min(found)


async def test_logging_through_the_link_is_cut_to_the_revision():
    """What the link sends is in the caller's shape."""

    async def log(inbound):
        params = LogMessageParams(level="info", data={"x": 1})
        await inbound.link.note("notifications/message", params, relates_to=inbound.id)
        return "logged"

    answer = await begin_modern_call(make_http_app(log=log), "log").done()

    assert {"level": "info", "data": {"x": 1}} == answer.events[0]["params"]
