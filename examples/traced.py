"""A trace from a program through a client to a server, printed: ``python traced.py``.

It needs ``pip install 'isthmus[otel]'``. In production ``isthmus.telemetry.export_by_environment()`` sends
spans and durations to a collector instead.
"""

import asyncio

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from isthmus import Client, Server
from isthmus.telemetry import instrument

server = Server("sums", version="1.0")


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    with trace.get_tracer("sums").start_as_current_span("the sum itself"):
        return a + b


def show(span: ReadableSpan) -> str:
    """Show a span on one line."""
    parent = f"{span.parent.span_id:016x}" if span.parent else "nobody"
    return f"{span.kind.name:8} {span.name:16} {span.context.span_id:016x} child of {parent}\n"


async def main() -> None:
    """Call a tool inside a span of one's own."""
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=show)))
    trace.set_tracer_provider(tracers)

    client = Client(server)
    instrument(server, client)
    with trace.get_tracer("program").start_as_current_span("a question"):
        async with client:
            print((await client.call_tool("add", {"a": 40, "b": 2})).text)


if __name__ == "__main__":
    asyncio.run(main())
