"""Cost of telemetry: CPU of a call in memory that is traced, against the same call that is not.

``python bench/developer/telemetry.py`` prints ratios. "bare span" is a span of the SDK's with as many
attributes and one histogram, begun and ended around the router by four lines: what the SDK itself
costs, whoever calls it. Nothing is exported.
"""

import asyncio
from typing import Any

from middleware import compare, make_server, print_ratios
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NoOpTracerProvider, SpanKind

from isthmus import Client
from isthmus.telemetry import instrument


def make_client(*, both: bool = False, on: bool = True, **providers: Any) -> Client:
    """A client of a server, which is instrumented as is said."""
    server = make_server(())
    client = Client(server)
    if on:
        instrument(server, client if both else None, **providers)
    return client


def make_bare() -> Client:
    """A client of a server with a span and a figure around its router, and nothing else."""
    server = make_server(())
    tracer = make_tracers().get_tracer("bare")
    histogram = make_meters().get_meter("bare").create_histogram("duration")
    serve = server.router.serve
    told = {f"attribute.{number}": "a value" for number in range(5)}

    async def traced(inbound: Any) -> Any:
        span = tracer.start_span("tools/call add", None, SpanKind.SERVER, told)
        try:
            return await serve(inbound)
        finally:
            span.end()
            histogram.record(0.001, told)

    server.router.serve = traced  # type: ignore[method-assign]  # as a watch does
    return Client(server)


def make_tracers(**options: Any) -> TracerProvider:
    """Make a provider of spans that go nowhere."""
    return TracerProvider(shutdown_on_exit=False, **options)


def make_meters() -> MeterProvider:
    """Make a provider of histograms that are read by nobody."""
    return MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)


if __name__ == "__main__":
    none, noop = NoOpMeterProvider(), NoOpTracerProvider()
    variants = {
        "off": make_client(on=False),
        "server, no provider set": make_client(),
        "both, no provider set": make_client(both=True),
        "server, spans dropped by the API": make_client(tracer_provider=noop, meter_provider=none),
        "server, not sampled": make_client(
            tracer_provider=make_tracers(sampler=ALWAYS_OFF), meter_provider=none
        ),
        "bare span": make_bare(),
        "server, spans": make_client(tracer_provider=make_tracers(), meter_provider=none),
        "server, spans and histograms": make_client(
            tracer_provider=make_tracers(), meter_provider=make_meters()
        ),
        "both, spans and histograms": make_client(
            both=True, tracer_provider=make_tracers(), meter_provider=make_meters()
        ),
    }
    print_ratios(asyncio.run(compare(variants)), "off")
