"""The author's context manager: entered once, left once, in one task."""

import asyncio
import contextlib
import gc
import weakref

import pytest

from isthmus.errors import LifespanFailed, OutOfPhase
from isthmus.server import Server
from isthmus.server.serve.lifespan import Lifespan
from support.server.both_eras import LEGACY, MODERN, EraClient


def noting(events, *, on_exit=None):
    @contextlib.asynccontextmanager
    async def manager():
        events.append(("open", asyncio.current_task()))
        yield "value"
        events.append(("close", asyncio.current_task()))
        if on_exit is not None:
            raise on_exit

    return Lifespan(manager)


async def handle(_params, _inbound):
    """A handler."""


async def test_a_server_that_needs_nothing_opens_nothing():
    """And may be closed all the same (ours)."""
    lifespan = Lifespan(None)
    await lifespan.open()
    await lifespan.close()

    assert lifespan.value is None
    assert handle is lifespan.open_first(handle)


async def test_it_is_entered_and_left_in_one_task():
    """Whatever tasks open and close it (users.md, pain 6)."""
    events = []
    lifespan = noting(events)
    await asyncio.gather(*(lifespan.open() for _ in range(3)))
    assert "value" == lifespan.value
    await asyncio.create_task(lifespan.close())

    assert ["open", "close"] == [what for what, _ in events]
    assert 1 == len({task for _, task in events})
    assert lifespan.value is None


async def test_the_request_that_opens_the_lifespan_may_be_cancelled():
    """The others still get what they wait for (ours)."""
    gate = asyncio.Event()

    @contextlib.asynccontextmanager
    async def slow():
        await gate.wait()
        yield "value"

    lifespan = Lifespan(slow)
    first, second = (asyncio.create_task(lifespan.open()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    gate.set()
    await second

    assert "value" == lifespan.value
    await lifespan.close()


async def test_an_exception_on_the_way_out_is_raised_by_close():
    """Not swallowed (ours)."""
    lifespan = noting([], on_exit=OSError("disk full"))
    await lifespan.open()

    with pytest.raises(OSError, match="disk full"):
        await lifespan.close()


@contextlib.asynccontextmanager
async def broken(server=None):
    raise RuntimeError("db is down")
    yield


async def test_a_lifespan_that_fails_is_told_as_that():
    """Who opens it gets one kind of exception, with what was raised as its cause."""
    with pytest.raises(LifespanFailed, match=r"lifespan failed: RuntimeError: db is down") as told:
        await Server("s", lifespan=broken).open()
    assert isinstance(told.value.__cause__, RuntimeError)


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_client_is_told_that_the_lifespan_failed(revision, caplog):
    """Its text stays in the log, as that of every exception nobody expected."""
    server = Server("s", lifespan=broken)
    server.add_tool(lambda: "", name="t")
    refused = await EraClient(server, revision).call("t")
    assert -32603 == refused.code
    assert "The server cannot start: its lifespan failed: RuntimeError" == refused.message
    assert "db is down" in caplog.text


async def test_an_asgi_server_is_told_with_the_place_in_the_authors_file():
    """What runs it logs the message it gets, and nothing else."""
    sent = []
    received = iter([{"type": "lifespan.startup"}])

    async def receive():
        return next(received)

    async def send(message):
        sent.append(message)

    await Server("s", lifespan=broken).asgi()({"type": "lifespan"}, receive, send)
    assert "lifespan.startup.failed" == sent[0]["type"]
    assert sent[0]["message"].startswith("the server's lifespan failed: RuntimeError: db is down")
    assert "test_lifespan.py" in sent[0]["message"]


async def test_an_opening_that_is_cut_short_is_said():
    """Nobody waits for ever (decision D20)."""
    entered = asyncio.Event()

    @contextlib.asynccontextmanager
    async def stuck():
        entered.set()
        await asyncio.Event().wait()
        yield

    lifespan = Lifespan(stuck)
    waiting = asyncio.create_task(lifespan.open())
    await entered.wait()
    lifespan._task.cancel()

    with pytest.raises(OutOfPhase):
        await waiting


async def test_what_a_server_keeps_open_outlives_the_last_reference_to_it():
    """Ours: the collector must not destroy a lifespan in the middle; it ends with its loop."""
    events = []

    @contextlib.asynccontextmanager
    async def keep_open():
        events.append("open")
        try:
            yield
        finally:
            events.append("left")

    lifespan = Lifespan(keep_open)
    await lifespan.open()
    task = weakref.ref(lifespan._task)
    del lifespan
    gc.collect()

    assert ["open"] == events
    held = task()
    assert held is not None
    held.cancel()
    await asyncio.wait({held})
