"""Tasks of processes that are killed (``kill -9``), over each engine that several processes can have."""

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus import Client
from isthmus.errors import ConnectFailed, Refused
from isthmus.nodes.node import OUTCOME_UNKNOWN
from support.ports import find_free_port
from support.server.both_eras import LEGACY, MODERN
from support.store.engines import ENGINES

PROGRAM = Path(__file__).parents[1] / "support" / "tasks" / "task_program.py"

NODE_TTL_S = 1.5

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.redis)], name="store")
def make_store_url(request, tmp_path):
    """Where the store of a test is."""
    return ENGINES[request.param](tmp_path).url


class TaskProcess:
    """A process of the server, and its URL."""

    def __init__(self, process, url):
        self.url = url
        self._process = process

    @classmethod
    async def start(cls, store):
        port = find_free_port()
        arguments = (str(PROGRAM), store, str(port), str(NODE_TTL_S))
        process = await asyncio.create_subprocess_exec(sys.executable, *arguments)
        made = cls(process, f"http://127.0.0.1:{port}/mcp")
        while True:
            try:
                async with Client(made.url):
                    return made
            except ConnectFailed:
                assert process.returncode is None
                await asyncio.sleep(0.05)

    async def kill(self):
        """As ``kill -9`` does."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def processes(store, count):
    """So many processes; those that are left are killed at the end."""
    made = [await TaskProcess.start(store) for _ in range(count)]
    try:
        yield made
    finally:
        for process in made:
            await process.kill()


async def begin(process, revision, name, **arguments):
    """The id of a task that a process has accepted."""
    async with Client(process.url, revision=revision) as client:
        return (await client.start_tool(name, arguments)).id


@pytest.mark.timeout(60)
@BOTH
async def test_a_killed_processs_task_has_failed_at_the_other(store, revision):
    """Ours: an acknowledged task is there, and ends once, with words that say what is not known."""
    async with processes(store, 2) as (first, second):
        id = await begin(first, revision, "wait_for_ever")
        await first.kill()
        async with Client(second.url, revision=revision) as client:
            with pytest.raises(Refused) as failed:
                await client.task(id).result(timeout=20)

    assert (-32603, OUTCOME_UNKNOWN) == (failed.value.code, failed.value.message)


@pytest.mark.timeout(60)
async def test_a_task_that_may_run_twice_is_done_when_all_processes_were_killed(store, tmp_path):
    """Ours: whoever starts next runs it again, with its arguments out of the store."""
    notes = tmp_path / "runs"
    async with processes(store, 2) as (first, second):
        id = await begin(first, MODERN, "note", path=str(notes))
        while not notes.exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        await second.kill()
        await first.kill()
        async with processes(store, 1) as (third,), Client(third.url, revision=MODERN) as client:
            result = await client.task(id).result(timeout=20)

    assert "done" == result.text
    assert ["run", "run"] == notes.read_text().split()
