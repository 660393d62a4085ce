"""A client that logs in: once to read, once more when it first books.

``python examples/protected/client.py URL``; a browser opens. Tokens are kept where the system keeps
secrets, or in memory where there is no such place.
"""

import asyncio
import sys

from isthmus import Client
from isthmus.auth import OAuth


async def visit(url: str, auth: OAuth) -> None:
    """List the bookings, make one, list them again."""
    async with Client(url, auth=auth) as client:
        print("bookings:", (await client.call_tool("list_bookings")).parse(list))
        print((await client.call_tool("book", {"date": "2026-05-01"})).text)
        print("bookings:", (await client.call_tool("list_bookings")).parse(list))


if __name__ == "__main__":
    asyncio.run(visit(sys.argv[1], OAuth(client_name="Bookings example")))
