"""Console: see and decide in a browser what a host or a gateway does (:class:`Console`)."""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.console.app import Console as Console
    from isthmus.console.login import ConsoleIdentity as ConsoleIdentity
    from isthmus.console.login import ConsoleVisitor as ConsoleVisitor
    from isthmus.console.login import LocalLogin as LocalLogin
    from isthmus.console.login import ProxyLogin as ProxyLogin

__all__ = ["Console", "ConsoleIdentity", "ConsoleVisitor", "LocalLogin", "ProxyLogin"]

_HOMES = {
    "Console": "isthmus.console.app",
    "ConsoleIdentity": "isthmus.console.login",
    "ConsoleVisitor": "isthmus.console.login",
    "LocalLogin": "isthmus.console.login",
    "ProxyLogin": "isthmus.console.login",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
