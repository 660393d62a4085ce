"""Streams in a log that nodes share: one writer, followers at other nodes, and an end in any case."""

import asyncio
import json

import pytest

from isthmus.nodes.node import OUTCOME_UNKNOWN, Node
from isthmus.store.log import Forgotten, MemoryLog
from isthmus.store.memory_store import MemoryStore
from isthmus.store.store import StoreUnavailable
from isthmus.testing import VirtualLoop
from isthmus.transports.http.reply import EventWriter
from isthmus.transports.http.sessions.resume import SessionStreams
from isthmus.transports.http.sessions.stream_followers import STREAM_NOT_KEPT
from isthmus.transports.http.sessions.stream_letters import StreamLetters

MARK = "5e551011"


class Client:
    """A carrier whose client keeps what it gets; it may be slow."""

    def __init__(self):
        self.writer = EventWriter(self)
        self.body = b""
        self.is_over = asyncio.Event()
        self.takes = asyncio.Event()
        self.takes.set()
        self.got = asyncio.Event()

    async def send_part(self, chunk, headers, *, more):
        """Take a part of the response."""
        await self.takes.wait()
        self.body += chunk
        self.got.set()
        if not more:
            self.is_over.set()

    def hang_up(self):
        """The response was ended."""
        self.writer.drop()
        self.is_over.set()

    def give_way(self):
        """Another response carries the stream."""
        self.hang_up()

    @property
    def events(self):
        """The messages so far, decoded."""
        return [json.loads(text) for text in self._list("data: ") if text]

    @property
    def ids(self):
        """The ids of the events so far."""
        return self._list("id: ")

    def _list(self, field):
        lines = self.body.decode().split("\n")
        return [line.removeprefix(field) for line in lines if line.startswith(field)]

    async def wait_for(self, count):
        """Wait until so many messages came."""
        while len(self.events) < count:
            self.got.clear()
            await self.got.wait()


class Place:
    """A node with the streams of one session."""

    def __init__(self, store, calls=(1,), primes=True):
        self.node = Node(store, name="s", secrets=[b"s" * 32])
        self.letters = StreamLetters(self.node, store.log)
        self.calls = calls
        self.primes = primes
        self.streams = self.make_streams()

    def make_streams(self, session="owner"):
        """The streams of a session at this node."""
        return SessionStreams(
            session,
            self.letters.log,
            primes=self.primes,
            mark=MARK,
            node=self.node.id,
            letters=self.letters,
            find_calls=lambda _: self.calls,
        )

    async def resume(self, event_id, client=None):
        """Have a client come back here."""
        client = client or Client()
        stream, after = self.streams.find(event_id)
        await stream.check(after)
        await stream.resume(client, after)
        return client

    async def kill(self):
        """End the node without a word, as kill -9 does."""
        self.node._renewing.cancel()
        await self.node.mailbox.close()

    async def close(self):
        """End it in peace."""
        await self.letters.close()
        await self.node.leave()


class Fleet:
    """Some nodes over one store."""

    def __init__(self, count=2, **options):
        self.store = MemoryStore(lambda: asyncio.get_running_loop().time())
        self.places = [Place(self.store, **options) for _ in range(count)]

    async def __aenter__(self):
        for place in self.places:
            await place.node.join()
        return self.places

    async def __aexit__(self, *_):
        for place in self.places:
            await place.close()


def play(scene):
    """Run a scene on a clock that passes when nothing else happens."""

    async def run():
        async with asyncio.timeout(100):
            return await scene()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


def say(number):
    """A progress notification."""
    return json.dumps({"method": "notifications/progress", "params": {"progress": number}}).encode()


ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'


def test_what_is_said_in_one_turn_is_written_at_once():
    """Ours: five notes and their answer cost one write."""
    writes = []

    class Counted(MemoryLog):
        async def write(self, stream, place, values):
            writes.append((place, len(values)))
            await super().write(stream, place, values)

    async def scene():
        fleet = Fleet(1)
        fleet.store.log = Counted(lambda: 0.0)
        fleet.places[0] = Place(fleet.store)
        async with fleet as (here,):
            client = Client()
            stream = here.streams.open(client)
            for number in range(5):
                await stream.put(say(number))
            await stream.put(ANSWER, last=True)
            return client

    client = play(scene)

    assert [(1, 7)] == writes
    assert [*range(1, 8)] == [int(id.rpartition("-")[2]) for id in client.ids]
    assert 6 == len(client.events)


