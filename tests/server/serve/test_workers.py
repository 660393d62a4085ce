"""Threads for plain functions: run, told to stop, kept."""

import asyncio
import contextvars
import threading
import weakref

import pytest

from isthmus import Context
from isthmus.server import Limits, Server
from isthmus.server.serve.workers import (
    CallCancellation,
    Job,
    ThreadResults,
    WorkerPool,
    Workers,
)
from support.server.both_eras import LEGACY, MODERN, EraClient, tool_text

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


async def test_work_that_has_not_begun_never_begins_after_close():
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


class Argument:
    """What a call was given."""


async def test_calls_that_were_given_up_are_let_go_before_a_thread_is_free():
    """Ours: whoever calls and gives up, time and again, does not fill the memory."""
    workers, gate, ran = Workers(limit=1), threading.Event(), []
    busy = asyncio.create_task(workers.run(gate.wait))
    before = asyncio.create_task(workers.run(lambda: ran.append("before")))
    await asyncio.sleep(0)
    kept = []
    for _ in range(200):
        argument = Argument()
        kept.append(weakref.ref(argument))
        call = asyncio.create_task(workers.run(lambda argument=argument: argument))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    del argument, call
    after = asyncio.create_task(workers.run(lambda: ran.append("after")))
    await asyncio.sleep(0)

    assert 20 > sum(one() is not None for one in kept)
    gate.set()
    await asyncio.gather(busy, before, after)
    assert ["before", "after"] == ran


async def test_a_function_that_runs_is_told_and_left():
    """Nobody waits for it, unless the round is only cut (ours)."""
    begun, gate, leave = threading.Event(), threading.Event(), CallCancellation()
    task = asyncio.create_task(Workers().run(lambda: begun.set() or gate.wait(), leave))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert leave.cancelled
    gate.set()


async def test_a_cut_round_waits_for_its_function():
    """What it does on its way out is done before the answer (ours)."""
    begun, leave, out = threading.Event(), CallCancellation(), []
    leave.wait = True

    def work():
        begun.set()
        while not leave.cancelled:
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
    leave, loop, entered = CallCancellation(), asyncio.get_running_loop(), threading.Event()

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
    leave.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nothing_is_waited_for_after_the_call():
    """The answer has gone; what comes now is for nobody (ours)."""
    leave, loop = CallCancellation(), asyncio.get_running_loop()
    leave.cancel()

    with pytest.raises(asyncio.CancelledError):
        await Workers().run(lambda: leave.block(loop, asyncio.sleep(0)))


async def test_a_hundred_blocking_functions_are_done_in_two_turns_by_default():
    """Fifty run at once, none of which waits for a thread; how many is a setting."""
    together = threading.Barrier(50)
    workers = Workers(Limits().threads)
    await asyncio.gather(*(workers.run(lambda: together.wait(60)) for _ in range(100)))
    workers.close()


async def test_no_more_functions_run_at_once_than_the_limit():
    """What comes beyond it waits its turn, and is done in the end."""
    workers, gate, running = Workers(2), threading.Event(), []
    begun = threading.Semaphore(0)

    def work():
        running.append(threading.get_ident())
        begun.release()
        gate.wait(60)

    tasks = [asyncio.create_task(workers.run(work)) for _ in range(5)]
    for _ in range(2):
        await asyncio.to_thread(begun.acquire)
    assert 2 == len(running)
    gate.set()
    await asyncio.gather(*tasks)
    assert 5 == len(running)
    assert len(set(running)) <= 2


async def test_a_thread_that_waits_for_the_loop_gives_its_place_to_another():
    """Functions that wait for answers do not keep others from running."""
    workers, answer = Workers(2), asyncio.Event()
    loop, leave, waiting = asyncio.get_running_loop(), CallCancellation(), asyncio.Semaphore(0)

    async def ask():
        waiting.release()
        await answer.wait()

    asking = [
        asyncio.create_task(workers.run(lambda: leave.block(loop, ask()), leave)) for _ in range(20)
    ]
    for _ in asking:
        await waiting.acquire()
    assert "quick" == await workers.run(lambda: "quick")
    answer.set()
    await asyncio.gather(*asking)


