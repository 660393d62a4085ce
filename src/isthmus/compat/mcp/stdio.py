"""``stdio_server`` of ``mcp``: standard input and output, for ``Server.run``."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

STDIN_DESCRIPTOR = 0
STDOUT_DESCRIPTOR = 1


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
    """Give the streams for ``Server.run``.

    Args:
        stdin: a file that is read in the place of standard input, as anyio wraps it.
        stdout: a file that is written in the place of standard output; both have descriptors.
    """
    for file, descriptor in ((stdin, STDIN_DESCRIPTOR), (stdout, STDOUT_DESCRIPTOR)):
        if file is not None:
            use_as_descriptor(file, descriptor)
    yield StandardStream("read"), StandardStream("write")


def use_as_descriptor(file: Any, descriptor: int) -> None:
    """Make a file the one behind a descriptor, which isthmus reads or writes itself.

    Programs hold their output in a file of its own, against native code that prints to descriptor 1.

    Raises:
        OSError: the file has no descriptor.
    """
    given = getattr(file, "wrapped", file).fileno()
    if given != descriptor:
        os.dup2(given, descriptor)
