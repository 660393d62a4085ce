"""Client side of mcp on the façades: sessions and clients in memory, their errors, and what they lack."""

import asyncio
from datetime import timedelta

import pytest

from isthmus.errors import UsageError

pytestmark = pytest.mark.usefixtures("facades")


def make_server():
    """A server of mcp 1.x with a tool that waits and one whose result breaks its schema."""
    from mcp.server import Server
    from mcp.types import TextContent, Tool

    server = Server("low")
    wrong = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    @server.list_tools()
    async def list_tools():
        return [
            Tool(name="wait", inputSchema={"type": "object"}),
            Tool(name="say", inputSchema={"type": "object"}),
            Tool(name="wrong", inputSchema={"type": "object"}, outputSchema=wrong),
        ]

    @server.call_tool(validate_input=False)
    async def call_tool(name, arguments):
        if name == "wait":
            await asyncio.Event().wait()
        if name == "say":
            await server.request_context.session.send_log_message("info", "said")
        return [TextContent(type="text", text=name)]

    return server


async def test_a_call_without_an_answer_in_time_is_an_error_of_its_generation():
    """Façade: 408 where the time is a timedelta, as in 1.x, and -32001 where it is a number, as in 2.x."""
    from mcp.shared.exceptions import McpError
    from mcp.shared.memory import create_connected_server_and_client_session

    async with create_connected_server_and_client_session(make_server()) as session:
        with pytest.raises(McpError, match="Timed out while waiting") as old:
            await session.call_tool("wait", {}, timedelta(milliseconds=50))
        with pytest.raises(McpError, match="Request 'tools/call' timed out") as new:
            await session.call_tool("wait", {}, 0.05)
    assert old.value.error.code == 408
    assert new.value.error.code == -32001


async def test_a_callback_may_use_the_session_that_it_is_called_by():
    """Façade: a message handler that makes a request does not wait for itself."""
    from mcp.shared.memory import create_connected_server_and_client_session

    listed = []

    async def handle(message):
        listed.append([tool.name for tool in (await session.list_tools()).tools])

    async with create_connected_server_and_client_session(
        make_server(), message_handler=handle
    ) as session:
        said = await session.call_tool("say", {})
    assert said.content[0].text == "say"
    assert listed == [["wait", "say", "wrong"]]


async def test_other_streams_than_ours_are_refused():
    """Façade: a session opens what our transports give, and says so of anything else."""
    from mcp import ClientSession

    with pytest.raises(UsageError, match=r"ClientSession opens the streams.*isthmus\.Client"):
        ClientSession(object(), object())


