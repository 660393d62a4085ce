"""Proxies and requests that are made again before anybody answered."""

import pytest

from isthmus import Accepted, Context, Server
from isthmus.testing import connect


@pytest.mark.parametrize("behind", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_question_is_asked_again_without_an_answer(behind):
    """Ours: a parked call stays where it is; the strict channel of tests makes each round twice."""
    calls = []
    shop = Server("shop", revisions=[behind])

    @shop.tool
    async def order(item: str, ctx: Context) -> str:
        answer = await ctx.elicit(f"Which size of {item}?", str)
        await ctx.once(calls.append, item)
        return f"{item}, size {answer.value}"

    choose = lambda _question: Accepted({"value": "L"})  # noqa: E731 - what a user says
    async with connect(Server.proxy(shop), revision="2026-07-28", elicit=choose) as client:
        assert "shirt, size L" == (await client.call_tool("order", {"item": "shirt"})).text

    assert ["shirt"] == calls
