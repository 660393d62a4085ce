"""Methods of a server's own, beside those of the specification."""

import inspect
from collections.abc import Callable
from typing import Any

from isthmus.errors import UsageError
from isthmus.revisions import METHODS, Method
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import Handler
from isthmus.server.asking.context import Context
from isthmus.server.schema.defaults import make_unsharer
from isthmus.server.schema.signatures import read_signature
from isthmus.server.settings import SharedSettings
from isthmus.wire import EmptyResult

__all__ = ["make_method_handler", "make_method_row"]


def make_method_row(name: str, params: Any, result: Any) -> Method:
    """A method of an author's as a row of the table.

    Raises:
        UsageError: the specification has a method of this name.
    """
    if name in METHODS:
        raise UsageError(f"{name!r} is a method of the specification: choose another name")
    return Method(name, frozenset({"client"}), params, result or EmptyResult)


def make_method_handler(
    fn: Callable[..., Any], facilities: SharedSettings, params_type: Any
) -> Handler:
    """What serves a method of an author's: ``fn(params)`` or ``fn(params, ctx)``.

    Args:
        fn: the function.
        facilities: the server's.
        params_type: what its params were decoded into.

    Raises:
        UsageError: the function takes anything else.
    """
    signature = read_signature(fn, Context)
    if len(signature.parameters) != 1:
        raise UsageError(
            f"{signature.name}: it serves a method, so it takes its params and, if it wants, the "
            "context"
        )

    unshare = make_unsharer(params_type)

    async def serve(params: Any, inbound: Inbound) -> Any:
        if unshare is not None:
            params = unshare(params)

        async def body(context: Context) -> Any:
            given = [
                signature.fill(name, context) if name in signature.filled else params
                for name in signature.order
            ]
            if signature.is_async:
                return await fn(*given)
            value = await facilities.workers.run(lambda: fn(*given), context.leave)
            return await value if inspect.isawaitable(value) else value

        from isthmus.server.asking.rounds import (
            run_once,  # as for tools: there may be nobody who asks
        )

        value = await run_once(body, inbound, facilities)
        return EmptyResult() if value is None else value

    return serve
