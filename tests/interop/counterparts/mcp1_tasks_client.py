"""A client of PyPI mcp 1.x that runs tools of the command given as tasks, and prints what it sees."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client


async def elicit(_context, params):
    assert "io.modelcontextprotocol/related-task" in params.meta.model_dump()
    return types.ElicitResult(action="accept", content={"minutes": 4})


async def main():
    command = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with (
        stdio_client(command) as (reader, writer),
        ClientSession(reader, writer, elicitation_callback=elicit) as session,
    ):
        await session.initialize()
        tasks = session.experimental
        created = await tasks.call_tool_as_task("steak", {}, ttl=60_000)
        id, statuses, result = created.task.taskId, [], None
        async for state in tasks.poll_task(id):
            statuses.append(state.status)
            if state.status == "input_required":
                result = await tasks.get_task_result(id, types.CallToolResult)
        listed = [task.taskId for task in (await tasks.list_tasks()).tasks]
        other = await tasks.call_tool_as_task("banquet", {"guests": 900}, ttl=60_000)
        cancelled = await tasks.cancel_task(other.task.taskId)
        seen = {
            "statuses": statuses,
            "text": result.content[0].text,
            "listed": listed == [id],
            "cancelled": cancelled.status,
        }
        print(json.dumps(seen))


asyncio.run(main())
