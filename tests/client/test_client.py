"""The client as its users see it: opening, calling, closing."""

import asyncio

import pydantic
import pytest

from isthmus.client.client import Client
from isthmus.errors import (
    CallTimedOut,
    CapabilityMissing,
    ConnectFailed,
    ConnectionLost,
    InvalidParams,
    Misbehaved,
    NotInRevision,
    OutOfPhase,
    Refused,
    UsageError,
)
from isthmus.wire import (
    CompleteResult,
    Completion,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsParams,
    ListToolsResult,
    Prompt,
    PromptMessage,
    PromptReference,
    PromptsCapability,
    ReadResourceResult,
    Resource,
    ResourcesCapability,
    ResourceTemplate,
    ServerCapabilities,
    SetLevelParams,
    TextContent,
    TextResourceContents,
    ToolsCapability,
)
from support.client.small_server import (
    LEGACY_NAME,
    MODERN_NAME,
    NAMES,
    PuppetChannel,
    SmallServer,
    any_tool,
    text_result,
)
from support.clock import run_in_virtual_time

EITHER = pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])
EVERY = pytest.mark.parametrize("revision", NAMES)


async def open_client(puppet, revision=LEGACY_NAME, **options):
    """A client whose opening a puppet has answered."""
    client = Client(puppet.channel, revision=revision, **options)
    opening = asyncio.create_task(client.open())
    await (puppet.discovered() if revision == MODERN_NAME else puppet.greeted())
    await opening
    return client


# Opening


@pytest.mark.covers("versions.modern.retried")
async def test_the_newest_common_revision_is_spoken():
    """Spec 2026-07-28 basic/versioning: select a mutually supported version."""
    async with Client(SmallServer()) as client:
        assert MODERN_NAME == str(client.revision)


@EVERY
async def test_a_pinned_revision_is_spoken(revision):
    """Ours: whoever names a revision gets it."""
    async with Client(SmallServer(), revision=revision) as client:
        assert revision == str(client.revision)
        assert ("small", "be brief") == (client.info.name, client.instructions)
        assert client.capabilities.tools is not None
        result = await client.call_tool("add", {"a": 1})

    assert 'add {"a":1}' == result.text


@pytest.mark.parametrize("spoken", NAMES)
async def test_a_server_of_one_revision_is_met_in_it(spoken):
    """Spec 2026-07-28 basic/versioning#compatibility-matrix: dual-era client, any server."""
    async with Client(SmallServer(revisions=[spoken])) as client:
        await client.list_tools()
        assert spoken == str(client.revision)


async def test_a_missing_revision_is_refused_with_both_lists():
    """Ours: the message says what each side speaks."""
    client = Client(SmallServer(revisions=[LEGACY_NAME]), revision=MODERN_NAME)

    with pytest.raises(ConnectFailed, match=r"does not speak revision 2026-07-28.*2025-11-25"):
        await client.open()

    await client.close()


def test_an_unknown_revision_is_refused_before_connecting():
    """Ours: a misspelt date is found at once."""
    with pytest.raises(UsageError, match="no revision '2026-07-29'"):
        Client(SmallServer(), revision="2026-07-29")


@pytest.mark.covers("lifecycle.initialized.sent")
async def test_the_handshake_is_finished():
    """Spec 2025-11-25 basic/lifecycle: the client MUST send initialized."""
    small = SmallServer()

    async with Client(small, revision=LEGACY_NAME) as client:
        await client.ping()

    assert ["notifications/initialized"] == small.noted


@pytest.mark.covers("versions.probe.any-error-is-legacy")
@run_in_virtual_time
async def test_a_silent_server_is_greeted_after_the_probe_timeout():
    """Spec 2026-07-28 basic/transports/stdio: no answer within a reasonable timeout is legacy."""
    puppet = PuppetChannel()
    client = Client(puppet.channel, probe_timeout=0.01)
    opening = asyncio.create_task(client.open())

    assert "server/discover" == (await puppet.heard())["method"]
    await puppet.greeted()
    await opening

    assert LEGACY_NAME == str(client.revision)
    await client.close()