def test_a_client_that_comes_back_to_another_node_hears_the_rest_there():
    """2025-11-25 basic/transports#resumability-and-redelivery: after the last event id."""

    async def scene():
        async with Fleet() as (here, there):
            first = Client()
            stream = here.streams.open(first)
            await stream.put(say(1))
            await first.wait_for(1)
            second = await there.resume(first.ids[-1])
            await first.is_over.wait()
            await stream.put(say(2))
            await second.wait_for(1)
            await stream.put(ANSWER, last=True)
            await second.is_over.wait()
            return first, second

    first, second = play(scene)

    assert [1] == [event["params"]["progress"] for event in first.events]
    assert [2] == [event["params"]["progress"] for event in second.events[:-1]]
    assert {} == second.events[-1]["result"]


def test_a_stream_that_is_over_is_told_by_any_node():
    """Ours: its producer need not be asked."""

    async def scene():
        async with Fleet() as (here, there):
            first = Client()
            stream = here.streams.open(first)
            await stream.put(say(1))
            await stream.put(ANSWER, last=True)
            second = await there.resume(first.ids[0])
            await second.is_over.wait()
            return second

    assert 2 == len(play(scene).events)


def test_the_stream_of_a_dead_node_ends_with_an_error_once():
    """Ours: several followers try, and one entry is written."""

    async def scene():
        async with Fleet(4) as (here, *others):
            first = Client()
            stream = here.streams.open(first)
            await stream.put(say(1))
            await first.wait_for(1)
            await here.kill()
            began = asyncio.get_running_loop().time()
            clients = [await other.resume(first.ids[-1]) for other in others]
            for client in clients:
                await client.is_over.wait()
            took = asyncio.get_running_loop().time() - began
            late = await others[0].resume(first.ids[0])
            await late.is_over.wait()
            return clients, late, took

    clients, late, took = play(scene)

    for client in clients:
        assert [{"code": -32603, "message": OUTCOME_UNKNOWN}] == [e["error"] for e in client.events]
        assert [1] == [event["id"] for event in client.events]
        assert clients[0].ids == client.ids
    assert 2 == len(late.events)
    assert took <= 8.0


def test_a_producer_that_was_stopped_is_refused_by_the_log():
    """Ours: what it says after others ended its stream is not sent."""

    async def scene():
        async with Fleet() as (here, there):
            first = Client()
            stream = here.streams.open(first)
            await stream.put(say(1))
            await first.wait_for(1)
            here.node._renewing.cancel()
            here.node.mailbox._unsubscribe()
            second = await there.resume(first.ids[-1])
            await second.is_over.wait()
            await stream.put(ANSWER, last=True)
            return stream, first, second

    stream, first, second = play(scene)

    assert stream.over
    assert 1 == len(first.events)
    assert first.is_over.is_set()
    assert OUTCOME_UNKNOWN == second.events[-1]["error"]["message"]


def test_each_call_of_a_batch_gets_its_error():
    """2025-03-26 basic#batching: the answers to a batch are an array."""

    async def scene():
        async with Fleet(calls=(1, "b"), primes=False) as (here, there):
            first = Client()
            stream = here.streams.open(first)
            await stream.put(say(1))
            await first.wait_for(1)
            await here.kill()
            second = await there.resume(first.ids[-1])
            await second.is_over.wait()
            return second

    (errors,) = play(scene).events

    assert [1, "b"] == [error["id"] for error in errors]


