"""Other libraries' clients on our bookings server, over both transports, in every revision."""

import runpy
import sys

import pytest

from counterparts import BOOKINGS, COUNTERPARTS, talk
from isthmus.revisions import BY_NAME, REVISIONS, Feature
from isthmus.testing import serving

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

TOOLS = {"book", "summarise", "price"}
STDIO = (sys.executable, BOOKINGS)


@pytest.fixture(params=["stdio", "http"])
async def target(request):
    """What the counterpart connects to: a command, or a URL."""
    if request.param == "stdio":
        yield STDIO
    else:
        server = runpy.run_path(str(BOOKINGS))["server"]
        async with serving(server) as url:
            yield (url,)


def check(said, *, asks=True):
    """What every client must have seen, whatever it is written in."""
    assert "bookings" == said["server"]
    assert set(said["tools"]) == TOOLS
    assert "55" == said["price"]
    assert said["wrong"]
    assert "In short: nothing." == said["summary"]
    assert "Write a warm apology to Ada." == said["prompt"]
    assert ["bookings://all"] == said["resources"]
    assert -32602 == said["unknown"]
    if asks:
        assert {"code": "B-2026-05-01-9", "seat": {"row": 9, "window": True}} == said["booked"]
        assert ["Which seat on 2026-05-01?"] == said["questions"]
        assert 1 == said["read"]


@pytest.mark.parametrize("revision", [r.name for r in REVISIONS])
async def test_the_npm_client_works_in_every_revision(node, modules_of, target, revision):
    """The npm @modelcontextprotocol/client 2.4 lists, calls, hears progress and answers questions."""
    script = COUNTERPARTS / "node_client.mjs"
    said = await talk(node, script, modules_of("client2"), revision, *target)

    check(said, asks=BY_NAME[revision].has(Feature.ELICITATION_FORM))
    assert ["formal"] == said["completed"]
    if BY_NAME[revision].has(Feature.ELICITATION_FORM):
        # That client tells of each round itself, and drops progress read together with the answer.
        assert said["progress"][0] == 1
        assert set(said["progress"]) <= {1, 2, 3}


@pytest.mark.parametrize(("mode", "revision"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
async def test_the_official_python_client_works_in_both_eras(python_of, target, mode, revision):
    """PyPI mcp 2.3 lists, calls, hears progress and answers questions."""
    said = await talk(python_of("mcp2"), COUNTERPARTS / "official_client.py", mode, *target)

    check(said)
    assert revision == said["revision"]
    assert [1, 2, 3] == said["progress"]