@pytest.mark.covers("cancellation.late.dropped")
@run_in_virtual_time
async def test_the_late_answer_to_a_probe_changes_nothing():
    """Ours: an answer nobody waits for any more is dropped."""
    puppet = PuppetChannel()
    client = Client(puppet.channel, probe_timeout=0.01)
    opening = asyncio.create_task(client.open())
    probe = await puppet.heard()
    greeting = await puppet.heard()
    await puppet.says(id=probe["id"], error={"code": -32601, "message": "no"})
    info = {"name": "p", "version": "1"}
    result = {"protocolVersion": NAMES[0], "capabilities": {}, "serverInfo": info}
    await puppet.says(id=greeting["id"], result=result)
    await opening

    assert NAMES[0] == str(client.revision)
    await client.close()


@run_in_virtual_time
async def test_a_server_that_never_answers_is_given_up():
    """Decision D18: nothing waits for ever."""
    client = Client(PuppetChannel().channel, probe_timeout=0.01, connect_timeout=0.05)

    with pytest.raises(ConnectFailed, match=r"no connection within 0\.05 s"):
        await client.open()


async def test_a_server_that_hangs_up_while_opening_is_a_failed_connection():
    """Decision D20: one typed error, no group, no bare cancellation."""
    puppet = PuppetChannel()
    client = Client(puppet.channel)
    opening = asyncio.create_task(client.open())
    await puppet.heard()
    await puppet.leaves()

    with pytest.raises(ConnectFailed, match="the connection was closed"):
        await opening


async def test_opening_twice_opens_once():
    """Ours: whoever is unsure may open."""
    small = SmallServer()
    client = Client(small)

    await asyncio.gather(client.open(), client.open())
    await client.open()

    assert 1 == len(small.links)
    await client.close()


async def test_a_client_that_is_not_open_says_so():
    """Ours: the message tells how to open it."""
    client = Client(SmallServer())

    with pytest.raises(OutOfPhase, match="not connected yet: use `async with Client"):
        await client.call_tool("add")
    with pytest.raises(OutOfPhase, match="not connected yet"):
        _ = client.revision


# Closing


async def test_a_closed_client_says_so():
    """Ours: a use after the end is the user's mistake, and named as such."""
    async with Client(SmallServer()) as client:
        pass

    with pytest.raises(OutOfPhase, match="this client was closed"):
        await client.call_tool("add")
    with pytest.raises(OutOfPhase, match="make a new one"):
        await client.open()


async def test_a_client_may_be_closed_at_any_time_and_twice():
    """Users.md pain 6: closable in any order."""
    never_opened = Client(SmallServer())
    await never_opened.close()
    await never_opened.close()
    client = Client(SmallServer())
    await client.open()

    await asyncio.gather(client.close(), client.close())


async def test_a_client_may_be_opened_in_one_task_and_closed_in_another():
    """Users.md L11: no cancel scope ties a connection to a task."""
    client = Client(SmallServer())
    await asyncio.create_task(client.open())
    result = await asyncio.create_task(client.call_tool("add"))
    await asyncio.create_task(client.close())

    assert "add {}" == result.text


async def test_clients_may_be_closed_in_any_order():
    """Ours: connections do not nest."""
    first, second = Client(SmallServer()), Client(SmallServer())
    await first.open()
    await second.open()

    await first.close()
    assert "add {}" == (await second.call_tool("add")).text
    await second.close()


async def test_closing_while_opening_fails_the_opening():
    """Decision D20: whoever waits is told."""
    puppet = PuppetChannel()
    client = Client(puppet.channel)
    opening = asyncio.create_task(client.open())
    await puppet.heard()

    await client.close()

    with pytest.raises(ConnectFailed):
        await opening


@pytest.mark.covers("cancellation.sent.never-opening")
async def test_cancelling_the_opening_cancels_it():
    """Ours: a cancellation stays one, and leaves nothing behind."""
    puppet = PuppetChannel()
    client = Client(puppet.channel)
    opening = asyncio.create_task(client.open())
    await puppet.heard()
    opening.cancel()

    with pytest.raises(asyncio.CancelledError):
        await opening
    assert await puppet.heard() is None or await puppet.heard() is None


async def test_an_error_inside_the_block_comes_out_as_it_was():
    """Users.md pain 6: never an exception group."""
    with pytest.raises(KeyError, match="mine"):
        async with Client(SmallServer()):
            raise KeyError("mine")


@EITHER
async def test_closing_fails_what_is_in_flight(revision):
    """Decision D20: every pending call ends exactly once, with one typed error."""
    puppet = PuppetChannel()
    client = await open_client(puppet, revision)
    calls = [asyncio.create_task(client.call_tool("slow")) for _ in range(3)]
    for _ in calls:
        await puppet.heard()

    await client.close()

    for call in calls:
        with pytest.raises(ConnectionLost, match="while waiting for tools/call"):
            await call


