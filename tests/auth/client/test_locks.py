"""Locks that programs share."""

import asyncio
import subprocess
import sys
import time

import pytest

from isthmus.auth.client.store.file_store import StoreBusy, hold_lock, hold_lock_in_thread
from isthmus.errors import AuthError

HOLDER = """
import sys
from pathlib import Path
from isthmus.auth.client.store.file_store import hold_lock_in_thread
with hold_lock_in_thread(Path(sys.argv[1]), 10):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another program that holds the lock."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


async def test_a_lock_of_another_program_is_waited_for_and_then_busy(holder, tmp_path):
    """Ours: a lock holds against other programs, and waiting for it ends."""
    with pytest.raises(StoreBusy, match="another program has held"):
        async with hold_lock(tmp_path / "lock", 0.05):
            pass
    with pytest.raises(StoreBusy), hold_lock_in_thread(tmp_path / "lock", 0.05):
        pass


@pytest.mark.covers("auth.threat.t13-refresh-race")
async def test_a_lock_ends_with_a_program_that_is_killed(holder, tmp_path):
    """T13: nobody is locked out by a program that came to a bad end while it renewed."""
    holder.kill()
    holder.wait()
    async with hold_lock(tmp_path / "lock", 10.0):
        entered = True

    assert entered


async def test_tasks_take_turns(tmp_path):
    """Ours: of many tasks one is inside at a time, and all of them get there."""
    inside, most, entered = 0, 0, 0

    async def enter():
        nonlocal inside, most, entered
        async with hold_lock(tmp_path / "lock", 30.0):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            entered += 1
            inside -= 1

    await asyncio.gather(*(enter() for _ in range(10)))

    assert (1, 10) == (most, entered)


async def test_a_cancelled_waiter_leaves_nothing_locked(tmp_path):
    """Ours: a task that is cancelled while it waits, or while it holds the lock, holds nothing."""

    async def enter(then):
        async with hold_lock(tmp_path / "lock", 30.0):
            then.set()
            await asyncio.Event().wait()

    first, second = asyncio.Event(), asyncio.Event()
    holding = asyncio.create_task(enter(first))
    await first.wait()
    waiting = asyncio.create_task(enter(second))
    await asyncio.sleep(0)
    for task in (waiting, holding):
        task.cancel()
    await asyncio.gather(waiting, holding, return_exceptions=True)
    async with hold_lock(tmp_path / "lock", 0.0):
        entered = True

    assert entered


async def test_a_place_that_cannot_be_locked_is_an_error(tmp_path):
    """Ours: a place where no lock can be is said, not waited for."""
    (tmp_path / "file").touch()
    begun = time.monotonic()
    with pytest.raises(AuthError, match="cannot be locked"):
        async with hold_lock(tmp_path / "file" / "lock", 60.0):
            pass
    assert time.monotonic() - begun < 60
