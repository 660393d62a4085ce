"""Lists of a proxy: what the server behind is asked for them."""

from isthmus import Client, Server


async def test_a_list_is_asked_for_once_at_the_server_behind():
    """Ours: two proxies in a row would ask four times otherwise, and a circle of them 512 times."""
    behind, asked = Server("behind"), []

    @behind.tool
    async def ping() -> str:
        """Answer."""
        return "pong"

    class Counting:
        """Counts lists."""

        async def on_list_tools(self, context, call_next):
            asked.append("tools/list")
            return await call_next(context)

    behind.use(Counting())
    async with Client(Server.proxy(Server.proxy(behind))) as client:
        before = len(asked)
        await client.list_tools()

    assert 1 == len(asked) - before
