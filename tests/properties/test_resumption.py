"""Laws of streams that break: whatever is cut, wherever, the client ends up with all of it once."""

import asyncio
import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from isthmus.core.batch import MAX_BATCH_MEMBERS, IncomingBatch
from isthmus.core.session import Session
from isthmus.store.log import Forgotten, MemoryLog
from isthmus.transports.http.app import HttpApp
from isthmus.transports.http.sessions.resume import SessionStreams
from isthmus.wire import ProgressParams
from support.examples import count_examples
from support.http.asgi_driver import Exchange
from support.http.messages import legacy_call_body, legacy_head, make_router, open_legacy_session

# What happens to a call: it says something, its client goes away, comes back (after the event it
# saw last, or one before that), comes back although it never went, or is let go of.
STEPS = st.lists(
    st.sampled_from(["say", "say", "say", "leave", "back", "again", "let go"]), max_size=14
)


class Told:
    """A tool that does what it is told, and its client."""

    def __init__(self):
        self.orders = asyncio.Queue()
        self.done = asyncio.Queue()
        self.count = 0

    async def __call__(self, inbound):
        """Follow orders."""
        while (order := await self.orders.get()) != "end":
            if order == "say":
                self.count += 1
                params = ProgressParams(progress_token="t", progress=self.count)
                await inbound.link.note("notifications/progress", params, relates_to=inbound.id)
            else:
                await inbound.link.let_go(inbound.id, 0)
            self.done.put_nowait(order)
        return "end"

    async def do(self, order):
        """Have it do something, and wait until it is done."""
        self.orders.put_nowait(order)
        await self.done.get()


class Client:
    """What a client has heard on one stream, over however many connections."""

    def __init__(self, target, session):
        self.target = target
        self.session = session
        self.call = Exchange(target, headers=legacy_head(session), body=legacy_call_body("told"))
        self.connections = [self.call]
        self.ids = []

    def take(self, exchange):
        """Take in what came on a connection."""
        self.ids += exchange.ids

    def back(self):
        """Connect again, after the last event."""
        current = self.connections[-1]
        self.take(current)
        head = legacy_head(self.session, accept="text/event-stream", last_event_id=self.ids[-1])
        self.connections.append(Exchange(self.target, "GET", headers=head))


async def played(steps, foreign):
    """Play one conversation; everything the client heard, in order, and how much was said."""
    told, other = Told(), Told()
    target = HttpApp(make_router(told=told, other=other), stream_log=MemoryLog(lambda: 0.0))
    session = await open_legacy_session(target)
    client = Client(target, session)
    beside = Exchange(target, headers=legacy_head(session), body=legacy_call_body("other", id=2))
    await told.do("say")
    away = False
    for step in steps:
        current = client.connections[-1]
        if step in ("say", "let go"):
            await told.do(step)
            for _ in range(foreign):
                await other.do("say")
        elif step == "leave" and not away:
            if not current.complete.is_set():
                await current.watched.wait()
            current.leave()
            away = True
        elif step in ("back", "again"):
            client.back()
            await client.connections[-1].started.wait()
            away = False
        await asyncio.sleep(0)
    client.back()
    told.orders.put_nowait("end")
    other.orders.put_nowait("end")
    last = await client.connections[-1].done()
    client.take(last)
    for exchange in (*client.connections, beside):
        exchange.leave()
        await exchange.done()
    await target.close()
    events = [event for one in client.connections for event in one.events]
    return events, client.ids, told.count


@settings(max_examples=count_examples(60), deadline=None)
@given(STEPS, st.integers(0, 2))
def test_for_any_cuts_of_a_stream_its_client_hears_all_of_it_once_and_in_order(steps, foreign):
    """2025-11-25 basic/transports#resumability-and-redelivery: the rest, and nothing foreign."""
    events, ids, said = asyncio.run(played(steps, foreign))

    progress = [event["params"]["progress"] for event in events[:-1]]
    assert list(range(1, said + 1)) == progress
    assert "end" == events[-1]["result"]["content"][0]["text"]
    assert len(ids) == len(set(ids))
    assert 1 == len({id.rpartition("-")[0] for id in ids})


