"""Time that passes only when nothing else can happen."""

import asyncio
import time

import pytest

from isthmus import Server
from isthmus.errors import CallTimedOut
from isthmus.testing import VirtualLoop, connect

HOUR = 3600.0


@pytest.fixture
def run():
    """Runs a coroutine on a virtual loop; gives its result, and seconds by both clocks."""

    def run(work):
        began = time.monotonic()
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            result = runner.run(work)
            passed = runner.get_loop().time()
        return result, passed, time.monotonic() - began

    return run


def test_an_hour_passes_at_once(run):
    """The clock jumps to the next timer (ours)."""
    _, passed, real = run(asyncio.sleep(HOUR))

    assert passed == pytest.approx(HOUR)
    assert real < 5


def test_timers_go_off_in_their_order(run):
    """What is due first happens first, however it was started (ours)."""
    order = []

    async def later(seconds):
        await asyncio.sleep(seconds)
        order.append(seconds)

    async def several():
        await asyncio.gather(later(30), later(10), later(20))

    _, passed, _ = run(several())

    assert [10, 20, 30] == order
    assert passed == pytest.approx(30)


def test_the_clock_stands_still_while_there_is_work(run):
    """Turns of the loop take no time (ours)."""

    async def busy():
        for _ in range(100):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert 0.0 == run(busy())[0]


def patient(timeout, **limits):
    """A call that nobody answers."""

    async def wait():
        server = Server("silent", version="1")

        @server.tool
        async def never() -> str:
            """Never answer."""
            return await asyncio.Future()

        async with connect(server, **limits) as client:
            began = asyncio.get_running_loop().time()
            with pytest.raises(CallTimedOut):
                await client.call_tool("never", timeout=timeout)
            return asyncio.get_running_loop().time() - began

    return wait()


@pytest.mark.parametrize(
    ("timeout", "limits", "waited"),
    [
        (HOUR, {"max_timeout": 2 * HOUR}, HOUR),
        (5.0, {"max_timeout": HOUR}, 5.0),
        (None, {}, 60.0),
    ],
)
def test_a_timeout_of_a_call_takes_no_time(run, timeout, limits, waited):
    """To the second, a call's own limit or the client's (decision D18)."""
    took, _, real = run(patient(timeout, **limits))

    assert took == pytest.approx(waited, abs=0.1)
    assert real < 5
