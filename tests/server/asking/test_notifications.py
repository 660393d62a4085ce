"""What a call says before its answer: held to limits, in order, and nothing after it."""

import asyncio
import gc
import weakref
from itertools import pairwise

import pytest

from isthmus.server import Context, Server
from isthmus.server.guard.limits import Limits
from isthmus.store.meter import Rate
from isthmus.testing import VirtualLoop
from support.server.both_eras import LEGACY, MODERN, EraClient, FakeLink

both = pytest.mark.parametrize("revision", [LEGACY, MODERN])
PROGRESS, MESSAGE = "notifications/progress", "notifications/message"


def client(server, revision):
    """A client that wants to hear everything."""
    made = EraClient(server, revision)
    made.caller.log_level = "debug"
    return made


class Counting(FakeLink):
    """A link that knows when it has heard twice."""

    def __init__(self, **given):
        super().__init__(**given)
        self.second = asyncio.Event()

    async def note(self, method, params=None, *, relates_to=None):
        await super().note(method, params, relates_to=relates_to)
        if len(self.notes) == 2:
            self.second.set()


def values(client):
    """The progress that was reported."""
    return [params["progress"] for params in client.link.said(PROGRESS)]


@both
@pytest.mark.covers("progress.rate.newest-wins")
async def test_of_too_many_reports_the_newest_wins_and_the_last_is_sent(revision):
    """The spec: SHOULD rate limit, MUST increase; ours: the last one is never lost."""
    server = Server("busy", limits=Limits(progress=Rate(3, 3600)))

    @server.tool
    async def work(ctx: Context) -> None:
        for step in range(100):
            await ctx.progress(step, 100)

    caller = client(server, revision)
    await caller.once("tools/call", {"name": "work"}, token="t")

    assert [0, 1, 2, 99] == values(caller)


@both
@pytest.mark.covers("progress.rate.newest-wins")
async def test_a_report_that_was_held_back_is_sent_when_its_time_has_come(revision):
    """Ours: a call that then works for long shows where it is."""
    server = Server("busy", limits=Limits(progress=Rate(1, 0.01)))
    seen = []

    @server.tool
    async def work(ctx: Context) -> None:
        for step in range(3):
            await ctx.progress(step)
        await link.second.wait()
        seen.extend(values(caller))

    caller = client(server, revision)
    caller.link = link = Counting(revision=revision)
    await caller.once("tools/call", {"name": "work"}, token="t")

    assert [0, 2] == seen
    assert [0, 2] == values(caller)


class TimedLink(FakeLink):
    """A link that knows when it was told what."""

    def __init__(self, **given):
        super().__init__(**given)
        self.heard = []

    async def note(self, method, params=None, *, relates_to=None):
        await super().note(method, params, relates_to=relates_to)
        self.heard.append((asyncio.get_running_loop().time(), params.progress))


@both
@pytest.mark.covers("progress.rate.newest-wins")
def test_a_call_that_reports_too_often_is_thinned_and_never_silent(revision):
    """Ours: at most so many a second go out, each the newest of its time, for as long as it takes."""
    server = Server("busy", limits=Limits(progress=Rate(10, 1)))

    @server.tool
    async def work(ctx: Context) -> None:
        for step in range(1, 20_001):  # a thousand a second
            await ctx.progress(step)
            await asyncio.sleep(0.001)

    async def watch():
        caller = client(server, revision)
        caller.link = link = TimedLink(revision=revision)
        await caller.once("tools/call", {"name": "work"}, token="t")
        return link.heard

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        heard = runner.run(watch())

    times = [at for at, _ in heard]
    assert 20_000 == heard[-1][1]
    assert 0.101 >= max(after - before for before, after in pairwise(times))
    assert 10 >= max(sum(1 for at in times if start <= at < start + 0.9) for start in times[10:])
    assert 220 >= len(heard)
    assert all(1000 * at <= step + 1 for at, step in heard)  # none is older than its time


@both
async def test_what_one_call_reports_is_not_taken_from_the_next(revision):
    """Ours: a session that has reported a lot is told as much by its next call."""
    server = Server("busy", limits=Limits(progress=Rate(100, 3600)))

    @server.tool
    async def work(ctx: Context) -> None:
        for step in range(100):
            await ctx.progress(step)

    caller = client(server, revision)
    for _ in range(5):
        await caller.once("tools/call", {"name": "work"}, token="t")

    assert list(range(100)) * 5 == values(caller)


@both
async def test_a_call_that_was_given_up_is_not_kept_for_a_report_that_waits(revision):
    """Ours: its time may lie an hour ahead."""
    server, held = Server("busy", limits=Limits(progress=Rate(1, 3600))), asyncio.Event()

    @server.tool
    async def work(ctx: Context) -> None:
        await ctx.progress(1)
        await ctx.progress(2)
        held.set()
        await asyncio.Event().wait()

    caller = client(server, revision)
    call = asyncio.create_task(caller.once("tools/call", {"name": "work"}, token="t"))
    await held.wait()
    call.cancel()
    await asyncio.wait([call])
    link = weakref.ref(caller.link)
    del call, caller
    await asyncio.sleep(0)
    gc.collect()

    assert link() is None


