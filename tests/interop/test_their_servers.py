"""Our client on other libraries' servers."""

import asyncio
import contextlib
import socket
import sys

import pytest

from counterparts import COUNTERPARTS, ROOT
from isthmus import Accepted, Client, Command
from isthmus.errors import PeerError
from isthmus.revisions import BY_NAME, REVISIONS, Feature

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

TRIES = 600


@contextlib.asynccontextmanager
async def listening(*command):
    """A server started with a port as its last argument; its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(*map(str, command), str(port))
    try:
        for _ in range(TRIES):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            assert process.returncode is None, "the server ended"
            await asyncio.sleep(0.05)  # another program's start: there is nothing to wait on
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.parametrize("revision", [r.name for r in REVISIONS])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_our_client_on_the_official_python_server(python_of, transport, revision):
    """PyPI mcp 2.3: list, call, progress, a question, resources, prompts, in every revision."""
    server = (python_of("mcp2"), COUNTERPARTS / "official_server.py")
    asked, seen = [], []

    def answer(question):
        asked.append(question.message)
        return Accepted({"row": 4})

    async with contextlib.AsyncExitStack() as stack:
        target = Command(*map(str, server))
        if transport == "http":
            target = await stack.enter_async_context(listening(*server))
        client = await stack.enter_async_context(Client(target, revision=revision, elicit=answer))

        assert revision == client.revision.name
        assert {"price", "steps", "ask"} == {tool.name for tool in await client.list_tools()}
        assert "55" == (await client.call_tool("price", {"kind": "quiet"})).text
        steps = await client.call_tool("steps", on_progress=lambda p: seen.append(p.progress))
        assert "done" == steps.text
        note = await client.read_resource("note://one")
        assert "Remember the milk." == note.contents[0].text
        prompt = await client.get_prompt("hello", {"name": "Ada"})
        assert "Say hello to Ada." == prompt.messages[0].content.text
        if BY_NAME[revision].has(Feature.ELICITATION_FORM):
            assert "row 4" == (await client.call_tool("ask")).text
            assert ["Which seat?"] == asked
    assert [1, 2, 3] == seen


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_our_client_finds_the_newest_revision_by_itself(python_of, transport):
    """Negotiation without a pin ends in 2026-07-28 (spec: versioning)."""
    server = (python_of("mcp2"), COUNTERPARTS / "official_server.py")
    async with contextlib.AsyncExitStack() as stack:
        target = Command(*map(str, server))
        if transport == "http":
            target = await stack.enter_async_context(listening(*server))
        # It takes a second to start, and more on a busy machine: silence must not look like age.
        client = await stack.enter_async_context(Client(target, probe_timeout=25))

        assert "2026-07-28" == client.revision.name


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