@EITHER
async def test_a_server_that_hangs_up_fails_what_is_in_flight(revision):
    """Decision D20: no hang, no bare cancellation."""
    puppet = PuppetChannel()
    client = await open_client(puppet, revision)
    call = asyncio.create_task(client.call_tool("slow"))
    await puppet.heard()

    await puppet.leaves()

    with pytest.raises(ConnectionLost):
        await call
    with pytest.raises(ConnectionLost):
        await client.call_tool("slow")
    await client.close()


# Calling


@pytest.mark.covers("timeouts.call.silence")
@EITHER
@run_in_virtual_time
async def test_a_call_times_out_and_is_withdrawn(revision):
    """Spec 2026-07-28 basic/patterns/cancellation#timeouts: cancel, and stop waiting."""
    puppet = PuppetChannel()
    client = await open_client(puppet, revision)
    call = asyncio.create_task(client.call_tool("slow", timeout=0.01))
    asked = await puppet.heard()

    with pytest.raises(CallTimedOut, match=r"no answer to tools/call after 0\.0"):
        await call

    withdrawn = await puppet.heard()
    assert "notifications/cancelled" == withdrawn["method"]
    assert asked["id"] == withdrawn["params"]["requestId"]
    await client.close()


@pytest.mark.covers("timeouts.call.per-client")
@EITHER
@run_in_virtual_time
async def test_the_client_has_a_timeout_of_its_own(revision):
    """Decision D18: a call without a timeout has the client's."""
    puppet = PuppetChannel()
    client = await open_client(puppet, revision, timeout=0.01)

    with pytest.raises(TimeoutError):
        await client.call_tool("slow")
    await client.close()


@pytest.mark.covers("cancellation.sent.caller")
@EITHER
async def test_a_cancelled_call_is_withdrawn(revision):
    """Spec 2026-07-28 basic/patterns/cancellation: the client says so on the wire."""
    puppet = PuppetChannel()
    client = await open_client(puppet, revision)
    call = asyncio.create_task(client.call_tool("slow"))
    asked = await puppet.heard()
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call

    assert asked["id"] == (await puppet.heard())["params"]["requestId"]
    await client.close()


@pytest.mark.covers("timeouts.progress.extends")
@EITHER
async def test_progress_is_told_in_order_and_keeps_the_call_alive(revision):
    """Spec 2026-07-28 basic/patterns/progress; the deadline moves with every notification."""
    puppet, told = PuppetChannel(), []
    client = await open_client(puppet, revision)
    call = asyncio.create_task(client.call_tool("slow", on_progress=told.append))
    asked = await puppet.heard()
    token = asked["params"]["_meta"]["progressToken"]
    for step in (1, 2):
        params = {"progressToken": token, "progress": step}
        await puppet.says(method="notifications/progress", params=params)
    await puppet.says(id=asked["id"], result={"content": []})
    await call

    assert [1, 2] == [progress.progress for progress in told]
    await client.close()


@pytest.mark.covers("capabilities.client.declared", "meta.client.every-request")
async def test_every_modern_request_says_who_asks_and_in_which_revision():
    """Spec 2026-07-28 basic#_meta: every request states its facts."""
    puppet = PuppetChannel()
    client = await open_client(puppet, MODERN_NAME, name="me", version="9", on_log=print)
    call = asyncio.create_task(client.call_tool("add", meta={"trace": "t"}))
    (asked,) = await puppet.answers({"content": []})
    await call

    assert {
        "trace": "t",
        "io.modelcontextprotocol/protocolVersion": MODERN_NAME,
        "io.modelcontextprotocol/clientInfo": {"name": "me", "version": "9"},
        "io.modelcontextprotocol/clientCapabilities": {
            "extensions": {"io.modelcontextprotocol/tasks": {}}
        },
        "io.modelcontextprotocol/logLevel": "info",
    } == asked["params"]["_meta"]
    await client.close()


@pytest.mark.covers("meta.client.every-request")
async def test_a_legacy_request_says_nothing_about_the_client():
    """Spec 2025-11-25 basic/lifecycle: the handshake has said it."""
    puppet = PuppetChannel()
    client = await open_client(puppet)
    call = asyncio.create_task(client.call_tool("add"))
    (asked,) = await puppet.answers({"content": []})
    await call

    assert {"name": "add", "arguments": {}} == asked["params"]
    await client.close()


