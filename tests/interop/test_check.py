"""``isthmus check`` on servers of other people: it gets to its end, and says nothing untrue."""

import pytest

from isthmus import Command
from isthmus.client.targets import resolve_target
from isthmus.linter.doctor.doctor import Doctor
from isthmus.linter.doctor.lines import LineTarget

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

# What would be our own mistake: these servers are in wide use and speak well-formed MCP.
UNLIKELY = {
    "connection.survives",
    "connection.answers",
    "messages.json",
    "messages.jsonrpc",
    "messages.shape",
    "messages.unasked",
    "messages.direction",
    "tools.schema",
    "ping.empty",
    "lifecycle.unknown-version",
    "capabilities.work",
}


async def examined(command):
    target = resolve_target(command, headers=None, connect_timeout=30)
    return await Doctor(LineTarget(target.dial), timeout=10).examine()


@pytest.mark.parametrize("name", ["mcp_server_time", "mcp_server_git"])
async def test_check_on_python_servers(python_of, name):
    """PyPI mcp-server-time and mcp-server-git."""
    report = await examined(Command(str(python_of("servers")), "-m", name))

    assert report.spoken
    assert set() == UNLIKELY & {finding.rule for finding in report.findings}


async def test_check_on_server_everything(node, modules_of):
    """Npm server-everything over stdio."""
    script = modules_of("everything") / (
        "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    )
    report = await examined(Command(str(node), str(script), "stdio"))

    assert "2025-11-25" in report.spoken
    assert set() == UNLIKELY & {finding.rule for finding in report.findings}
