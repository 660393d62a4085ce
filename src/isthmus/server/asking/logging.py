"""Log messages to the client: ``ctx.log``, ``logging/setLevel``, and a bridge from ``logging``."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, structs

from isthmus.core.caller import Caller
from isthmus.core.encoding import replace_surrogates
from isthmus.core.redaction.messages import Redact
from isthmus.runtime.inbound import Inbound
from isthmus.wire import LOG_LEVELS, EmptyResult, LogLevel, LogMessageParams, SetLevelParams
from isthmus.wire.jsonrpc import encode

SEVERITY: Mapping[str, int] = {level: number for number, level in enumerate(LOG_LEVELS)}
# spec 2025-11-25 server/utilities/logging: for a session that never said which level it wants
DEFAULT_LEVEL: LogLevel = "info"


async def set_level(params: SetLevelParams, inbound: Inbound) -> EmptyResult:
    """Handle ``logging/setLevel``: from now on, this session gets that level and above."""
    await inbound.remember(partial(structs.replace, log_level=params.level))
    inbound.link.agree(structs.replace(inbound.caller, log_level=params.level))
    return EmptyResult()


def is_level_wanted(caller: Caller, level: LogLevel) -> bool:
    """Whether a message of this level may be sent to this caller."""
    least = caller.log_level
    if least is None:
        if not caller.revision.allows("client", "logging/setLevel"):
            # spec 2026-07-28 server/utilities/logging#per-request-log-level: the server MUST NOT
            # emit notifications/message for a request that does not ask for them
            return False
        least = DEFAULT_LEVEL
    return SEVERITY[level] >= SEVERITY[least]


def _to_plain_data(said: Any) -> Any:
    """Data as it travels; whatever has no form in JSON is written as ``str`` has it."""
    try:
        plain = msgspec.to_builtins(said, str_keys=True, enc_hook=str)
        encode(replace_surrogates(plain))
    except (TypeError, ValueError, RecursionError, UnicodeError):
        return str(said)
    return plain


class ClientLog:
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

    def named(self, logger: str) -> "ClientLog":
        """The same log, its messages under a name such as ``"database"``."""
        return ClientLog(self._caller, self._say, logger, redact=self._redact)

    def with_default(self, level: LogLevel) -> "ClientLog":
        """The same log, from another level on for a session that never said which level it wants."""
        caller = self._caller
        if caller.log_level is None and caller.revision.allows("client", "logging/setLevel"):
            caller = structs.replace(caller, log_level=level)
        return ClientLog(caller, self._say, self._logger, redact=self._redact)

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
        return capture_logging(self, logger, level)

    def __call__(self, level: LogLevel, message: str, /, **data: Any) -> None:
        """Send a message of any level."""
        if not is_level_wanted(self._caller, level):
            return
        said = {"message": message, **data} if data else message
        plain = _to_plain_data(said)
        # spec 2026-07-28 server/utilities/logging#security: MUST NOT contain credentials
        safe = replace_surrogates(plain) if self._redact is None else self._redact(plain)
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


OWN_LOGGER = "isthmus"  # for whoever runs the server, and never sent

MCP_LEVELS: tuple[tuple[int, LogLevel], ...] = (
    (logging.CRITICAL, "critical"),
    (logging.ERROR, "error"),
    (logging.WARNING, "warning"),
    (logging.INFO + 5, "notice"),
    (logging.INFO, "info"),
    (0, "debug"),
)

_active_bridges: ContextVar["frozenset[LogBridge]"] = ContextVar(
    "isthmus_log_bridges", default=frozenset()
)


class LogBridge(logging.Handler):
    """Sends the records of one call to its client.

    Args:
        log: where to.
        level: the least level to send.
    """

    def __init__(self, log: ClientLog, level: int) -> None:
        super().__init__(level)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record, unless it is another call's or our own."""
        if self not in _active_bridges.get() or record.name.partition(".")[0] == OWN_LOGGER:
            return
        level = next(name for least, name in MCP_LEVELS if record.levelno >= least)
        try:
            self._log.named(record.name)(level, record.getMessage())
        except Exception:  # noqa: BLE001 - as every handler does: a log must not break what it logs
            self.handleError(record)


@contextmanager
def capture_logging(log: ClientLog, logger: str, level: int) -> Iterator[None]:
    """Send what is logged in this context; see ``ClientLog.capture``."""
    bridge, source = LogBridge(log, level), logging.getLogger(logger or None)
    token = _active_bridges.set(_active_bridges.get() | {bridge})
    source.addHandler(bridge)
    try:
        yield
    finally:
        source.removeHandler(bridge)
        _active_bridges.reset(token)
