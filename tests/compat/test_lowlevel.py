"""Low-level servers of ``mcp`` 1.x on the façades: capabilities, pictures, and every level of log messages."""

import pytest

from isthmus import Client
from isthmus.errors import Refused

pytestmark = pytest.mark.usefixtures("facades")


def make_server():
    from mcp import types
    from mcp.server.lowlevel import Server

    server = Server(
        "low", icons=[types.Icon(src="https://example.com/i.png", mimeType="image/png")]
    )

    @server.list_tools()
    async def list_tools():
        return [types.Tool(name="report", inputSchema={"type": "object"})]

    @server.call_tool()
    async def call_tool(name, arguments):
        context = server.request_context
        for level in ("debug", "info"):
            await context.session.send_log_message(level, f"{name} {arguments}")
        return [types.TextContent(type="text", text=repr(context.meta))]

    @server.read_resource()
    async def read_resource(uri):
        return f"{uri.scheme} {uri.path}"

    @server.set_logging_level()
    async def set_level(level):
        del level

    return server


async def test_a_client_is_told_the_capabilities_and_pictures_that_the_program_declares():
    """Façade: ``InitializationOptions(capabilities=server.get_capabilities(…))`` is what a client sees."""
    from mcp.server.lowlevel import NotificationOptions
    from mcp.server.models import InitializationOptions

    server = make_server()
    options = InitializationOptions(
        server_name="low",
        server_version="1",
        icons=server.icons,
        capabilities=server.get_capabilities(
            NotificationOptions(tools_changed=True), {"trial": {"on": 1}}
        ),
    )
    async with Client(server.make_isthmus_server(options), revision="2025-11-25") as client:
        assert client.capabilities.tools.list_changed is True
        assert client.capabilities.experimental == {"trial": {"on": 1}}
        assert [icon.src for icon in client.info.icons] == ["https://example.com/i.png"]


async def test_every_level_is_sent_to_a_client_that_never_said_which_it_wants():
    """Façade: as in the other libraries, ``debug`` is sent until the client wants less."""
    heard = []
    server = make_server().make_isthmus_server()
    async with Client(server, revision="2025-11-25", on_log=heard.append) as client:
        answer = await client.call_tool("report", {})
        assert answer.text == "None"
        assert [one.level for one in heard] == ["debug", "info"]
        await client.set_log_level("info")
        await client.call_tool("report", {})
        assert [one.level for one in heard] == ["debug", "info", "info"]


async def test_a_resource_is_read_by_a_url():
    """Façade of mcp 1.x: the answer has the URL's spelling, and what is no URL is refused."""
    server = make_server()

    @server.list_resources()
    async def list_resources():
        return []

    async with Client(server.make_isthmus_server(), revision="2025-11-25") as client:
        read = await client.read_resource("FILE:///x y.txt")
        assert read.contents[0].uri == "file:///x%20y.txt"
        assert read.contents[0].text == "file /x%20y.txt"
        with pytest.raises(Refused, match="Invalid request parameters"):
            await client.read_resource("no uri")
