"""Lifespans that are put together, under the names of ``fastmcp.server.lifespan``."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any


class Lifespan:
    """Lifespan of a server; ``first | second`` opens both, and puts together what they give.

    Args:
        fn: gives an async context manager for a server.
    """

    def __init__(self, fn: Callable[[Any], AbstractAsyncContextManager[Any]]) -> None:
        self._fn = fn

    def __call__(self, server: Any) -> AbstractAsyncContextManager[Any]:
        """Open it for a server."""
        return self._fn(server)

    def __or__(self, other: Any) -> "Lifespan":
        @asynccontextmanager
        async def open_both(server: Any) -> AsyncIterator[dict[str, Any]]:
            async with AsyncExitStack() as stack:
                first = await stack.enter_async_context(self(server))
                second = await stack.enter_async_context(other(server))
                yield {**(first or {}), **(second or {})}

        return Lifespan(open_both)


def lifespan(fn: Callable[[Any], AsyncIterator[Any]]) -> Lifespan:
    """Decorate an async generator as a lifespan."""
    return Lifespan(asynccontextmanager(fn))
