"""The pytest plugin on servers of other libraries: its fixtures work with any server."""

from pathlib import Path
from shlex import join

import pytest

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

COUNTERPARTS = Path(__file__).parent / "counterparts"
TESTS = """
import pytest

@pytest.mark.mcp_revisions("2025-11-25", "2026-07-28")
async def test_echo(mcp_client, mcp_revision):
    client = await mcp_client()
    assert mcp_revision == str(client.revision)
    assert "hi" == (await client.call_tool("echo", {"text": "hi"})).text

async def test_surface(assert_tools):
    await assert_tools()

async def test_recorded(mcp_client, recorded, mcp_target):
    client = await mcp_client(recorded(mcp_target))
    assert "hi" == (await client.call_tool("echo", {"text": "hi"})).text
"""


@pytest.mark.parametrize("library", ["mcp2", "fastmcp"])
def test_fixtures_work_with_servers_of_other_libraries(library, python_of, pytester, monkeypatch):
    """Clients in both eras, a snapshot and a recording; then once more, from the files (ours)."""
    monkeypatch.setenv("CI", "")
    server = [str(python_of(library)), str(COUNTERPARTS / f"{library}_server.py"), "stdio"]
    pytester.makepyfile(test_other=TESTS)
    for _ in ("recorded", "replayed"):
        result = pytester.runpytest_subprocess("-q", f"--mcp-target={join(server)}")
        result.assert_outcomes(passed=4)
    assert 2 == len(list((pytester.path / "__mcp__").iterdir()))
