"""Mounted servers of several processes: state, tasks and changes of one are found at the others."""

import asyncio

import msgspec

from isthmus import Accepted, Context, Server
from isthmus.client.subscriptions import Change
from isthmus.store.memory_store import MemoryStore
from isthmus.testing import connect

MODERN = "2026-07-28"


class Name(msgspec.Struct):
    """A form of one blank."""

    name: str


def make_node(store):
    """A process: its server, and the one that is mounted in it."""
    inner, outer = Server("inner"), Server("outer", store=store)

    @inner.tool
    async def greet(ctx: Context) -> str:
        return (await ctx.elicit("Who?", Name)).value.name

    @inner.tool(task="required")
    async def work() -> str:
        return "done"

    @inner.resource("a://b")
    def b() -> str:
        return ""

    outer.mount(inner, "m")
    return outer, inner


async def test_any_process_goes_on_with_what_another_began():
    """Ours: a mounted server has a section of the outer's store, and keys of its own."""
    store = MemoryStore()
    (here, inner), (there, _) = make_node(store), make_node(store)
    options = {"elicit": lambda _: Accepted(Name("Ada")), "revision": MODERN, "strict": False}
    call = {"name": "m_greet", "arguments": {}}
    async with connect(here, **options) as one, connect(there, **options) as two:
        asked = msgspec.json.decode(await one.request("tools/call", call, msgspec.Raw))
        (key,) = asked["inputRequests"]
        answer = {"action": "accept", "content": {"name": "Ada"}}
        more = {"inputResponses": {key: answer}, "requestState": asked["requestState"]}
        greeted = msgspec.json.decode(await two.request("tools/call", call | more, msgspec.Raw))
        task = await one.start_tool("m_work")
        done = (await two.task(task.id).result()).text
        async with two.listen(uris=["a://m/b"]) as changes:
            inner.notify_resource_updated("a://b")
            heard = await asyncio.wait_for(anext(aiter(changes)), 5)
        keys = [name for name, _ in await store.kv.scan("", "", 100)]

    assert "Ada" == greeted["content"][0]["text"]
    assert "done" == done
    assert Change("resource", "a://m/b") == heard
    assert all(key.startswith(("mount/m/", "agreement", "lease/node/")) for key in keys)
