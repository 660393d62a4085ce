"""A server that offers what another one offers: Server.proxy."""

import asyncio

import pytest

from isthmus import Client, Context, Server, ToolError
from isthmus.bridge.pool import REST_AFTER_FAILURE_S
from isthmus.client import Limits as ClientLimits
from isthmus.client.targets import Target, memory_target
from isthmus.core.answers import Accepted, Declined
from isthmus.errors import (
    CallTimedOut,
    CapabilityRequired,
    ConnectFailed,
    InvalidParams,
    Refuse,
    Refused,
    UrlRequired,
    UsageError,
)
from isthmus.testing import serving
from isthmus.types import PromptReference, ResourceTemplateReference
from isthmus.wire import ElicitParams, ElicitResult
from support.clock import run_in_virtual_time

LEGACY, MODERN = "2025-11-25", "2026-07-28"
FIVE = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY, MODERN]
OUTER = pytest.mark.parametrize("outer", [LEGACY, MODERN])
INNER = pytest.mark.parametrize("inner", [LEGACY, MODERN])


def make_upstream(revision, **options):
    """A server with one thing of each kind, in one revision."""
    server = Server("upstream", instructions="Be kind.", revisions=[revision], **options)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def fail() -> str:
        raise ToolError("no luck")

    @server.tool
    async def refuse() -> str:
        raise Refuse(-31000, "not today", {"why": "rain"})

    @server.tool
    async def ask(ctx: Context) -> str:
        name = await ctx.elicit("Name?", str)
        colour = await ctx.elicit("Colour?", str)
        return f"{getattr(name, 'value', name)} {getattr(colour, 'value', colour)}"

    @server.tool
    async def visit(ctx: Context) -> str:
        return type(await ctx.elicit_url("Pay first", "https://pay.example/1")).__name__

    @server.tool
    async def think(ctx: Context) -> str:
        return (await ctx.sample("Hello", max_tokens=5)).text

    @server.tool
    async def where(ctx: Context) -> str:
        return ", ".join(root.uri for root in await ctx.roots())

    @server.tool
    async def work(ctx: Context) -> str:
        await ctx.progress(1, 2, "half")
        ctx.log.warning("slow today")
        await ctx.progress(2, 2)
        return "done"

    add_items(server)
    return server


def add_items(server):
    """Add a resource, a template and a prompt, with completion."""

    @server.resource("note://all")
    def notes() -> str:
        return "all notes"

    @server.resource("note://{id}")
    def note(id: str) -> str:
        return f"note {id}"

    @note.completes("id")
    def ids(typed: str) -> list[str]:
        return [one for one in ("alpha", "beta") if one.startswith(typed)]

    @server.prompt
    def greet(name: str) -> str:
        return f"Greet {name}."

    @greet.completes("name")
    def names(typed: str) -> list[str]:
        return ["Ada"]


def make_proxy(revision=MODERN, **options):
    """A proxy to it."""
    return Server.proxy(make_upstream(revision), **options)


def answer(question):
    """Answer with the question itself."""
    return Accepted(None if question.mode == "url" else {"value": question.message})


def make_client(target, revision, **options):
    """A client that can be asked everything."""
    every = {
        "elicit": answer,
        "sample": lambda request: request.messages[0].content.text + "!",
        "roots": ["file:///srv"],
        "revision": revision,
    }
    return Client(target, **{**every, **options})


@pytest.mark.parametrize("inner", FIVE)
@pytest.mark.parametrize("outer", FIVE)
async def test_everything_passes_between_all_revisions(outer, inner):
    """Tools, resources, templates, prompts and completion are those of the server behind."""
    proxy = make_proxy(inner)
    async with make_client(proxy, outer) as client:
        assert "Be kind." == client.instructions
        assert "add" in [tool.name for tool in await client.list_tools()]
        assert "3" == (await client.call_tool("add", {"a": 1, "b": 2})).text
        assert (await client.call_tool("fail")).is_error
        with pytest.raises(Refused, match=r"not today \(-31000\)") as refused:
            await client.call_tool("refuse")
        assert {"why": "rain"} == refused.value.data
        assert ["note://all"] == [one.uri for one in await client.list_resources()]
        templates = await client.list_resource_templates()
        assert ["note://{id}"] == [one.uri_template for one in templates]
        assert "note x" == (await client.read_resource("note://x")).contents[0].text
        assert ["greet"] == [one.name for one in await client.list_prompts()]
        prompt = await client.get_prompt("greet", {"name": "Ada"})
        assert "Greet Ada." == prompt.messages[0].content.text
        if inner != "2024-11-05" and outer != "2024-11-05":
            found = await client.complete(ResourceTemplateReference(uri="note://{id}"), "id", "a")
            assert ["alpha"] == found.values
            found = await client.complete(PromptReference(name="greet"), "name")
            assert ["Ada"] == found.values
        assert "Hello!" == (await client.call_tool("think")).text
        assert "file:///srv" == (await client.call_tool("where")).text
        said, heard = [], []
        client._notifications._told_of_log = lambda message: heard.append(message.data)
        await client.call_tool("work", on_progress=lambda step: said.append(step.progress))
        assert [1, 2] == said
    await proxy.close()


