"""Telemetry: spans and durations of requests by OpenTelemetry (extra ``otel``).

Nothing of it is imported, and no call pays for it, until :func:`instrument` is called.
"""

from isthmus.telemetry.exporters import export_by_environment
from isthmus.telemetry.instrumentation import Instrumentation, instrument

__all__ = ["Instrumentation", "export_by_environment", "instrument"]
