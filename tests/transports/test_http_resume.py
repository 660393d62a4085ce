"""Streams that break and go on: event ids, what comes after them, and letting go."""

import asyncio
import contextlib
import gc

import pytest

from isthmus.store.log import Forgotten, MemoryLog
from isthmus.transports.http.app import HttpApp
from isthmus.transports.http.sessions import requests, resume
from isthmus.wire import (
    ElicitParams,
    ElicitResult,
    ListRootsParams,
    ListRootsResult,
    ProgressParams,
)
from support.heap import own_heap
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import (
    INITIALIZE,
    INITIALIZED,
    begin_legacy_call,
    hello,
    legacy_call_body,
    legacy_head,
    make_router,
    open_legacy_session,
    read_tool_text,
)

RESUMABLE = ["2025-03-26", "2025-06-18", "2025-11-25"]


class Talk:
    """A tool that reports progress whenever it is told to, and answers in the end."""

    def __init__(self):
        self.steps = asyncio.Queue()
        self.said = asyncio.Queue()
        self.begun = asyncio.Event()

    async def __call__(self, inbound):
        """Say what is put into ``steps``; None ends it."""
        self.begun.set()
        while (number := await self.steps.get()) is not None:
            params = ProgressParams(progress_token="t", progress=number)
            await inbound.link.note("notifications/progress", params, relates_to=inbound.id)
            self.said.put_nowait(number)
        return "talked"

    async def say(self, *numbers):
        """Have it say these, and wait until it has."""
        for number in numbers:
            self.steps.put_nowait(number)
            await self.said.get()

    def end(self):
        """Have it answer."""
        self.steps.put_nowait(None)


@contextlib.asynccontextmanager
async def open_app(options=None, **tools):
    """An app with these tools, closed in the end."""
    target = HttpApp(make_router(hello=hello, **tools), **(options or {}))
    try:
        yield target
    finally:
        await target.close()


async def opened_in(target, revision):
    """A session in a revision."""
    body = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": revision}}
    answer = await fetch(target, headers=legacy_head(), body=body)
    session = answer.header("mcp-session-id")
    await fetch(target, headers=head(session, revision), body=INITIALIZED)
    return session


def head(session, revision, **more):
    """The headers of a request in a session of a revision."""
    return {**legacy_head(session, **more), "mcp-protocol-version": revision}


def get(target, session, last_id=None, **more):
    """Listen, from the beginning or after an event."""
    more = {"accept": "text/event-stream", **more}
    if last_id is not None:
        more["last_event_id"] = last_id
    return Exchange(target, "GET", headers=legacy_head(session, **more))


def numbers(exchange):
    """The progress in a stream so far."""
    return [event["params"]["progress"] for event in exchange.events if "method" in event]


async def cut(exchange):
    """The client's connection breaks, and the server notices."""
    await exchange.watched.wait()
    exchange.leave()
    for _ in range(4):
        await asyncio.sleep(0)  # turns of the loop, for the watch to see it


# Ids


@pytest.mark.covers("resumption.ids.every-event")
@pytest.mark.parametrize("revision", RESUMABLE)
async def test_every_event_has_an_id_of_its_own(revision):
    """2025-03-26 basic/transports#resumability-and-redelivery: unique within the session."""
    talk = Talk()
    async with open_app(talk=talk) as target:
        session = await opened_in(target, revision)
        seen = []
        for id in (1, 2):
            call = Exchange(
                target, headers=head(session, revision), body=legacy_call_body("talk", id)
            )
            await talk.begun.wait()
            await talk.say(1, 2)
            talk.end()
            await call.done()
            seen += call.ids
            messages = len(call.events)
            primed = revision == "2025-11-25"
            assert messages + primed == len(call.ids)

        assert len(seen) == len(set(seen))


