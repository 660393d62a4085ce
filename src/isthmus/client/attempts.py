"""Attempts of a call: it is made again where that is safe, and all of it has one time limit.

A client without ``retries`` and ``total_timeout`` has nothing of this on its path.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from isthmus.client.connection import Connection
from isthmus.client.model.retries import SAFE_METHODS, Retries
from isthmus.client.tool_catalog import ToolCatalog
from isthmus.errors import CallTimedOut, ConnectionLost

P = ParamSpec("P")
R = TypeVar("R")

# Operations of a client that ``total_timeout`` limits as a whole.
LIMITED_OPERATIONS = (
    "call_tool",
    "complete",
    "discover",
    "get_prompt",
    "list_prompts",
    "list_resource_templates",
    "list_resources",
    "list_tasks",
    "list_tools",
    "read_resource",
    "request",
    "start_tool",
)


class Attempts:
    """Makes calls over a connection, again where that is safe.

    Args:
        connection: carries them.
        retries: how often, and after which pauses.
        tools: what the tools' hints are known from.
    """

    def __init__(self, connection: Connection, retries: Retries, tools: ToolCatalog) -> None:
        self._connection = connection
        self._retries = retries
        self._tools = tools

    async def ask(self, method: str, *args: Any, **options: Any) -> Any:
        """As :meth:`~isthmus.client.connection.Connection.ask`."""
        name = args[3] if len(args) > 3 else options.get("name")
        return await self.repeat(
            lambda: self._connection.ask(method, *args, **options), self._is_safe(method, name)
        )

    def _is_safe(self, method: str, name: str | None) -> bool:
        if method != "tools/call":
            return method in SAFE_METHODS
        return self._retries.trust_hints and self._tools.is_repeatable(name or "")

    async def repeat(self, work: Callable[[], Awaitable[R]], safe: bool) -> R:
        """Do something until it is done, or there shall be no further attempt.

        Args:
            work: does it once.
            safe: it may be done a second time, whatever became of the first.

        Raises:
            Exception: what the last attempt ended with.
        """
        retries, done = self._retries, 0
        while True:
            asked = self._connection.answering.asked
            try:
                return await work()
            except Exception as error:
                pause = retries.find_pause(error, done)
                unsent = isinstance(error, ConnectionLost) and not error.sent
                # Whoever was asked must not be asked the same again for a fault of the network.
                if pause is None or not (safe or unsent) or self._is_over(asked):
                    raise
            done += 1
            await retries.sleep(pause)

    def _is_over(self, asked: int) -> bool:
        """Whether a further attempt is pointless, or would ask somebody twice."""
        connection = self._connection
        lost = connection.peer is not None and connection.peer.lost is not None
        opened = connection.agreement is not None
        return connection.answering.asked != asked or (lost and opened)


def limit_total(
    work: Callable[P, Awaitable[R]], seconds: float, connection: Connection
) -> Callable[P, Awaitable[R]]:
    """The same operation, which ends with ``CallTimedOut`` after so many seconds in all.

    The time in which a user is waited for does not count, as for every limit of a client.
    """

    @wraps(work)
    async def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                with connection.clocks.include_timeout(limit):
                    return await work(*args, **kwargs)
        except TimeoutError as error:
            if not limit.expired() or isinstance(error, CallTimedOut):
                raise
            what = getattr(work, "__name__", "open")
            raise CallTimedOut(
                f"{what} took more than {seconds:.3g} s in all (total_timeout)"
            ) from error

    return limited
