"""A server and a client over a WebSocket: one connection, both may speak first.

Needs ``pip install 'isthmus[websocket]'``, for the serving side. Run it: ``python over_websocket.py``.
"""

import asyncio

from isthmus import Accepted, Client, Context, Server
from isthmus.testing import serving

server = Server("door", version="1.0")


@server.tool
async def ring(ctx: Context) -> str:
    """Ring the bell, and wait for an answer from inside."""
    answer = await ctx.elicit("Somebody is at the door. Open?", bool)
    return "The door opens." if answer == Accepted(True) else "Nobody is at home."


async def main() -> None:
    """Be on both sides of the door."""
    async with serving(server, websocket=True) as url:
        target = url.replace("http://", "ws://")
        async with Client(target, elicit=lambda _: Accepted({"value": True})) as client:
            print((await client.call_tool("ring")).text)


if __name__ == "__main__":
    asyncio.run(main())
