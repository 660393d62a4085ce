"""Deadline: the seconds that the server may work on a request."""

import asyncio
from collections.abc import Collection
from typing import Any, ClassVar

from isthmus.errors import Refuse, UsageError
from isthmus.revisions.codes import UNAVAILABLE_CODE
from isthmus.server.middleware.hooks import CallNext, Middleware, MiddlewareContext
from isthmus.wire import CallToolResult, TextContent

TIMED_METHODS = frozenset(
    {
        *("tools/call", "tools/list", "resources/read", "resources/list"),
        *("resources/templates/list", "prompts/get", "prompts/list", "completion/complete"),
    }
)


class Deadline(Middleware):
    """Ends requests on which the server works for too long.

    A tool that is cut off is a result with ``is_error``, which the model reads; any other request is
    refused. Time that the user takes for an answer does not count, in either era. A plain function in
    a thread is not stopped by it, only no longer waited for; nor is a task that a call started.

    Args:
        seconds: how long it may take.
        methods: what it is for; by default everything that ends by itself.

    Raises:
        UsageError: the time is none.
    """

    reads_results: ClassVar[bool] = False

    def __init__(self, seconds: float, *, methods: Collection[str] = TIMED_METHODS) -> None:
        if not seconds > 0:
            raise UsageError(f"Deadline({seconds!r}): it takes seconds above 0")
        self.seconds = seconds
        self.methods = frozenset(methods)

    async def on_request(self, ctx: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Serve a request in time, or end it.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            The result of its method.
        """
        record = ctx.inbound.keep_record()
        limit = asyncio.timeout(self.seconds)
        clock = PausableTimeout(limit)
        record.clocks.append(clock)
        try:
            async with limit:
                return await call_next(ctx)
        except TimeoutError:
            if not limit.expired():
                raise
            return self._answer_late(ctx)
        finally:
            record.clocks.remove(clock)

    def _answer_late(self, ctx: MiddlewareContext[Any]) -> CallToolResult:
        text = f"took longer than {self.seconds:g} s and was stopped"
        if ctx.method == "tools/call":
            block = TextContent(text=f"Tool {ctx.name!r} {text}")
            return CallToolResult(content=[block], is_error=True)
        raise Refuse(UNAVAILABLE_CODE, f"{ctx.method} {text}")


class PausableTimeout:
    """A timeout that stands still while the user is asked.

    Args:
        timeout: the timeout.
    """

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._questions = 0
        self._left = 0.0

    def pause(self) -> None:
        """Stand still; questions may overlap."""
        when = self._timeout.when()
        if self._questions == 0 and when is not None and not self._timeout.expired():
            self._left = when - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)
        self._questions += 1

    def resume(self) -> None:
        """Go on, once no question is open."""
        self._questions -= 1
        if self._questions == 0 and self._timeout.when() is None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)
