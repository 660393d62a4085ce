"""Client side of ``mcp`` 2.x and 1.x: sessions, clients and transports on isthmus' own client."""

from isthmus.lazy import lazy_getattr

HOMES = {
    "Client": f"{__name__}.client",
    "ClientSession": f"{__name__}.session",
    "ClientRequestContext": f"{__name__}.session",
    "StdioServerParameters": f"{__name__}.stdio",
    "stdio_client": f"{__name__}.stdio",
}

__getattr__ = lazy_getattr(__name__, HOMES)
