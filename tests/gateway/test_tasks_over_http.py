"""Tasks of a gateway over HTTP: both shapes, and after a restart of the gateway."""

import pytest

from isthmus import Client
from isthmus.errors import InvalidParams, TaskCancelled
from support.gateway.http_gateway import serve_chain, serve_entries, serve_gateway
from support.gateway.task_kitchen import TASK_REVISIONS, Kitchen

WITH_TASKS = pytest.mark.parametrize(
    ("client", "server"), [(one, other) for one in TASK_REVISIONS for other in TASK_REVISIONS]
)
EVERY_CLIENT = pytest.mark.parametrize("client", TASK_REVISIONS)


@WITH_TASKS
async def test_a_task_is_begun_followed_and_ended_over_http(client, server):
    """Ours: a session of its own fetches the result, whatever the shapes on both sides."""
    kitchen = Kitchen(server)
    async with serve_chain(kitchen=kitchen.server) as (_, url):
        async with Client(url, revision=client) as user:
            task = await user.start_tool("kitchen__roast", {"dish": "goose"})
            await kitchen.begun.wait()
            assert "working" == (await task.status()).status
        kitchen.ready.set()
        async with Client(url, revision=client) as user:
            assert "goose is done" == (await user.task(task.id).result()).text
            with pytest.raises(InvalidParams):
                await user.task("kitchen").status()
    assert 1 == kitchen.calls


@EVERY_CLIENT
async def test_a_result_is_there_after_a_restart_of_the_gateway_with_a_store(client, tmp_path):
    """Ours: whoever has the id fetches what the task came to; one that was at work was cancelled."""
    store, kitchen = f"sqlite:///{tmp_path / 'gateway.db'}", Kitchen("2025-11-25")
    options = {"store": store, "host": {"state": tmp_path / "state"}}
    async with serve_entries(kitchen=kitchen.server) as entries:
        async with (
            serve_gateway(entries, **options) as (_, url),
            Client(url, revision=client) as user,
        ):
            kitchen.ready.set()
            done = await user.start_tool("kitchen__roast", {"dish": "goose"})
            await done.result()
            kitchen.ready.clear()
            kitchen.begun.clear()
            left = await user.start_tool("kitchen__roast", {"dish": "duck"})
            await kitchen.begun.wait()
        async with (
            serve_gateway(entries, **options) as (_, url),
            Client(url, revision=client) as user,
        ):
            assert "goose is done" == (await user.task(done.id).result()).text
            assert (await user.task(left.id).status()).over
            with pytest.raises(TaskCancelled):
                await user.task(left.id).result()
    assert 2 == kitchen.calls