async def test_the_streams_are_for_a_session_alone(tmp_path):
    """Façade: a program that reads them itself is told what to use."""
    import sys

    from mcp import StdioServerParameters, stdio_client

    async with stdio_client(StdioServerParameters(command=sys.executable)) as (read, write):
        with pytest.raises(AttributeError, match=r"isthmus\.Client"):
            await read.receive()
        with pytest.raises(AttributeError, match="write stream"):
            await write.send(None)
    nowhere = StdioServerParameters(command=str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        async with stdio_client(nowhere):
            pass


async def test_a_session_that_is_not_open_says_so():
    """Façade: a request before initialize() is refused here."""
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async with (
        stdio_client(StdioServerParameters(command="python3")) as (read, write),
        ClientSession(read, write) as session,
    ):
        assert session.get_server_capabilities() is None
        with pytest.raises(RuntimeError, match=r"await session\.initialize\(\) first"):
            await session.list_tools()


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
async def test_a_client_of_mcp_2_is_connected_in_every_mode(mode):
    """Façade: the high-level client speaks the revision that its mode says."""
    from mcp import Client

    async with Client(make_server(), mode=mode) as client:
        spoken = "2025-11-25" if mode == "legacy" else "2026-07-28"
        assert spoken == client.protocol_version
        assert client.server_info.name == "low"
        assert (await client.call_tool("say", {})).content[0].text == "say"
    with pytest.raises(RuntimeError, match="async context manager"):
        client.session  # noqa: B018 - it raises


def test_a_mode_that_there_is_not_is_refused():
    """Façade: a misspelt mode is found before anything is sent."""
    from mcp import Client

    with pytest.raises(ValueError, match="mode must be one of"):
        Client(make_server(), mode="new")


@pytest.mark.parametrize("version", ["1.30.0", "2.3.0", None])
async def test_the_streams_of_http_are_as_many_as_the_installed_library_gives(
    version, tmp_path, monkeypatch
):
    """Façade: three values in 1.x, the third a function that gives the session's id; two in 2.x."""
    from mcp.client.streamable_http import streamable_http_client, streamablehttp_client

    if version is not None:
        declared = tmp_path / f"mcp-{version}.dist-info"
        declared.mkdir()
        (declared / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: mcp\nVersion: {version}\n", encoding="utf-8"
        )
        monkeypatch.syspath_prepend(tmp_path)
    async with streamable_http_client("http://127.0.0.1:9/mcp") as streams:
        assert len(streams) == (3 if version == "1.30.0" else 2)
    async with streamablehttp_client("http://127.0.0.1:9/mcp") as (_read, _write, get_session_id):
        assert get_session_id() is None


async def test_logins_of_other_libraries_are_refused():
    """Façade: what makes requests of httpx cannot make ours, and the message names ours."""
    from mcp.client.sse import sse_client

    with pytest.raises(TypeError, match=r"isthmus\.auth\.OAuth"):
        async with sse_client("http://127.0.0.1:9/sse", auth=object()):
            pass


async def test_a_server_that_cannot_be_reached_is_a_closed_connection():
    """Façade: initialize() raises the error that a closed connection has."""
    from mcp import ClientSession
    from mcp.client.sse import sse_client
    from mcp.shared.exceptions import McpError

    async with (
        sse_client("http://127.0.0.1:9/sse") as (read, write),
        ClientSession(read, write) as session,
    ):
        with pytest.raises(McpError, match="Connection closed") as error:
            await session.initialize()
    assert error.value.error.code == -32000


@pytest.mark.parametrize("kind", ["low", "high"])
async def test_a_session_and_a_server_meet_at_streams_in_memory(kind):
    """Façade: as tests of 1.x write it, with Server.run as a task beside the session; the task ends with the streams."""
    from mcp import ClientSession
    from mcp.server.fastmcp import FastMCP
    from mcp.shared.memory import create_client_server_memory_streams

    high = FastMCP("high")

    @high.tool()
    def say() -> str:
        return "say"

    server = make_server() if kind == "low" else high._mcp_server
    async with create_client_server_memory_streams() as (client_streams, server_streams):
        options = server.create_initialization_options()
        serving = asyncio.create_task(server.run(*server_streams, options))
        async with ClientSession(*client_streams) as session:
            opened = await session.initialize()
            assert opened.serverInfo.name == kind
            assert (await session.call_tool("say", {})).content[0].text == "say"
    await asyncio.wait_for(serving, 10)


@pytest.mark.timeout(180)
def test_the_tests_of_a_server_run_on_the_facades(tmp_path):
    """Façade: pytest under isthmus run --compat, with a test as servers of 1.x have it."""
    import os
    import subprocess
    import sys

    (tmp_path / "test_server.py").write_text(
        "import asyncio\n"
        "from mcp.server.fastmcp import FastMCP\n"
        "from mcp.shared.memory import create_connected_server_and_client_session\n"
        "server = FastMCP('sums')\n"
        "@server.tool()\n"
        "def add(a: int) -> int:\n"
        "    return a\n"
        "async def call():\n"
        "    async with create_connected_server_and_client_session(server._mcp_server) as session:\n"
        "        return await session.call_tool('add', {'a': 3})\n"
        "def test_add():\n"
        "    assert asyncio.run(call()).structuredContent == {'result': 3}\n",
        encoding="utf-8",
    )
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "isthmus",
            "run",
            "--compat",
            "pytest",
            "--",
            "-q",
            "test_server.py",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    assert "1 passed" in ended.stdout


async def test_messages_of_1_x_are_wrapped_by_their_kind():
    """Façade: ClientRequest(…) is sent, and a handler matches ServerNotification(root=…), as in 1.x."""
    from mcp import types
    from mcp.shared.memory import create_connected_server_and_client_session
    from pydantic import TypeAdapter

    heard = []

    async def handle(message):
        match message:
            case types.ServerNotification(root=types.LoggingMessageNotification()):
                heard.append(message.root.params.data)
            case _:
                raise AssertionError(message)

    async with create_connected_server_and_client_session(
        make_server(), message_handler=handle
    ) as session:
        params = types.CallToolRequestParams(name="say", arguments={})
        request = types.ClientRequest(types.CallToolRequest(method="tools/call", params=params))
        said = await session.send_request(request, types.CallToolResult)
        pinged = await session.send_request(
            types.ClientRequest(types.PingRequest()), types.EmptyResult
        )
        roots = types.ClientNotification(types.RootsListChangedNotification())
        await session.send_notification(roots)
    assert said.content[0].text == "say"
    assert isinstance(pinged, types.EmptyResult)
    assert heard == ["said"]
    assert not isinstance(pinged, types.ServerNotification)
    read = TypeAdapter(types.ServerNotification | None).validate_python(
        {"method": "notifications/tools/list_changed"}
    )
    assert isinstance(read, types.ToolListChangedNotification)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("mcp.client.session", "SamplingFnT"),
        ("mcp.client.session", "MessageHandlerFnT"),
        ("mcp.client.context", "ClientRequestContext"),
        ("mcp.client", "Client"),
        ("mcp.client._memory", "InMemoryTransport"),
        ("mcp.shared.session", "RequestResponder"),
        ("mcp.shared.session", "ProgressFnT"),
        ("mcp.shared.version", "SUPPORTED_PROTOCOL_VERSIONS"),
        ("mcp.types.version", "HANDSHAKE_PROTOCOL_VERSIONS"),
    ],
)
def test_names_that_client_programs_import_are_there(module, name):
    """Façade: types of callbacks for annotations, and constants, where the libraries have them."""
    from importlib import import_module

    assert getattr(import_module(module), name)


