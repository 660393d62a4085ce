"""A provider behind the server, and what asks it."""

import time

import pytest

from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from isthmus.auth.authorization_server.upstream.connections import UpstreamConnections
from support.auth.upstream_flow import make_upstream
from support.clock import ManualClock


@pytest.fixture
def clock():
    """A clock that begins now, and can be put forward."""
    return ManualClock(time.time())


@pytest.fixture
async def acme(remote, clock):
    """That provider as our server knows it."""
    provider = make_upstream(remote, clock)
    yield provider
    await provider.close()


@pytest.fixture
async def connections(acme, clock):
    """Upstream tokens in a store of their own."""
    store = MemoryAuthStore(clock=clock)
    yield UpstreamConnections(store, [acme])
    await store.close()
