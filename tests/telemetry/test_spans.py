"""Spans and histograms: one for each request, linked from client to server, and nothing of people's data."""

import asyncio
import subprocess
import sys

import pytest

from isthmus import Accepted, Client, Context, Server, ToolError
from isthmus.errors import CallTimedOut, InvalidParams, MethodNotFound, UsageError
from isthmus.runtime.channel import Origin
from isthmus.server.middleware import Middleware
from isthmus.telemetry import instrument
from isthmus.testing import serving
from support.clock import run_in_virtual_time
from support.server.both_eras import LEGACY, MODERN, EraClient

pytest.importorskip("opentelemetry.sdk")
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
    InMemorySpanExporter,
)
from opentelemetry.trace import SpanKind, StatusCode

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


class Collector:
    """What was recorded: spans by kind, and points of histograms."""

    def __init__(self):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.providers = {"tracer_provider": self.tracers, "meter_provider": self.meters}

    def spans(self, kind=SpanKind.SERVER, start=""):
        found = self.exporter.get_finished_spans()
        return [s for s in found if s.kind is kind and s.name.startswith(start)]

    def only(self, kind=SpanKind.SERVER, start="tools/call"):
        (span,) = self.spans(kind, start)
        return span

    def points(self, name):
        data = self.reader.get_metrics_data()
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
        return [point for m in metrics if m.name == name for point in m.data.data_points]


@pytest.fixture
def collected():
    return Collector()


@pytest.fixture
def server():
    server = Server("s", version="1")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    def fail(key: str = "") -> str:
        raise ToolError("secret reason")

    @server.tool
    async def ask(ctx: Context) -> str:
        return str(await ctx.elicit("Sure?", bool))

    @server.prompt
    def greet(name: str) -> str:
        return f"Hello {name}"

    server.resource("notes://{key}", name="notes")(lambda key: key)
    return server


def call(name, /, **arguments):
    return {"name": name, "arguments": arguments}


@BOTH
async def test_a_request_has_one_server_span_by_the_conventions(server, collected, revision):
    """Conventions: name, kind and attributes; nothing of arguments and results."""
    instrument(server, **collected.providers)
    client = EraClient(server, revision)
    origin = Origin("http", session="abc")
    await client.once("tools/call", call("add", a=41, b=1), origin=origin)
    await client.once("prompts/get", call("greet", name="Ada"))
    await client.once("resources/read", {"uri": "notes://7"})
    tool, prompt, resource = collected.spans()

    assert ("tools/call add", SpanKind.SERVER) == (tool.name, tool.kind)
    assert {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": revision,
        "mcp.session.id": "abc",
        "gen_ai.tool.name": "add",
        "gen_ai.operation.name": "execute_tool",
        "jsonrpc.request.id": "1",
        "network.transport": "tcp",
        "network.protocol.name": "http",
    } == dict(tool.attributes)
    assert StatusCode.UNSET is tool.status.status_code
    assert ("prompts/get greet", "greet") == (prompt.name, prompt.attributes["gen_ai.prompt.name"])
    assert ("resources/read", "notes://7") == (
        resource.name,
        resource.attributes["mcp.resource.uri"],
    )


@BOTH
async def test_errors_are_told_by_whose_fault_they_are(server, collected, revision, caplog):
    """Conventions: tool_error; the caller's mistakes are no error of the server."""
    instrument(server, **collected.providers)

    @server.resource("broken://all")
    def broken() -> str:
        raise OSError("gone")

    client = EraClient(server, revision)
    for method, params in (
        ("tools/call", call("fail")),
        ("tools/call", call("stranger's name")),
        ("tools/call", {"arguments": {}}),
        ("acme/unheard-of", {}),
        ("resources/read", {"uri": "broken://all"}),
    ):
        await client.once(method, params)
    spans = collected.spans()

    assert ["tools/call fail", "tools/call", "tools/call", "_OTHER", "resources/read"] == [
        span.name for span in spans
    ]
    assert ["tool_error", None, None, None, "-32603"] == [
        span.attributes.get("error.type") for span in spans
    ]
    assert [None, "-32602", "-32602", "-32601", "-32603"] == [
        span.attributes.get("rpc.response.status_code") for span in spans
    ]
    errors = [span.status.status_code is StatusCode.ERROR for span in spans]
    assert [True, False, False, False, True] == errors
    assert "Internal error in resources/read" == spans[4].status.description
    assert "secret reason" not in str([span.to_json() for span in spans])
    points = collected.points("mcp.server.operation.duration")
    assert not [p for p in points if "stranger's name" in p.attributes.values()]
    assert not [p for p in points if "acme/unheard-of" in p.attributes.values()]