@pytest.mark.parametrize(
    ("module", "ours"),
    [
        ("mcp.client.websocket", r"isthmus\.Client"),
        ("mcp.client.auth", r"isthmus\.auth\.OAuth"),
        ("mcp.shared.message", r"isthmus\.Client or Server\.run"),
    ],
)
def test_what_the_client_side_lacks_is_named_with_ours(module, ours):
    """Façade: WebSockets, logins and raw messages are isthmus' own."""
    from importlib import import_module

    with pytest.raises(ImportError, match=rf"use {ours} instead; docs/guide/compat\.md"):
        import_module(module)
    with pytest.raises(ImportError, match=r"mcp\.client\.advertise.*isthmus\.Client"):
        from mcp.client import advertise  # noqa: F401 - it fails


async def test_a_group_calls_the_tool_of_the_session_that_has_it():
    """Façade: sessions end in any order, also one that the program opened itself."""
    from mcp import ClientSessionGroup
    from mcp.server.fastmcp import FastMCP
    from mcp.shared.memory import create_connected_server_and_client_session as connect

    ada, bob = FastMCP("ada"), FastMCP("bob")
    for server in (ada, bob):
        server.tool(name="say")(lambda name=server.name: f"{name} says")

    def name_tool(name, info):
        return f"{info.name}.{name}"

    async with (
        connect(ada._mcp_server) as first,
        connect(bob._mcp_server) as second,
        ClientSessionGroup(component_name_hook=name_tool) as group,
    ):
        for session in (first, second):
            await group.connect_with_session(session.server_info, session)
        said = [(await group.call_tool(name)).content[0].text for name in group.tools]
        await group.disconnect_from_server(first)
        left = [*group.tools], group.sessions

    assert said == ["ada says", "bob says"]
    assert left == (["bob.say"], [second])


async def test_a_name_that_a_group_has_already_is_refused():
    """Façade: the group stays as it was."""
    from mcp import ClientSessionGroup
    from mcp.shared.exceptions import McpError
    from mcp.shared.memory import create_connected_server_and_client_session as connect

    async with (
        connect(make_server()) as first,
        connect(make_server()) as second,
        ClientSessionGroup() as group,
    ):
        await group.connect_with_session(first.server_info, first)
        with pytest.raises(McpError, match="already exist in group tools"):
            await group.connect_with_session(second.server_info, second)
        with pytest.raises(McpError, match="not managed or already disconnected"):
            await group.disconnect_from_server(second)
        with pytest.raises(KeyError):
            await group.call_tool("nobody")

        assert group.sessions == [first]


async def test_a_group_is_as_before_when_a_server_cannot_be_started():
    """Façade: the error is the one of the transport."""
    from mcp import ClientSessionGroup, StdioServerParameters

    async with ClientSessionGroup() as group:
        with pytest.raises(FileNotFoundError):
            await group.connect_to_server(StdioServerParameters(command="no-such-program"))
        assert group.sessions == []
