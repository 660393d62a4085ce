"""``stdio_server`` of ``mcp``: standard input and output, for ``Server.run``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


class StandardStream:
    """Standard input or output: what ``Server.run`` takes; isthmus reads and writes it itself.

    Args:
        name: of the stream.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attribute: str) -> Any:
        """Say what to do instead.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(
            f"the {self.name} stream of stdio_server() is for Server.run() alone in isthmus, and has no "
            f"{attribute!r}: see docs/guide/compat.md"
        )


@asynccontextmanager
async def stdio_server(stdin: Any = None, stdout: Any = None) -> AsyncIterator[tuple[Any, Any]]:
    """Give the streams for ``Server.run``."""
    del stdin, stdout
    yield StandardStream("read"), StandardStream("write")
