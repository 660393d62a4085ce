"""Middleware: the one shape of everything that wraps a handler, and how layers are composed.

A middleware sees the request on its way in and the result on its way out::

    async def timed(inbound, call_next):
        start = time.perf_counter()
        try:
            return await call_next(inbound)
        finally:
            log.info("%s took %.1f ms", inbound.method, 1e3 * (time.perf_counter() - start))

The chain is composed once per method and revision; where there is no middleware there is no chain.
Servers have typed hooks beside this shape: ``isthmus.server.middleware``.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

from msgspec import Raw, Struct

from isthmus.errors import UsageError
from isthmus.revisions import METHODS
from isthmus.runtime.inbound import Inbound
from isthmus.wire.struct import Wire

Handler: TypeAlias = Callable[[Any, Inbound], Awaitable[Wire | Raw]]
"""``async (params, inbound) -> result``; a ``Raw`` is a finished result for that revision."""

CallNext: TypeAlias = Callable[[Inbound], Awaitable[Wire | Raw]]
"""Goes on to the next layer, and in the end to the handler; gives the result."""

Middleware: TypeAlias = Callable[[Inbound, CallNext], Awaitable[Wire | Raw]]
"""A layer around the handlers of all methods; it sees requests and results as they travel."""


def compose(handler: Handler, layers: Sequence[Any], method: str = "") -> Handler:
    """``handler`` inside ``layers``, the first of them outermost.

    Args:
        handler: serves the method.
        layers: middleware, or objects with ``wrap_handler(method, handler)``, which give the
            handler itself back where they have nothing to do with the method.
        method: what is served.
    """
    for layer in reversed(layers):
        wrap = getattr(layer, "wrap_handler", None)
        handler = _wrap_layer(layer, handler) if wrap is None else wrap(method, handler)
    return handler


def find_wrapped(methods: Iterable[str], layers: Sequence[Any]) -> frozenset[str]:
    """The methods whose results some layer may want to look into."""
    return frozenset(
        method
        for method in methods
        if any(getattr(layer, "wraps", wraps_all)(method) for layer in layers)
    )


def wraps_all(_method: str) -> bool:
    """True: a plain middleware sees the results of every method."""
    return True


def _wrap_layer(layer: Middleware, handler: Handler) -> Handler:
    name = name_of(layer)

    async def run(params: Any, inbound: Inbound) -> Wire | Raw:
        async def call_next(inbound: Inbound) -> Wire | Raw:
            return await handler(params, inbound)

        result: Wire | Raw = await await_result(layer(inbound, call_next), name, inbound.method)
        return result

    return run


async def await_result(made: Any, name: str, method: str) -> Any:
    """The result of a layer, or of a hook of one.

    Args:
        made: what it returned: an awaitable, if all is well.
        name: its name.
        method: what is being served.

    Raises:
        UsageError: it is not async, or what it gave is no result.
    """
    if not hasattr(made, "__await__"):
        raise UsageError(f"the middleware {name} is no async function")
    result = await made
    if isinstance(result, Struct | Raw):
        return result
    if result is None:
        raise UsageError(
            f"the middleware {name} returned None for {method}: it returns "
            "what `await call_next(…)` gave, or a result of its own"
        )
    if hasattr(result, "__await__"):
        close = getattr(result, "close", None)
        if close is not None:
            close()  # it never begins, and must not be warned about
        raise UsageError(
            f"the middleware {name} returned a {type(result).__name__} for {method}: write "
            "`return await call_next(…)`"
        )
    if method in METHODS:
        raise UsageError(
            f"the middleware {name} returned a {type(result).__name__} for {method}: it returns "
            f"{getattr(METHODS[method].result, '__name__', 'a result')}, see isthmus.types"
        )
    return result


def name_of(layer: Any) -> str:
    """The name that an author gave a middleware: its qualified name, or its class's."""
    name: str = getattr(layer, "__qualname__", type(layer).__qualname__)
    return name
