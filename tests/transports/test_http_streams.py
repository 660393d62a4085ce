"""Streams that break and go on, in virtual time: what is waited, and when it is given up."""

import asyncio
import functools
import itertools
import json

import pytest

from isthmus.errors import ConnectionLost, HttpRefused
from isthmus.runtime.channel import Outgoing
from isthmus.testing import VirtualLoop
from isthmus.transports.http.client.channel import HttpClientChannel
from isthmus.transports.http.client.streams import (
    MAX_EMPTY_POLLS,
    MAX_RESUME_ATTEMPTS,
    MAX_STANDING_ATTEMPTS,
)
from support.http.scripted_requests import BREAK, HOLD, ScriptedReply, ScriptedRequests

URL = "http://server.example/mcp"


def virtual(test):
    """Run a test on a clock of its own."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


def frame(**members):
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def event(**members):
    return b"data: %b\n\n" % frame(**members)


CALL = Outgoing(frame(id=1, method="tools/call"), 1, method="tools/call")
ANSWER = event(id=1, result={})


def prime(id, retry=500):
    """An event that is there to be resumed after."""
    return b"id: %d\nretry: %d\ndata:\n\n" % (id, retry)


async def call_once(answer):
    """Make one call on a channel that a function answers; its requests."""
    requests = ScriptedRequests(answer)
    channel = HttpClientChannel(URL, requests=requests)
    try:
        await channel.send(CALL)
        assert json.loads(ANSWER[6:]) == json.loads((await channel.receive()).data)
    finally:
        await channel.close()
    return requests


@pytest.mark.covers("httpclient.polling.retry")
@virtual
async def test_a_stream_closed_before_the_answer_is_polled_for_in_the_time_asked_for():
    """Spec 2025-11-25 basic/transports#sending-messages-to-the-server: MUST respect retry."""
    streams = [prime(2), prime(3), ANSWER]

    def answer(method, *_):
        return (
            ScriptedReply(200, prime(1)) if method == "POST" else ScriptedReply(200, streams.pop(0))
        )

    requests = await call_once(answer)

    assert [0.5, 1.0, 1.5] == requests.times("GET")
    assert ["1", "2", "3"] == [h["Last-Event-ID"] for _, m, _, h, _ in requests.heard if m == "GET"]


@virtual
async def test_a_server_without_news_is_polled_less_and_less_often_and_given_up():
    """Decision D20: polling ends some time, even where nobody has set a timeout."""
    requests = ScriptedRequests(lambda *_: ScriptedReply(200, prime(1, retry=1)))
    channel = HttpClientChannel(URL, requests=requests)

    with pytest.raises(ConnectionLost, match="ended before the answer"):
        await channel.send(CALL)
    await channel.close()

    assert MAX_EMPTY_POLLS + 1 == len(requests.times("GET"))
    assert 30 * 60 < requests.times("GET")[-1]


@virtual
async def test_polling_goes_on_as_long_as_there_is_something_new():
    """Spec 2025-11-25 basic/transports: a server MAY close the connection any number of times."""
    count = 3 * MAX_EMPTY_POLLS
    streams = [prime(id) for id in range(2, count)] + [ANSWER]

    def answer(method, *_):
        return (
            ScriptedReply(200, prime(1)) if method == "POST" else ScriptedReply(200, streams.pop(0))
        )

    assert count - 1 == len((await call_once(answer)).times("GET"))


@virtual
async def test_a_dead_network_is_given_up_after_some_attempts():
    """Decision D20: resuming is bounded, whatever the reason."""

    def answer(method, *_):
        return ScriptedReply(200, prime(1, retry=1)) if method == "POST" else ConnectionLost("cut")

    requests = ScriptedRequests(answer)
    channel = HttpClientChannel(URL, requests=requests)
    with pytest.raises(ConnectionLost, match="ended before the answer"):
        await channel.send(CALL)
    await channel.close()

    assert MAX_RESUME_ATTEMPTS + 1 == len(requests.times("GET"))
    first, *rest = requests.times("GET")
    assert 0.001 == first
    assert sorted(rest) == rest


