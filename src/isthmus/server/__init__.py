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

__all__ = [
    "Bounds",
    "Context",
    "Limits",
    "Meter",
    "Rate",
    "Redact",
    "SampledMessage",
    "Sanitise",
    "Server",
    "mirrored",
]

__getattr__ = lazy_getattr(__name__, {"SampledMessage": "isthmus.server.asking.sampling"})
