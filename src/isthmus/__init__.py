"""The Model Context Protocol: servers, clients and the host between them and the user.

Servers: :class:`Server`, :class:`Context`, :class:`Principal`, and what tools return and raise. Clients:
:class:`Client`, :class:`Command`, :class:`Http`, and how questions are answered. Types of the wire are in
``isthmus.types``, exceptions in ``isthmus.errors``, help for tests in ``isthmus.testing``.

Names are imported when they are first used, so that a server does not pay for the client.
"""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.client.client import Client as Client
    from isthmus.core.answers import Accepted as Accepted
    from isthmus.core.answers import Cancelled as Cancelled
    from isthmus.core.answers import Declined as Declined
    from isthmus.core.principal import Principal as Principal
    from isthmus.errors import IsthmusError as IsthmusError
    from isthmus.errors import Refuse as Refuse
    from isthmus.errors import ToolError as ToolError
    from isthmus.runtime.extension import Extension as Extension
    from isthmus.server.asking.context import Context
    from isthmus.server.schema.injection import Inject
    from isthmus.server.schema.results import Audio, Image
    from isthmus.server.server import Server as Server
    from isthmus.transports.command import Command as Command
    from isthmus.transports.http.client.address import Http, HttpSse

__version__ = "0.1.0"

__all__ = [
    "Accepted",
    "Audio",
    "Cancelled",
    "Client",
    "Command",
    "Context",
    "Declined",
    "Extension",
    "Http",
    "HttpSse",
    "Image",
    "Inject",
    "IsthmusError",
    "Principal",
    "Refuse",
    "Server",
    "ToolError",
    "__version__",
]

_HOMES = {
    "Accepted": "isthmus.core.answers",
    "Audio": "isthmus.server.schema.results",
    "Cancelled": "isthmus.core.answers",
    "Client": "isthmus.client.client",
    "Command": "isthmus.transports.command",
    "Context": "isthmus.server.asking.context",
    "Declined": "isthmus.core.answers",
    "Extension": "isthmus.runtime.extension",
    "Http": "isthmus.transports.http.client.address",
    "HttpSse": "isthmus.transports.http.client.address",
    "Image": "isthmus.server.schema.results",
    "Inject": "isthmus.server.schema.injection",
    "IsthmusError": "isthmus.errors",
    "Principal": "isthmus.core.principal",
    "Refuse": "isthmus.errors",
    "Server": "isthmus.server.server",
    "ToolError": "isthmus.errors",
}

__getattr__ = lazy_getattr(__name__, _HOMES)


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return sorted(__all__)
