"""Retry: what failed for a passing reason and is safe to repeat is tried again."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection
from typing import Any, ClassVar, Literal

from isthmus.errors import UsageError
from isthmus.runtime.inbound import RequestRecord
from isthmus.server.middleware.hooks import (
    CallNext,
    Middleware,
    MiddlewareContext,
    continues_rounds,
    has_hint,
)
from isthmus.wire import CallToolResult

RETRIED_METHODS = ("tools/call", "resources/read", "prompts/get", "completion/complete")


class Retry(Middleware):
    """Tries a request again that failed for a passing reason.

    Tried again are reads, prompts, completions, and calls of tools that are read-only or idempotent
    as their annotations say. Never: what asked its user something, in either era; what brings
    answers from a round before; what was refused or cancelled. Each attempt counts for ``Limits``.

    Args:
        times: how many attempts there are at most, the first one included.
        on: the exceptions that pass; in a tool, what its function raised.
        tools: ``"idempotent"``, or the names of the tools that are safe to repeat.
        backoff: seconds before the second attempt; twice as many before each further one, and at
            random between half of it and all of it.
        max_backoff: the most seconds between two attempts.
        sleep: waits.

    Raises:
        UsageError: a figure is none, or ``on`` has something that is no exception.
    """

    reads_results: ClassVar[bool] = False
    methods = frozenset(RETRIED_METHODS)

    def __init__(
        self,
        times: int = 3,
        *,
        on: tuple[type[Exception], ...] = (ConnectionError, TimeoutError),
        tools: Literal["idempotent"] | Collection[str] = "idempotent",
        backoff: float = 0.1,
        max_backoff: float = 5.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        if times < 1 or backoff < 0 or max_backoff < 0:
            raise UsageError(
                f"Retry({times!r}, backoff={backoff!r}, max_backoff={max_backoff!r}): one attempt or "
                "more, and seconds"
            )
        given: tuple[Any, ...] = tuple(on)
        wrong = [
            one for one in given if not isinstance(one, type) or not issubclass(one, Exception)
        ]
        if wrong:
            raise UsageError(f"Retry(on=…) takes classes of exceptions, not {wrong[0]!r}")
        if isinstance(tools, str) and tools != "idempotent":
            raise UsageError(f'Retry(tools={tools!r}): it is "idempotent", or a list of names')
        self._times, self._on = times, tuple(on)
        self._tools = None if isinstance(tools, str) else frozenset(tools)
        self._backoff, self._max_backoff, self._sleep = backoff, max_backoff, sleep

    async def on_request(self, ctx: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Serve a request, with as many attempts as it takes and may have.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            The result of the last attempt.
        """
        if continues_rounds(ctx.params) or not self._may_repeat(ctx):
            return await call_next(ctx)
        record = ctx.inbound.keep_record()
        for attempt in range(1, self._times):
            record.failed_with = None
            try:
                result = await call_next(ctx)
            except self._on:
                if record.asked:
                    raise
            else:
                if not self._has_failed(result, record):
                    return result
            await self._sleep(self._choose_delay(attempt))
        return await call_next(ctx)

    def _may_repeat(self, ctx: MiddlewareContext[Any]) -> bool:
        if ctx.method != "tools/call":
            return True
        if self._tools is not None:
            return ctx.name in self._tools
        return has_hint(ctx.tool, "read_only_hint", "idempotent_hint")

    def _has_failed(self, result: Any, record: RequestRecord) -> bool:
        if type(result) is not CallToolResult or result.is_error is not True or record.asked:
            return False
        return record.failed_with is not None and issubclass(record.failed_with, self._on)

    def _choose_delay(self, attempt: int) -> float:
        most: float = min(self._backoff * 2 ** min(attempt - 1, 30), self._max_backoff)
        return most * random.uniform(0.5, 1.0)  # noqa: S311 - so that not all come back at once
