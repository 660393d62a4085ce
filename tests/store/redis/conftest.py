"""A Redis server that a test may stop, fill and kill."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import uvloop

from isthmus.store.redis_store import RedisStore
from support.store.redis_server import RedisServer


def pytest_asyncio_loop_factories(config, item):
    """Both event loops that servers run on: they tell of ends and errors in their own ways."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": new_uvloop}


def new_uvloop():
    """A loop that ends by itself: the alarm of pytest-timeout does not get through to it."""
    loop = uvloop.new_event_loop()
    loop.call_later(18, loop.stop)
    return loop


@pytest.fixture
def folder():
    """A folder whose name is short, as that of a socket must be."""
    with TemporaryDirectory(prefix="isthmus-redis-") as name:
        yield Path(name)


@pytest.fixture
def start_redis(folder):
    """Starts servers, each in a folder of its own; they end with the test."""
    started = []

    def start(**settings):
        own = folder / str(len(started))
        own.mkdir()
        server = RedisServer(own, **settings)
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.kill()


@pytest.fixture
def redis(start_redis):
    """One server."""
    return start_redis()


@pytest.fixture
async def open_store():
    """Opens stores; they are closed after the test."""
    opened = []

    async def open_one(url, **options):
        store = RedisStore(url)
        opened.append(store)
        await store.open(**options)
        return store

    yield open_one
    for store in opened:
        await store.close()