@pytest.mark.covers("resumption.priming.newest-only")
@pytest.mark.parametrize("revision", RESUMABLE)
async def test_a_stream_begins_with_an_empty_event_where_the_revision_says_so(revision):
    """2025-11-25: an id and an empty data field; earlier clients would choke on it."""
    talk = Talk()
    async with open_app(talk=talk) as target:
        session = await opened_in(target, revision)
        call = Exchange(target, headers=head(session, revision), body=legacy_call_body("talk"))
        await talk.say(1)
        first = call.body.split(b"\n\n")[0].split(b"\n")
        talk.end()
        await call.done()

        assert (revision == "2025-11-25") == (b"data: " in first)


async def test_plain_json_costs_no_stream():
    """Ours: what has no stream has nothing to resume."""
    log = MemoryLog(lambda: 0.0)
    async with open_app({"stream_log": log}) as target:
        session = await open_legacy_session(target)
        answer = await begin_legacy_call(target, session).done()

        assert "application/json" == answer.header("content-type")
        assert 0 == len(log)
        assert target._book.find(session)._streams is None


async def test_2024_11_05_over_streamable_http_has_no_ids():
    """It knows of no resumption; it is tolerated on this transport."""
    talk = Talk()
    async with open_app(talk=talk) as target:
        session = await opened_in(target, "2024-11-05")
        call = Exchange(target, headers=head(session, "2024-11-05"), body=legacy_call_body("talk"))
        await talk.say(1)
        talk.end()
        await call.done()
        standing = Exchange(target, "GET", headers=head(session, "2024-11-05"))
        await standing.started.wait()
        refused = Exchange(
            target, "GET", headers=head(session, "2024-11-05", last_event_id="a-1-1")
        )

        assert [] == call.ids
        assert 400 == (await refused.done()).status
        assert "2024-11-05" in refused.json["error"]["message"]


# Going on


@pytest.mark.covers("resumption.call.goes-on", "resumption.replay.exactly-the-rest")
@pytest.mark.parametrize("revision", RESUMABLE)
async def test_a_call_whose_client_lost_its_connection_goes_on_and_its_answer_is_reached(revision):
    """2025-03-26: disconnection is no cancellation; the stream is resumed from where it broke."""
    talk = Talk()
    async with open_app({"heartbeat": 0.01}, talk=talk) as target:
        session = await opened_in(target, revision)
        call = Exchange(target, headers=head(session, revision), body=legacy_call_body("talk"))
        await talk.say(1, 2)
        await cut(call)
        await talk.say(3)

        again = get(target, session, call.ids[-1])
        await again.event()
        await talk.say(4)
        talk.end()
        await again.done()
        await call.done()

        assert [1, 2] == numbers(call)
        assert [3, 4] == numbers(again)
        assert "talked" == read_tool_text(again.events[-1])
        assert again.complete.is_set()


async def test_an_answer_that_came_while_nobody_listened_is_kept():
    """Ours: a client may come back after the end."""
    talk = Talk()
    async with open_app(talk=talk) as target:
        session = await open_legacy_session(target)
        call = begin_legacy_call(target, session, "talk")
        await talk.say(1)
        await cut(call)
        talk.end()
        await call.done()

        again = await get(target, session, call.ids[-1]).done()

        assert "talked" == read_tool_text(again.events[0])


@pytest.mark.parametrize("revision", RESUMABLE)
async def test_what_was_said_is_kept_and_not_the_response_it_was_said_on(revision):
    """Ours: a request and all that belongs to it goes when it has been answered."""
    talk = Talk()
    with own_heap():
        await answered_on_streams(talk, revision)


async def answered_on_streams(talk, revision):
    """Answers on streams, one of them resumed; nothing is left but what was said."""
    async with open_app({"stream_answers": True}, talk=talk) as target:
        session = await opened_in(target, revision)
        plain = Exchange(target, headers=head(session, revision), body=legacy_call_body())
        await plain.done()
        call = Exchange(target, headers=head(session, revision), body=legacy_call_body("talk", 2))
        await talk.say(1)
        talk.end()
        await call.done()
        await get(target, session, call.ids[0]).done()
        gc.collect()

        kinds = requests.PostRequest | requests.GetRequest
        assert [] == [one for one in gc.get_objects() if isinstance(one, kinds)]


