"""A client that opens in one era only, whatever the server offers."""

import sys

import pytest

from isthmus import Server
from isthmus.client.client import Client
from isthmus.errors import ConnectFailed, UsageError
from isthmus.testing import serving
from isthmus.transports.command import Command

FILE = """
from isthmus import Server

server = Server("both", version="1")
server.run()
"""


@pytest.fixture(params=["memory", "stdio", "http"])
async def target(request):
    """A server of every revision, behind each kind of transport."""
    server = Server("both", version="1")
    if request.param == "memory":
        yield server
    elif request.param == "stdio":
        yield Command(sys.executable, "-c", FILE)
    else:
        async with serving(server) as url:
            yield url


async def test_an_era_is_opened_whatever_the_server_offers(target):
    """Ours: and the next client finds out for itself."""
    spoken = []
    for era in ("legacy", "auto", "modern", "legacy", "auto"):
        async with Client(target, era=era) as client:
            spoken.append(client.revision.name)

    assert ["2025-11-25", "2026-07-28", "2026-07-28", "2025-11-25", "2026-07-28"] == spoken


async def test_a_revision_of_the_era_may_be_said_besides(target):
    """Ours: the two agree."""
    async with Client(target, era="legacy", revision="2025-06-18") as client:
        assert "2025-06-18" == client.revision.name


async def test_a_server_that_does_not_speak_the_era_is_told():
    """Ours: nothing else is tried."""
    old = Server("old", version="1", revisions=["2025-06-18"])
    with pytest.raises(ConnectFailed, match="leave out revision= and era="):
        async with Client(old, era="modern"):
            pass


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"era": "old"}, "era= is 'auto', 'modern' or 'legacy'"),
        ({"era": "legacy", "revision": "2026-07-28"}, "not of the legacy era"),
        ({"era": "modern", "revision": "2025-06-18"}, "not of the modern era"),
    ],
)
def test_an_era_that_cannot_be_is_told_at_once(options, says):
    """Ours: before anything is opened."""
    with pytest.raises(UsageError, match=says):
        Client(Server("x", version="1"), **options)
