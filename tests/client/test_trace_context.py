"""Trace context: put into a call where somebody traces."""

import pytest

from isthmus.client.client import Client
from isthmus.errors import UsageError
from isthmus.wire import EmptyResult
from isthmus.wire.jsonrpc import decode
from support.client.small_server import LEGACY_NAME, MODERN_NAME, SmallServer, text_result

trace = pytest.importorskip("opentelemetry.trace")

EITHER = pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7"


def span():
    """A span of somebody else's, which is current inside the block."""
    context = trace.SpanContext(int(TRACE, 16), int(SPAN, 16), False, trace.TraceFlags(1))
    return trace.use_span(trace.NonRecordingSpan(context))


def noting():
    """A server that notes the ``_meta`` of calls."""
    metas = []

    async def call(_params, inbound):
        metas.append(decode(inbound.params).get("_meta", {}))
        return text_result("")

    return SmallServer({"tools/call": call}), metas


@pytest.mark.covers("clientcalls.trace.passed")
@EITHER
async def test_a_call_inside_a_span_says_so(revision):
    """Spec 2026-07-28 basic#_meta: traceparent in the form of W3C Trace Context."""
    small, metas = noting()
    async with Client(small, revision=revision) as client:
        with span():
            await client.call_tool("add", meta={"com.example/x": 1})
        await client.call_tool("add")

    assert f"00-{TRACE}-{SPAN}-01" == metas[0]["traceparent"]
    assert 1 == metas[0]["com.example/x"]
    assert "traceparent" not in metas[1]


@pytest.mark.covers("clientcalls.trace.passed")
async def test_what_the_caller_says_goes_before():
    """Ours: a gateway passes on the trace of whoever called it."""
    small, metas = noting()
    async with Client(small) as client:
        with span():
            await client.call_tool("add", meta={"traceparent": "theirs"})

    assert "theirs" == metas[0]["traceparent"]


@pytest.mark.covers("clientcalls.trace.passed")
async def test_requests_of_ones_own_are_traced_too():
    """Ours: plain data has no _meta of its own to put it in, a struct has."""
    metas = []

    async def call(params, inbound):
        metas.append(decode(inbound.params)["_meta"])
        return EmptyResult()

    small = SmallServer({"tools/call": call})
    async with Client(small) as client:
        with span():
            await client.request("tools/call", {"name": "x", "arguments": {}})

    assert f"00-{TRACE}-{SPAN}-01" == metas[0].get("traceparent")


@pytest.mark.covers("clientcalls.meta.keys")
@pytest.mark.parametrize("key", ["not a key", "progressToken"])
async def test_a_member_that_may_not_be_there_is_refused(key):
    """Spec 2026-07-28 basic#_meta: key names have a form."""
    small, metas = noting()
    async with Client(small) as client:
        with pytest.raises(UsageError, match=key):
            await client.call_tool("add", meta={key: 1})

    assert [] == metas
