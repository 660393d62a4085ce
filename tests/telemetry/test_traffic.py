"""Traffic of a server as events: what came, what was sent, and how it ended."""

import asyncio
import gc
import json
import weakref

import pytest

from isthmus import Client, Context, Declined, Server
from isthmus.errors import CallTimedOut, InvalidParams
from isthmus.runtime.channel import Origin
from isthmus.runtime.inbound import Inbound
from isthmus.server.middleware import Middleware
from isthmus.telemetry.traffic import MAX_NAME_CHARS, MAX_WIRE_CHARS, watch_traffic
from isthmus.testing import serving
from support.clock import run_in_virtual_time

BOTH = pytest.mark.parametrize("era", ["legacy", "modern"])
KEY = "sk-proj-Zx81kQpL0aB7cD2eF5gH9jK3"


@pytest.fixture
def server():
    """A server with a tool for each outcome."""
    server = Server("s", version="1")

    @server.tool
    async def ask(ctx: Context, key: str = "") -> str:
        await ctx.progress(1, 3, "looking")
        return str(await ctx.elicit("Sure?", bool))

    @server.tool
    def divide(a: int, b: int) -> float:
        return a / b

    @server.tool
    async def rest() -> None:
        await asyncio.Event().wait()

    @server.tool
    def grow(ctx: Context) -> str:
        server.add_tool(lambda: "x", name="grown")
        return "y" * 2 * MAX_WIRE_CHARS

    return server


def brief(events, *methods):
    """Events in short."""
    return [
        (one.sender, one.method, one.name, one.outcome) for one in events if one.method in methods
    ]


async def decline(_question):
    """A user who says no."""
    return Declined()


@BOTH
@pytest.mark.parametrize("over", ["memory", "http"])
async def test_requests_questions_and_notifications_are_told(server, era, over):
    """Ours: in both eras, in their order, with who asked, in which revision, and how long it took."""
    events = []
    stop = watch_traffic(server, events.append)
    async with serving(server) as url:
        target = server if over == "memory" else url
        async with Client(target, era=era, name="cli", version="7", elicit=decline) as client:
            await client.call_tool("ask", on_progress=lambda *_: None)
            await client.call_tool("divide", {"a": 1, "b": 0})
    stop()
    asked = ("notifications/progress", "elicitation/create", "tools/call")
    call = ("client", "tools/call", "ask")
    note = ("server", "notifications/progress", "1/3 looking", "")
    legacy = [note, ("server", "elicitation/create", "Sure?", "decline"), (*call, "ok")]
    modern = [note, (*call, "input_required"), (*call, "ok")]
    ends = [one for one in events if one.kind == "request"]

    rest = [("client", "tools/call", "divide", "tool_error")]
    assert [*(legacy if era == "legacy" else modern), *rest] == brief(events, *asked)
    assert {"cli 7"} == {one.client for one in events}
    assert {ends[-1].revision} == {one.revision for one in events}
    assert all(one.seconds is not None and one.seconds >= 0 for one in ends)
    assert all(one.sent is None and one.answered is None for one in events)
    assert ["Tool 'divide' failed: ZeroDivisionError"] == [one.error for one in ends[-1:]]
    assert {(), ("elicitation/create",)} >= {one.asked for one in events}


async def test_changes_are_told_on_the_stream_that_listens_over_http(server):
    """Ours: a link that lasts as long as its request tells of what is sent on it, too."""
    events = []
    watch_traffic(server, events.append)
    async with (
        serving(server) as url,
        Client(url, era="modern") as client,
        client.listen(tools=True) as changes,
    ):
        await client.call_tool("grow")
        await anext(aiter(changes))

    assert ("server", "notifications/tools/list_changed", None, "") in brief(
        events, "notifications/tools/list_changed"
    )


@run_in_virtual_time
async def test_refusals_have_their_code_and_a_withdrawn_call_is_cancelled(server):
    """Ours: also what no handler ever sees, as an unknown method."""
    events = []
    watch_traffic(server, events.append)
    async with Client(server) as client:
        with pytest.raises(CallTimedOut):
            await client.call_tool("rest", timeout=0.01)
        inbound = Inbound(9, "no/such", None, client_caller(server), None, Origin("memory"))
        await server.router.serve(inbound)
    ended = {one.name or one.method: (one.outcome, one.code) for one in events}

    assert ("cancelled", None) == ended["rest"]
    assert ("error", -32601) == ended["no/such"]


def client_caller(server):
    """Facts of a caller in the newest revision."""
    from isthmus.core.caller import Caller

    return Caller(server.revisions[-1])


