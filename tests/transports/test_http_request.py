"""What is read of an HTTP request, and what becomes of it when it has to be waited for."""

import asyncio

import pytest

from isthmus.transports.http.asgi_exchange import StartedAwaitable, start_awaitable


async def at_once():
    """What need not be waited for."""
    return "there"


async def waited_for(gate):
    """What has to be waited for."""
    await gate.wait()
    await asyncio.sleep(0)
    return "come"


async def settle():
    """Let the other tasks go as far as they can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_is_there_at_once_is_given_at_once():
    """Ours: a body that is there already costs no watch."""
    assert "there" == start_awaitable(at_once())


async def test_what_fails_at_once_raises_at_once():
    """Ours: as if it had been awaited."""

    async def failing():
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        start_awaitable(failing())


async def test_what_has_to_be_waited_for_goes_on_where_it_was():
    """Ours: nothing of it is done twice."""
    gate = asyncio.Event()
    rest = start_awaitable(waited_for(gate))
    assert isinstance(rest, StartedAwaitable)
    task = asyncio.ensure_future(asyncio.wait_for(rest, None))
    await settle()
    gate.set()

    assert "come" == await task


async def test_a_future_can_be_begun():
    """Ours: ASGI servers give whatever can be awaited."""
    future = asyncio.get_running_loop().create_future()

    async def wait():
        return await start_awaitable(future)

    task = asyncio.ensure_future(wait())
    await settle()
    future.set_result("come")

    assert "come" == await task


@pytest.mark.parametrize("swallowed", [False, True])
async def test_a_cancellation_reaches_what_was_begun(swallowed):
    """Ours: whoever waits is told, and may go on or give something else."""
    seen = []

    async def watched():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            if not swallowed:
                raise
            await asyncio.sleep(0)
            return "instead"

    async def wait():
        return await start_awaitable(watched())

    task = asyncio.ensure_future(wait())
    await settle()
    task.cancel()
    await asyncio.wait([task])

    assert ["cancelled"] == seen
    assert swallowed != task.cancelled()
    assert task.cancelled() or "instead" == task.result()


async def test_steps_that_cannot_be_told_are_left():
    """Ours: what comes from a server in another language may only know its next step."""

    class Steps:
        def __await__(self):
            return self

        def __iter__(self):
            return self

        def __next__(self):
            return None

    async def wait():
        return await start_awaitable(Steps())

    task = asyncio.ensure_future(wait())
    await settle()
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