class Nowhere:
    """A carrier that keeps what is written to it."""

    def __init__(self):
        self.writer = self
        self.chunks = []

    async def write(self, chunk, *, more=True):
        """Keep it."""
        self.chunks.append(chunk)
        return True

    def hung_up(self):
        """Nothing to do."""

    def give_way(self):
        """Nothing to do."""

    def release(self):
        """Nothing to do."""


@settings(max_examples=count_examples(100), deadline=None)
@given(st.text(max_size=40), st.lists(st.binary(min_size=1, max_size=5), max_size=4))
@example("0", [])
@example("1", [b"one"])
def test_no_text_is_taken_for_an_event_id_but_those_that_were_given(text, messages):
    """Ours: whatever a client sends as Last-Event-ID, it is an id of ours or an error."""

    async def run():
        streams = SessionStreams("s", MemoryLog(lambda: 0.0), primes=True)
        stream = streams.open(Nowhere())
        for message in messages:
            await stream.put(message)
        name = f"{streams.mark}-{streams.node}.1"
        given = {f"{name}-{place}" for place in range(len(messages) + 1)}
        for id in (text, f"{streams.mark}{text}", f"{name}-{text}"):
            try:
                found, place = streams.find(id)
                await found.check(place)
            except Forgotten:
                assert id not in given
            else:
                assert f"{name}-{place}" in given

    asyncio.run(run())


@settings(max_examples=count_examples(100), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30)), max_size=40),
    st.integers(1, 8),
    st.integers(10, 200),
)
def test_a_log_gives_a_whole_rest_or_none(entries, most, size):
    """Ours: for any bounds, what is read is exactly what was added after, or an error."""

    async def run():
        log = MemoryLog(lambda: 0.0, entries=most, stream_size=60, size=size)
        added = {name: [] for name in "abc"}
        for name, length in entries:
            value = b"x" * length
            id = log.add(name, value)
            added[name].append((id, value))
            assert id == len(added[name])
        for name, values in added.items():
            for after in range(len(values) + 1):
                try:
                    found = await log.read(name, after, 1000)
                except Forgotten:
                    continue
                assert values[after:] == found
        assert log.size <= max(size, 60)

    asyncio.run(run())


MEMBERS = st.one_of(
    st.builds(lambda n: {"jsonrpc": "2.0", "id": n, "method": "ping"}, st.integers(0, 4)),
    st.just({"jsonrpc": "2.0", "method": "notifications/x"}),
    st.builds(
        lambda n: {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": n},
        },
        st.integers(0, 4),
    ),
    st.builds(lambda n: {"jsonrpc": "2.0", "id": n, "method": "initialize"}, st.integers(5, 9)),
    st.sampled_from([1, None, "x", [], [1], {}]),
)


@given(st.lists(MEMBERS, min_size=1, max_size=MAX_BATCH_MEMBERS), st.randoms())
def test_each_member_of_a_batch_is_answered_once_at_most_and_the_array_comes_once(members, random):
    """JSON-RPC 2.0, "Batch": whatever is in it, in whatever order its requests are settled."""
    session = Session("server")
    session.receive(b'{"jsonrpc":"2.0","id":"i","method":"initialize"}')
    session.batches = True
    session.answer("i", b"{}")
    events = session.receive(json.dumps(members).encode())
    called_ids = [event.id for event in events if type(event).__name__ == "RequestReceived"]
    gone = {event.id for event in events if type(event).__name__ == "RequestWithdrawn"}
    said = [event.data for event in events if type(event).__name__ == "SendBytes"]
    random.shuffle(called_ids)
    said += [data for id in called_ids if (data := session.answer(id, b"{}")) is not None]

    junk = sum(not isinstance(one, dict) or "method" not in one for one in members)
    asked = sum(isinstance(one, dict) and "id" in one for one in members)
    answers = [one for data in said for one in json.loads(data)]
    assert len(said) <= 1
    assert junk + asked - len(gone) == len(answers)
    good = [one["id"] for one in answers if "result" in one]
    assert len(good) == len(set(good))
    assert not gone & set(good)
    assert IncomingBatch().whole() is None
