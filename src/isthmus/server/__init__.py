"""Servers: functions in, the protocol out."""

from typing import TYPE_CHECKING, Any

from isthmus.core.redaction.messages import Redact
from isthmus.core.schema_bounds import Bounds
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


def __getattr__(name: str) -> Any:
    """Import what few servers use on its first use (PEP 562)."""
    if name != "SampledMessage":
        raise AttributeError(f"module 'isthmus.server' has no attribute {name!r}")
    from isthmus.server.asking.sampling import SampledMessage

    globals()[name] = SampledMessage
    return SampledMessage