class Slow(Exchange):
    """A client that takes nothing of a response but its head."""

    async def send(self, message):
        """Take the head; wait for ever for the rest."""
        await super().send(message)
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()


@pytest.mark.parametrize("said", [0, 1])
async def test_an_answer_that_its_client_does_not_take_is_given_to_it_when_it_comes_back(said):
    """Ours: the connection that it did not come through does not hold it up."""
    talk = Talk()
    async with open_app({"stream_answers": True}, talk=talk) as target:
        session = await opened_in(target, "2025-11-25")
        call = Slow(target, headers=head(session, "2025-11-25"), body=legacy_call_body("talk"))
        if said:
            talk.steps.put_nowait(1)
        talk.end()
        await call.bytes_sent(b"id: ")

        again = await get(target, session, call.ids[0]).done()

        assert "talked" == read_tool_text(again.events[-1])
        await call.done()


async def test_from_the_empty_event_the_whole_stream_is_given_again():
    """2025-11-25: its id can be used as Last-Event-ID."""
    talk = Talk()
    async with open_app(talk=talk) as target:
        session = await open_legacy_session(target)
        call = begin_legacy_call(target, session, "talk")
        await talk.say(1, 2)
        talk.end()
        await call.done()

        again = await get(target, session, call.ids[0]).done()

        assert call.ids[1:] == again.ids
        assert call.events == again.events


async def test_after_the_last_event_the_stream_is_at_its_end():
    """Ours: known, and nothing more to say."""
    talk = Talk()
    async with open_app(talk=talk) as target:
        session = await open_legacy_session(target)
        call = begin_legacy_call(target, session, "talk")
        await talk.say(1)
        talk.end()
        await call.done()

        again = await get(target, session, call.ids[-1]).done()

        assert (200, b"") == (again.status, again.body)


@pytest.mark.covers("resumption.takeover.one-stream")
async def test_a_client_may_come_back_before_the_server_knows_that_it_was_gone():
    """Each message on one stream only: the newer connection carries it, the older one ends."""
    talk = Talk()
    async with open_app(talk=talk) as target:
        session = await open_legacy_session(target)
        call = begin_legacy_call(target, session, "talk")
        await talk.say(1)
        second = get(target, session, call.ids[-1])
        await second.started.wait()
        await call.complete.wait()
        await talk.say(2)
        third = get(target, session, second.ids[-1])
        await third.started.wait()
        await second.done()
        talk.end()
        await third.done()

        assert ([1], [2], []) == (numbers(call), numbers(second), numbers(third))
        assert "talked" == read_tool_text(third.events[0])


async def test_a_question_asked_while_nobody_listened_is_answered_later():
    """2025-11-25: requests of the server are on the stream, too."""

    async def ask(inbound):
        params = ElicitParams(message="?", requested_schema={"type": "object", "properties": {}})
        progress = ProgressParams(progress_token="t", progress=1)
        await inbound.link.note("notifications/progress", progress, relates_to=inbound.id)
        await gone.wait()
        answer = await inbound.link.call(
            "elicitation/create", params, ElicitResult, relates_to=inbound.id
        )
        return answer.action

    gone = asyncio.Event()
    async with open_app(ask=ask) as target:
        session = await open_legacy_session(target)
        call = begin_legacy_call(target, session, "ask")
        await call.event()
        await cut(call)
        gone.set()

        again = get(target, session, call.ids[-1])
        question = await again.event()
        body = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        await fetch(target, headers=legacy_head(session), body=body)
        await again.done()

        assert "decline" == read_tool_text(again.events[-1])


async def test_a_cancelled_call_ends_the_stream_that_was_resumed():
    """Nothing is sent after a cancellation, and nobody waits for ever."""
    talk = Talk()
    async with open_app(talk=talk) as target:
        session = await open_legacy_session(target)
        call = begin_legacy_call(target, session, "talk", id=4)
        await talk.say(1)
        again = get(target, session, call.ids[-1])
        await again.started.wait()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        await fetch(
            target, headers=legacy_head(session), body={**cancel, "params": {"requestId": 4}}
        )
        await again.done()
        await call.done()

        assert [] == again.events
        assert again.complete.is_set()


