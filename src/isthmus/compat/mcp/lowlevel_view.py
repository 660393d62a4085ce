"""Private parts of an ``MCPServer``, as far as programs reach for them: the low-level server, and the tools."""

from collections.abc import Mapping
from typing import Any

from isthmus.compat.mcp.lowlevel import InitializationOptions, run_streams


def _forward(name: str) -> Any:
    """An attribute that is the high-level server's; 1.x has no other place to set a version."""
    return property(
        lambda self: getattr(self._server, name),
        lambda self, value: setattr(self._server, name, value),
    )


class LowLevelView:
    """Low-level server of a high-level one: ``server._mcp_server``, or ``server._lowlevel_server``.

    Args:
        server: the high-level server.
    """

    def __init__(self, server: Any) -> None:
        self._server = server

    name = _forward("name")
    version = _forward("version")
    instructions = _forward("instructions")

    def make_isthmus_server(self, options: Any = None) -> Any:
        """The isthmus server that serves it."""
        del options  # the high-level server says what they say
        return self._server.make_isthmus_server()

    def create_initialization_options(self, *_: Any, **__: Any) -> InitializationOptions:
        """What the server says of itself."""
        server = self._server
        return InitializationOptions(
            server_name=server.name,
            server_version=server.version,
            instructions=server.instructions,
        )

    async def run(self, read_stream: Any, write_stream: Any, *_: Any, **__: Any) -> None:
        """Serve on standard input and output, or where the command line has it listen; or a client's stream."""
        del write_stream
        await run_streams(self, read_stream)

    def __getattr__(self, attribute: str) -> Any:
        """Say what to do instead.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(
            f"the low-level server of an MCPServer has no {attribute!r} in isthmus: use the methods of "
            "MCPServer, see docs/guide/compat.md"
        )


class ToolManagerView:
    """Tools of a high-level server, to look at: ``server._tool_manager``.

    Args:
        server: the high-level server.
        tools: its tools by name.
    """

    def __init__(self, server: Any, tools: Mapping[str, Any]) -> None:
        self._server = server
        self._tools = tools

    def get_tool(self, name: str) -> Any:
        """A tool by its name, or None."""
        return self._tools.get(name)

    def list_tools(self) -> list[Any]:
        """All tools."""
        return list(self._tools.values())

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Any = None, **_: Any
    ) -> Any:
        """Call a tool."""
        return await self._server.call_tool(name, arguments, context)
