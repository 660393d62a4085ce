"""Client side of ``mcp`` 2.x and 1.x: sessions, clients and transports on isthmus' own client."""

from typing import Any

from isthmus.lazy import lazy_getattr

HOMES = {
    "Client": f"{__name__}.client",
    "ClientSession": f"{__name__}.session",
    "ClientRequestContext": f"{__name__}.session",
    "StdioServerParameters": f"{__name__}.stdio",
    "stdio_client": f"{__name__}.stdio",
}

_get_own = lazy_getattr(__name__, HOMES)


def __getattr__(name: str) -> Any:
    if name in HOMES:
        return _get_own(name)
    from isthmus.compat.imports import make_missing_getattr

    return make_missing_getattr("mcp.client")(name)
