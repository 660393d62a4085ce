"""Middleware: the one shape of everything that wraps a handler, and how layers are composed.

A middleware sees the request on its way in and the result on its way out::

    async def timed(inbound, call_next):
        start = time.perf_counter()
        try:
            return await call_next(inbound)
        finally:
            log.info("%s took %.1f ms", inbound.method, 1e3 * (time.perf_counter() - start))

The chain is composed once per method; where there is no middleware there is no chain.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Raw

from isthmus.errors import UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.wire.struct import Wire

Handler: TypeAlias = Callable[[Any, Inbound], Awaitable[Wire | Raw]]
"""``async (params, inbound) -> result``; a ``Raw`` is a finished result for that revision."""

CallNext: TypeAlias = Callable[[Inbound], Awaitable[Wire | Raw]]

Middleware: TypeAlias = Callable[[Inbound, CallNext], Awaitable[Wire | Raw]]


def compose(handler: Handler, layers: Sequence[Middleware]) -> Handler:
    """``handler`` inside ``layers``, the first of them outermost."""
    if not layers:
        return handler

    async def run(params: Any, inbound: Inbound) -> Wire | Raw:
        async def innermost(inbound: Inbound) -> Wire | Raw:
            return await handler(params, inbound)

        call_next: CallNext = innermost
        for layer in reversed(layers):
            call_next = _wrap_layer(layer, call_next)
        return await call_next(inbound)

    return run


def _wrap_layer(layer: Middleware, call_next: CallNext) -> CallNext:
    async def wrapped(inbound: Inbound) -> Wire | Raw:
        made: Any = layer(inbound, call_next)
        if not hasattr(made, "__await__"):
            raise UsageError(f"the middleware {name_of(layer)} is no async function")
        result: Any = await made
        if result is None:
            raise UsageError(
                f"the middleware {name_of(layer)} returned None for {inbound.method}: it returns "
                "what `await call_next(inbound)` gave, or a result of its own"
            )
        return result  # type: ignore[no-any-return]  # what else a layer may give its type says

    return wrapped


def name_of(layer: Any) -> str:
    """The name that an author gave a middleware: its qualified name, or its class's."""
    name: str = getattr(layer, "__qualname__", type(layer).__qualname__)
    return name
