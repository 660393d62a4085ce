"""Timing: how long each request took, told to a function or written to the log."""

import time
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from isthmus.core.redaction.texts import redact_text
from isthmus.errors import UsageError
from isthmus.runtime.failures import log_failure
from isthmus.server.middleware.hooks import (
    CallNext,
    Middleware,
    MiddlewareContext,
    describe_outcome,
)

MAX_NAME_CHARS = 200


class RequestTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Duration of one request.

    Attributes:
        method: ``"tools/call"``.
        name: the tool's or prompt's name, or the resource's URI, as the client gave it; or None.
        seconds: from its decoded params to its result, with what the user was asked meanwhile up
            to 2025-11-25; since 2026-07-28 each round is a request of its own.
        outcome: ok, tool_error, input_required, task, or error where something was raised.
    """

    method: str
    name: str | None
    seconds: float
    outcome: str


class Timing(Middleware):
    """Measurement of how long requests take.

    Args:
        record: called with each :class:`RequestTiming`; by default they go to the logger
            ``isthmus.timing`` at level INFO. What it raises is logged.
        clock: says the time in seconds.

    Raises:
        UsageError: ``record`` cannot be called.
    """

    reads_results: ClassVar[bool] = False

    def __init__(
        self,
        record: Callable[[RequestTiming], object] | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if record is not None and not callable(record):
            raise UsageError(f"Timing(record={record!r}): it is a function of a RequestTiming")
        self._record = record or log_timing
        self._clock = clock

    async def on_request(self, ctx: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Measure the duration of a request.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            The result of its method.
        """
        began, outcome = self._clock(), "error"
        try:
            result = await call_next(ctx)
            outcome = describe_outcome(result)
            return result
        finally:
            seconds = self._clock() - began
            timing = RequestTiming(
                method=ctx.method, name=ctx.name, seconds=seconds, outcome=outcome
            )
            try:
                self._record(timing)
            except Exception as error:  # noqa: BLE001 - a figure is no reason to fail a request
                log_failure("the record of a timing", error)


def log_timing(timing: RequestTiming) -> None:
    """Write a timing to the log."""
    import logging  # as in runtime/failures.py

    logging.getLogger("isthmus.timing").info(
        "%s %s %.1f ms %s",
        timing.method,
        ascii(redact_text(timing.name[:MAX_NAME_CHARS]))[1:-1] if timing.name else "-",
        timing.seconds * 1000,
        timing.outcome,
    )