@INNER
@OUTER
async def test_log_messages_reach_the_client_whose_call_it_is(outer, inner):
    """They keep their level and words."""
    proxy, heard = make_proxy(inner), []
    async with make_client(proxy, outer, on_log=heard.append) as client:
        await client.call_tool("work")

    assert [("warning", "slow today")] == [(one.level, one.data) for one in heard]
    await proxy.close()


@pytest.mark.parametrize("transport", ["memory", "http"])
@INNER
@OUTER
async def test_questions_go_to_the_client_and_answers_come_back(outer, inner, transport):
    """Forms and pages, in the way that each side's revision has."""
    upstream = make_upstream(inner)
    if transport == "memory":
        proxy = Server.proxy(upstream)
        async with make_client(proxy, outer) as client:
            await check_questions(client)
        await proxy.close()
        return
    async with serving(upstream) as inner_url:
        proxy = Server.proxy(inner_url)
        async with serving(proxy) as outer_url, make_client(outer_url, outer) as client:
            await check_questions(client)
        await proxy.close()


async def check_questions(client):
    """Ask for a form twice, and for a page."""
    assert "Name? Colour?" == (await client.call_tool("ask")).text
    assert "Accepted" == (await client.call_tool("visit")).text


@INNER
@OUTER
async def test_a_user_may_decline(outer, inner):
    """No is an answer as any other."""
    proxy = make_proxy(inner)
    async with make_client(proxy, outer, elicit=lambda _: Declined()) as client:
        assert "Declined() Declined()" == (await client.call_tool("ask")).text
    await proxy.close()


@INNER
@OUTER
async def test_a_client_that_cannot_be_asked_is_not_asked(outer, inner):
    """The server behind is told what this client declared, and refuses as it would directly."""
    proxy, direct = make_proxy(inner), make_upstream(inner)

    async def read_outcome(target):
        async with Client(target, revision=outer if target is proxy else inner) as client:
            try:
                return (await client.call_tool("ask")).text
            except CapabilityRequired as error:
                return error.message

    assert await read_outcome(direct) == await read_outcome(proxy)
    await proxy.close()


# Whose question and whose answer


@OUTER
async def test_questions_of_callers_at_once_are_not_mixed_up(outer):
    """A server of up to 2025-11-25 cannot say whose question it is: each has a connection."""
    proxy = make_proxy(LEGACY)

    async def call(name):
        async def say(_question):
            await asyncio.sleep(0)
            return Accepted({"value": name})

        async with make_client(proxy, outer, elicit=say) as client:
            results = await asyncio.gather(*(client.call_tool("ask") for _ in range(3)))
            return {result.text for result in results}

    names = [f"user{number}" for number in range(5)]
    assert [{f"{name} {name}"} for name in names] == await asyncio.gather(*map(call, names))
    await proxy.close()


class Bystander:
    """A client of 2026-07-28 that makes single rounds, as an attacker would."""

    def __init__(self, target):
        self.client = make_client(target, MODERN)

    async def __aenter__(self):
        await self.client.open()
        return self

    async def __aexit__(self, *_):
        await self.client.close()

    async def call(self, name="ask", arguments=None, **members):
        params = {"name": name, "arguments": arguments or {}, **members}
        return await self.client.request("tools/call", params)


ADA = {"action": "accept", "content": {"value": "Ada"}}


async def test_a_parked_call_goes_on_once_for_its_own_tool_and_arguments():
    """The state is sealed to the call; a second answer finds no call, and nothing is run again."""
    started, upstream = [], make_upstream(LEGACY)

    @upstream.tool
    async def once(ctx: Context) -> str:
        started.append(1)
        return (await ctx.elicit("Sure?", str)).value

    proxy = Server.proxy(upstream)
    async with Bystander(proxy) as caller:
        asked = await caller.call("once", {})
        state, (key,) = asked["requestState"], asked["inputRequests"]
        answers = {"requestState": state, "inputResponses": {key: ADA}}
        with pytest.raises(InvalidParams, match="requestState cannot be used here"):
            await caller.call("ask", {}, **answers)
        with pytest.raises(InvalidParams, match="requestState cannot be used here"):
            await caller.call("once", {"x": 1}, **answers)
        done = await caller.call("once", {}, **answers)
        assert "Ada" == done["content"][0]["text"]
        with pytest.raises(Refused, match="not under way any more"):
            await caller.call("once", {}, **answers)
    assert [1] == started
    await proxy.close()


