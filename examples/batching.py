"""Several calls in one array: what revision 2025-03-26 has, and no other.

Run it with ``python examples/batching.py``.
"""

import asyncio

from isthmus import Client, Server
from isthmus.errors import NotInRevision

server = Server("sums", version="1.0")


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def main() -> None:
    """Call a tool three times with one message."""
    async with Client(server, revision="2025-03-26") as client:
        sums = await client.batch(client.call_tool("add", {"a": n, "b": n}) for n in (1, 2, 3))
        print([result.text for result in sums])

    async with Client(server, revision="2025-11-25") as client:
        try:
            await client.batch([client.call_tool("add", {"a": 1, "b": 1})])
        except NotInRevision as no:
            print(no)


if __name__ == "__main__":
    asyncio.run(main())
