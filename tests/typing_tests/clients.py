"""A client and a test as their authors write them, with the types a checker must see in them."""

from collections.abc import Mapping
from typing import Any, TypedDict, assert_type

from msgspec import Struct

from isthmus import Accepted, Client, Command, Declined, Server
from isthmus.client.model.results import ToolResult
from isthmus.client.subscriptions import Change
from isthmus.core.answers import Answer
from isthmus.testing import connect, every_revision, script
from isthmus.types import (
    CreateMessageParams,
    ElicitParams,
    LogMessageParams,
    ProgressParams,
    Prompt,
    ReadResourceResult,
    Resource,
    Tool,
)


class Seat(Struct):
    """Where to sit."""

    row: int


class Booking(Struct):
    """A place that is yours."""

    code: str


class Price(TypedDict):
    """What it costs."""

    euro: int


async def ask_user(question: ElicitParams) -> Answer[Seat]:
    """Answer for the user."""
    return Accepted(Seat(row=12)) if question.message else Declined()


def ask_shortly(question: ElicitParams) -> Accepted[dict[str, int]]:
    """Answer at once."""
    return Accepted({"row": len(question.message)})


async def think(request: CreateMessageParams) -> str:
    """Write for the server."""
    return str(request.max_tokens)


def heard(message: LogMessageParams) -> None:
    """Hear a log message."""


async def changed(change: Change) -> None:
    """Hear of a change."""


async def talk(server: Server) -> None:
    """Every kind of target, every kind of handler, every call."""
    Client(server)
    Client("server.py")
    Client(Command("uvx", "mcp-server-time"))
    Client({"command": "uvx", "args": ["mcp-server-time"]})
    Client(server, elicit=ask_shortly, sample=lambda request: "yes", roots=["/tmp"])
    async with Client(
        "http://127.0.0.1:8000/mcp",
        elicit=ask_user,
        sample=think,
        roots=lambda: ["/tmp"],
        on_log=heard,
        on_change=changed,
        headers={"Authorization": "Bearer x"},
    ) as client:
        assert_type(client, Client)
        assert_type(await client.list_tools(), list[Tool])
        assert_type(await client.list_resources(), list[Resource])
        assert_type(await client.list_prompts(), list[Prompt])
        result = await client.call_tool("book", {"date": "2026-05-01"}, on_progress=told, timeout=3)
        assert_type(result, ToolResult)
        assert_type(result.text, str)
        assert_type(result.parse(Booking), Booking)
        assert_type(result.parse(list[Booking]), list[Booking])
        assert_type(result.parse(Price), Price)
        assert_type(result.parse(int), int)
        assert_type(await client.read_resource("booking://A1"), ReadResourceResult)
        assert_type(await client.request("acme/refund", {"code": "A1"}, Booking), Booking)
        assert_type(await client.request("acme/book", Booking("A1"), Booking), Booking)
        assert_type(client.extension("com.example/refunds"), Mapping[str, Any] | None)
        assert_type(client.require_extension("com.example/refunds"), Mapping[str, Any])
        await client.call_tool("book", on_progress=print)
        await client.call_tool("book", on_progress=told_async)
        async with client.listen(tools=True, uris=["booking://A1"]) as changes:
            async for change in changes:
                assert_type(change, Change)


def told(progress: ProgressParams) -> None:
    """Hear of progress."""


async def told_async(progress: ProgressParams) -> None:
    """Hear of progress, too."""


@every_revision
async def test_booking(server: Server, revision: str) -> None:
    """A test, as in the README."""
    answers = script(Accepted(Seat(row=12)))
    async with connect(server, revision=revision, elicit=answers) as bookings:
        assert_type(bookings, Client)
        result = await bookings.call_tool("book", {"date": "2026-05-01"})
        assert_type(result.parse(Booking), Booking)