@run_in_virtual_time
async def test_a_parked_call_of_another_process_is_a_clear_error():
    """Nothing is called again by itself."""
    secret = bytes(range(16))
    one, other = make_proxy(LEGACY, secret=secret), make_proxy(LEGACY, secret=secret)
    async with Bystander(one) as here, Bystander(other) as there:
        asked = await here.call()
        (key,) = asked["inputRequests"]
        with pytest.raises(Refused, match="it is not called again by itself"):
            await there.call(requestState=asked["requestState"], inputResponses={key: ADA})
    await one.close()
    await other.close()


@run_in_virtual_time
async def test_parked_calls_are_bounded_in_number_and_time():
    """Beyond the bound a call is refused, and one that nobody comes back to is given up."""
    proxy = make_proxy(LEGACY, max_parked=2, parked_timeout=600)
    async with Bystander(proxy) as caller:
        first = await caller.call()
        await caller.call()
        await asyncio.sleep(100)
        with pytest.raises(Refused, match="answer some first, or try again in 500 s") as refused:
            await caller.call()
        assert 499 == refused.value.data["retryAfterMs"] // 1000  # the first one began a moment ago
        await asyncio.sleep(501)
        with pytest.raises(Refused, match="not under way any more"):
            await caller.call(requestState=first["requestState"])
    await proxy.close()


async def test_a_question_that_is_nobodys_is_refused():
    """A server that asks while no call is under way hears so, and no client is asked."""
    outcomes, upstream = [], Server("nosy", revisions=[LEGACY])
    returned, told = asyncio.Event(), asyncio.Event()

    @upstream.tool
    async def later(ctx: Context) -> str:
        link = ctx._inbound.link

        async def ask_later():
            await returned.wait()
            form = {"type": "object", "properties": {}}
            question = ElicitParams(message="Password?", requested_schema=form)
            try:
                await link.call("elicitation/create", question, ElicitResult)
            except Refused as error:
                outcomes.append(error.message)
            told.set()

        link.start(ask_later())
        return "ok"

    asked = []
    proxy = Server.proxy(upstream)
    async with make_client(proxy, LEGACY, elicit=lambda q: asked.append(q) or Declined()) as client:
        await client.call_tool("later")
        returned.set()
        async with asyncio.timeout(5):
            await told.wait()

    assert [] == asked
    assert "belongs to no one call" in outcomes[0]
    await proxy.close()


async def test_each_session_has_its_own_connection_to_a_server_with_sessions():
    """State that the server behind keeps for a session is not shared between clients."""
    upstream = Server("counting", revisions=[LEGACY])
    counts = {}

    @upstream.tool
    async def count(ctx: Context) -> int:
        link = ctx._inbound.link
        counts[link] = counts.get(link, 0) + 1
        return counts[link]

    proxy = Server.proxy(upstream)
    async with make_client(proxy, LEGACY) as ada, make_client(proxy, LEGACY) as bob:
        seen = [(await one.call_tool("count")).text for one in (ada, ada, bob, ada)]
    assert ["1", "2", "1", "3"] == seen
    await proxy.close()


async def test_connections_are_bounded_and_closed_with_their_sessions():
    """One session more than there may be is told to come again later."""
    proxy = make_proxy(LEGACY, max_connections=1)
    async with make_client(proxy, LEGACY) as client:
        await client.call_tool("add", {"a": 1, "b": 2})
        async with make_client(proxy, LEGACY) as other:
            with pytest.raises(Refused, match="Too many connections") as refused:
                await other.call_tool("add", {"a": 1, "b": 2})
            assert -31503 == refused.value.code
    async with make_client(proxy, LEGACY) as client:
        assert "3" == (await client.call_tool("add", {"a": 1, "b": 2})).text
    await proxy.close()


# What a server behind may do