@BOTH
async def test_client_and_server_spans_are_one_trace(server, collected, revision):
    """Conventions: the client's span is the parent of the server's; both tell of the same request."""
    client = Client(server, revision=revision)
    instrument(server, client, **collected.providers)
    tracer = collected.tracers.get_tracer("test")
    with tracer.start_as_current_span("agent") as agent:
        async with client:
            await client.call_tool("add", {"a": 1, "b": 2})
    sent, served = collected.only(SpanKind.CLIENT), collected.only()

    assert agent.get_span_context().span_id == sent.parent.span_id
    assert sent.context.span_id == served.parent.span_id
    assert sent.context.trace_id == served.context.trace_id
    assert sent.attributes["jsonrpc.request.id"] == served.attributes["jsonrpc.request.id"]
    assert ("tools/call add",) * 2 == (sent.name, served.name)
    opening = "initialize" if revision == LEGACY else "server/discover"
    assert collected.only(SpanKind.CLIENT, opening).context.trace_id == sent.context.trace_id
    assert len(collected.spans()) == len(collected.spans(SpanKind.CLIENT))


@BOTH
async def test_each_round_of_a_question_is_a_request_of_its_own(server, collected, revision):
    """Ours: since 2026-07-28 a question ends one span, and its answer begins another."""
    client = Client(server, revision=revision, elicit=lambda *_: Accepted({"value": True}))
    instrument(server, client, **collected.providers)
    async with client:
        await client.call_tool("ask")
    rounds = 1 if revision == LEGACY else 2

    assert rounds == len(collected.spans(start="tools/call ask"))
    assert rounds == len(collected.spans(SpanKind.CLIENT, "tools/call ask"))


async def test_a_proxied_call_is_linked_through_both_servers(server, collected):
    """Ours: a server that calls another one is parent of what it asks for."""
    inner = Client(server)
    outer = Server("outer")

    @outer.tool
    async def relay() -> str:
        return (await inner.call_tool("add", {"a": 1, "b": 2})).text

    client = Client(outer)
    instrument(server, inner, **collected.providers)
    instrument(outer, client, **collected.providers)
    async with inner, client:
        await client.call_tool("relay")
    first, second = collected.spans(SpanKind.CLIENT, "tools/call relay") + collected.spans(
        start="tools/call relay"
    )
    third, fourth = collected.spans(SpanKind.CLIENT, "tools/call add") + collected.spans(
        start="tools/call add"
    )

    chain = [first, second, third, fourth]
    assert [s.context.span_id for s in chain[:3]] == [s.parent.span_id for s in chain[1:]]


@BOTH
async def test_a_proxy_is_linked_and_so_is_what_it_mounts(server, collected, revision):
    """Ours: client, proxy, its own client and the server behind are one chain; a mount adds no span."""
    begun = instrument(server, all_clients=True, **collected.providers)
    outer = Server("outer")
    outer.mount(Server.proxy(server, name="inner"), "far")
    instrument(outer, **collected.providers)
    async with Client(outer, revision=revision) as client:
        await client.call_tool("far_add", {"a": 1, "b": 2})
    begun.uninstrument()
    chain = [
        collected.only(SpanKind.CLIENT, "tools/call far_add"),
        collected.only(start="tools/call far_add"),
        collected.only(SpanKind.CLIENT, "tools/call add"),
        collected.only(start="tools/call add"),
    ]

    assert [s.context.span_id for s in chain[:3]] == [s.parent.span_id for s in chain[1:]]
    assert not Client(server).connection.traced


