"""Console: see and decide in a browser what a host or a gateway does (:class:`Console`)."""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.console.app import Console as Console
    from isthmus.console.authorization_login import AuthorizationLogin as AuthorizationLogin
    from isthmus.console.login import ConsoleIdentity as ConsoleIdentity
    from isthmus.console.login import ConsoleVisitor as ConsoleVisitor
    from isthmus.console.login import LocalLogin as LocalLogin
    from isthmus.console.login import ProxyLogin as ProxyLogin
    from isthmus.console.serving import open_browser as open_browser
    from isthmus.console.serving import serve_console as serve_console

__all__ = [
    "AuthorizationLogin",
    "Console",
    "ConsoleIdentity",
    "ConsoleVisitor",
    "LocalLogin",
    "ProxyLogin",
    "open_browser",
    "serve_console",
]

_HOMES = {
    "AuthorizationLogin": "isthmus.console.authorization_login",
    "Console": "isthmus.console.app",
    "ConsoleIdentity": "isthmus.console.login",
    "ConsoleVisitor": "isthmus.console.login",
    "LocalLogin": "isthmus.console.login",
    "ProxyLogin": "isthmus.console.login",
    "open_browser": "isthmus.console.serving",
    "serve_console": "isthmus.console.serving",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