async def test_output_is_sanitised_by_the_proxy():
    """Terminal sequences of a server behind do not reach the client; sanitise=None lets them pass."""
    upstream = Server("loud", sanitise=None)
    upstream.tool(lambda: "\x1b[2Jhidden", name="paint")

    for options, text in (({}, "hidden"), ({"sanitise": None}, "\x1b[2Jhidden")):
        proxy = Server.proxy(upstream, **options)
        async with Client(proxy) as client:
            assert text == (await client.call_tool("paint")).text
        await proxy.close()


async def test_what_a_server_behind_sends_is_bounded():
    """The limits of its client hold: a result that is too large is refused."""
    upstream = Server("large")
    upstream.tool(lambda: "x" * 5000, name="much")

    proxy = Server.proxy(upstream, limits_of_upstream=ClientLimits(result_bytes=1000))
    async with Client(proxy) as client:
        with pytest.raises(Refused, match="'large' behind this one gave no usable answer"):
            await client.call_tool("much")
    await proxy.close()


async def test_no_token_is_passed_on():
    """The server behind sees none of the headers that came to the proxy."""
    upstream, seen = Server("curious"), []

    @upstream.tool
    def look(ctx: Context) -> str:
        seen.append(dict(ctx.headers))
        return "seen"

    async with serving(upstream) as inner:
        proxy = Server.proxy(inner, headers={"X-Own": "1"})
        secret = {"Authorization": "Bearer abc", "X-Api-Key": "k", "Cookie": "c=1"}
        async with serving(proxy) as outer, Client(outer, headers=secret) as client:
            await client.call_tool("look")
        await proxy.close()

    assert "1" == seen[0]["x-own"]
    assert set() == {"authorization", "x-api-key", "cookie"} & set(seen[0])


@INNER
async def test_meta_of_ones_own_goes_on_and_that_of_the_protocol_is_said_anew(inner):
    """What a client adds to _meta reaches the server behind."""
    upstream, seen = Server("curious", revisions=[inner]), []

    @upstream.tool
    def look(ctx: Context) -> str:
        seen.append(dict(ctx.meta))
        return "seen"

    proxy = Server.proxy(upstream)
    async with Client(proxy) as client:
        await client.call_tool("look", meta={"com.example/trace": "t1"})

    assert "t1" == seen[0]["com.example/trace"]
    assert "progressToken" not in seen[0]
    await proxy.close()


@INNER
@run_in_virtual_time
async def test_proxies_in_a_circle_are_found(inner):
    """A request that came through too many proxies is refused."""
    there = []

    async def dial():
        return await memory_target(there[0]).dial()

    first = Server.proxy(Target("second", dial, handshake=inner == LEGACY), name="first")
    second = Server.proxy(first, name="second")
    there.append(second)
    async with Client(second, revision=inner, timeout=20) as client:
        with pytest.raises(Refused, match="in a circle"):
            await client.call_tool("anything")
    await second.close()
    await first.close()


# When the server behind is gone, changes, or takes long


def make_fragile(revision=MODERN):
    """A target that can be switched off and on, and what holds its connections."""
    upstream, state, channels = make_upstream(revision), {"up": True}, []
    inner = memory_target(upstream)

    async def dial():
        if not state["up"]:
            raise ConnectFailed("nobody listens at 10.0.0.7:9000")
        channel = await inner.dial()
        channels.append(channel)
        return channel

    async def stop():
        state["up"] = False
        for channel in channels:
            await channel.close()
        channels.clear()

    return Target("fragile", dial), state, stop


@OUTER
async def test_a_dead_server_is_named_and_its_address_is_not_told(outer):
    """The client reads which server it is; the reason is in the log."""
    target, state, _ = make_fragile()
    state["up"] = False
    proxy = Server.proxy(target, name="billing")
    async with make_client(proxy, outer) as client:
        for work in (client.call_tool("add", {}), client.list_tools()):
            with pytest.raises(
                Refused, match="'billing' behind this one cannot be reached"
            ) as error:
                await work
            assert "10.0.0.7" not in str(error.value)
            assert -31503 == error.value.code
    await proxy.close()


@INNER
@OUTER
@run_in_virtual_time
async def test_a_server_that_was_started_anew_is_connected_to_again(outer, inner):
    """The first call after the rest opens another connection."""
    target, state, stop = make_fragile(inner)
    proxy = Server.proxy(target, name="billing")
    async with make_client(proxy, outer) as client:
        assert "3" == (await client.call_tool("add", {"a": 1, "b": 2})).text
        await stop()
        with pytest.raises(Refused, match="'billing' behind this one cannot be reached"):
            await client.call_tool("add", {"a": 1, "b": 2})
        state["up"] = True
        await asyncio.sleep(REST_AFTER_FAILURE_S)
        assert "3" == (await client.call_tool("add", {"a": 1, "b": 2})).text
    await proxy.close()