@virtual
async def test_a_stream_that_breaks_in_the_middle_of_an_event_brings_it_again():
    """Spec 2025-11-25 basic/transports#resumability-and-redelivery: after the last whole event."""

    def answer(method, *_):
        if method == "POST":
            return ScriptedReply(200, prime(1), ANSWER[:20], BREAK)
        return ScriptedReply(200, ANSWER)

    assert [0.5] == (await call_once(answer)).times("GET")


@virtual
async def test_a_refusal_to_resume_is_final():
    """Ours: a server that says no once would say it again."""

    def answer(method, *_):
        return ScriptedReply(200, prime(1)) if method == "POST" else ScriptedReply(410)

    requests = ScriptedRequests(answer)
    channel = HttpClientChannel(URL, requests=requests)
    with pytest.raises(HttpRefused, match="410"):
        await channel.send(CALL)
    await channel.close()
    assert 1 == len(requests.times("GET"))


# The standing stream


async def standing(answer, seconds):
    """Open a session and let the standing stream have its way; the requests."""

    def session(method, url, headers, body):
        return ScriptedReply(202) if method == "POST" else answer(method, url, headers, body)

    requests = ScriptedRequests(session)
    channel = HttpClientChannel(URL, requests=requests)
    await channel.send(Outgoing(b"{}", method="notifications/initialized"))
    await asyncio.sleep(seconds)
    await channel.close()
    return requests


@pytest.mark.covers("httpclient.standing.bounded")
@virtual
async def test_a_standing_stream_that_cannot_be_had_is_given_up(caplog):
    """Ours: with growing waits, and said in the log."""
    caplog.set_level("INFO", "isthmus")
    requests = await standing(lambda *_: ScriptedReply(503), 3600)

    times = requests.times("GET")
    assert MAX_STANDING_ATTEMPTS + 1 == len(times)
    waits = [after - before for before, after in itertools.pairwise(times)]
    for number, wait in enumerate(waits):
        longest = min(30.0, 2.0**number)
        assert max(1.0, longest / 2) <= wait <= max(1.0, longest)
    assert (
        f"the standing stream is given up after {MAX_STANDING_ATTEMPTS + 1} attempts" in caplog.text
    )


@virtual
async def test_a_standing_stream_comes_back_when_the_server_does():
    """Ours: failures before it came back do not count any more."""
    replies = iter(
        [
            *[ScriptedReply(503)] * 5,
            ScriptedReply(200, prime(7, retry=100)),
            *[ScriptedReply(503)] * 5,
        ]
    )
    requests = await standing(lambda *_: next(replies, ScriptedReply(200, HOLD)), 3600)

    assert 12 == len(requests.times("GET"))
    assert "7" == requests.heard[-1][3]["Last-Event-ID"]


@pytest.mark.covers("httpclient.standing.resumed")
@virtual
async def test_a_standing_stream_is_polled_as_often_as_the_server_wants():
    """Spec 2025-11-25 basic/transports#listening-for-messages-from-the-server: as for POST."""
    ids = iter(range(1, 1000))
    requests = await standing(lambda *_: ScriptedReply(200, prime(next(ids), retry=250)), 2.1)

    assert [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0] == requests.times("GET")


@virtual
async def test_a_standing_stream_that_ends_at_once_is_asked_for_less_often():
    """Ours: a server that has nothing to say and no retry is not hammered."""
    requests = await standing(lambda *_: ScriptedReply(200), 600)

    assert 40 > len(requests.times("GET"))


@virtual
async def test_a_server_without_a_standing_stream_is_asked_once():
    """Spec 2025-11-25 basic/transports#listening-for-messages-from-the-server: 405."""
    requests = await standing(lambda *_: ScriptedReply(405), 600)

    assert [0.0] == requests.times("GET")
