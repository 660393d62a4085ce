"""The engines that the contract suite runs over, one after the other."""

import pytest

from support.store.engines import ENGINE_PARAMS, ENGINES
from support.store.processes import OtherProcess


@pytest.fixture(params=ENGINE_PARAMS)
def engine(request, tmp_path):
    """One engine, empty."""
    return ENGINES[request.param](tmp_path)


@pytest.fixture
async def open_store(engine):
    """Opens stores over the engine; they are closed after the test."""
    opened = []

    async def open_one(**options):
        store = engine.make_store(**options)
        await store.open()
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
async def store(open_store):
    """One store over the engine, open."""
    return await open_store()


@pytest.fixture
async def other_process(engine):
    """Starts processes that have a store over the engine; they are killed after the test."""
    if engine.url is None:
        pytest.skip("no other process can share this engine")
    started = []

    async def start():
        process = await OtherProcess.start(engine.url)
        started.append(process)
        return process

    yield start
    for process in started:
        await process.kill()
