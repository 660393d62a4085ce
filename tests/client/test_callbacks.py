"""Callbacks: in order, one at a time, and never a heap of them."""

import asyncio
import logging

import pytest

from isthmus.client.model.callbacks import CallbackQueue, only_increasing
from isthmus.testing.faults import until
from isthmus.wire import ProgressParams


@pytest.fixture
def started():
    """Starts coroutines, and keeps hold of them."""
    tasks = set()

    def start(work):
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    return start


def test_a_plain_function_is_told_at_once():
    """Ours: nothing is queued for somebody who is quick."""
    heard = []
    CallbackQueue(heard.append, lambda _: None)(1)

    assert [1] == heard


async def test_an_async_function_is_told_one_thing_after_the_other(started):
    """Ours: the order things came in is the order they are told in."""
    heard, gate = [], asyncio.Event()

    async def told(what):
        await gate.wait()
        heard.append(what)

    teller = CallbackQueue(told, started)
    for what in range(5):
        teller(what)
    gate.set()
    await until(lambda: len(heard) == 5)

    assert [0, 1, 2, 3, 4] == heard


@pytest.mark.covers("clientlimits.notifications.bounded")
async def test_what_waits_for_a_slow_function_is_bounded(started, caplog):
    """Ours: a server cannot fill our memory; the newest is what counts, and a warning says so."""
    heard, gate = [], asyncio.Event()

    async def told(what):
        await gate.wait()
        heard.append(what)

    teller = CallbackQueue(told, started, waiting=3)
    with caplog.at_level(logging.WARNING, "isthmus"):
        for what in range(100):
            teller(what)
    gate.set()
    await until(lambda: len(heard) == 4)

    assert ([0, 97, 98, 99], 96) == (heard, teller.dropped)
    assert 1 == caplog.text.count("is too slow")


async def test_what_waits_already_need_not_wait_twice(started):
    """Ours: a list that changed twice is to be listed once."""
    heard, gate = [], asyncio.Event()

    async def told(what):
        await gate.wait()
        heard.append(what)

    teller = CallbackQueue(told, started, once=True)
    for what in ("a", "b", "b", "c", "b"):
        teller(what)
    gate.set()
    await until(lambda: len(heard) == 3)

    assert ["a", "b", "c"] == heard


async def test_a_function_that_fails_is_told_of_the_next_thing(started, caplog):
    """Ours: a listener's bug does not silence it for ever."""
    heard = []

    async def told(what):
        heard.append(what)
        raise ZeroDivisionError

    teller = CallbackQueue(told, started)
    teller(1)
    teller(2)
    await until(lambda: len(heard) == 2)
    await until(lambda: caplog.text.count("failed") == 2)
    teller(3)
    await until(lambda: len(heard) == 3)

    assert [1, 2, 3] == heard


@pytest.mark.covers("clientcalls.progress.increasing")
def test_progress_that_is_none_is_not_told():
    """Spec 2026-07-28 basic/patterns/progress: the value MUST increase with each notification."""
    heard = []
    told = only_increasing(lambda params: heard.append(params.progress))
    for progress in (0, 0.5, 0.5, 0.2, 2, float("nan"), 3):
        told(ProgressParams(progress_token=1, progress=progress))

    assert [0, 0.5, 2, 3] == heard
