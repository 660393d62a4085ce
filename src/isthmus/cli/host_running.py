"""The host that runs here, for commands that ask it."""

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from isthmus.host.view import HostView

__all__ = ["running"]


@asynccontextmanager
async def running() -> "AsyncIterator[HostView | None]":
    """The host of this user that is running; None where there is none."""
    yield None
