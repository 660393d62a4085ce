"""Middleware under the names of ``fastmcp.server.middleware``."""

from isthmus.lazy import lazy_getattr

_MIDDLEWARE = "isthmus.compat.fastmcp.server.middleware"

__getattr__ = lazy_getattr(
    __name__,
    {
        **dict.fromkeys(
            ("Middleware", "MiddlewareContext", "CallNext"), f"{_MIDDLEWARE}.middleware"
        ),
    },
)
