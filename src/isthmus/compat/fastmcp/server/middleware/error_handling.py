"""Middleware that logs, translates and retries failures, under the names of ``fastmcp.server.middleware.error_handling``."""

import asyncio
import logging
import traceback
from collections.abc import Callable
from typing import Any

from isthmus.compat.exceptions import MCPError
from isthmus.compat.fastmcp.exceptions import OWN_ERRORS, NotFoundError, ValidationError
from isthmus.compat.fastmcp.flavour import FLAVOUR
from isthmus.compat.fastmcp.server.middleware.middleware import (
    CallNext,
    Middleware,
    MiddlewareContext,
)

MAX_COUNTED_KINDS = 999  # kinds of failures with a count of their own; the rest has one together
OTHER_KINDS = "<other>"

# Exceptions, and the code and the beginning of the text that they become
TRANSLATIONS: tuple[tuple[tuple[type[Exception], ...], int, str], ...] = (
    ((ValueError, TypeError), -32602, "Invalid params"),
    ((FileNotFoundError, KeyError, NotFoundError), -32001, "Not found"),
    ((PermissionError,), -32000, "Permission denied"),
    ((TimeoutError,), -32000, "Request timeout"),
)
MISSING_RESOURCE = (-32002, "Resource not found")
INTERNAL = (-32603, "Internal error")


class ErrorHandlingMiddleware(Middleware):
    """Log failures, count them, and translate them into errors of JSON-RPC.

    Args:
        logger: the logger; ``fastmcp.errors`` by default.
        include_traceback: lines have the traceback.
        error_callback: called with each failure, and its message.
        transform_errors: translate them.
    """

    def __init__(
        self,
        logger: logging.Logger | None = None,
        include_traceback: bool = False,
        error_callback: Callable[[Exception, MiddlewareContext[Any]], None] | None = None,
        transform_errors: bool = True,
    ) -> None:
        self.logger = logger or logging.getLogger("fastmcp.errors")
        self.include_traceback = include_traceback
        self.error_callback = error_callback
        self.transform_errors = transform_errors
        self.error_counts: dict[str, int] = {}

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Serve a message, and translate its failure.

        Raises:
            MCPError: the translation.
        """
        try:
            return await call_next(context)
        except OWN_ERRORS:  # questions to the client and answers in isthmus' own words
            raise
        except Exception as error:
            self._note_failure(error, context)
            if isinstance(error, MCPError) or not self.transform_errors:
                raise
            raise translate_failure(error, context.method or "") from error

    def _note_failure(self, error: Exception, context: MiddlewareContext[Any]) -> None:
        kind, method = type(error).__name__, context.method or "unknown"
        key = f"{kind}:{method}"
        if key not in self.error_counts and len(self.error_counts) >= MAX_COUNTED_KINDS:
            key = OTHER_KINDS
        self.error_counts[key] = self.error_counts.get(key, 0) + 1
        line = f"Error in {method}: {kind}: {error}"
        if self.include_traceback:
            line = f"{line}\n{traceback.format_exc()}"
        self.logger.error(line)
        if self.error_callback is None:
            return
        try:
            self.error_callback(error, context)
        except Exception as failure:  # noqa: BLE001 - the author's function may raise anything
            self.logger.error("Error in error callback: %s", failure)  # noqa: TRY400 - in the words of fastmcp

    def get_error_stats(self) -> dict[str, int]:
        """How often each kind of failure was seen."""
        return dict(self.error_counts)


def translate_failure(error: Exception, method: str) -> MCPError:
    """The error of JSON-RPC for a failure, by the exception that caused it."""
    kind = type(error.__cause__ or error)
    code, label = INTERNAL
    for kinds, found, text in TRANSLATIONS:
        if kind in kinds or (FLAVOUR.translates_subclasses and issubclass(kind, kinds)):
            code, label = found, text
            break
    if FLAVOUR.translates_subclasses and issubclass(kind, ValidationError):
        code, label = TRANSLATIONS[0][1:]
    if label == "Not found" and method.startswith("resources/"):
        code, label = MISSING_RESOURCE
    return MCPError(code, f"{label}: {error}")


class RetryMiddleware(Middleware):
    """Serve a request again that failed for a passing reason, after a growing pause.

    Args:
        max_retries: how often.
        base_delay: seconds before the first time.
        max_delay: seconds at most.
        backoff_multiplier: by which the pause grows.
        retry_exceptions: passing reasons.
        logger: the logger; ``fastmcp.retry`` by default.
    """

    def __init__(
        self,
        max_retries: int = 3,
        base_delay: float = 1.0,
        max_delay: float = 60.0,
        backoff_multiplier: float = 2.0,
        retry_exceptions: tuple[type[Exception], ...] = (ConnectionError, TimeoutError),
        logger: logging.Logger | None = None,
    ) -> None:
        self.max_retries = max_retries
        self.base_delay, self.max_delay = base_delay, max_delay
        self.backoff_multiplier = backoff_multiplier
        self.retry_exceptions = retry_exceptions
        self.logger = logger or logging.getLogger("fastmcp.retry")

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Serve a request until it succeeds, or fails for good."""
        tries = self.max_retries + 1
        for attempt in range(self.max_retries):
            try:
                return await call_next(context)
            except Exception as error:
                if not self._is_passing(error):
                    raise
                delay = min(self.base_delay * self.backoff_multiplier**attempt, self.max_delay)
                self.logger.warning(
                    "Request %s failed (attempt %d/%d): %s: %s. Retrying in %.1fs...",
                    context.method,
                    attempt + 1,
                    tries,
                    type(error).__name__,
                    error,
                    delay,
                )
            await asyncio.sleep(delay)
        return await call_next(context)

    def _is_passing(self, error: Exception) -> bool:
        cause = error.__cause__ if FLAVOUR.retries_causes else None
        return isinstance(error, self.retry_exceptions) or isinstance(cause, self.retry_exceptions)
