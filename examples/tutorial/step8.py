"""Step 8, tests: in memory in every revision, and over HTTP with tokens. Run ``pytest step8.py``."""

import importlib
import os
import sys
from pathlib import Path

import pytest

from isthmus import Accepted, Declined
from isthmus.errors import ToolFailed
from isthmus.testing import connect, script

sys.path.insert(0, str(Path(__file__).parent))
os.environ.update(ADA_TOKEN="token-of-ada", BOB_TOKEN="token-of-bob")

import step6
import step7


@pytest.fixture
def library():
    """A fresh server for each test: all books are on the shelf."""
    return importlib.reload(step6)


@pytest.mark.mcp_revisions(needs="elicitation/create")
async def test_borrow_asks_for_reader_and_weeks(library, mcp_client, scripted_user):
    scripted_user.answer_with(Accepted({"reader": "Ada", "weeks": 2}))
    client = await mcp_client(library.server)
    result = await client.call_tool("borrow", {"title": "Emma"})

    assert result.parse(library.Loan).reader == "Ada"
    assert library.SHELF["Emma"] == 1


async def test_nothing_is_lent_if_the_user_declines(library, mcp_client, scripted_user):
    scripted_user.answer_with(Declined())
    client = await mcp_client(library.server)
    result = await client.call_tool("borrow", {"title": "Emma"})

    with pytest.raises(ToolFailed, match="does not want to"):
        result.parse(library.Loan)
    assert library.SHELF["Emma"] == 2


async def test_give_back_is_listed_while_a_book_is_lent(library, mcp_client, scripted_user):
    scripted_user.answer_with(Accepted({"reader": "Ada"}))
    client = await mcp_client(library.server)
    await client.call_tool("borrow", {"title": "Emma"})

    assert "give_back" in [tool.name for tool in await client.list_tools()]


async def test_inventory_reports_each_title(library, mcp_client):
    client = await mcp_client(library.server)
    reports = []
    await client.call_tool("take_inventory", on_progress=reports.append)

    assert [report.message for report in reports] == ["Emma", "Middlemarch", "Dracula"]


@pytest.mark.mcp_asyncio
async def test_a_reader_cannot_give_back_the_loan_of_another():
    user = script(Accepted({"weeks": 1}))
    async with connect(step7.server, transport="http", token="token-of-ada", elicit=user) as ada:
        loan = (await ada.call_tool("borrow", {"title": "Emma"})).parse(step7.Loan)
    async with connect(step7.server, transport="http", token="token-of-bob") as bob:
        result = await bob.call_tool("give_back", {"number": loan.number})

    assert result.text == f"You have no loan {loan.number}."


async def test_the_server_keeps_the_protocol(library, mcp_lint):
    await mcp_lint(library.server, revisions=["2026-07-28"])
