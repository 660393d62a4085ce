"""A kitchen whose dishes take a while: tools that run as tasks, in every revision that has them.

Run it with ``isthmus run examples/tasks.py``, with ``--http 127.0.0.1:8000`` for HTTP, or as
``python examples/tasks.py`` to watch a client order three dishes.
"""

import asyncio

from msgspec import Struct

from isthmus import Accepted, Client, Context, Server, ToolError

server = Server("kitchen", version="1.0", instructions="Order, and come back when it is done.")

MINUTE = 0.01
"""Seconds that a minute takes in this kitchen."""


class Doneness(Struct):
    """How well done it is to be."""

    minutes: int = 3


@server.tool(task="optional")
async def soup(portions: int, ctx: Context) -> str:
    """Cook a soup; whoever wants to may wait, and whoever does not may come back.

    Args:
        portions: how many.
    """
    for portion in range(portions):
        await ctx.progress(portion, total=portions, message=f"{portion} of {portions} portions")
        await asyncio.sleep(MINUTE)
    return f"{portions} portions of soup"


@server.tool(task="required")
async def steak(ctx: Context) -> str:
    """Fry a steak, asking on the way how it is to be: this takes too long for a call."""
    match await ctx.elicit("How well done?", Doneness):
        case Accepted(Doneness(minutes)):
            await asyncio.sleep(minutes * MINUTE)
            return f"a steak of {minutes} minutes"
        case _:
            raise ToolError("nobody wants the steak")


@server.tool(task="optional", task_starts="in_body")
async def banquet(guests: int, ctx: Context) -> str:
    """Prepare a banquet: a task if there are many guests, an ordinary call if there are few.

    Args:
        guests: how many.
    """
    if guests > 4:
        answer = await ctx.elicit(f"Really {guests} guests?")
        if not isinstance(answer, Accepted):
            raise ToolError("then not")
        await ctx.start_task(f"cooking for {guests}")
    await asyncio.sleep(guests * MINUTE)
    return f"dinner for {guests}"


@server.tool
async def reserve(ctx: Context) -> str:
    """Reserve a table; the guest may take long to say for how many, so that may be a task, too."""
    match await ctx.elicit("For how many?", int, task=True):
        case Accepted(guests):
            return f"a table for {guests}"
    raise ToolError("nobody comes")


async def main() -> None:
    """Order from the kitchen, in three ways, and be asked for long."""
    async with Client(server, elicit=lambda _: Accepted({"minutes": 5})) as client:
        # `call_tool` waits for a task, and its questions reach the same handler.
        print((await client.call_tool("steak")).text)

        # `start_tool` starts it, and the handle fetches its result later.
        task = await client.start_tool("soup", {"portions": 3})
        print("ordered:", (await task.status()).status)
        print((await task.result()).text)

        # `cancel` stops the task at the server.
        dinner = await client.start_tool("banquet", {"guests": 400})
        await dinner.cancel()
        print("cancelled:", (await dinner.status()).status)

    # The client may answer by tasks of its own (2025-11-25); everything else stays the same.
    async with Client(
        server,
        revision="2025-11-25",
        elicit=lambda _: Accepted({"value": 4}),
        answer_tasks=True,
    ) as client:
        print((await client.call_tool("reserve")).text)


if __name__ == "__main__":
    asyncio.run(main())
