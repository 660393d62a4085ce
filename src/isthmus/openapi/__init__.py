"""OpenAPI: servers made of the description of an HTTP API (``Server.from_openapi``).

:class:`Shape` says how an operation becomes a tool; :func:`~isthmus.openapi.upstream` and
:func:`~isthmus.openapi.inbound_token` are credentials.
"""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.openapi.document import DocumentError as DocumentError
    from isthmus.openapi.tools.credentials import inbound_token as inbound_token
    from isthmus.openapi.tools.credentials import upstream as upstream
    from isthmus.server.openapi_options import OpenApiOptions as OpenApiOptions
    from isthmus.server.openapi_options import Shape as Shape

__all__ = ["DocumentError", "OpenApiOptions", "Shape", "inbound_token", "upstream"]

_HOMES = {
    "DocumentError": "isthmus.openapi.document",
    "OpenApiOptions": "isthmus.server.openapi_options",
    "Shape": "isthmus.server.openapi_options",
    "inbound_token": "isthmus.openapi.tools.credentials",
    "upstream": "isthmus.openapi.tools.credentials",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
