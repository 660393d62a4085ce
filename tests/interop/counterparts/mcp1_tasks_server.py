"""A server of PyPI mcp 1.x with one tool that runs as a task, and one that does not."""

import asyncio

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

server = Server("theirs")
server.experimental.enable_tasks()


@server.list_tools()
async def list_tools():
    return [
        types.Tool(
            name="greet",
            description="Greet.",
            inputSchema={"type": "object"},
            execution=types.ToolExecution(taskSupport=types.TASK_REQUIRED),
        ),
        types.Tool(name="plain", description="Answer.", inputSchema={"type": "object"}),
    ]


@server.call_tool()
async def call_tool(name, _arguments):
    if name == "plain":
        return [types.TextContent(type="text", text="at once")]
    experimental = server.request_context.experimental
    experimental.validate_task_mode(types.TASK_REQUIRED)

    async def work(task):
        answer = await task.elicit(message="Who?", requestedSchema=NAME)
        text = f"hello {answer.content['name']}"
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    return await experimental.run_task(work)


async def main():
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


asyncio.run(main())
