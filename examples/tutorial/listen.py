"""A client of step 6 that listens to changes: ``python tutorial/listen.py``."""

import asyncio

from step6 import server

from isthmus import Accepted, Client
from isthmus.types import ElicitParams


def answer(question: ElicitParams) -> Accepted[dict[str, object]]:
    """Fill in the form for the user."""
    print(question.message)
    return Accepted({"reader": "Ada", "weeks": 2})


async def main() -> None:
    """Borrow a book, and print the changes that the server tells of."""
    seen = set()
    async with (
        Client(server, elicit=answer) as client,
        client.listen(tools=True, uris=["library://books/Emma"]) as changes,
    ):
        await client.call_tool("borrow", {"title": "Emma"})
        async for change in changes:
            seen.add(change.kind)
            if len(seen) == 2:
                break
    print(sorted(seen))


if __name__ == "__main__":
    asyncio.run(main())