@EITHER
async def test_an_error_answer_is_an_exception(revision):
    """Ours: its type follows its code, and the server's words and data are kept."""
    puppet = PuppetChannel()
    client = await open_client(puppet, revision)
    call = asyncio.create_task(client.call_tool("gone"))
    asked = await puppet.heard()
    error = {"code": -32602, "message": "Unknown tool: gone", "data": {"known": []}}
    await puppet.says(id=asked["id"], error=error)

    with pytest.raises(InvalidParams, match="Unknown tool: gone") as caught:
        await call
    assert {"known": []} == caught.value.data
    await client.close()


GOOD = {"name": "good", "inputSchema": {"type": "object"}}
BAD_TOOL = {"name": "bad\x1b[2J", "inputSchema": "anything"}
LISTS = {
    "list_tools": ("tools", {}, {"tools": [GOOD, BAD_TOOL, {**GOOD, "annotations": None}]}),
    "list_prompts": ("prompts", {}, {"prompts": [{"name": "good"}, {"name": 7}, {"name": "good"}]}),
    "list_resources": (
        "resources",
        {},
        {"resources": [{"uri": "a:b", "name": "good"}, "what?", {"uri": "a:c", "name": "good"}]},
    ),
    "list_resource_templates": (
        "resources",
        {},
        {"resourceTemplates": [{"uriTemplate": "a:{b}", "name": "good"}, {"name": "bad"}] * 2},
    ),
}


@pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])
@pytest.mark.parametrize("method", LISTS)
async def test_a_malformed_item_is_left_out_of_its_list_and_logged(revision, method, caplog):
    """Ours: one mistake hides no other tool; the log says which item it was, and why."""
    capability, offered, result = LISTS[method]
    puppet = PuppetChannel()
    client = Client(puppet.channel, revision=revision)
    opening = asyncio.create_task(client.open())
    answer = puppet.discovered if revision == MODERN_NAME else puppet.greeted
    await answer(**{capability: offered})
    await opening

    listing = asyncio.create_task(getattr(client, method)())
    await puppet.answers(result)
    found = await listing
    await client.close()

    assert ["good", "good"] == [item.name for item in found]
    said = [record.getMessage() for record in caplog.records]
    assert said
    assert all("[1]" in line or "[3]" in line for line in said)
    assert all("is left out of" in line for line in said)
    assert all(line.isprintable() for line in said)


@EITHER
async def test_a_malformed_result_is_the_servers_fault(revision):
    """Ours: the message has the JSON path."""
    puppet = PuppetChannel()
    client = await open_client(puppet, revision)
    call = asyncio.create_task(client.call_tool("add"))
    await puppet.answers({"content": "text"})

    with pytest.raises(Misbehaved, match=r"answer to tools/call is malformed.*\$\.content"):
        await call
    await client.close()


@pytest.mark.covers("messages.result-type.absent-is-complete")
@pytest.mark.parametrize("kind", [None, "complete"])
async def test_a_result_without_a_type_is_complete(kind):
    """Spec 2026-07-28 basic#resulttype: clients MUST treat an absent resultType as complete."""
    puppet = PuppetChannel()
    client = await open_client(puppet, MODERN_NAME)
    call = asyncio.create_task(client.call_tool("add"))
    await puppet.answers({"content": [], **({"resultType": kind} if kind else {})})

    assert [] == (await call).content
    await client.close()


@pytest.mark.covers("messages.result-type.unknown-invalid")
async def test_a_result_of_an_unknown_type_is_invalid():
    """Spec 2026-07-28 basic#resulttype: MUST be considered invalid."""
    puppet = PuppetChannel()
    client = await open_client(puppet, MODERN_NAME)
    call = asyncio.create_task(client.call_tool("add"))
    await puppet.answers({"content": [], "resultType": "later"})

    with pytest.raises(Misbehaved, match="of the type 'later', which is unknown"):
        await call
    await client.close()


async def test_arguments_may_be_anything_that_becomes_an_object():
    """Ours: and what does not is refused before it is sent."""
    async with Client(SmallServer()) as client:
        assert 'add {"a":1}' == (await client.call_tool("add", {"a": 1})).text
        with pytest.raises(UsageError, match="arguments are an object"):
            await client.call_tool("add", [1])
        with pytest.raises(UsageError, match="arguments cannot be sent"):
            await client.call_tool("add", {"a": object()})


