"""Exporters: spans and metrics to an OpenTelemetry collector, as the environment says."""

import os
from collections.abc import Callable

from isthmus.errors import UsageError
from isthmus.lazy import is_installed


def export_by_environment(service_name: str = "isthmus") -> Callable[[], None]:
    """Send the spans and metrics of this program by OTLP over HTTP, as ``OTEL_*`` say.

    ``OTEL_EXPORTER_OTLP_ENDPOINT`` is where to (``http://localhost:4318`` by default),
    ``OTEL_SERVICE_NAME`` and ``OTEL_RESOURCE_ATTRIBUTES`` are who we are, ``OTEL_TRACES_SAMPLER`` says
    what is recorded, and ``OTEL_SDK_DISABLED=true`` records nothing. Call it once, before
    :func:`~isthmus.telemetry.instrument`.

    Args:
        service_name: who we are, where the environment does not say.

    Returns:
        What sends the rest; call it at the end of the program.

    Raises:
        UsageError: the extra ``otel`` is not installed.
    """
    if not is_installed("opentelemetry") or not is_installed("opentelemetry.exporter"):
        raise UsageError("exporting telemetry needs an exporter: pip install 'isthmus[otel]'")
    from opentelemetry import metrics, trace
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    known = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": service_name}
    resource = Resource.create(known)
    tracers = TracerProvider(resource=resource)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource)
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(meters)

    def shut_down() -> None:
        tracers.shutdown()
        meters.shutdown()

    return shut_down
