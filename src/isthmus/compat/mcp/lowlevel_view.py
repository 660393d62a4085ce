"""Low-level server below an ``MCPServer``, as far as programs reach for it: to name it, to serve it, to connect to it."""

from typing import Any

from isthmus.compat.mcp.lowlevel import InitializationOptions
from isthmus.compat.placement import run_placed_async


class LowLevelView:
    """Low-level server of a high-level one: ``server._mcp_server``, or ``server._lowlevel_server``.

    Args:
        server: the high-level server.
    """

    def __init__(self, server: Any) -> None:
        self._server = server

    name = property(lambda self: self._server.name)
    version = property(lambda self: self._server.version)
    instructions = property(lambda self: self._server.instructions)

    def make_isthmus_server(self) -> Any:
        """The isthmus server that serves it."""
        return self._server.make_isthmus_server()

    def create_initialization_options(self, *_: Any, **__: Any) -> InitializationOptions:
        """What the server says of itself."""
        server = self._server
        return InitializationOptions(server.name, server.version, None, server.instructions)

    async def run(self, *_: Any, **__: Any) -> None:
        """Serve on standard input and output, or where the command line has it listen."""
        await run_placed_async(self.make_isthmus_server(), "stdio", {})

    def __getattr__(self, attribute: str) -> Any:
        """Say what to do instead.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(
            f"the low-level server of an MCPServer has no {attribute!r} in isthmus: use the methods of "
            "MCPServer, see docs/guide/compat.md"
        )
