"""``python examples/shop``: a customer of 2026-07-28 and one of 2025-06-18 in the same shop."""

import asyncio
from typing import Any

from shop import server

from isthmus import Accepted, Client


async def visit(revision: str) -> None:
    """Look round, order, pay, and have the parcel sent."""

    def answer(question: Any) -> Accepted[dict[str, Any]]:
        print(f"  asked: {question.message}")
        return Accepted({"value": True if "Order for" in question.message else "morning"})

    async with Client(server, revision=revision, elicit=answer) as client:
        print(f"{revision}: {len(await client.list_tools())} tools")
        print(" ", (await client.call_tool("find_gift", {"for_whom_or_what": "tea"})).text)
        print(
            " ", (await client.call_tool("add_to_cart", {"item": "tea", "count": 2})).text, "cents"
        )
        number = (await client.call_tool("order")).text
        paid = await client.call_tool("payment_pay", {"order": number, "amount": 900})
        print(f"  order {number}, payment {paid.structured['id']}")
        print(" ", (await client.call_tool("parcel_send", {"order": number})).text)


async def main() -> None:
    """Serve two customers."""
    for revision in ("2026-07-28", "2025-06-18"):
        await visit(revision)


if __name__ == "__main__":
    asyncio.run(main())
