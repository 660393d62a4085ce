"""Middleware that logs requests, under the names of ``fastmcp.server.middleware.logging``."""

import json
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import pydantic_core

from isthmus.compat.fastmcp.server.middleware.middleware import (
    CallNext,
    Middleware,
    MiddlewareContext,
)

CHARS_PER_TOKEN = 4  # as a model's tokens are estimated


def default_serializer(data: Any) -> str:
    """A message as JSON."""
    return pydantic_core.to_json(data, fallback=str).decode()


class BaseLoggingMiddleware(Middleware):
    """Base of what logs when a message comes, and how it ended.

    Args:
        logger: the logger; one of the class's name for it by default.
        log_level: the level of its lines; a failure is an error.
        include_payloads: lines have the message.
        include_payload_length: lines have its length.
        estimate_payload_tokens: lines have the tokens that it may be for a model.
        max_payload_length: characters after which a message is cut; None for none.
        methods: those that are logged; all by default.
        payload_serializer: writes a message; as JSON by default.
    """

    logger_name = "fastmcp.middleware.logging"
    structured_logging = False

    def __init__(
        self,
        *,
        logger: logging.Logger | None = None,
        log_level: int = logging.INFO,
        include_payloads: bool = False,
        include_payload_length: bool = False,
        estimate_payload_tokens: bool = False,
        max_payload_length: int | None = None,
        methods: Sequence[str] | None = None,
        payload_serializer: Callable[[Any], str] | None = None,
    ) -> None:
        self.logger = logger or logging.getLogger(self.logger_name)
        self.log_level = log_level
        self.include_payloads = include_payloads
        self.include_payload_length = include_payload_length
        self.estimate_payload_tokens = estimate_payload_tokens
        self.max_payload_length = max_payload_length
        self.methods = methods
        self.payload_serializer = payload_serializer

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Log a message before and after it is served."""
        if self.methods is not None and context.method not in self.methods:
            return await call_next(context)
        self._log("start", context, self._describe_payload(context))
        begun = time.perf_counter()
        try:
            result = await call_next(context)
        except Exception as error:
            failure = {"duration_ms": find_duration_ms(begun), "error": str(error)}
            self._log("error", context, failure, logging.ERROR)
            raise
        self._log("success", context, {"duration_ms": find_duration_ms(begun)})
        return result

    def _log(
        self,
        event: str,
        context: MiddlewareContext[Any],
        more: dict[str, Any],
        level: int | None = None,
    ) -> None:
        told = {
            "event": f"{context.type}_{event}",
            "method": context.method or "unknown",
            "source": context.source,
            **more,
        }
        line = (
            json.dumps(told)
            if self.structured_logging
            else " ".join(f"{name}={value}" for name, value in told.items())
        )
        self.logger.log(level or self.log_level, line)

    def _describe_payload(self, context: MiddlewareContext[Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        measured = self.include_payload_length or self.estimate_payload_tokens
        if not (measured or self.include_payloads):
            return found
        text = self._write_payload(context)
        if self.estimate_payload_tokens:
            found["payload_tokens"] = len(text) // CHARS_PER_TOKEN
        if self.include_payload_length:
            found["payload_length"] = len(text)
        if self.include_payloads:
            limit = self.max_payload_length
            found["payload"] = f"{text[:limit]}..." if limit and len(text) > limit else text
            found["payload_type"] = type(context.message).__name__
        return found

    def _write_payload(self, context: MiddlewareContext[Any]) -> str:
        if self.payload_serializer is None:
            return default_serializer(context.message)
        try:
            return self.payload_serializer(context.message)
        except Exception as error:  # noqa: BLE001 - the author's function may raise anything
            self.logger.warning(
                "Failed to serialize payload due to %s: %s %s %s.",
                error,
                context.type,
                context.method,
                context.source,
            )
            return default_serializer(context.message)


class LoggingMiddleware(BaseLoggingMiddleware):
    """Log messages as ``name=value``.

    Args:
        max_payload_length: characters after which a message is cut.
        **given: see :class:`BaseLoggingMiddleware`.
    """

    def __init__(self, *, max_payload_length: int | None = 1000, **given: Any) -> None:
        super().__init__(max_payload_length=max_payload_length, **given)


class StructuredLoggingMiddleware(BaseLoggingMiddleware):
    """Log messages as JSON.

    Args:
        **given: see :class:`BaseLoggingMiddleware`.
    """

    logger_name = "fastmcp.middleware.structured_logging"
    structured_logging = True


def find_duration_ms(begun: float) -> float:
    """Milliseconds since a moment."""
    return round((time.perf_counter() - begun) * 1000, 2)