# What is refused


@pytest.mark.covers("resumption.unknown.refused", "resumption.foreign.refused")
async def test_an_id_of_another_session_is_an_error():
    """Event ids are bound to the session: B never replays what A was told."""
    talk = Talk()
    async with open_app(talk=talk) as target:
        mine, other = await open_legacy_session(target), await open_legacy_session(target)
        call = begin_legacy_call(target, mine, "talk")
        theirs = begin_legacy_call(target, other, "talk")
        await talk.say(1, 2)
        for id in (*call.ids, *theirs.ids):
            wrong = other if id in call.ids else mine
            answer = await get(target, wrong, id).done()

            assert (400, -32600) == (answer.status, answer.json["error"]["code"])
            assert b"progress" not in answer.body
        talk.end()
        talk.end()


@pytest.mark.covers("resumption.unknown.refused")
@pytest.mark.parametrize(
    "forged",
    ["x", "-", "1-1", "{node}.9-1", "{node}.1-9", "{node}.1", "{node}.1-", "{node}.1--1",
     "{node}.1-1-1", "{node}.1-99999999999999999999", "{node}.01x-1", "{node}.01-1", "{node}-1-1",
     "MARK-n0.1-1", ""],
)  # fmt: skip
async def test_an_id_that_was_never_given_is_an_error_that_says_what_to_do(forged):
    """Never an empty stream; and not 404, which would end the session for the client."""
    talk = Talk()
    async with open_app(talk=talk) as target:
        session = await open_legacy_session(target)
        call = begin_legacy_call(target, session, "talk")
        await talk.say(1)
        node = call.ids[0].partition(".")[0]  # with the mark before it
        answer = await get(target, session, forged.replace("{node}", node)).done()

        assert (400, -32600) == (answer.status, answer.json["error"]["code"])
        assert "open a stream without it" in answer.json["error"]["message"]
        talk.end()


@pytest.mark.covers("resumption.expired.refused")
async def test_what_is_not_kept_any_more_is_an_error():
    """Ours: a stream has no holes."""
    talk = Talk()
    async with open_app({"stream_log": MemoryLog(lambda: 0.0, entries=2)}, talk=talk) as target:
        session = await open_legacy_session(target)
        call = begin_legacy_call(target, session, "talk")
        await talk.say(1, 2, 3, 4)

        assert 400 == (await get(target, session, call.ids[1]).done()).status
        again = get(target, session, call.ids[2])
        await again.event()
        assert [3] == numbers(again)[:1]
        talk.end()


async def test_streams_that_have_ended_give_way_and_those_at_work_stay(monkeypatch):
    """Ours: a session keeps a bounded number of streams."""
    monkeypatch.setattr(resume, "MAX_KEPT_STREAMS", 3)
    log = MemoryLog(lambda: 0.0)
    talk = Talk()
    async with open_app({"stream_log": log, "stream_answers": True}, talk=talk) as target:
        session = await open_legacy_session(target)
        long = begin_legacy_call(target, session, "talk", id=0)
        await talk.say(1)
        ended = [await begin_legacy_call(target, session, id=i).done() for i in range(1, 5)]

        statuses = [(await get(target, session, one.ids[0]).done()).status for one in ended]
        assert [400, 400, 200, 200] == statuses
        again = get(target, session, long.ids[0])
        await again.event()
        assert len(log) <= 3
        talk.end()


@pytest.mark.covers("resumption.session.ends")
async def test_a_session_that_ends_takes_its_streams_along():
    """DELETE leaves nothing to replay."""
    log = MemoryLog(lambda: 0.0)
    talk = Talk()
    async with open_app({"stream_log": log}, talk=talk) as target:
        session = await open_legacy_session(target)
        call = begin_legacy_call(target, session, "talk")
        await talk.say(1)
        again = get(target, session, call.ids[-1])
        await again.started.wait()
        await fetch(target, "DELETE", headers=legacy_head(session))
        await again.done()
        await call.done()

        assert 404 == (await get(target, session, call.ids[-1]).done()).status
        assert 1 == len(asyncio.all_tasks())
        assert 0 == len(log)