async def test_spans_of_a_tool_are_children_also_in_a_thread(server, collected):
    """Ours: a plain function works in a thread, and its spans belong to the request."""
    tracer = collected.tracers.get_tracer("test")

    @server.tool
    def work() -> str:
        with tracer.start_as_current_span("query"):
            return ""

    instrument(server, **collected.providers)
    await EraClient(server).once("tools/call", call("work"))

    assert (
        collected.only().context.span_id
        == collected.only(SpanKind.INTERNAL, "query").parent.span_id
    )


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("meta", "header", "parent"),
    [
        (PARENT, None, 0xB7AD6B7169203331),
        (None, PARENT, 0xB7AD6B7169203331),
        (PARENT, PARENT.replace("b7ad", "0000"), 0xB7AD6B7169203331),
        ("nonsense", None, None),
        ("x" * 100_000, None, None),
        (None, None, None),
    ],
    ids=["meta", "http", "both", "malformed", "huge", "none"],
)
async def test_the_parent_is_of_meta_and_then_of_http(server, collected, meta, header, parent):
    """Conventions: _meta goes before; what is of no form begins a trace anew."""
    instrument(server, **collected.providers)
    params = call("add", a=1, b=2) | ({"_meta": {"traceparent": meta}} if meta else {})
    headers = {"traceparent": header} if header else {}
    await EraClient(server).once("tools/call", params, origin=Origin("http", headers=headers))
    span = collected.only()

    assert parent == (None if span.parent is None else span.parent.span_id)


async def test_the_span_of_http_is_linked_or_the_parent(server, collected):
    """Conventions: the ambient span is linked where _meta has the parent."""
    instrument(server, **collected.providers)
    client, origin = EraClient(server), Origin("http")
    tracer = collected.tracers.get_tracer("asgi")
    with tracer.start_as_current_span("POST /mcp", kind=SpanKind.INTERNAL) as http:
        await client.once("tools/call", call("add", a=1, b=2), origin=origin)
        carried = call("add", a=1, b=2) | {"_meta": {"traceparent": PARENT}}
        await client.once("tools/call", carried, origin=origin)
        await client.once("tools/call", call("add", a=1, b=2), origin=Origin("stdio"))
    child, linked, alone = collected.spans()

    assert http.get_span_context().span_id == child.parent.span_id
    assert [http.get_span_context().span_id] == [link.context.span_id for link in linked.links]
    assert 0xB7AD6B7169203331 == linked.parent.span_id
    assert alone.parent is None


async def test_arguments_are_recorded_when_asked_for_and_redacted(server, collected):
    """Security: what looks like a key stays out, on both sides."""
    client = Client(server)
    instrument(server, client, record_arguments=True, **collected.providers)
    async with client:
        await client.call_tool("add", {"a": 1, "b": 2})
        await client.call_tool("fail", {"key": "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"})
        await client.get_prompt("greet", {"name": "Ada"})
    first, second = collected.spans(start="tools/call")

    assert '{"a":1,"b":2}' == first.attributes["gen_ai.tool.call.arguments"]
    assert '"structuredContent":{"result":3}' in first.attributes["gen_ai.tool.call.result"]
    assert "abcdefghijklmnop" not in str(
        [span.to_json() for span in collected.exporter.get_finished_spans()]
    )
    assert "Ada" == collected.only(start="prompts/get").attributes["gen_ai.prompt.variable.name"]
    assert "key" in second.attributes["gen_ai.tool.call.arguments"]


async def test_large_arguments_are_cut(server, collected):
    """Security: a span holds 4,096 characters of them, and nothing of what is larger than 64 KiB."""
    instrument(server, record_arguments=True, **collected.providers)
    client = EraClient(server)
    await client.once("tools/call", call("fail", key="x" * 10_000))
    await client.once("tools/call", call("fail", key="x" * 100_000))
    await client.once("prompts/get", {"name": "greet", "arguments": [1]})
    small, large = collected.spans(start="tools/call")

    assert 4_096 == len(small.attributes["gen_ai.tool.call.arguments"])
    assert "gen_ai.tool.call.arguments" not in large.attributes