async def test_the_limit_holds_again_when_those_that_waited_are_back():
    """The threads that took their places are not kept beside them."""
    workers, answer = Workers(2), asyncio.Event()
    loop, leave = asyncio.get_running_loop(), CallCancellation()
    asking = [
        asyncio.create_task(workers.run(lambda: leave.block(loop, answer.wait()), leave))
        for _ in range(20)
    ]
    await workers.run(lambda: None)
    answer.set()
    await asyncio.gather(*asking)
    lock, running, most = threading.Lock(), [], []

    def work():
        with lock:
            running.append(None)
            most.append(len(running))
        with lock:
            running.pop()

    await asyncio.gather(*(workers.run(work) for _ in range(50)))
    assert 50 == len(most)
    assert max(most) <= 2
    workers.close()


async def test_a_call_that_was_given_up_counts_until_its_function_returns():
    """Who calls and gives up, time and again, gets no more threads than the limit."""
    workers, gate, begun, order = Workers(1), threading.Event(), threading.Event(), []

    def linger():
        begun.set()
        gate.wait(60)
        order.append("lingered")

    lingering = asyncio.create_task(workers.run(linger))
    await asyncio.to_thread(begun.wait)
    lingering.cancel()
    await asyncio.gather(lingering, return_exceptions=True)
    after = asyncio.create_task(workers.run(lambda: order.append("after")))
    await asyncio.sleep(0)
    gate.set()
    await after
    assert ["lingered", "after"] == order
    workers.close()


async def test_threads_have_names_and_end_when_there_is_no_work():
    """A server that was busy once does not keep its threads."""
    results, pool = ThreadResults(asyncio.get_running_loop()), WorkerPool(2, idle_timeout=0.001)

    async def find_thread():
        future = results.loop.create_future()
        pool.submit(Job(threading.current_thread, contextvars.copy_context(), future, results))
        return await future

    first = await find_thread()
    await asyncio.to_thread(first.join, 60)
    assert not first.is_alive()
    second = await find_thread()
    assert ["isthmus_worker_1", "isthmus_worker_2"] == [first.name, second.name]
    pool.close()
    await asyncio.to_thread(second.join, 60)
    assert not second.is_alive()


async def test_threads_that_woke_too_late_for_a_job_wait_for_the_next():
    """Threads that end for want of work, and those that get some, agree on which they are."""
    results, pool = ThreadResults(asyncio.get_running_loop()), WorkerPool(4, idle_timeout=1e-5)
    for size in (1, 2, 3, 5, 8) * 60:
        futures = [results.loop.create_future() for _ in range(size)]
        for future in futures:
            pool.submit(Job(lambda: "done", contextvars.copy_context(), future, results))
        done, _ = await asyncio.wait(futures, timeout=60)
        assert size == len(done)
    pool.close()


async def test_functions_that_ask_often_all_come_to_their_end():
    """Threads that wait, come back and end leave nothing in the queue that nobody takes."""
    workers, leave, loop = Workers(3), CallCancellation(), asyncio.get_running_loop()

    def ask(number):
        return sum(leave.block(loop, asyncio.sleep(0, n)) for n in range(number % 7))

    given = await asyncio.gather(*(workers.run(lambda n=n: ask(n)) for n in range(300)))
    assert [sum(range(n % 7)) for n in range(300)] == given
    workers.close()


class CountingLoop(asyncio.SelectorEventLoop):
    """An event loop that counts how often threads wake it."""

    woken = 0

    def call_soon_threadsafe(self, *args, **kwargs):
        """Count it."""
        self.woken += 1
        return super().call_soon_threadsafe(*args, **kwargs)