@both
@pytest.mark.covers("logging.rate.dropped-with-a-note")
async def test_errors_are_dropped_last(revision):
    """Ours: a flood of what is unimportant does not hide what went wrong."""
    server = Server("chatty", limits=Limits(log_messages=Rate(2, 3600)))

    @server.tool
    async def talk(ctx: Context) -> None:
        for n in range(150):
            ctx.log.info("line", n=n)
            ctx.log.error("wrong", n=n)
            await asyncio.sleep(0)

    caller = client(server, revision)
    await caller.once("tools/call", {"name": "talk"})

    said = caller.link.said(MESSAGE)
    assert list(range(101)) == [m["data"]["n"] for m in said[1:-1]]
    assert {"error"} == {m["level"] for m in said[1:]}
    assert "198 messages were dropped: there were too many" == said[-1]["data"]


@both
async def test_a_flood_from_a_thread_hides_no_error(revision):
    """Ours: while the loop does not get round to sending, errors have room of their own."""
    server = Server("chatty")

    @server.tool(blocking=False)
    def talk(ctx: Context) -> None:
        for n in range(5000):
            ctx.log.info(str(n))
        ctx.log.error("wrong")

    caller = client(server, revision)
    await caller.once("tools/call", {"name": "talk"})

    said = [params["data"] for params in caller.link.said(MESSAGE)]
    assert [*map(str, range(1000)), "wrong"] == said[:-1]
    assert "4000 messages were dropped: there were too many" == said[-1]


@both
@pytest.mark.covers("logging.rate.dropped-with-a-note")
async def test_a_flood_of_messages_is_dropped_with_one_note(revision):
    """The spec: SHOULD rate limit; ours: whoever reads the log knows that there was more."""
    server = Server("chatty", limits=Limits(log_messages=Rate(2, 3600)))

    @server.tool
    async def talk(ctx: Context) -> None:
        for n in range(50):
            ctx.log.info("line", n=n)
            await asyncio.sleep(0)
        ctx.log.warning("at last")

    caller = client(server, revision)
    await caller.once("tools/call", {"name": "talk"})

    said = caller.link.said(MESSAGE)
    said_of = [{"message": "line", "n": 0}, {"message": "line", "n": 1}]
    assert [*said_of, "49 messages were dropped: there were too many"] == [
        params["data"] for params in said
    ]
    assert "warning" == said[-1]["level"]


@both
async def test_a_flood_from_a_thread_is_bounded_though_nobody_reads(revision):
    """Ours: what waits for a slow client does not grow without end."""
    server = Server("chatty", limits=Limits(log_messages=None))

    @server.tool
    def talk(ctx: Context) -> None:
        for n in range(5000):
            ctx.log.info(str(n))

    caller = client(server, revision)
    await caller.once("tools/call", {"name": "talk"})

    said = [params["data"] for params in caller.link.said(MESSAGE)]
    assert said[:3] == ["0", "1", "2"]
    assert len(said) <= 5001


@both
@pytest.mark.covers("progress.end.never-after-the-answer")
async def test_nothing_is_said_after_the_answer(revision):
    """The spec: progress MUST stop after completion; logs belong before the answer, too."""
    server = Server("late", limits=Limits(progress=Rate(1, 0.001)))
    kept = []

    @server.tool
    async def work(ctx: Context) -> None:
        kept.append(ctx)
        await ctx.progress(1)
        await ctx.progress(2)

    caller = client(server, revision)
    await caller.once("tools/call", {"name": "work"}, token="t")
    told = list(caller.link.notes)
    await kept[0].progress(3)
    kept[0].log.error("too late")
    for _ in range(20):
        await asyncio.sleep(0)

    assert [1, 2] == values(caller)
    assert told == caller.link.notes


@both
@pytest.mark.covers("progress.values.increase")
async def test_progress_that_does_not_grow_is_not_sent(revision):
    """The spec: the value MUST increase with each notification."""
    server = Server("odd")

    @server.tool
    async def work(ctx: Context) -> None:
        for value in (1, 1, 0.5, 2, float("nan"), float("inf"), 2.5):
            await ctx.progress(value, message="half \udcff")

    caller = client(server, revision)
    await caller.once("tools/call", {"name": "work"}, token="t")

    assert [1, 2, 2.5] == values(caller)
    assert {"half \ufffd"} == {params["message"] for params in caller.link.said(PROGRESS)}


@pytest.mark.covers("progress.token.kept")
@pytest.mark.parametrize("token", ["7", 7, 0, "", -1])
async def test_the_token_comes_back_as_it_was_sent(token):
    """The spec: a string or an integer, and the very one that was given."""
    server = Server("typed")

    @server.tool
    async def work(ctx: Context) -> None:
        await ctx.progress(1)

    caller = client(server, LEGACY)
    await caller.once("tools/call", {"name": "work"}, token=token)

    (params,) = caller.link.said(PROGRESS)
    assert (token, type(token)) == (params["progressToken"], type(params["progressToken"]))
