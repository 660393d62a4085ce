"""One response: JSON or a stream, whichever what is said makes of it."""

import asyncio

import pytest

from isthmus.core.http.rules import AcceptedForms
from isthmus.store.log import MemoryLog
from isthmus.transports.http.reply import MAX_MISSED_HEARTBEATS, Reply
from isthmus.transports.http.request_watch import WatchedRequest
from isthmus.transports.http.sessions.requests import PostRequest
from isthmus.transports.http.sessions.resume import PostedStream, SessionStreams
from support.event_loop import run_turns
from support.http.asgi_driver import make_sink

EITHER = AcceptedForms(json=True, events=True)


class Wire:
    """An ASGI send that keeps what was sent, and waits where a test wants it to."""

    def __init__(self) -> None:
        self.sent = []
        self.free = asyncio.Event()
        self.free.set()
        self.turns = None
        self.broken = False

    async def __call__(self, message):
        """Take a message."""
        await self.free.wait()
        if self.turns is not None:
            await self.turns.acquire()
        if self.broken:
            raise OSError("broken pipe")
        self.sent.append(message)

    @property
    def body(self):
        """All bodies."""
        return b"".join(message.get("body", b"") for message in self.sent)


async def test_the_last_word_first_makes_plain_json():
    """One head, one body, and the status that was asked for."""
    wire = Wire()

    await Reply(make_sink(wire), EITHER, ((b"x-a", b"1"),)).answer(b"{}", 404)

    head, body = wire.sent
    assert 404 == head["status"]
    expected = [
        (b"content-type", b"application/json"),
        (b"content-length", b"2"),
        (b"x-a", b"1"),
    ]
    assert expected == head["headers"]
    assert {"type": "http.response.body", "body": b"{}"} == body


async def test_something_before_it_makes_a_stream():
    """The further headers are those of the stream then."""
    wire = Wire()
    reply = Reply(make_sink(wire), EITHER, ((b"x-a", b"1"),))

    assert await reply.say(b"1")
    await reply.answer(b"2", 404)

    assert 200 == wire.sent[0]["status"]
    assert (b"x-a", b"1") in wire.sent[0]["headers"]
    assert b"data: 1\n\ndata: 2\n\n" == wire.body
    assert [True, False] == [message["more_body"] for message in wire.sent[1:]]


async def test_nothing_is_said_after_the_last_word():
    """Neither by messages nor by a second answer nor by a heartbeat."""
    wire = Wire()
    reply = Reply(make_sink(wire), EITHER)
    await reply.say(b"1")
    await reply.answer(b"2")
    sent = list(wire.sent)

    assert not await reply.say(b"3")
    await reply.answer(b"4")
    await reply.end()
    reply.beat(asyncio.get_running_loop())

    assert reply._beating is None
    assert sent == wire.sent


async def test_messages_of_several_tasks_wait_for_the_head():
    """A server whose client is slow takes the head late; nothing may overtake it."""
    wire = Wire()
    wire.turns = asyncio.Semaphore(0)
    reply = Reply(make_sink(wire), EITHER)
    tasks = [asyncio.create_task(reply.say(b"%d" % n)) for n in range(3)]
    for _ in range(4):
        asyncio.get_running_loop().call_soon(wire.turns.release)

    await asyncio.gather(*tasks)

    assert "http.response.start" == wire.sent[0]["type"]
    assert b"data: 0\n\ndata: 1\n\ndata: 2\n\n" == wire.body


async def test_an_end_without_an_answer_has_the_status_asked_for():
    """202 for what needs none."""
    wire = Wire()
    await Reply(make_sink(wire), EITHER).end(202)

    assert (202, [(b"content-length", b"0")]) == (wire.sent[0]["status"], wire.sent[0]["headers"])
    assert b"" == wire.body


async def test_an_end_of_a_stream_is_only_its_end():
    """The status was sent with its head."""
    wire = Wire()
    reply = Reply(make_sink(wire), EITHER)
    await reply.open()
    await reply.end(500)

    assert 200 == wire.sent[0]["status"]
    assert [b"", b""] == [message["body"] for message in wire.sent[1:]]
    assert not wire.sent[-1]["more_body"]


async def test_a_broken_wire_is_told_by_false_and_tried_once():
    """Whoever speaks goes on; there is no use in trying again."""
    wire = Wire()
    wire.broken = True
    reply = Reply(make_sink(wire), EITHER)

    assert not await reply.say(b"1")
    wire.broken = False
    assert not await reply.say(b"2")
    await reply.answer(b"3")

    assert [] == wire.sent