@INNER
@OUTER
@run_in_virtual_time
async def test_a_call_that_is_cancelled_is_cancelled_behind(outer, inner):
    """The server behind stops working, too."""
    upstream, stopped = Server("slow", revisions=[inner]), asyncio.Event()

    @upstream.tool
    async def sleep() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    proxy = Server.proxy(upstream)
    async with make_client(proxy, outer) as client:
        with pytest.raises(CallTimedOut):
            await client.call_tool("sleep", timeout=60)
        async with asyncio.timeout(5):
            await stopped.wait()
    await proxy.close()


@INNER
@OUTER
async def test_changes_of_lists_are_told(outer, inner):
    """A tool that appears at the server behind is told of, and can be called."""
    upstream = make_upstream(inner)
    proxy = Server.proxy(upstream)
    async with make_client(proxy, outer) as client:
        await client.list_tools()
        async with client.listen(tools=True) as changes, asyncio.timeout(5):
            upstream.tool(lambda: "hi", name="late")
            await anext(aiter(changes))
        assert "late" in [tool.name for tool in await client.list_tools(fresh=True)]
        assert "hi" == (await client.call_tool("late")).text
    await proxy.close()


@INNER
@OUTER
@run_in_virtual_time
async def test_updates_of_resources_are_told(outer, inner):
    """Subscriptions of one era are those of the other."""
    upstream = make_upstream(inner)
    proxy = Server.proxy(upstream)
    async with make_client(proxy, outer) as client, asyncio.timeout(5):
        async with client.listen(uris=["note://all"]) as changes:
            heard = asyncio.ensure_future(anext(aiter(changes)))
            while not heard.done():
                upstream.notify_resource_updated("note://all")
                await asyncio.sleep(0.01)
        assert "note://all" == heard.result().uri
    await proxy.close()


@OUTER
async def test_pages_that_a_call_needs_first_are_asked_for(outer):
    """The error of 2025-11-25 passes to its clients, and is a question for later ones."""
    upstream, visits = Server("paid", revisions=[LEGACY]), []

    @upstream.tool
    async def buy() -> str:
        if not visits:
            raise UrlRequired(("https://pay.example/1", "Pay first"))
        return "bought"

    def visit(question):
        visits.append(question.url)
        return Accepted(None)

    proxy = Server.proxy(upstream)
    limits = ClientLimits(page_wait=0.01)
    async with make_client(proxy, outer, elicit=visit, limits=limits) as client:
        assert "bought" == (await client.call_tool("buy")).text
    assert ["https://pay.example/1"] == visits
    await proxy.close()


@OUTER
async def test_a_tool_that_runs_as_a_task_only_is_awaited(outer):
    """Tasks end at the proxy: such a tool is listed and called as any other."""
    upstream = Server("tasks", revisions=[LEGACY])

    @upstream.tool(task="required")
    async def render() -> str:
        return "rendered"

    proxy = Server.proxy(upstream)
    async with make_client(proxy, outer) as client:
        assert not (await client.list_tools())[0].execution
        assert "rendered" == (await client.call_tool("render")).text
    await proxy.close()


async def test_a_proxy_is_told_at_once_what_is_wrong_with_its_target():
    """A target of no known kind, and options that are misspelt."""
    with pytest.raises(UsageError, match="cannot connect to"):
        Server.proxy(object())
    with pytest.raises(TypeError, match="headerz"):
        Server.proxy("http://127.0.0.1:1/mcp", headerz={})


async def test_a_connection_is_kept_for_the_next_call_of_the_same_caller():
    """Three calls of a client that can be asked, one of them refused, need one connection more."""
    dials, inner = [], memory_target(make_upstream(LEGACY))

    async def dial():
        dials.append(1)
        return await inner.dial()

    proxy = Server.proxy(Target("counted", dial, handshake=True))
    async with make_client(proxy, MODERN) as client:
        await client.call_tool("ask")
        with pytest.raises(Refused, match="not today"):
            await client.call_tool("refuse")
        await client.call_tool("ask")
    assert 2 == len(dials)
    await proxy.close()


async def test_an_unused_connection_is_closed():
    """After idle_timeout it is gone, and the next call opens another."""
    proxy = make_proxy(LEGACY, idle_timeout=0.01, max_connections=1)
    async with make_client(proxy, MODERN) as one, make_client(proxy, MODERN, roots=None) as other:
        await one.call_tool("ask")
        await other.call_tool("ask")  # whose capabilities differ: it needs the only place
    await proxy.close()