@BOTH
@run_in_virtual_time
async def test_a_withdrawn_request_is_no_error_of_the_server(collected, revision):
    """Ours: the server's span says that it was cancelled; the client's ended without an answer."""
    server, inside = Server("s"), asyncio.Event()

    @server.tool
    async def hang() -> str:
        inside.set()
        await asyncio.Event().wait()
        return ""

    client = Client(server, revision=revision)
    instrument(server, client, **collected.providers)
    async with client:
        task = asyncio.create_task(client.call_tool("hang"))
        await inside.wait()
        task.cancel()
        await asyncio.wait([task])
        with pytest.raises(CallTimedOut):
            await client.call_tool("hang", timeout=0.01)
        await client.list_tools()
    served, sent = (
        collected.spans(start="tools/call"),
        collected.spans(SpanKind.CLIENT, "tools/call"),
    )

    assert [(True, StatusCode.UNSET)] * 2 == [
        (span.attributes["isthmus.cancelled"], span.status.status_code) for span in served
    ]
    assert ["cancelled", "timeout"] == [span.attributes["error.type"] for span in sent]


async def test_errors_that_a_client_reads_are_errors(server, collected):
    """Conventions: to a client every error code is one."""
    client = Client(server)
    instrument(client=client, **collected.providers)
    async with client:
        with pytest.raises(InvalidParams):
            await client.request("tools/call", {"name": "nothing"})
        with pytest.raises(MethodNotFound):
            await client.request("acme/none", {})
    tool, other = (
        collected.spans(SpanKind.CLIENT, "tools/call"),
        collected.spans(SpanKind.CLIENT, "acme/none"),
    )

    assert ["-32602", "-32601"] == [s.attributes["error.type"] for s in (*tool, *other)]
    assert "Unknown tool: nothing" in tool[0].status.description


@BOTH
async def test_durations_stand_in_histograms(server, collected, revision):
    """Conventions: operations on both sides in seconds, with these buckets; sessions where they end."""
    client = Client(server, revision=revision)
    instrument(server, client, **collected.providers)
    async with client:
        await client.call_tool("add", {"a": 1, "b": 2})
    names = ("mcp.server.operation.duration", "mcp.client.operation.duration")
    points = [
        next(p for p in collected.points(name) if p.attributes.get("gen_ai.tool.name") == "add")
        for name in names
    ]

    assert [1, 1] == [point.count for point in points]
    assert (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300) == tuple(
        points[0].explicit_bounds
    )
    assert all(p.sum < 5 for p in points)
    assert "jsonrpc.request.id" not in points[0].attributes
    assert 1 == len(collected.points("mcp.client.session.duration"))
    assert (revision == LEGACY) == (1 == len(collected.points("mcp.server.session.duration")))


async def test_notifications_have_spans_where_they_are_heard(server, collected):
    """Conventions: requests and notifications; one that nothing comes of, of any name, has none."""
    server.on_notification("acme/moved")(lambda params: None)
    client = Client(server, revision=LEGACY)
    instrument(server, client, **collected.providers)
    async with client:
        await client.notify("acme/moved", {})
        await client.notify("acme/nobody-hears", {})
        await client.ping()
    served = [span.name for span in collected.spans()]

    assert 1 == served.count("acme/moved") == served.count("notifications/initialized")
    assert "acme/nobody-hears" not in served
    moved = collected.only(start="acme/moved")
    assert "jsonrpc.request.id" not in moved.attributes
    assert collected.only(SpanKind.CLIENT, "acme/moved").context.span_id == moved.parent.span_id


