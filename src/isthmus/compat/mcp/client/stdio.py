"""``stdio_client`` of ``mcp``: the way to a server that is launched."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from isthmus.compat.mcp.client.streams import make_streams
from isthmus.transports.command import Command


class StdioServerParameters(BaseModel):
    """A server to be launched.

    Attributes:
        command: the program.
        args: what it is given.
        env: its variables beside a small part of ours; None for that part alone.
        cwd: the folder it starts in.
        encoding, encoding_error_handler: not heeded; messages are UTF-8.
    """

    command: str
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] | None = None
    cwd: str | Path | None = None
    encoding: str = "utf-8"
    encoding_error_handler: Literal["strict", "ignore", "replace"] = "strict"


def get_default_environment() -> dict[str, str]:
    """The variables that a launched server gets."""
    return Command("").environment()


@asynccontextmanager
async def stdio_client(
    server: StdioServerParameters, errlog: Any = None
) -> AsyncIterator[tuple[Any, Any]]:
    """Give the streams for ``ClientSession``, which launches the server when it is initialized.

    Raises:
        FileNotFoundError: there is no such program.
    """
    del errlog
    if shutil.which(server.command) is None:
        raise FileNotFoundError(2, "No such file or directory", server.command)
    yield make_streams(Command(server.command, *server.args, env=server.env, cwd=server.cwd))
