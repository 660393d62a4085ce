"""An agent of PyPI pydantic-ai whose scripted model calls two tools of a server.

``pydantic_ai_agent.py URL-OR-COMMAND``, both as JSON, prints what the model read.
"""

import asyncio
import json
import sys

from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel


def write_reply(messages, _info):
    """Call a tool after the other, then say what came."""
    came = {
        part.tool_name: str(part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }
    for name, arguments in (("echo", {"text": "hé ☃"}), ("ask", {})):
        if name not in came:
            return ModelResponse(parts=[ToolCallPart(name, arguments)])
    return ModelResponse(parts=[TextPart(json.dumps(came))])


async def answer(_message, _type, _params, _context):
    """Say which seat."""
    return ElicitResult(action="accept", content={"row": 7})


async def main():
    target = json.loads(sys.argv[1])
    client = StdioTransport(target[0], target[1:]) if isinstance(target, list) else target
    toolset = MCPToolset(client, elicitation_handler=answer)
    done = await Agent(FunctionModel(write_reply), toolsets=[toolset]).run("Do it.")
    print(done.output)


asyncio.run(main())