async def test_many_calls_may_be_in_flight():
    """Ours: each gets its own answer."""
    async with Client(SmallServer()) as client:
        results = await asyncio.gather(*(client.call_tool("add", {"n": n}) for n in range(300)))

    assert [f'add {{"n":{n}}}' for n in range(300)] == [result.text for result in results]


# What a server offers


@EVERY
async def test_what_a_server_offers_is_listed_read_and_completed(revision):
    """Ours: one method per request of the specification, in every revision."""

    async def serve(result):
        return result

    everything = ServerCapabilities(
        tools=ToolsCapability(),
        resources=ResourcesCapability(),
        prompts=PromptsCapability(),
        completions={},
    )
    message = PromptMessage(role="user", content=TextContent(text="hi"))
    template = ResourceTemplate(uri_template="r:{x}", name="t")
    results = {
        "resources/list": ListResourcesResult(resources=[Resource(uri="r:1", name="r")]),
        "resources/templates/list": ListResourceTemplatesResult(resource_templates=[template]),
        "resources/read": ReadResourceResult(
            contents=[TextResourceContents(uri="r:1", text="read")]
        ),
        "prompts/list": ListPromptsResult(prompts=[Prompt(name="p")]),
        "prompts/get": GetPromptResult(messages=[message]),
        "completion/complete": CompleteResult(completion=Completion(values=["v"])),
    }
    routes = {name: lambda _p, _i, r=result: serve(r) for name, result in results.items()}
    small = SmallServer(routes, capabilities=everything, tools=[any_tool()])

    async with Client(small, revision=revision) as client:
        assert ["add"] == [t.name for t in await client.list_tools()]
        assert ["r:1"] == [r.uri for r in await client.list_resources()]
        assert ["r:{x}"] == [t.uri_template for t in await client.list_resource_templates()]
        assert "read" == (await client.read_resource("r:1")).contents[0].text
        assert ["p"] == [p.name for p in await client.list_prompts()]
        assert [message] == (await client.get_prompt("p", {"a": "b"})).messages
        assert ["v"] == (await client.complete(PromptReference(name="p"), "a", "")).values
        await client.ping()


@pytest.mark.covers("clientcalls.capabilities.needed")
@EITHER
async def test_what_is_not_offered_is_not_asked_for(revision):
    """Spec 2025-11-25 basic/lifecycle#operation: only use what was negotiated."""
    async with Client(SmallServer(), revision=revision) as client:
        for ask in (client.list_resources, client.list_prompts):
            with pytest.raises(CapabilityMissing, match="the server does not offer"):
                await ask()
        with pytest.raises(CapabilityMissing, match="logging"):
            await client.set_log_level("info")


async def test_completion_needs_no_capability_before_there_was_one():
    """Spec 2024-11-05 has completion/complete, but no capability that announces it."""

    async def complete(_params, _inbound):
        return CompleteResult(completion=Completion(values=["v"]))

    async with Client(SmallServer({"completion/complete": complete}), revision=NAMES[0]) as client:
        assert ["v"] == (await client.complete(PromptReference(name="p"), "a")).values


@EITHER
async def test_resources_without_templates_have_none(revision):
    """Users.md 6: servers announce resources and have no resources/templates/list."""
    capabilities = ServerCapabilities(resources=ResourcesCapability())

    async with Client(SmallServer(capabilities=capabilities), revision=revision) as client:
        assert [] == await client.list_resource_templates()


@pytest.mark.covers("pagination.cursors.empty-goes-on")
async def test_pages_are_read_to_the_end():
    """Spec 2026-07-28 server/utilities/pagination: until there is no nextCursor."""

    async def page(params, _inbound):
        at = int(params.cursor or 0)
        more = {"next_cursor": str(at + 1)} if at < 3 else {}
        return ListToolsResult(tools=[any_tool(f"t{at}")], **more)

    async with Client(SmallServer({"tools/list": page})) as client:
        assert ["t0", "t1", "t2", "t3"] == [t.name for t in await client.list_tools()]


@pytest.mark.covers("pagination.cursors.empty-goes-on")
async def test_an_empty_cursor_leads_on():
    """Spec 2026-07-28 server/utilities/pagination: it MUST NOT be taken for the end."""
    came = []

    async def page(params, _inbound):
        came.append(params.cursor)
        more = {"next_cursor": ""} if len(came) == 1 else {}
        return ListToolsResult(tools=[any_tool(f"t{len(came)}")], **more)

    async with Client(SmallServer({"tools/list": page})) as client:
        assert ["t1", "t2"] == [t.name for t in await client.list_tools()]
    assert "" == came[1]


