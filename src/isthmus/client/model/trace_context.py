"""Trace context of outgoing requests, where OpenTelemetry is at work in the program."""

from sys import modules
from typing import Any

from msgspec import structs

# The module that is loaded where somebody traces; we never load it ourselves.
TRACER_MODULE = "opentelemetry.trace"


def add_trace_context(params: Any) -> Any:
    """Parameters that carry the current trace; the same where there is none.

    Members the caller put there stay as they are.
    """
    tracer = modules.get(TRACER_MODULE)
    if tracer is None or not (isinstance(params, dict) or hasattr(params, "meta")):
        return params
    if not tracer.get_current_span().get_span_context().is_valid:
        return params
    from opentelemetry import propagate

    # spec 2026-07-28 basic#_meta: traceparent, tracestate and baggage, without a prefix
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    if not carrier:
        return params
    if isinstance(params, dict):
        return {**params, "_meta": {**carrier, **params.get("_meta", {})}}
    return structs.replace(params, meta={**carrier, **(params.meta or {})})
