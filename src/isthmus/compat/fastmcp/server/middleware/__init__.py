"""Middleware under the names of ``fastmcp.server.middleware``."""

from isthmus.lazy import lazy_getattr

_MIDDLEWARE = "isthmus.compat.fastmcp.server.middleware"

_HOMES = {
    **dict.fromkeys(("Middleware", "MiddlewareContext", "CallNext"), f"{_MIDDLEWARE}.middleware"),
    "AuthMiddleware": f"{_MIDDLEWARE}.authorization",
    "PingMiddleware": f"{_MIDDLEWARE}.ping",
}

__all__ = [*_HOMES]  # noqa: PLE0604 - the keys of the table

__getattr__ = lazy_getattr(__name__, _HOMES)
