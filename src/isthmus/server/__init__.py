"""Servers: functions in, the protocol out."""

from typing import TYPE_CHECKING

from isthmus.core.redaction.messages import Redact
from isthmus.core.schema_bounds import Bounds
from isthmus.lazy import lazy_getattr
from isthmus.server.asking.context import Context
from isthmus.server.features.tools import mirrored
from isthmus.server.guard.limits import Limits
from isthmus.server.guard.sanitise import Sanitise
from isthmus.server.server import Server
from isthmus.store.meter import Meter, Rate

if TYPE_CHECKING:
    from isthmus.server.asking.sampling import SampledMessage
    from isthmus.server.asking.session_state import SessionState
    from isthmus.server.routes import RouteRequest, RouteResponse

__all__ = [
    "Bounds",
    "Context",
    "Limits",
    "Meter",
    "Rate",
    "Redact",
    "RouteRequest",
    "RouteResponse",
    "SampledMessage",
    "Sanitise",
    "Server",
    "SessionState",
    "mirrored",
]

_HOMES = {
    "RouteRequest": "isthmus.server.routes",
    "RouteResponse": "isthmus.server.routes",
    "SampledMessage": "isthmus.server.asking.sampling",
    "SessionState": "isthmus.server.asking.session_state",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
