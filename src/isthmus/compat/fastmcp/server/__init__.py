"""Server and context under the names of ``fastmcp.server``."""

from isthmus.lazy import lazy_getattr

_SERVER = "isthmus.compat.fastmcp.server"

__getattr__ = lazy_getattr(
    __name__,
    {
        "FastMCP": f"{_SERVER}.server",
        "create_proxy": f"{_SERVER}.server",
        "Context": f"{_SERVER}.context",
    },
)