@pytest.mark.covers("errors.codes.unknown-mean-nothing")
@EITHER
async def test_a_code_that_nobody_defines_is_a_refusal_and_no_more(revision):
    """Spec 2026-07-28 basic#error-codes: MUST NOT assume a meaning for those of -32000 to -32019."""
    puppet = PuppetChannel()
    client = await open_client(puppet, revision)
    for code in (-32000, -32001, -32003, -32019, -32099, 7):
        call = asyncio.create_task(client.call_tool("gone"))
        asked = await puppet.heard()
        await puppet.says(id=asked["id"], error={"code": code, "message": "no"})
        with pytest.raises(Refused) as caught:
            await call
        assert (Refused, code) == (type(caught.value), caught.value.code)
    await client.close()


@pytest.mark.covers("clientlimits.lists.pages")
async def test_pages_that_go_in_circles_are_the_servers_fault():
    """Ours: a list is bounded."""

    async def page(_params, _inbound):
        return ListToolsResult(tools=[], next_cursor="again")

    async with Client(SmallServer({"tools/list": page})) as client:
        with pytest.raises(Misbehaved, match="goes in circles"):
            await client.list_tools()


@pytest.mark.covers("tools.output.validated-by-client")
async def test_a_structured_result_is_held_against_its_schema():
    """Spec 2026-07-28 server/tools#output-schema: clients SHOULD validate."""
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    results = [{"sum": 3}, {"sum": "three"}]

    async def call(_params, _inbound):
        return text_result("", structured_content=results.pop(0))

    small = SmallServer({"tools/call": call}, tools=[any_tool(output_schema=schema)])
    async with Client(small) as client:
        await client.list_tools()
        assert {"sum": 3} == (await client.call_tool("add")).structured
        with pytest.raises(Misbehaved, match=r"breaks its schema.*at `\$\.sum`"):
            await client.call_tool("add")


# Logs, roots, and requests of one's own


async def test_a_legacy_server_is_told_the_log_level():
    """Spec 2025-11-25 server/utilities/logging: logging/setLevel."""
    levels = []

    async def set_level(params, _inbound):
        levels.append(params)
        return await SmallServer.ping(None, None, None)

    small = SmallServer(
        {"logging/setLevel": set_level}, capabilities=ServerCapabilities(logging={})
    )
    async with Client(small, revision=LEGACY_NAME, log_level="error") as client:
        await client.set_log_level("debug")

    assert [SetLevelParams(level="error"), SetLevelParams(level="debug")] == levels


async def test_a_modern_request_carries_the_log_level():
    """Spec 2026-07-28 server/utilities/logging: the level is stated by each request."""
    small = SmallServer(capabilities=ServerCapabilities(tools=ToolsCapability(), logging={}))
    async with Client(small) as client:
        await client.call_tool("a")
        await client.set_log_level("error")
        await client.call_tool("b")

    assert [None, "error"] == [inbound.caller.log_level for inbound in small.calls]


@EITHER
async def test_log_messages_are_told(revision):
    """Ours: to a plain function or a coroutine function."""
    puppet, told, heard = PuppetChannel(), [], asyncio.Event()

    async def on_log(message):
        told.append((message.level, message.data))
        heard.set()

    client = await open_client(puppet, revision, on_log=on_log)
    await puppet.says(method="notifications/message", params={"level": "info", "data": "hello"})
    await heard.wait()

    assert [("info", "hello")] == told
    await client.close()


@pytest.mark.parametrize(
    ("revision", "noted"),
    [(LEGACY_NAME, ["notifications/initialized", "notifications/roots/list_changed"]),
     (MODERN_NAME, [])],
)  # fmt: skip
async def test_new_roots_are_announced_where_that_exists(revision, noted):
    """Spec 2025-11-25 client/roots: MUST send list_changed; 2026-07-28 has no such message."""
    small = SmallServer()
    async with Client(small, revision=revision, roots=[]) as client:
        await client.set_roots(["/tmp"])
        await client.ping()

    assert noted == small.noted


