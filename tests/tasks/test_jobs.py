"""Jobs and their book: what happens when several things happen to one task at a time."""

import asyncio

import pytest
from msgspec import Raw

from isthmus.errors import Refuse
from isthmus.server.guard.limits import Limits
from isthmus.store.kv import MemoryKV
from isthmus.tasks.jobs import TaskBook
from isthmus.tasks.records import record_key
from isthmus.testing import VirtualLoop
from isthmus.wire import CallToolResult, TextContent
from isthmus.wire.jsonrpc import ErrorBody
from support.event_loop import run_turns

DONE = CallToolResult(content=[TextContent(text="done")])
QUESTION = ("elicitation/create", Raw(b'{"message":"?"}'))


def run(work):
    """Run a coroutine on a clock that does not wait."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


async def started(store=None, ttl=None, **limits):
    """A book, and a task in it."""
    book = TaskBook(MemoryKV() if store is None else store, Limits(**limits))
    job = await book.open("ann", "tool", ttl)
    await job.create()
    return book, job


async def test_a_task_is_found_once_it_is_written_down():
    """Spec: durable before it is answered with; ours: not there before."""
    book = TaskBook(MemoryKV(), Limits())
    job = await book.open("ann", "tool", None)
    before = await book.find("ann", job.record.id)
    await job.create()

    assert before is None
    assert job.record == await book.find("ann", job.record.id)
    assert await book.find("bob", job.record.id) is None


async def test_a_result_there_is_no_room_for_is_a_failure():
    """Ours: a task ends, whatever becomes of it, and says why."""
    book, job = await started(MemoryKV(size=10_000))
    await job.finish(CallToolResult(content=[TextContent(text="x" * 10_000)]))
    found = await book.find("ann", job.record.id)

    assert ("failed", -32603) == (found.status, found.error.code)
    assert "no room for the result" in found.error.message


async def test_an_error_there_is_no_room_for_is_told_in_short():
    """Ours: what went wrong must not be lost with what it is about."""
    book, job = await started(MemoryKV(size=10_000))
    await job.fail(ErrorBody(code=7, message="sorry", data="x" * 10_000))
    found = await book.find("ann", job.record.id)

    assert ("failed", ErrorBody(code=7, message="sorry")) == (found.status, found.error)


async def test_the_first_end_is_the_end():
    """Spec: terminal statuses do not change."""
    _, job = await started()
    await job.finish(DONE)
    await job.fail(ErrorBody(code=1, message="late"))
    cancelled = await job.cancel("late")

    assert not cancelled
    assert ("completed", None) == (job.record.status, job.record.error)


async def test_a_task_that_is_over_is_kept_and_not_at_work():
    """Ours: the book holds work; what is over lies in the store alone."""
    store = MemoryKV()
    book, job = await started(store)
    await job.finish(DONE)

    assert 0 == len(book)
    assert book.job("ann", job.record.id) is None
    assert "completed" == (await book.find("ann", job.record.id)).status
    assert ["completed"] == [record.status for record in await book.all("ann")]


async def test_a_record_that_went_takes_its_work_along():
    """Ours: whoever deletes or ends a task in the store stops it here, too."""
    store = MemoryKV()
    _, job = await started(store)
    stopped = asyncio.Event()

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    job.start(work())
    await run_turns()
    await store.delete(record_key("ann", job.record.id))
    asking = asyncio.create_task(job.ask(*QUESTION, "q"))
    await run_turns()

    assert stopped.is_set()
    assert asking.cancelled()
    assert job.over


async def test_a_question_nobody_waits_for_any_more_is_taken_back():
    """Ours: a body that gives up asking is working again."""
    _, job = await started()
    asking = asyncio.create_task(job.ask(*QUESTION, None))
    await run_turns()
    before = job.record
    asking.cancel()
    await run_turns()

    assert ("input_required", ["question-1"]) == (before.status, list(before.questions))
    assert ("working", {}) == (job.record.status, job.record.questions)


async def test_each_answer_reaches_its_question_whatever_comes_at_the_same_time():
    """Ours: answers and new questions written together lose nothing of each other."""
    _, job = await started()
    first = [asyncio.create_task(job.ask(*QUESTION, f"q{n}")) for n in range(5)]
    await run_turns()
    late = asyncio.create_task(job.ask(*QUESTION, "late"))
    await asyncio.gather(*(job.answer({f"q{n}": Raw(b"%d" % n)}) for n in range(5)))
    await run_turns()
    before = job.record
    await job.answer({"late": Raw(b"5"), "q1": Raw(b"again")})

    assert [b"0", b"1", b"2", b"3", b"4"] == [bytes(await asked) for asked in first]
    assert ("input_required", ["late"]) == (before.status, list(before.questions))
    assert b"5" == bytes(await late)
    assert "working" == job.record.status


async def test_who_asks_when_all_is_over_is_cancelled():
    """Ours: nobody waits for an answer that cannot come."""
    _, job = await started()
    waiting = asyncio.create_task(job.ask(*QUESTION, "q"))
    await run_turns()
    await job.finish(DONE)
    late = asyncio.create_task(job.ask(*QUESTION, "q"))
    await asyncio.wait((waiting, late))

    assert waiting.cancelled()
    assert late.cancelled()


async def test_listeners_hear_of_each_status_once_and_in_order():
    """Ours: words alone are no change of status."""
    _, job = await started()
    heard = []
    stop = job.watch(lambda record: heard.append(record.status))
    job.tell("on its way")
    asking = asyncio.create_task(job.ask(*QUESTION, "q"))
    await run_turns()
    await job.answer({"q": Raw(b"{}")})
    await asking
    await job.finish(DONE)
    stop()
    stop()

    assert ["input_required", "working", "completed"] == heard


async def test_the_words_of_a_task_come_from_what_it_says_and_comes_to():
    """Spec: a failure SHOULD say in words what went wrong."""
    _, job = await started()
    job.tell("half of it")
    working = job.record.message
    await job.finish(CallToolResult(content=[TextContent(text="x" * 999)], is_error=True))
    job.tell("too late")

    assert "half of it" == working
    assert "x" * 200 == job.record.message


async def test_tasks_being_made_count_as_well():
    """Ours: many calls at the same time do not exceed a limit that one after the other meet."""
    book = TaskBook(MemoryKV(), Limits(), each=2)
    for _ in range(2):
        await book.open("ann", "tool", None)
    with pytest.raises(Refuse, match="2 tasks of yours"):
        await book.open("ann", "tool", None)

    assert await book.open("bob", "tool", None)


async def test_the_store_is_counted_when_it_may_be_full_and_not_before():
    """Ours: a new task costs the same, however many there are."""

    class Counted(MemoryKV):
        scans = 0

        async def scan(self, *arguments):
            self.scans += 1
            return await super().scan(*arguments)

    store = Counted()
    book = TaskBook(store, Limits(tasks=100), each=20)
    for _ in range(20):
        job = await book.open("ann", "tool", None)
        await job.create()
        await job.finish(DONE)
    scans = store.scans
    with pytest.raises(Refuse):
        await book.open("ann", "tool", None)
    await store.delete(record_key("ann", job.record.id))

    assert (2, 3) == (scans, store.scans)
    assert await book.open("ann", "tool", None)


async def test_a_full_store_is_a_refusal():
    """Ours: what cannot be kept is not promised."""
    book = TaskBook(MemoryKV(most=1), Limits())
    await (await book.open("ann", "tool", None)).create()
    job = await book.open("ann", "tool", None)

    with pytest.raises(Refuse, match="Too many tasks"):
        await job.create()
    assert 1 == len(book)


@pytest.mark.parametrize(
    ("limits", "wanted", "kept"),
    [
        ({}, None, 3600.0),
        ({}, 10.0, 10.0),
        ({}, 1e9, 86400.0),
        ({}, 0.0, 1.0),
        ({"task_ttl": None}, None, 86400.0),
        ({"task_ttl": None, "max_task_ttl": None}, None, None),
        ({"max_task_ttl": None}, 1e9, 1e9),
    ],
)
async def test_how_long_a_task_is_kept(limits, wanted, kept):
    """Ours: as long as was asked for, within the limits; else as the server has it."""
    _, job = await started(ttl=wanted, **limits)

    assert kept == job.record.ttl
    await job.finish(DONE)


def test_time_ends_work_and_everybody_who_waits_for_it():
    """Spec: after its ttl a task may be deleted whatever its status."""

    async def lives():
        book, job = await started(ttl=5.0)
        work = asyncio.Event()
        job.start(work.wait())
        change = job.next_change()
        await asyncio.sleep(5.1)
        await run_turns()
        return change.done(), job.work.cancelled(), await book.find("ann", job.record.id)

    assert (True, True, None) == run(lives())


def test_a_task_that_never_ends_by_time_has_no_timer():
    """Ours: kept for ever is kept for ever."""

    async def lives():
        book, job = await started(task_ttl=None, max_task_ttl=None)
        await asyncio.sleep(10**6)
        return (await book.find("ann", job.record.id)).status

    assert "working" == run(lives())
