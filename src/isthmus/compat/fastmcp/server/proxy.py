"""Proxies under the names of ``fastmcp.server.providers.proxy`` (2.x: ``fastmcp.server.proxy``)."""

import inspect
from collections.abc import Callable
from typing import Any, NoReturn

from isthmus.compat.fastmcp.client.client import Client as ProxyClient
from isthmus.compat.fastmcp.client.transports import find_transport
from isthmus.compat.fastmcp.server.context import CURRENT, Context
from isthmus.compat.fastmcp.server.server import FastMCP, create_proxy
from isthmus.errors import UsageError
from isthmus.lazy import lazy_getattr
from isthmus.server.server import Server

__all__ = ["FastMCPProxy", "ProxyClient", "create_proxy"]

__getattr__ = lazy_getattr(
    __name__, {"ProxyProvider": "isthmus.compat.fastmcp.server.providers.servers"}
)


class FactoryContext(Context):
    """Context while a factory of clients is called, which happens once and for no request."""

    def __init__(self) -> None:
        self._tokens = []

    def find_own(self) -> NoReturn:
        """No request is served.

        Raises:
            UsageError: always: one client serves all callers, and must not have what one of them sent.
        """
        raise UsageError(
            "client_factory= asks for the request, and is called once for all of them in isthmus.compat.fastmcp: use "
            "Server.proxy(…, auth=…) of isthmus; see docs/guide/proxy.md"
        )


def make_behind(client_factory: Callable[[], Any], name: str) -> Server[Any]:
    """The server of isthmus that offers what the server of a client offers.

    Raises:
        UsageError: the factory is async, or looks at the request that is served.
    """
    if inspect.iscoroutinefunction(client_factory):
        raise UsageError(
            "client_factory= is a plain function in isthmus.compat.fastmcp, which calls it once: give the client itself; see "
            "docs/guide/proxy.md"
        )
    token = CURRENT.set(FactoryContext())
    try:
        client = client_factory()
    finally:
        CURRENT.reset(token)
    transport = getattr(client, "transport", None) or find_transport(client)
    return Server.proxy(transport.target, name=name, headers=transport.headers)


class FastMCPProxy(FastMCP):
    """Server that offers what another one offers.

    Args:
        client: a client of the other one; it is not opened.
        client_factory: makes such a client; it is called once, outside of requests.
        **options: those of ``FastMCP(…)``.
    """

    def __init__(self, client: Any = None, *, client_factory: Any = None, **options: Any) -> None:
        super().__init__(**options)
        make = client_factory if client is None else lambda: client
        self.add_native(make_behind(make, self.name))
