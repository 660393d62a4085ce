"""Providers of what other servers offer: one of this process, or one behind a client."""

from collections.abc import Callable
from typing import Any

from isthmus.compat.fastmcp.server.providers.component_provider import Provider
from isthmus.compat.fastmcp.server.proxy import make_behind


class FastMCPProvider(Provider):
    """Provider of what a server of this process offers.

    Args:
        server: the server.
    """

    def __init__(self, server: Any) -> None:
        super().__init__()
        self.server = server

    def attach(self, server: Any, prefix: str | None) -> None:
        """Mount the server in another one."""
        server.mount(self.server, prefix)


class ProxyProvider(Provider):
    """Provider of what a server elsewhere offers.

    Args:
        client_factory: makes a client of it; it is called once, outside of requests.
        cache_ttl: not heeded: lists are kept until they change.
    """

    def __init__(self, client_factory: Callable[[], Any], cache_ttl: float | None = None) -> None:
        super().__init__()
        del cache_ttl
        self.client_factory = client_factory

    def attach(self, server: Any, prefix: str | None) -> None:
        """Let a server offer what the other one offers."""
        server.add_native(make_behind(self.client_factory, server.name), prefix)
