"""Log messages for the client: how severe they must be, and what they say."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import msgspec
from msgspec import UNSET, structs

from isthmus.core.caller import Caller
from isthmus.core.surrogates import without_surrogates
from isthmus.runtime.inbound import Inbound
from isthmus.server.redaction import Redact
from isthmus.wire import LOG_LEVELS, EmptyResult, LogLevel, LogMessageParams, SetLevelParams
from isthmus.wire.jsonrpc import encode

__all__ = ["Log", "set_level", "wanted"]

SEVERITY: Mapping[str, int] = {level: number for number, level in enumerate(LOG_LEVELS)}
UNASKED: LogLevel = "info"
"""What a session gets that never said which level it wants (2025-11-25 server/utilities/logging)."""


async def set_level(params: SetLevelParams, inbound: Inbound) -> EmptyResult:
    """Handle ``logging/setLevel``: from now on, this session gets that level and above."""
    inbound.link.agree(structs.replace(inbound.caller, log_level=params.level))
    return EmptyResult()


def wanted(caller: Caller, level: LogLevel) -> bool:
    """Whether a message of this level may be sent to this caller."""
    least = caller.log_level
    if least is None:
        if not caller.revision.allows("client", "logging/setLevel"):
            # spec 2026-07-28 server/utilities/logging#per-request-log-level: the server MUST NOT
            # emit notifications/message for a request that does not ask for them
            return False
        least = UNASKED
    return SEVERITY[level] >= SEVERITY[least]


def _plain(said: Any) -> Any:
    """Data as it travels; whatever has no form in JSON is written as ``str`` has it."""
    try:
        plain = msgspec.to_builtins(said, str_keys=True, enc_hook=str)
        encode(without_surrogates(plain))
    except (TypeError, ValueError, RecursionError, UnicodeError):
        return str(said)
    return plain


class Log:
    """Log messages to the client on whose behalf something runs; see ``Context.log``.

    Each method takes a message and any data to go with it, sends it if the client wants that
    level, and returns at once; it may be called from async and from plain functions::

        ctx.log.info("summarised", chars=len(text))

    Args:
        caller: who may want them.
        say: takes the params of each notification to send.
        logger: the name they carry, or None.
        redact: takes secrets out of what is sent, or None.
    """

    __slots__ = ("_caller", "_logger", "_redact", "_say")

    def __init__(
        self,
        caller: Caller,
        say: Callable[[LogMessageParams], None],
        logger: str | None = None,
        *,
        redact: Redact | None = None,
    ) -> None:
        self._caller = caller
        self._say = say
        self._logger = logger
        self._redact = redact

    def named(self, logger: str) -> "Log":
        """The same log, its messages under a name such as ``"database"``."""
        return Log(self._caller, self._say, logger, redact=self._redact)

    def capture(self, logger: str = "", level: int = 0) -> AbstractContextManager[None]:
        """Send what the program logs with ``logging``, too, while this call does something.

        Only what is logged on behalf of this call is sent, in tasks and threads that it began::

            with ctx.log.capture("shop"):
                await restock()  # its logging.getLogger("shop.stock").info(…) reach the client

        Nothing of isthmus' own is sent, and no traceback.

        Args:
            logger: the name of the logger, with all below it; by default every one.
            level: the least level of ``logging`` to send.
        """
        from isthmus.server.log_bridge import captured  # only who wants it needs logging

        return captured(self, logger, level)

    def __call__(self, level: LogLevel, message: str, /, **data: Any) -> None:
        """Send a message of any level."""
        if not wanted(self._caller, level):
            return
        said = {"message": message, **data} if data else message
        plain = _plain(said)
        # spec 2026-07-28 server/utilities/logging#security: MUST NOT contain credentials
        safe = without_surrogates(plain) if self._redact is None else self._redact(plain)
        self._say(LogMessageParams(level=level, data=safe, logger=self._logger or UNSET))

    def debug(self, message: str, /, **data: Any) -> None:
        """What helps to find a fault."""
        self("debug", message, **data)

    def info(self, message: str, /, **data: Any) -> None:
        """What happens."""
        self("info", message, **data)

    def notice(self, message: str, /, **data: Any) -> None:
        """What is normal but worth knowing."""
        self("notice", message, **data)

    def warning(self, message: str, /, **data: Any) -> None:
        """What may become a problem."""
        self("warning", message, **data)

    def error(self, message: str, /, **data: Any) -> None:
        """What went wrong."""
        self("error", message, **data)

    def critical(self, message: str, /, **data: Any) -> None:
        """What broke."""
        self("critical", message, **data)

    def alert(self, message: str, /, **data: Any) -> None:
        """What somebody must act on now."""
        self("alert", message, **data)

    def emergency(self, message: str, /, **data: Any) -> None:
        """That nothing works any more."""
        self("emergency", message, **data)