@pytest.mark.parametrize(
    ("revision", "noted"),
    [(LEGACY_NAME, ["notifications/initialized", "notifications/roots/list_changed"]),
     (MODERN_NAME, [])],
)  # fmt: skip
async def test_a_function_that_gives_other_roots_is_announced_without_being_called(revision, noted):
    """Ours: whoever has to ask a person for roots asks when the server does, not before."""
    small, asked = SmallServer(), []
    async with Client(small, revision=revision, roots=lambda: asked.append(1) or []) as client:
        await client.roots_changed()
        await client.ping()

    assert (noted, []) == (small.noted, asked)


@pytest.mark.covers("divergences.client.undeclared-unsent")
async def test_roots_cannot_be_added_to_a_client_that_offers_none():
    """Ours: the server was told there are none to ask for."""
    async with Client(SmallServer()) as client:
        with pytest.raises(UsageError, match="make it with roots="):
            await client.set_roots([])


@EITHER
async def test_a_request_of_ones_own_gets_what_the_revision_wants(revision):
    """Ours: custom methods are a call away."""
    puppet = PuppetChannel()
    client = await open_client(puppet, revision)
    call = asyncio.create_task(client.request("acme/refund", {"sum": 3}, dict[str, int]))
    (asked,) = await puppet.answers({"left": 4})

    assert {"left": 4} == await call
    assert ("acme/refund", 3) == (asked["method"], asked["params"]["sum"])
    assert (revision == MODERN_NAME) == ("_meta" in asked["params"])
    await client.close()


@pytest.mark.covers("lifecycle.operation.agreed-revision")
async def test_what_the_revision_lacks_is_not_sent():
    """Ours: NotInRevision names the method and the revision."""
    async with Client(SmallServer(), revision=MODERN_NAME) as client:
        with pytest.raises(NotInRevision, match="2026-07-28 has no 'tasks/list'"):
            await client.request("tasks/list")


async def test_a_notification_of_ones_own_is_sent():
    """Ours: as it is."""
    puppet = PuppetChannel()
    client = await open_client(puppet)
    await client.notify("acme/hello")

    assert "acme/hello" == (await puppet.heard())["method"]
    await client.close()


async def test_a_struct_may_be_the_parameters_of_a_request():
    """Ours: its own _meta is kept beside ours."""
    puppet = PuppetChannel()
    client = await open_client(puppet, MODERN_NAME)
    params = ListToolsParams(meta={"mine": 1})
    call = asyncio.create_task(client.request("tools/list", params))
    (asked,) = await puppet.answers({"tools": []})

    assert {"tools": []} == await call
    assert 1 == asked["params"]["_meta"]["mine"]
    assert MODERN_NAME == asked["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
    await client.close()


async def test_a_legacy_server_may_ping():
    """Spec 2025-11-25 basic/utilities/ping: the receiver MUST respond promptly."""
    puppet = PuppetChannel()
    client = await open_client(puppet)
    await puppet.says(id="p", method="ping")

    assert {"jsonrpc": "2.0", "id": "p", "result": {}} == await puppet.heard()
    await client.close()


async def test_a_model_may_be_the_arguments():
    """Decision D4: pydantic models where it is installed."""

    class Model(pydantic.BaseModel):
        a: int

    async with Client(SmallServer()) as client:
        assert 'add {"a":1}' == (await client.call_tool("add", Model(a=1))).text


async def test_who_asked_is_told_once_that_the_connection_has_ended():
    """Ours: before the calls in flight end, so that nobody is handed the dead connection."""
    told = []
    client = Client(SmallServer())
    client.on_lost(lambda error: told.append(type(error)))
    client.on_lost(lambda error: told.append(str(error)))
    async with client:
        assert ([], None, []) == (told, client.pid, client.stderr)
    assert [ConnectionLost, "the connection was closed"] == told
    with pytest.raises(OutOfPhase):
        await client.list_tools()


@EITHER
async def test_progress_is_asked_for_where_a_call_listens_to_it(revision):
    """Ours, as the guide says: only there does progress lengthen the timeout."""
    puppet = PuppetChannel()
    client = await open_client(puppet, revision)
    asked = []
    for listener in (None, lambda _: None):
        call = asyncio.create_task(client.call_tool("add", on_progress=listener))
        request = await puppet.heard()
        asked.append("progressToken" in request["params"].get("_meta", {}))
        await puppet.says(id=request["id"], result={"content": [], "resultType": "complete"})
        await call
    await client.close()

    assert [False, True] == asked
