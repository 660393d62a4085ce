"""Telemetry: spans and durations of requests by OpenTelemetry (extra ``otel``), and traffic as events.

Nothing of it is imported, and no call pays for it, until :func:`instrument` or :func:`watch_traffic` is called.
"""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.telemetry.exporters import export_by_environment as export_by_environment
    from isthmus.telemetry.instrumentation import Instrumentation as Instrumentation
    from isthmus.telemetry.instrumentation import instrument as instrument
    from isthmus.telemetry.traffic import TrafficEvent as TrafficEvent
    from isthmus.telemetry.traffic import watch_traffic as watch_traffic

__all__ = [
    "Instrumentation",
    "TrafficEvent",
    "export_by_environment",
    "instrument",
    "watch_traffic",
]

_HOMES = {
    "Instrumentation": "isthmus.telemetry.instrumentation",
    "TrafficEvent": "isthmus.telemetry.traffic",
    "export_by_environment": "isthmus.telemetry.exporters",
    "instrument": "isthmus.telemetry.instrumentation",
    "watch_traffic": "isthmus.telemetry.traffic",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
