"""Proxies under the names of ``fastmcp.server.proxy`` (2.x)."""

from typing import Any

from isthmus.compat.fastmcp.client.client import Client as ProxyClient
from isthmus.compat.fastmcp.server.server import FastMCP, create_proxy

__all__ = ["FastMCPProxy", "ProxyClient", "create_proxy"]


class FastMCPProxy(FastMCP):
    """Server that offers what another one offers.

    Args:
        client: a client of the other one; it is not opened.
        client_factory: makes such a client.
        **options: those of ``FastMCP(…)``.
    """

    def __init__(self, client: Any = None, *, client_factory: Any = None, **options: Any) -> None:
        super().__init__(**options)
        behind = client if client is not None else client_factory()
        self.natives.extend(FastMCP.as_proxy(behind).natives)
        self.server.mount(self.natives[0])
