"""A body in a task: it asks, tells, and does things once, as in any call."""

import asyncio
import time

import pytest
from msgspec import UNSET, Struct, structs

from isthmus import Context, Server
from isthmus.wire import RELATED_TASK, TASKS
from support.server.both_eras import (
    ALL_CAPABILITIES,
    LEGACY,
    MODERN,
    EraClient,
    accept_form,
    tool_text,
)

EITHER = pytest.mark.parametrize("revision", [LEGACY, MODERN])
EXTENDED = structs.replace(ALL_CAPABILITIES, extensions={TASKS: {}})


class Name(Struct):
    name: str


ANSWERS = {
    "elicitation/create": accept_form(name="ann"),
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "a haiku"},
        "model": "m",
    },
    "roots/list": {"roots": [{"uri": "file:///a"}]},
}


async def finished(client, name, **arguments):
    """Run a tool as a task, answering what it asks; its result."""
    params = {"name": name, "arguments": arguments}
    legacy = client.caller.revision.name == LEGACY
    if legacy:
        id = (await client.once("tools/call", {**params, "task": {}}))["task"]["taskId"]
        return await client.once("tasks/result", {"taskId": id})
    id = (await client.once("tools/call", params))["taskId"]
    while True:
        for _ in range(30):
            await asyncio.sleep(0)
        state = await client.once("tasks/get", {"taskId": id})
        if state["status"] == "completed":
            return state["result"]
        answers = {key: ANSWERS[q["method"]] for key, q in state.get("inputRequests", {}).items()}
        await client.once("tasks/update", {"taskId": id, "inputResponses": answers})


def able(server, revision):
    return EraClient(server, revision, lambda method, _: ANSWERS[method], able=EXTENDED)


@EITHER
async def test_every_kind_of_question_is_answered(revision):
    """Ours: the same function, the same awaits; it does not know that it is a task."""
    server = Server("s")

    @server.tool(task="optional")
    async def everything(ctx: Context) -> str:
        """Ask all there is to ask."""
        who = await ctx.elicit("Who?", Name)
        haiku = await ctx.sample("A haiku", max_tokens=9)
        roots = await ctx.roots()
        return f"{who.value.name} {haiku.text} {roots[0].uri}"

    assert "ann a haiku file:///a" == tool_text(
        await finished(able(server, revision), "everything")
    )


@EITHER
async def test_what_happens_once_happens_once(revision):
    """Ours: nothing runs twice in a task; ctx.once keeps its meaning."""
    server, did = Server("s"), []

    async def effect(what):
        did.append(what)
        return len(did)

    @server.tool(task="optional")
    async def careful(ctx: Context) -> str:
        """Do, ask, do."""
        first = await ctx.once(effect, "a")
        await ctx.elicit("Who?", Name)
        return f"{first} {await ctx.once(effect, 'b')}"

    assert "1 2" == tool_text(await finished(able(server, revision), "careful"))
    assert ["a", "b"] == did


@EITHER
async def test_a_plain_function_in_a_thread_asks_and_hears_that_it_is_over(revision):
    """Ours: ctx.wait and ctx.cancelled work in a task."""
    server, began, left = Server("s"), asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    @server.tool(task="optional")
    def blocking(ctx: Context) -> str:
        """Ask from a thread, and then work until told to stop."""
        name = ctx.wait(ctx.elicit("Who?", Name)).value.name
        if name == "ann":
            return name
        return ""

    @server.tool(task="optional")
    def endless(ctx: Context) -> str:
        """Work until told to stop."""
        loop.call_soon_threadsafe(began.set)
        while not ctx.cancelled:
            time.sleep(0.001)  # a thread has no events to wait for here
        loop.call_soon_threadsafe(left.set)
        return ""

    client = able(server, revision)
    params = {"name": "endless", **({"task": {}} if revision == LEGACY else {})}
    answer = await client.once("tools/call", params)
    id = (answer.get("task") or answer)["taskId"]
    async with asyncio.timeout(5):
        await began.wait()
        await client.once("tasks/cancel", {"taskId": id})
        await left.wait()

    assert "ann" == tool_text(await finished(client, "blocking"))


async def test_a_capability_that_is_missing_fails_the_task():
    """Spec: -32021 is an error of the protocol, and fails a task of the extension."""
    server = Server("s")

    @server.tool(task="optional")
    async def asks(ctx: Context) -> str:
        """Ask who cannot answer."""
        return (await ctx.sample("?", max_tokens=1)).text

    mute = structs.replace(EXTENDED, sampling=UNSET)
    client = EraClient(server, MODERN, able=mute)
    id = (await client.once("tools/call", {"name": "asks"}))["taskId"]
    for _ in range(30):
        await asyncio.sleep(0)
    state = await client.once("tasks/get", {"taskId": id})

    assert ("failed", -32021) == (state["status"], state["error"]["code"])
    assert {"requiredCapabilities": {"sampling": {}}} == state["error"]["data"]


async def test_notifications_of_ones_own_name_their_task():
    """Spec: whatever belongs to a core task names it."""
    server = Server("s")

    @server.tool(task="optional")
    async def tells(ctx: Context) -> str:
        """Say something of its own."""
        await ctx.notify("acme/moved", {"to": "b", "_meta": {"own": 1}})
        return ""

    client = able(server, LEGACY)
    await finished(client, "tells")
    ((_, params),) = [note for note in client.link.notes if note[0] == "acme/moved"]

    assert "b" == params["to"]
    assert {"own", RELATED_TASK} == set(params["_meta"])


async def test_a_task_can_be_started_over_and_over():
    """Ours: start_task says how it stands, where it is a task already."""
    server = Server("s")

    @server.tool(task="required")
    async def eager(ctx: Context) -> str:
        """Start what is started."""
        return (
            f"{await ctx.start_task('one')} {await ctx.start_task()} {await ctx.start_task('two')}"
        )

    assert "True True True" == tool_text(await finished(able(server, MODERN), "eager"))


async def test_outside_of_tasks_there_is_none_to_start():
    """Ours: a tool that may not be a task goes on as a call."""
    server = Server("s")

    @server.tool
    async def never(ctx: Context) -> str:
        """Try."""
        return f"{await ctx.start_task()}"

    assert "False" == tool_text(await able(server, MODERN).call("never"))
