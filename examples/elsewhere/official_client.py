"""PyPI ``mcp``'s own client on our bookings server; run with an interpreter that has ``mcp``.

``official_client.py URL`` or ``official_client.py COMMAND ARGUMENT…``: both eras in turn.
"""

import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import CreateMessageResult, ElicitResult, TextContent


async def choose(_context, question):
    """The user: row 7."""
    print(f"   asked: {question.message!r}")
    return ElicitResult(action="accept", content={"row": 7, "window": False})


async def think(_context, _request):
    """The user's model."""
    text = TextContent(type="text", text="Short. Very short.")
    return CreateMessageResult(role="assistant", content=text, model="tour")


async def show(progress, total, message):
    """Progress, as it arrives."""
    print(f"   progress {progress:g} of {total:g}: {message}")


async def main() -> None:
    """Connect in both eras, list, call, answer the question."""
    first, *rest = sys.argv[1:]
    target = first if first.startswith("http") else StdioServerParameters(command=first, args=rest)
    over = "HTTP" if first.startswith("http") else "stdio"
    for mode in ("legacy", "auto"):
        async with Client(
            target, mode=mode, elicitation_callback=choose, sampling_callback=think
        ) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            print(f"over {over}, {client.protocol_version}: it sees {', '.join(tools)}")
            booked = await client.call_tool("book", {"date": "2026-05-01"}, progress_callback=show)
            print(f"   book(2026-05-01) = {booked.structured_content}")
            summed = await client.call_tool("summarise", {"text": "Lorem ipsum."})
            print(f"   summarise(…) = {summed.content[0].text!r}")


anyio.run(main)