@BOTH
async def test_whole_messages_are_redacted_and_bounded(server, era):
    """Ours: a key in an argument is in no event; a long answer is cut, and says by how much."""
    events = []
    watch_traffic(server, events.append, wire=True)
    async with Client(server, era=era, elicit=decline) as client:
        await client.call_tool("ask", {"key": KEY})
        await client.call_tool("grow")
    (sent, *_), (grown, *_) = (
        [one for one in events if one.name == name and one.kind == "request"]
        for name in ("ask", "grow")
    )

    assert "tools/call" == json.loads(sent.sent)["method"]
    assert sent.answered.startswith('{"jsonrpc":"2.0","id":')
    assert not [one for one in events if KEY in repr(one)]
    assert MAX_WIRE_CHARS < len(grown.answered) < MAX_WIRE_CHARS + 40
    assert grown.answered.endswith(" more")


async def test_names_of_strangers_are_bounded_and_without_secrets(server):
    """Ours: whoever calls chooses the name of the tool."""
    events = []
    watch_traffic(server, events.append)
    async with Client(server, name="n" * 1000) as client:
        for name in ("x" * 5000, f"token={KEY}"):
            with pytest.raises(InvalidParams):
                await client.request("tools/call", {"name": name, "arguments": {}})
    calls = [one for one in events if one.method == "tools/call"]

    assert [MAX_NAME_CHARS + 1] == [len(one.name) for one in calls[:1]]
    assert KEY not in repr(calls)
    assert all(len(one.client) <= MAX_NAME_CHARS + 1 for one in events)


async def test_after_the_end_nothing_is_told_and_all_is_as_before(server):
    """Ours: on connections that are open, too; others' watches stay."""
    first, second = [], []
    stop = watch_traffic(server, first.append)
    router = server.router
    async with Client(server, era="legacy", elicit=decline) as client:
        await client.call_tool("ask")
        again = watch_traffic(server, second.append)
        await client.call_tool("divide", {"a": 1, "b": 1})
        again()
        told, heard = len(first), len(second)
        await client.call_tool("divide", {"a": 1, "b": 1})
        assert (told + 1, heard) == (len(first), len(second))
        stop()
        await client.call_tool("ask")

    assert (told + 1, heard) == (len(first), len(second))
    assert {"serve", "note"}.isdisjoint(vars(router))


async def test_links_are_not_kept(server):
    """Ours: a server that is watched for days forgets who has left."""
    links = []

    class Keep(Middleware):
        async def on_call_tool(self, ctx, call_next):
            links.append(weakref.ref(ctx.inbound.link))
            return await call_next(ctx)

    server.use(Keep())
    watch_traffic(server, lambda _: None)
    async with Client(server, era="legacy") as client:
        await client.call_tool("divide", {"a": 1, "b": 1})
    for _ in range(50):  # what the connection has left behind comes to its end
        await asyncio.sleep(0)
    gc.collect()

    assert [None] == [link() for link in links]


async def test_a_function_that_raises_keeps_nothing_from_being_served(server, caplog):
    """Ours: who watches is not served by it."""

    def fail(_event):
        raise RuntimeError("no room")

    watch_traffic(server, fail)
    async with Client(server) as client:
        result = await client.call_tool("divide", {"a": 1, "b": 1})

    assert 1.0 == result.structured_content["result"]
    assert "the watch of the traffic failed" in caplog.text


@pytest.mark.parametrize("first", ["spans", "watch"])
@pytest.mark.parametrize("ends", ["spans", "watch"])
async def test_traffic_and_spans_are_told_beside_each_other(server, first, ends):
    """Ours: whichever came first, and whichever ends first, the other one goes on; then nothing is told."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from isthmus.telemetry import instrument

    events, exporter = [], InMemorySpanExporter()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))

    def begin(which):
        if which == "watch":
            return watch_traffic(server, events.append)
        return instrument(server, tracer_provider=tracers).uninstrument

    other = {"spans": "watch", "watch": "spans"}
    stops = {which: begin(which) for which in (first, other[first])}

    def count_calls():
        spans = [one for one in exporter.get_finished_spans() if "tools/call" in one.name]
        return {"watch": len(brief(events, "tools/call")), "spans": len(spans)}

    async with Client(server) as client:
        await client.call_tool("divide", {"a": 1, "b": 1})
        assert {"watch": 1, "spans": 1} == count_calls()
        stops[ends]()
        await client.call_tool("divide", {"a": 1, "b": 1})
        assert {ends: 1, other[ends]: 2} == count_calls()
        stops[other[ends]]()
        await client.call_tool("divide", {"a": 1, "b": 1})

    assert {ends: 1, other[ends]: 2} == count_calls()
