"""How a user's function is run: here, or in a thread; and what becomes of what it raises."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import Any, TypeAlias

from isthmus.errors import CapabilityMissing, Refuse, ToolError
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import is_over
from isthmus.server.context import Context
from isthmus.server.facilities import Facilities
from isthmus.server.functions import Function
from isthmus.server.workers import Workers

__all__ = ["Body", "Run", "report", "rounds", "run_refusing", "runner"]

Body: TypeAlias = Callable[[Context], Awaitable[Any]]
"""What serves a call: it may ask through the context, and may run more than once."""

Run: TypeAlias = Callable[[Any, Context | None], Awaitable[Any]]
"""``await run(bound, context)``: runs a function; the context is None where it takes none."""


def runner(function: Function, workers: Workers) -> Run:
    """What runs a function with its arguments bound."""
    call = function.call
    if function.is_async:
        return call
    if function.blocking:

        async def in_thread(bound: Any, context: Context | None) -> Any:
            leave = None if context is None else context.leave
            return await workers.run(partial(call, bound, context), leave)

        return in_thread

    async def inline(bound: Any, context: Context | None) -> Any:
        return call(bound, context)

    return inline


@cache
def rounds() -> Callable[[Body, Inbound, Any, str, Facilities], Awaitable[Any]]:
    """What runs a body with a context, :func:`~isthmus.server.asking.run_rounds`."""
    from isthmus.server.asking import run_rounds  # a server may have none that takes one

    return run_rounds


async def run_refusing(
    body: Body, inbound: Inbound, params: Any, target: str, facilities: Facilities
) -> Any:
    """As :func:`rounds`, for methods whose failures are errors and not results.

    Raises:
        Refuse: whatever the body raised for its caller to read.
        Exception: whatever else it raised.
    """
    try:
        return await rounds()(body, inbound, params, target, facilities)
    except CapabilityMissing as lack:
        raise Refuse(-32602, f"Invalid params: {lack}") from lack
    except ToolError as error:
        raise Refuse(-32603, str(error)) from error
    except SystemExit as error:
        raise RuntimeError("it called sys.exit, which would end the server") from error
    except asyncio.CancelledError as error:
        if is_over(error):
            raise
        raise RuntimeError("something it waited for was cancelled") from error


def report(what: str, error: BaseException) -> None:
    """Log an exception nobody expected, with its traceback."""
    import logging  # not needed until something fails

    logging.getLogger("isthmus").error("%s failed", what, exc_info=error)