async def test_what_is_said_to_a_client_that_has_left_waits_for_nobody():
    """The message before it may never be taken."""
    wire = Wire()
    reply = Reply(make_sink(wire), EITHER)
    await reply.open()
    wire.free.clear()
    stuck = asyncio.create_task(reply.say(b"1"))
    await run_turns()

    reply.drop()
    answering = asyncio.create_task(reply.answer(b"2"))
    await run_turns()

    assert answering.done()
    wire.free.set()
    await stuck


class SlowLog(MemoryLog):
    """A log that keeps nothing before a test lets it."""

    def __init__(self):
        super().__init__()
        self.free = asyncio.Event()

    async def write(self, stream, place, values):
        """Keep it later."""
        await self.free.wait()
        return await super().write(stream, place, values)


class Session:
    """A session that keeps what is said."""

    def __init__(self, log):
        self.streams = SessionStreams("s", log, primes=True)
        self.sinks = []

    def open_sink(self, writer):
        """A stream that can be resumed."""
        self.sinks.append(PostedStream(self.streams, writer))
        return self.sinks[-1]


async def test_a_log_that_is_slow_is_no_client_that_takes_nothing():
    """A client that was sent nothing yet has missed nothing."""
    wire, log, loop = Wire(), SlowLog(), asyncio.get_running_loop()
    reply = Reply(make_sink(wire), EITHER, (), Session(log))
    saying = asyncio.create_task(reply.say(b"1"))
    await run_turns()

    assert not any(reply.beat(loop) for _ in range(MAX_MISSED_HEARTBEATS + 1))
    log.free.set()
    assert await saying
    assert b"data: 1\n\n" in wire.body


async def test_a_stream_whose_last_word_was_not_taken_lets_go_of_its_response():
    """Else each holds the other, for as long as the session keeps the stream."""
    wire = Wire()
    session = Session(MemoryLog())
    reply = Reply(make_sink(wire), EITHER, (), session)
    await reply.say(b"1")
    wire.free.clear()
    answering = asyncio.create_task(reply.answer(b"2"))
    await run_turns()
    answering.cancel()
    await asyncio.wait((answering,))

    reply.close(reply.events)

    assert session.sinks[0].stream.over
    assert session.sinks[0].stream.carrier is None


async def test_a_heartbeat_waits_for_the_one_before_it():
    """A client that does not read is not buried in comments."""
    wire = Wire()
    reply = Reply(make_sink(wire), EITHER)
    await reply.open()
    wire.free.clear()
    loop = asyncio.get_running_loop()

    reply.beat(loop)
    first = reply._beating
    reply.beat(loop)
    assert first is reply._beating
    wire.free.set()
    await first

    assert b":\n\n" == wire.body
    reply.beat(loop)
    assert reply._beating is not None
    await reply._beating


async def test_no_heartbeat_makes_a_stream_of_what_must_not_be_one():
    """A client that takes JSON only."""
    reply = Reply(make_sink(Wire()), AcceptedForms(json=True, events=False))

    reply.beat(asyncio.get_running_loop())

    assert reply._beating is None


async def test_a_cut_cancels_the_request_and_is_known_to_be_ours():
    """What comes out of it is no cancellation of the whole request."""
    entered = asyncio.Event()
    watched = []

    async def serve():
        request = WatchedRequest(asyncio.current_task())
        watched.append(request)
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return request.was_cut(), request.was_cut()
        return None

    task = asyncio.create_task(serve())
    await entered.wait()
    watched[0].cut()
    watched[0].cut()

    assert (True, False) == await task
    assert 0 == task.cancelling()


async def test_a_cut_does_not_hide_a_cancellation_from_outside():
    """Both at once: the outside one stays."""
    entered = asyncio.Event()
    watched = []

    async def serve():
        watched.append(WatchedRequest(asyncio.current_task()))
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            assert not watched[0].was_cut()
            raise

    task = asyncio.create_task(serve())
    await entered.wait()
    task.cancel()
    watched[0].cut()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_finished_request_cannot_be_cut():
    """Its task may have gone on to something else."""
    request = PostRequest(make_sink(Wire()), EITHER)
    request.finish()

    request.cut()

    assert 0 == asyncio.current_task().cancelling()
    assert not await request.reply.say(b"1")
