"""Log messages from a server, and how severe they are."""

from typing import Any, Literal, TypeAlias

from isthmus.wire.base import UNSET, Meta, UnsetType, Wire

__all__ = ["LOG_LEVELS", "LogLevel", "LogMessageParams", "SetLevelParams"]

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""How severe a log message is, as RFC 5424 names it."""

LOG_LEVELS: tuple[LogLevel, ...] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
"""The levels, least severe first."""


class SetLevelParams(Wire, frozen=True, kw_only=True):
    """``logging/setLevel``: the least severe level a session wants (up to 2025-11-25)."""

    level: LogLevel
    meta: Meta | UnsetType = UNSET


class LogMessageParams(Wire, frozen=True, kw_only=True):
    """``notifications/message``: one log message; ``data`` is any JSON."""

    level: LogLevel
    data: Any
    logger: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET
