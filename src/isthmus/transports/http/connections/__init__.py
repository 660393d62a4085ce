"""HTTP connections for uvicorn: ``uvicorn --http isthmus.transports.http.connections:Connection app:app``.

They have bounds that uvicorn's own have not, and an app of isthmus is served without ASGI in between.
"""

import asyncio

try:
    from isthmus.transports.http.connections.http_connection import HttpConnection as Connection
except ImportError:  # httptools is compiled, and there is not a wheel for every machine
    from isthmus.transports.http.connections.h11_connection import (  # type: ignore[assignment]
        H11Connection as Connection,
    )

__all__ = ["Connection", "bound_connections"]


def bound_connections(head_limit: int, target_limit: int) -> type[asyncio.Protocol]:
    """The class of connections that uvicorn is to make, with bounds of its own.

    Args:
        head_limit: the most bytes of a request's head.
        target_limit: the most bytes of its first line.
    """
    bounds = {"head_limit": head_limit, "target_limit": target_limit, "__slots__": ()}
    return type("BoundConnection", (Connection,), bounds)
