"""The server that the transcripts of tasks talk to."""

import asyncio

from msgspec import Struct

from isthmus import Accepted, Context, Refuse, Server, ToolError
from isthmus.errors import TaskCancelled


class Size(Struct):
    size: int


def make_bakery():
    """A server whose tools are tasks, but for one."""
    server = Server("bakery", version="1", secret=b"only for transcripts")

    @server.tool
    def price() -> str:
        """Say what it costs, at once."""
        return "2"

    @server.tool(task="optional")
    async def bake(ctx: Context) -> str:
        """Bake, and tell how far it is."""
        await ctx.progress(1, 2, "in the oven")
        return "baked"

    @server.tool(task="optional")
    async def order(ctx: Context) -> str:
        """Ask for a size."""
        match await ctx.elicit("How large?", Size, key="size"):
            case Accepted(Size(size)):
                return f"size {size}"
            case _:
                raise ToolError("not ordered")

    @server.tool(task="required")
    async def rest() -> str:
        """Let the dough rest until somebody has enough of it."""
        await asyncio.Event().wait()
        return "never"

    @server.tool(task="required")
    async def burn() -> str:
        """Fail as requests do."""
        raise Refuse(-32000, "It burns", {"where": "oven"})

    @server.tool(task="required", task_starts="in_body")
    async def cake(ctx: Context) -> str:
        """Ask for a size in the call, and bake as a task."""
        answer = await ctx.elicit("How large?", Size, key="size")
        await ctx.start_task("baking")
        return f"a cake of size {answer.value.size}"

    return server


def make_pantry():
    """A server whose questions may be tasks of the client."""
    server = Server("pantry", version="1", secret=b"only for transcripts")

    @server.tool
    async def choose(ctx: Context) -> str:
        """Ask for a size."""
        try:
            answer = await ctx.elicit("How large?", Size, task=True)
        except TaskCancelled as error:
            return f"nothing: {error}"
        return f"size {answer.value.size}"

    @server.tool
    async def describe(ctx: Context) -> str:
        """Have a model write."""
        return (await ctx.sample("Describe bread", max_tokens=50, task=True)).text

    return server