# Standing streams


async def roots(inbound):
    """A tool that asks for roots, on nobody's behalf."""
    answer = await inbound.link.call("roots/list", ListRootsParams(), ListRootsResult)
    return str(len(answer.roots))


@pytest.mark.covers("resumption.standing.goes-on")
async def test_a_standing_stream_goes_on_after_its_last_event():
    """2025-11-25: resumption is the same however the stream was begun."""
    async with open_app(roots=roots) as target:
        session = await open_legacy_session(target)
        first = get(target, session)
        await first.bytes_sent(b"\n\n")
        calls = [begin_legacy_call(target, session, "roots", id=1)]
        await first.event()
        first.leave()
        await first.done()
        calls.append(begin_legacy_call(target, session, "roots", id=2))
        await asyncio.sleep(0)

        second = get(target, session, first.ids[0])
        asked = [await second.event() for _ in range(2)]
        for question in asked:
            body = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
            await fetch(target, headers=legacy_head(session), body=body)
        await asyncio.gather(*(call.done() for call in calls))

        assert first.ids[1] == second.ids[0]
        assert 2 == len({question["id"] for question in asked})


async def test_the_resumed_stream_of_a_call_hears_nothing_else():
    """2025-11-25: MUST NOT replay messages of a different stream, or bring others."""
    talk = Talk()
    async with open_app(talk=talk, roots=roots) as target:
        session = await open_legacy_session(target)
        call = begin_legacy_call(target, session, "talk", id=1)
        await talk.say(1)
        again = get(target, session, call.ids[-1])
        await again.started.wait()
        asking = begin_legacy_call(target, session, "roots", id=2)
        standing = get(target, session)
        question = await standing.event()
        body = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
        await fetch(target, headers=legacy_head(session), body=body)
        await asking.done()
        talk.end()
        await again.done()

        assert ["talked"] == [read_tool_text(event) for event in again.events]


async def test_what_is_kept_for_a_standing_stream_is_bounded_by_bytes(monkeypatch):
    """Ours: a client that never listens costs a bounded amount, whatever it is told."""
    monkeypatch.setattr("isthmus.transports.http.sessions.session.MAX_KEPT_BYTES", 500)

    async def chatter(inbound):
        for number in range(10):
            params = ProgressParams(progress_token="t", progress=number, message="x" * 100)
            await inbound.link.note("notifications/progress", params)
        return "said"

    async with open_app(chatter=chatter) as target:
        session = await open_legacy_session(target)
        await begin_legacy_call(target, session, "chatter").done()
        standing = get(target, session)
        await standing.event()

        assert [9] == numbers(standing)[-1:]
        assert len(numbers(standing)) < 4


# Letting go


@pytest.mark.covers("resumption.polling.retry-before-close", "resumption.polling.comes-back")
async def test_a_tool_that_lets_go_of_the_connection_is_polled_for_its_answer():
    """2025-11-25: an id, a retry field, the end of the connection; the stream goes on."""

    async def poll(inbound):
        await inbound.link.let_go(inbound.id, 0.25)
        await go.wait()
        return "polled"

    go = asyncio.Event()
    async with open_app(poll=poll) as target:
        session = await open_legacy_session(target)
        call = begin_legacy_call(target, session, "poll")
        await call.complete.wait()
        again = get(target, session, call.ids[0])
        await again.started.wait()
        go.set()
        await again.done()
        await call.done()

        assert [b"id: " + call.ids[0].encode(), b"retry: 250", b"data: "] == call.body.split(b"\n")[
            :3
        ]
        assert "polled" == read_tool_text(again.events[0])


