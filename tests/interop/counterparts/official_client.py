"""PyPI ``mcp`` 2.3's client on our bookings server: ``official_client.py MODE URL|COMMAND…``.

Prints one JSON object.
"""

import json
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp.types import CreateMessageResult, ElicitResult, TextContent

questions = []
progress = []


async def choose(context, question):
    questions.append(question.message)
    return ElicitResult(action="accept", content={"row": 9, "window": True})


async def think(context, request):
    text = TextContent(type="text", text="In short: nothing.")
    return CreateMessageResult(role="assistant", content=text, model="official")


async def show(done, total, message):
    progress.append(done)


async def main():
    mode, first, *rest = sys.argv[1:]
    target = first if first.startswith("http") else StdioServerParameters(command=first, args=rest)
    out = {}
    async with Client(
        target, mode=mode, elicitation_callback=choose, sampling_callback=think
    ) as client:
        out["revision"] = client.protocol_version
        out["server"] = client.server_info.name
        out["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        out["price"] = (await client.call_tool("price", {"kind": "quiet"})).content[0].text
        out["wrong"] = (await client.call_tool("price", {"kind": "loud"})).is_error
        booked = await client.call_tool("book", {"date": "2026-05-01"}, progress_callback=show)
        out["booked"] = booked.structured_content
        out["summary"] = (await client.call_tool("summarise", {"text": "x"})).content[0].text
        prompt = await client.get_prompt("apology", {"name": "Ada"})
        out["prompt"] = prompt.messages[0].content.text
        out["resources"] = [str(r.uri) for r in (await client.list_resources()).resources]
        read = await client.read_resource("bookings://all")
        out["read"] = len(json.loads(read.contents[0].text))
        try:
            await client.call_tool("no_such_tool", {})
        except MCPError as error:
            out["unknown"] = error.error.code
    out["questions"], out["progress"] = questions, progress
    print(json.dumps(out))


anyio.run(main)
