"""Threads for plain functions: run, told to stop, kept."""

import asyncio
import contextvars
import threading

import pytest

from isthmus.server.workers import Leave, Workers

tenant = contextvars.ContextVar("tenant", default="nobody")


async def test_a_function_runs_elsewhere_with_the_same_context():
    """Context variables of the request reach it (architecture 4.4)."""
    tenant.set("acme")
    where, who = await Workers().run(lambda: (threading.get_ident(), tenant.get()))

    assert where != threading.get_ident()
    assert "acme" == who


async def test_threads_are_kept():
    """The pool is made once (performance.md)."""
    workers = Workers(limit=1)
    first = await workers.run(threading.get_ident)

    assert first == await workers.run(threading.get_ident)
    workers.close()
    assert isinstance(await workers.run(threading.get_ident), int)
    workers.close()


async def test_what_has_not_begun_never_does():
    """A call that is given up in the queue is not run (our promise)."""
    workers, gate, ran = Workers(limit=1), threading.Event(), []
    busy = asyncio.create_task(workers.run(gate.wait))
    queued = asyncio.create_task(workers.run(lambda: ran.append(1)))
    await asyncio.sleep(0)
    queued.cancel()
    await asyncio.gather(queued, return_exceptions=True)
    gate.set()
    await busy
    await workers.run(lambda: None)

    assert [] == ran


async def test_a_function_that_runs_is_told_and_left():
    """Nobody waits for it, unless the round is only cut (ours)."""
    gate, leave = threading.Event(), Leave()
    task = asyncio.create_task(Workers().run(gate.wait, leave))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert leave.given
    gate.set()


async def test_a_cut_round_waits_for_its_function():
    """What it does on its way out is done before the answer (ours)."""
    begun, leave, out = threading.Event(), Leave(), []
    leave.wait = True

    def work():
        begun.set()
        while not leave.given:
            pass
        out.append("left")

    task = asyncio.create_task(Workers().run(work, leave))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ["left"] == out


async def test_waiting_in_a_thread_ends_with_the_call():
    """As a cancellation that ``except Exception`` does not catch (ours)."""
    leave, loop, entered = Leave(), asyncio.get_running_loop(), threading.Event()

    async def forever():
        entered.set()
        await asyncio.Event().wait()

    def work():
        try:
            leave.block(loop, forever())
        except Exception:  # noqa: BLE001 - what an author might write
            return "caught"

    task = asyncio.create_task(Workers().run(work, leave))
    await asyncio.to_thread(entered.wait)
    leave.give()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nothing_is_waited_for_after_the_call():
    """The answer has gone; what comes now is for nobody (ours)."""
    leave, loop = Leave(), asyncio.get_running_loop()
    leave.give()

    with pytest.raises(asyncio.CancelledError):
        await Workers().run(lambda: leave.block(loop, asyncio.sleep(0)))