async def test_a_connection_can_be_let_go_of_again_and_after_other_events():
    """Ours: each time with the wait that is asked for; the usual one by default."""

    async def poll(inbound):
        for number in (1, 2):
            params = ProgressParams(progress_token="t", progress=number)
            await inbound.link.note("notifications/progress", params, relates_to=inbound.id)
            await inbound.link.let_go(inbound.id)
            await inbound.link.let_go(inbound.id)
            await turns[number].wait()
        return "polled"

    turns = {1: asyncio.Event(), 2: asyncio.Event()}
    async with open_app({"retry": 0.3}, poll=poll) as target:
        session = await open_legacy_session(target)
        first = begin_legacy_call(target, session, "poll")
        await first.complete.wait()
        second = get(target, session, first.ids[-1])
        await second.started.wait()
        turns[1].set()
        await second.done()
        turns[2].set()
        third = await get(target, session, second.ids[-1]).done()

        assert first.body.endswith(b"\n\nretry: 300\ndata: \n\n")
        assert second.body.endswith(b"\n\nretry: 300\ndata: \n\n")
        assert "polled" == read_tool_text(third.events[0])


@pytest.mark.covers("resumption.polling.newest-only")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_older_clients_are_not_let_go_of(revision):
    """2025-03-26: SHOULD NOT close the stream before the answer."""

    async def poll(inbound):
        await inbound.link.let_go(inbound.id, 0.1)
        return "answered"

    async with open_app(poll=poll) as target:
        session = await opened_in(target, revision)
        call = await Exchange(
            target, headers=head(session, revision), body=legacy_call_body("poll")
        ).done()

        assert "answered" == read_tool_text(call.json)


async def test_a_client_that_takes_no_streams_is_not_let_go_of():
    """It could not come back."""

    async def poll(inbound):
        await inbound.link.let_go(inbound.id, 0.1)
        return "answered"

    async with open_app(poll=poll) as target:
        session = await open_legacy_session(target)
        headers = legacy_head(session, accept="application/json")
        call = await fetch(target, headers=headers, body=legacy_call_body("poll"))

        assert "answered" == read_tool_text(call.json)


async def test_a_call_that_takes_long_gives_its_client_the_means_to_come_back(monkeypatch):
    """2025-11-25: SHOULD immediately send an event id; a plain JSON answer is still on its way."""
    monkeypatch.setattr(requests, "PRIME_AFTER_S", 0.0)
    talk = Talk()
    async with open_app(talk=talk) as target:
        session = await open_legacy_session(target)
        call = begin_legacy_call(target, session, "talk")
        await call.bytes_sent(b"data: \n\n")
        await cut(call)
        talk.end()
        await call.done()

        again = await get(target, session, call.ids[0]).done()
        assert "talked" == read_tool_text(again.events[0])


# A log that fails


class Broken(MemoryLog):
    """A log that fails after some entries."""

    def __init__(self, good):
        super().__init__(lambda: 0.0)
        self.good = good

    async def write(self, stream, place, values):
        """Fail when it is time."""
        self.good -= 1
        if self.good < 0:
            raise OSError("the disk is full")
        return await super().write(stream, place, values)


async def test_a_log_that_fails_costs_the_resumption_and_not_the_call(caplog):
    """Ours: what cannot be kept is still said."""
    talk = Talk()
    async with open_app({"stream_log": Broken(1)}, talk=talk) as target:
        session = await open_legacy_session(target)
        call = begin_legacy_call(target, session, "talk")
        await talk.say(1, 2)
        talk.end()
        await call.done()

        assert [1, 2] == numbers(call)
        assert "talked" == read_tool_text(call.events[-1])
        assert 2 == len(call.ids)
        assert 400 == (await get(target, session, call.ids[-1]).done()).status
        assert "the log of streams failed" in caplog.text


async def test_a_stream_without_its_book_is_found_by_nobody():
    """The parts of it, without HTTP."""
    streams = resume.SessionStreams("session", MemoryLog(lambda: 0.0), primes=False)
    name = f"{streams.mark}-{streams.node}"
    for id in ("", "a", f"{name}.1-0", f"{name}.²-0"):
        with pytest.raises(Forgotten):
            streams.find(id)
