"""What a server may cost a client."""

import pytest

from isthmus.client import Client, Limits
from isthmus.errors import CapabilityMissing, Misbehaved, UsageError
from isthmus.wire import (
    InputRequest,
    InputRequiredResult,
    ListToolsResult,
    ServerCapabilities,
)
from isthmus.wire.jsonrpc import decode
from support.client.small_server import LEGACY_NAME, MODERN_NAME, SmallServer, any_tool, text_result

EITHER = pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])


@pytest.mark.covers("clientlimits.lists.pages")
@EITHER
async def test_a_list_that_never_ends_is_given_up(revision):
    """Ours: a server that keeps giving cursors keeps nobody for ever."""
    asked = []

    async def tools(params, _inbound):
        asked.append(params.cursor)
        return ListToolsResult(tools=[any_tool()], next_cursor=str(len(asked)))

    small = SmallServer({"tools/list": tools})
    async with Client(small, revision=revision, limits=Limits(pages=5)) as client:
        with pytest.raises(Misbehaved, match="no end: 5 items on 5 pages"):
            await client.list_tools()

    assert 5 == len(asked)


@pytest.mark.covers("clientlimits.lists.items")
@EITHER
async def test_a_list_may_have_so_many_items(revision):
    """Ours: pages may be large, too."""
    small = SmallServer(tools=[any_tool(str(n)) for n in range(11)])
    async with Client(small, revision=revision, limits=Limits(items=10)) as client:
        with pytest.raises(Misbehaved, match=r"more than 10 items \(Limits.items\)"):
            await client.list_tools()


@pytest.mark.covers("clientlimits.results.bytes")
@EITHER
async def test_a_result_may_have_so_many_bytes(revision):
    """Ours: it is refused before it is made into objects."""

    async def call(_params, _inbound):
        return text_result("x" * 2000)

    small = SmallServer({"tools/call": call})
    async with Client(small, revision=revision, limits=Limits(result_bytes=1000)) as client:
        with pytest.raises(Misbehaved, match=r"this client takes 1000 \(Limits.result_bytes\)"):
            await client.call_tool("large")
        await client.list_tools()


@pytest.mark.covers("clientcalls.capabilities.needed")
@EITHER
@pytest.mark.parametrize(
    ("method", "capability"),
    [
        ("tools/list", "tools"),
        ("prompts/get", "prompts"),
        ("resources/read", "resources"),
        ("completion/complete", "completions"),
    ],
)
async def test_a_request_of_ones_own_needs_its_capability_too(revision, method, capability):
    """Spec 2025-11-25 basic/lifecycle#operation: only what was negotiated."""
    async with Client(SmallServer(capabilities=ServerCapabilities()), revision=revision) as client:
        with pytest.raises(CapabilityMissing, match=f"'{capability}', which {method} needs"):
            await client.request(method)


@pytest.mark.covers("clientcalls.meta.passed")
@EITHER
async def test_what_a_program_adds_to_meta_reaches_the_server(revision):
    """Spec 2026-07-28 basic#_meta: anybody may add members with names of their own."""
    metas = []

    async def tools(_params, inbound):
        metas.append(decode(inbound.params)["_meta"])
        return ListToolsResult(tools=[])

    async with Client(SmallServer({"tools/list": tools}), revision=revision) as client:
        await client.list_tools(meta={"com.example/tenant": "a"})

    assert "a" == metas[0]["com.example/tenant"]
    assert (revision == MODERN_NAME) == ("io.modelcontextprotocol/protocolVersion" in metas[0])


@pytest.mark.covers("clientlimits.questions.at-once")
async def test_one_result_may_hold_so_many_questions():
    """Ours: each of them costs something, even where nobody has to think."""
    questions = {str(n): InputRequest(method="roots/list") for n in range(9)}

    async def call(_params, _inbound):
        return InputRequiredResult(input_requests=questions)

    small = SmallServer({"tools/call": call})
    async with Client(small, roots=[], limits=Limits(in_flight=8)) as client:
        with pytest.raises(Misbehaved, match="asks 9 things at once, and this client answers 8"):
            await client.call_tool("ask")


@pytest.mark.parametrize("limits", [None, {"items": 3}])
def test_limits_are_limits(limits):
    """Ours: a wrong kind is told where it was given, with what belongs there."""
    with pytest.raises(UsageError, match=r"limits= takes isthmus.client.Limits\(…\), not "):
        Client(SmallServer(), limits=limits)
