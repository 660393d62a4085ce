"""The host that runs here, for commands that ask it."""

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from isthmus.host.attached import Attached, HostGone
from isthmus.host.config.load import load
from isthmus.host.errors import ConfigError
from isthmus.host.state import user_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from isthmus.host.view import HostView

__all__ = ["running"]


@asynccontextmanager
async def running(
    state: str | None = None, file: str | None = None
) -> "AsyncIterator[HostView | None]":
    """The host that is running; None where there is none.

    Args:
        state: the folder of its state; by default what the configuration says, or the user's own.
        file: the configuration; the user's and the workspace's by default.
    """
    view = Attached(place(state, file))
    try:
        await view.__aenter__()
    except HostGone:
        yield None
        return
    try:
        yield view
    finally:
        await view.close()


def place(state: str | None = None, file: str | None = None) -> str | os.PathLike[str]:
    """The folder of a host's state: the one that is named, the configuration's, or the user's own."""
    if state is not None:
        return state
    try:
        said = load(file).options.state
    except ConfigError:  # whoever goes on says what is wrong there
        said = None
    return said or user_folder()