def test_the_newest_follower_takes_the_stream_over():
    """2025-11-25 basic/transports#multiple-connections: on one stream only."""

    async def scene():
        async with Fleet(3) as (here, there, yonder):
            first = Client()
            stream = here.streams.open(first)
            await stream.put(say(1))
            await first.wait_for(1)
            second = await there.resume(first.ids[-1])
            await first.is_over.wait()
            await stream.put(say(2))
            await second.wait_for(1)
            third = await yonder.resume(second.ids[-1])
            await second.is_over.wait()
            await stream.put(say(3))
            await third.wait_for(1)
            fourth = await here.resume(third.ids[-1])
            await third.is_over.wait()
            await stream.put(ANSWER, last=True)
            await fourth.is_over.wait()
            return [first, second, third, fourth]

    assert [1, 1, 1, 1] == [len(client.events) for client in play(scene)]


def test_a_slow_client_does_not_slow_the_producer():
    """Ours: the log is bounded; who takes nothing loses what comes."""

    async def scene():
        async with Fleet() as (here, there):
            first = Client()
            stream = here.streams.open(first)
            await stream.put(say(1))
            await first.wait_for(1)
            second = await there.resume(first.ids[-1])
            second.takes.clear()
            large = json.dumps({"text": "x" * 100_000}).encode()
            for _ in range(100):
                await stream.put(large)
            size = here.letters.log.size
            await stream.put(ANSWER, last=True)
            second.takes.set()
            await second.is_over.wait()
            with pytest.raises(Forgotten):
                await there.resume(first.ids[-1])
            return second, size

    second, size = play(scene)

    assert b": some of what was said is not kept any more" in second.body
    assert size < 2 * 1024 * 1024


def test_a_log_that_fails_costs_the_resumption_and_not_the_call():
    """Ours: nothing falls back silently: what is not kept has no id."""

    class Lost(MemoryLog):
        async def write(self, stream, place, values):
            raise StoreUnavailable("it is away")

    async def scene():
        fleet = Fleet(2)
        fleet.store.log = Lost(lambda: 0.0)
        fleet.places = [Place(fleet.store) for _ in range(2)]
        async with fleet as (here, there):
            client = Client()
            stream = here.streams.open(client)
            await stream.put(say(1))
            await stream.put(ANSWER, last=True)
            with pytest.raises(Forgotten):
                await there.resume(f"{stream.name}-1")
            return client

    client = play(scene)

    assert 2 == len(client.events)
    assert [] == client.ids


def test_a_stream_is_found_by_its_owner_alone():
    """Ours: an event id is worth nothing in another session."""

    async def scene():
        async with Fleet() as (here, there):
            client = Client()
            stream = here.streams.open(client)
            await stream.put(ANSWER, last=True)
            there.streams = there.make_streams("somebody else")
            with pytest.raises(Forgotten):
                await there.resume(client.ids[0])

    play(scene)


def test_an_abandoned_stream_ends_for_its_follower():
    """Ours: a call that was withdrawn has no answer, and its stream an end."""

    async def scene():
        async with Fleet() as (here, there):
            first = Client()
            stream = here.streams.open(first)
            await stream.put(say(1))
            await first.wait_for(1)
            second = await there.resume(first.ids[-1])
            stream.abandon()
            await second.is_over.wait()
            return second

    assert [] == play(scene).events


def test_a_stream_that_its_producer_has_forgotten_ends():
    """Ours: nobody waits for what nobody will say."""

    async def scene():
        async with Fleet() as (here, there):
            first = Client()
            stream = here.streams.open(first)
            await stream.put(say(1))
            await first.wait_for(1)
            stream.close()
            second = await there.resume(first.ids[-1])
            await second.is_over.wait()
            return second

    assert STREAM_NOT_KEPT == play(scene).events[-1]["error"]["message"]


def test_a_letter_that_is_late_ends_no_other_response():
    """Ours: who hears that another response carries the stream asks its producer first."""

    async def scene():
        async with Fleet(3) as (here, there, yonder):
            first = Client()
            stream = here.streams.open(first)
            await stream.put(say(1))
            await first.wait_for(1)
            second = await there.resume(first.ids[-1])
            await yonder.letters._post(there.node.id, "stream/yield", stream.key)
            await stream.put(say(2))
            await stream.put(ANSWER, last=True)
            await second.is_over.wait()
            return second

    assert 2 == len(play(scene).events)
