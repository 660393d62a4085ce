"""Façade of fastmcp: servers written for it run on isthmus; ``isthmus run --compat`` puts it in place.

Names stand where fastmcp has them: ``isthmus.compat.fastmcp.tools.Tool`` is ``fastmcp.tools.Tool``. What cannot
be had says so when it is imported or called, with the name of what isthmus has.
"""

from isthmus.compat.fastmcp.flavour import LIBRARY_VERSION
from isthmus.lazy import lazy_getattr

_FASTMCP = "isthmus.compat.fastmcp"

__version__ = LIBRARY_VERSION

__all__ = ["Client", "Context", "FastMCP", "FastMCPDeprecationWarning", "__version__", "settings"]

__getattr__ = lazy_getattr(
    __name__,
    {
        "FastMCP": f"{_FASTMCP}.server.server",
        "Context": f"{_FASTMCP}.server.context",
        "Client": f"{_FASTMCP}.client.client",
        "FastMCPDeprecationWarning": f"{_FASTMCP}.exceptions",
        "Image": f"{_FASTMCP}.utilities.types",
        "settings": f"{_FASTMCP}.settings",
    },
)
