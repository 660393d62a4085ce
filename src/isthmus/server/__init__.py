"""Servers: functions in, the protocol out."""

from isthmus.core.schema_bounds import Bounds
from isthmus.server.context import Context
from isthmus.server.definitions import mirrored
from isthmus.server.limits import Limits
from isthmus.server.redaction import Redact
from isthmus.server.sampling import SampledMessage
from isthmus.server.sanitise import Sanitise
from isthmus.server.server import Server
from isthmus.store.meter import Meter, Rate

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
