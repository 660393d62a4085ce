"""One behaviour each, over every transport and every revision."""

import contextlib

import pytest

from isthmus.testing import connect
from support.schemas import conversations


@pytest.fixture
def joined(revision, transport):
    """``connect`` over the test's transport and revision, its messages held to the schema."""

    @contextlib.asynccontextmanager
    async def join(server, wire=None, **options):
        wire = [] if wire is None else wire
        async with connect(
            server, revision=revision, transport=transport, wire=wire, **options
        ) as client:
            yield client
        conversations.validate(wire, revision)

    return join