def test_results_that_come_while_the_loop_is_busy_wake_it_once():
    """A hundred functions that return at once cost no hundred wake-ups."""
    all_ran = threading.Event()

    async def call_hundred():
        workers = Workers(1)
        calls = [asyncio.create_task(workers.run(int)) for _ in range(99)]
        calls.append(asyncio.create_task(workers.run(all_ran.set)))
        await asyncio.sleep(0)
        all_ran.wait(60)  # the loop does nothing else meanwhile
        await asyncio.gather(*calls)
        workers.close()

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        runner.run(call_hundred())
        assert 1 <= runner.get_loop().woken <= 2


def test_a_result_for_a_loop_that_has_ended_harms_no_thread():
    """The thread goes on with the work of the next loop."""
    workers, begun, gate = Workers(1), threading.Event(), threading.Event()

    def work():
        begun.set()
        gate.wait(60)
        return threading.current_thread()

    async def leave_it():
        call = asyncio.create_task(workers.run(work))
        await asyncio.to_thread(begun.wait)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    async def call_again():
        gate.set()
        return await workers.run(work)

    asyncio.run(leave_it())
    assert "isthmus_worker_1" == asyncio.run(call_again()).name
    workers.close()


async def test_a_thread_that_is_one_too_many_leaves_no_work_behind():
    """It ends, where others are idle, only after it has seen to what waits."""
    workers, answer = Workers(2), asyncio.Event()
    loop, leave, asked = asyncio.get_running_loop(), CallCancellation(), asyncio.Semaphore(0)
    answered, gates = threading.Semaphore(0), [threading.Event() for _ in range(2)]
    together = threading.Barrier(2)

    async def wait_for_answer():
        asked.release()
        await answer.wait()

    def ask(gate):
        leave.block(loop, wait_for_answer())
        answered.release()
        gate.wait(60)

    asking = [asyncio.create_task(workers.run(lambda gate=gate: ask(gate))) for gate in gates]
    for _ in asking:
        await asked.acquire()
    await asyncio.gather(*(workers.run(lambda: together.wait(60)) for _ in range(2)))
    answer.set()
    for _ in asking:
        await asyncio.to_thread(answered.acquire)
    waits = asyncio.create_task(workers.run(lambda: "done"))  # four threads, two of them idle
    await asyncio.sleep(0)
    gates[0].set()
    done, _ = await asyncio.wait([waits], timeout=30)
    gates[1].set()
    await asyncio.gather(*asking)
    assert {waits} == done
    workers.close()


async def test_work_runs_though_the_system_gives_no_more_threads(monkeypatch):
    """Those there are do it; only where there is none at all is the caller told."""
    workers, gate = Workers(4), threading.Event()
    begun = threading.Event()

    def first():
        begun.set()
        gate.wait(60)

    busy = asyncio.create_task(workers.run(first))
    await asyncio.to_thread(begun.wait)

    def refuse(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        queued = asyncio.create_task(workers.run(lambda: "done"))
        await asyncio.sleep(0)
        gate.set()
        await busy
        assert "done" == await queued
        with pytest.raises(RuntimeError, match="can't start"):
            await Workers(1).run(lambda: None)


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_plain_tool_is_answered_while_fifty_others_wait_for_answers(revision):
    """Questions that nobody answers stop no other tool, by default limits."""
    server, asked, never = Server("s"), asyncio.Semaphore(0), asyncio.Event()

    @server.tool
    def book(ctx: Context) -> str:
        return str(ctx.wait(wait_for_answer()))

    @server.tool
    def quick() -> str:
        return "here"

    async def wait_for_answer():
        asked.release()
        await never.wait()

    client = EraClient(server, revision)
    booking = [asyncio.create_task(client.call("book")) for _ in range(50)]
    for _ in booking:
        await asked.acquire()
    assert "here" == tool_text(await client.call("quick"))
    never.set()
    await asyncio.gather(*booking)
    await server.close()
