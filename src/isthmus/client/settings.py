"""What a client insists on: its limits, and who it says it is."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from isthmus.revisions import Revision
from isthmus.wire import Implementation, LogLevel, ProgressParams

__all__ = ["OnProgress", "Settings"]

OnProgress: TypeAlias = Callable[[ProgressParams], Awaitable[None] | None]
"""Called with each progress notification of a call, in order; an async one runs beside it."""


class Settings(msgspec.Struct, frozen=True):
    """How patient a client is, and who it says it is; see ``Client`` for each."""

    info: Implementation
    revision: Revision | None = None
    timeout: float = 60.0
    max_timeout: float = 1800.0
    connect_timeout: float = 30.0
    probe_timeout: float | None = None
    max_rounds: int = 10
    log_level: LogLevel | None = None
    result_bytes: int | None = None
