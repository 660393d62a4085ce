"""Middleware and spans: the same over every transport, in every revision."""

import pytest

from isthmus import Server
from isthmus.server.middleware import Caching, Middleware, Timing
from isthmus.telemetry import instrument
from isthmus.testing import connect, every_revision, every_transport

pytest.importorskip("opentelemetry.sdk")
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
    InMemorySpanExporter,
)

pytestmark = [every_revision(), every_transport()]


class Doubled(Middleware):
    """Doubles an argument."""

    async def on_call_tool(self, ctx, call_next):
        return await call_next(ctx.with_arguments(a=ctx.arguments["a"] * 2))


async def test_layers_and_spans_stand_around_a_call(revision, transport):
    """Ours: a hook, a cache, a timing and one SERVER span a request, however it comes."""
    timings, runs, spans = [], [], InMemorySpanExporter()
    server = Server("layers", middleware=[Timing(timings.append), Caching(60), Doubled()])

    @server.tool(read_only=True)
    async def add(a: int, b: int) -> int:
        runs.append(a)
        return a + b

    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    instrument(server, tracer_provider=tracers)
    async with connect(server, transport=transport, revision=revision) as client:
        answers = [(await client.call_tool("add", {"a": 1, "b": 2})).text for _ in range(2)]
    calls = [one for one in timings if one.method == "tools/call"]
    served = [span.name for span in spans.get_finished_spans()]

    assert ["4", "4"] == answers
    assert [2] == runs
    assert [("add", "ok")] * 2 == [(one.name, one.outcome) for one in calls]
    assert 2 == served.count("tools/call add")
