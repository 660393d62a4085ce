"""The running host and the folder of its state, for commands that ask it."""

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.host.config.load import load_config
from isthmus.host.model.errors import ConfigError
from isthmus.host.remote.attached import AttachedHost, HostGone
from isthmus.host.state.database import find_user_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from isthmus.host.remote.view import HostView


@asynccontextmanager
async def find_running_host(
    state: str | None = None, file: str | None = None
) -> "AsyncIterator[HostView | None]":
    """The host that is running; None where there is none.

    Args:
        state: the folder of its state; by default what the configuration says, or the user's own.
        file: the configuration; the user's and the workspace's by default.
    """
    view = AttachedHost(find_configured_folder(state, file))
    try:
        await view.__aenter__()
    except HostGone:
        yield None
        return
    try:
        yield view
    finally:
        await view.close()


def find_configured_folder(
    state: str | None = None, file: str | None = None
) -> str | os.PathLike[str]:
    """The folder of a host's state: the one that is named, the configuration's, or the user's own."""
    if state is not None:
        return state
    try:
        configured = load_config(file).options.state
    except ConfigError:  # whoever goes on says what is wrong there
        configured = None
    return configured or find_user_folder()


def find_host_folder(state: str | None) -> Path:
    """The folder of a host's state: the one that was named, or the user's own."""
    return Path(state).expanduser() if state else find_user_folder()
