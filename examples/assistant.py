"""A client that does everything a server may ask of it: ``python assistant.py``.

The server is in the same process; a URL in its place would do as well.
"""

import asyncio
from pathlib import Path

from isthmus import Accepted, Cancelled, Client, Context, Declined, Server
from isthmus.client import Change, Limits, Rate, concerns
from isthmus.errors import UrlRequired
from isthmus.types import (
    CreateMessageParams,
    ElicitParams,
    TextContent,
    Tool,
    ToolResultContent,
    ToolUseContent,
)

server = Server("travel", version="1.0")
linked: list[str] = []

WEATHER = Tool(
    name="weather",
    description="The weather in a city.",
    input_schema={"type": "object", "properties": {"city": {"type": "string"}}},
)


@server.tool
async def plan(cities: list[str], ctx: Context) -> str:
    """Let the user's model find out where the weather is best."""
    question = f"Where to: {' or '.join(cities)}?"
    first = await ctx.sample(question, max_tokens=200, tools=[WEATHER])
    results = [
        ToolResultContent(tool_use_id=use.id, content=[TextContent(text=f"{use.input}: sunny")])
        for use in first.tool_uses
    ]
    return (await ctx.sample([question, first, *results], max_tokens=200, tools=[WEATHER])).text


@server.tool
async def book(city: str) -> str:
    """Book a flight with the user's own account at the airline."""
    if not linked:
        raise UrlRequired(("https://air.example/link", "Link your account at the airline."))
    return f"booked: {city}"


@server.tool
async def where(ctx: Context) -> str:
    """Say where the user lets this server work."""
    return ", ".join(root.name or root.uri for root in await ctx.roots())


def think(request: CreateMessageParams) -> str | list[ToolUseContent]:
    """The model: looks up the weather in every city at once, and then decides."""
    if len(request.messages) > 1:
        return "Rome: it is sunny there."
    return [
        ToolUseContent(id=city, name="weather", input={"city": city}) for city in ("Paris", "Rome")
    ]


def ask_user(question: ElicitParams) -> Accepted[dict[str, str] | None] | Declined | Cancelled:
    """The user: opens pages that nothing is odd about, and declines forms."""
    if question.mode != "url" or not isinstance(question.url, str):
        return Declined()
    print(f"travel asks: {question.message} Open {question.url}?")
    if concerns(question.url):
        return Declined()
    linked.append(question.url)  # a real one opens the page in a browser
    return Accepted(None)


def changed(change: Change) -> None:
    """What changed on the server."""
    print(f"changed: {change.kind}")


async def main() -> None:
    """Call every tool."""
    client = Client(
        server,
        elicit=ask_user,
        sample=think,
        sample_tools=True,
        roots=[Path.cwd()],
        on_change=changed,
        auto_refresh=0.05,
        limits=Limits(samplings=Rate(20, seconds=60)),
    )
    async with client:
        print([tool.name for tool in await client.list_tools()])
        print((await client.call_tool("plan", {"cities": ["Paris", "Rome"]})).text)
        print((await client.call_tool("book", {"city": "Rome"})).text)
        print((await client.call_tool("where")).text == Path.cwd().name)
        server.remove_tool("book")
        while len(client.latest("tools") or ()) == 3:  # noqa: ASYNC110 - until the server says so
            await asyncio.sleep(0.01)
        print([tool.name for tool in client.latest("tools") or ()])


if __name__ == "__main__":
    asyncio.run(main())
