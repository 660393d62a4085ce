"""Server and context under the names of ``fastmcp.server``."""

from isthmus.lazy import lazy_getattr

_SERVER = "isthmus.compat.fastmcp.server"

_HOMES = {
    "FastMCP": f"{_SERVER}.server",
    "create_proxy": f"{_SERVER}.server",
    "Context": f"{_SERVER}.context",
}

__all__ = [*_HOMES]  # noqa: PLE0604 - the keys of the table

__getattr__ = lazy_getattr(__name__, _HOMES)
