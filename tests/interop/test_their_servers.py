"""Our client on servers that other people wrote for their own ends."""

import asyncio
import socket
import sys
from pathlib import Path

import pytest

from isthmus import Accepted, Client, Command
from isthmus.errors import PeerError
from isthmus.revisions import Feature

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("revision", [None, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_our_client_on_server_everything_over_stdio(node, modules_of, revision):
    """Npm server-everything: tools, resources, prompts, progress, sampling and a question."""
    script = modules_of("everything") / (
        "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    )
    await everything(Command(str(node), str(script), "stdio"), revision)


@pytest.mark.parametrize("revision", [None, "2025-11-25", "2025-03-26"])
async def test_our_client_on_server_everything_over_http(node, modules_of, revision, monkeypatch):
    """The same over Streamable HTTP."""
    script = modules_of("everything") / (
        "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PORT", str(probe.getsockname()[1]))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        str(node), str(script), "streamableHttp", stderr=asyncio.subprocess.PIPE
    )
    try:
        while b"listening" not in (await process.stderr.readline()).lower():
            assert process.returncode is None
        await everything(f"http://127.0.0.1:{port}/mcp", revision)
    finally:
        process.terminate()
        await process.communicate()


async def everything(target, revision):
    """What can be done with server-everything."""
    seen = []
    async with Client(
        target,
        revision=revision,
        elicit=lambda question: Accepted({"name": "Ada", "integer": 42}),
        sample=lambda request: "a sampled answer",
        roots=[str(ROOT)],
    ) as client:
        tools = {tool.name for tool in await client.list_tools()}
        assert "echo" in tools
        assert "Echo: hi" == (await client.call_tool("echo", {"message": "hi"})).text
        total = await client.call_tool("get-sum", {"a": 2, "b": 3})
        assert "5" in total.text
        work = {"duration": 0.2, "steps": 2}
        slow = await client.call_tool(
            "trigger-long-running-operation", work, on_progress=lambda p: seen.append(p.progress)
        )
        assert "completed" in slow.text
        assert [1, 2] == seen
        resources = await client.list_resources()
        assert resources
        assert (await client.read_resource(resources[0].uri)).contents
        assert await client.list_prompts()
        if "trigger-sampling-request" in tools:
            sampled = await client.call_tool("trigger-sampling-request", {"prompt": "x"})
            assert "a sampled answer" in sampled.text
        if client.revision.has(Feature.ELICITATION_FORM):
            answered = await client.call_tool("trigger-elicitation-request")
            assert "Ada" in answered.text
            roots = await client.call_tool("get-roots-list")
            assert ROOT.as_uri() in roots.text
        with pytest.raises(PeerError):
            (await client.call_tool("no-such-tool")).parse(dict)


async def test_our_client_on_real_servers_of_python(python_of):
    """PyPI mcp-server-git on this repository, and mcp-server-time."""
    python = str(python_of("servers"))
    git = Command(python, "-m", "mcp_server_git", "--repository", str(ROOT))
    async with Client(git) as client:
        log = await client.call_tool("git_log", {"repo_path": str(ROOT), "max_count": 1})
        assert "Commit" in log.text
    async with Client(Command(python, "-m", "mcp_server_time")) as client:
        when = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        assert "21:00" in (await client.call_tool("convert_time", when)).text


def test_this_python_is_not_theirs(python_of):
    """Other people's packages never come into our environment (decision D26)."""
    assert str(python_of("mcp2")) != sys.executable