async def test_instrumented_twice_is_one_span_and_uninstrumented_none(server, collected):
    """Ours: the last one counts; what was removed costs nothing, also on a connection that is open."""
    first = instrument(server, **collected.providers)
    other = Collector()
    client = Client(server)
    second = instrument(server, client, **other.providers)
    async with client:
        await client.call_tool("add", {"a": 1, "b": 2})
        assert [] == collected.spans()
        first.uninstrument()
        await client.call_tool("add", {"a": 1, "b": 2})
        assert (
            2
            == len(other.spans(start="tools/call"))
            == len(other.spans(SpanKind.CLIENT, "tools/c"))
        )
        second.uninstrument()
        second.uninstrument()
        await client.call_tool("add", {"a": 1, "b": 2})
        assert 2 == len(other.spans(start="tools/call"))
        assert "serve" not in vars(server.router)
        assert "call" not in vars(client.connection.peer)
        third = instrument(server, client, **collected.providers)
        await client.call_tool("add", {"a": 1, "b": 2})
        assert 1 == len(collected.spans(SpanKind.CLIENT)) == len(collected.spans())
        third.uninstrument()


async def test_an_instrumentation_that_was_ended_before_serving_never_begins(server, collected):
    """Ours: the router comes later than the call."""
    instrument(server, **collected.providers).uninstrument()
    await EraClient(server).once("tools/call", call("add", a=1, b=2))

    assert [] == collected.spans()


async def test_servers_in_one_process_are_recorded_apart(server, collected):
    """Ours: each has its own means."""
    other, theirs = Server("other"), Collector()
    instrument(server, **collected.providers)
    instrument(other, **theirs.providers)
    await EraClient(server).once("tools/list", {})
    await EraClient(other).once("server/discover", {})

    assert ["tools/list"] == [span.name for span in collected.spans()]
    assert ["server/discover"] == [span.name for span in theirs.spans()]


async def test_middleware_and_tools_see_the_span(server, collected):
    """Ours: whatever runs for a request may add to its span."""

    class Tag(Middleware):
        async def on_call_tool(self, ctx, call_next):
            trace.get_current_span().set_attribute("acme.tenant", "a")
            return await call_next(ctx)

    server.use(Tag())
    instrument(server, **collected.providers)
    await EraClient(server).once("tools/call", call("add", a=1, b=2))

    assert "a" == collected.only().attributes["acme.tenant"]


@BOTH
async def test_spans_over_http(server, collected, revision):
    """Ours: a real connection has one SERVER span a request, of the session in legacy revisions."""
    async with serving(server) as url:
        client = Client(url, revision=revision)
        instrument(server, client, **collected.providers)
        async with client:
            await client.call_tool("add", {"a": 1, "b": 2})
    sent, served = collected.only(SpanKind.CLIENT), collected.only()

    assert sent.context.span_id == served.parent.span_id
    assert ("127.0.0.1", "http") == (
        sent.attributes["server.address"],
        sent.attributes["network.protocol.name"],
    )
    assert (revision == LEGACY) == ("mcp.session.id" in served.attributes)
    assert ("tcp", "http") == (
        served.attributes["network.transport"],
        served.attributes["network.protocol.name"],
    )
    assert not served.links


@pytest.mark.parametrize("transport", ["stdio", "http", "websocket"])
async def test_the_transport_is_told(transport, collected, server):
    """Conventions: pipe or tcp, and the protocol on top."""
    instrument(server, **collected.providers)
    await EraClient(server).once("tools/list", {}, origin=Origin(transport))
    attributes = collected.only(start="tools/list").attributes

    assert ("pipe" if transport == "stdio" else "tcp") == attributes["network.transport"]
    assert {"stdio": None}.get(transport, transport) == attributes.get("network.protocol.name")


def test_nothing_to_instrument_is_refused():
    """Ours: said at once."""
    with pytest.raises(UsageError, match="needs a server, a client or both"):
        instrument()


def test_nothing_is_imported_before():
    """Ours: whoever does not instrument does not load OpenTelemetry, not even by importing this room."""
    code = (
        "import isthmus, isthmus.telemetry, isthmus.server, isthmus.client.client, sys\n"
        "print(any(m.startswith('opentelemetry') for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "False" == done.stdout.strip()
