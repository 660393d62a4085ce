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
async def running() -> "AsyncIterator[HostView | None]":
    """The host of this user that is running; None where there is none."""
    view = Attached(place())
    try:
        await view.__aenter__()
    except HostGone:
        yield None
        return
    try:
        yield view
    finally:
        await view.close()


def place() -> str | os.PathLike[str]:
    """The folder of the user's host."""
    try:
        said = load().options.state
    except ConfigError:  # whoever goes on says what is wrong there
        said = None
    return said or user_folder()
