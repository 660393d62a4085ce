"""Program for mcp 1.x and 2.x: a group of sessions with servers; prints what it offers and answers.

Usage: ``python mcp_group_tour.py GENERATION COMMAND URL``: the command of a server as JSON, and the URL of another.
"""

import asyncio
import json
import sys

from mcp import ClientSessionGroup, StdioServerParameters
from mcp.client.session_group import ClientSessionParameters, StreamableHttpParameters

heard = []


async def hear_progress(progress, total, message):
    """Told of progress."""
    heard.append([progress, total, message])


async def hear_log(params):
    """Told of a log message."""
    heard.append(params.data)


def list_names(group):
    """The names of what a group offers."""
    return [
        sorted(group.tools),
        sorted(group.resources),
        sorted(group.prompts),
        len(group.sessions),
    ]


async def describe_failure(work):
    """The error that work ends with."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - which one it is, is what is compared
        return [type(error).__name__.upper(), str(error)]
    return "no error"


async def main(command, url):
    """Print what was got."""
    said = []
    launched = StdioServerParameters(command=command[0], args=command[1:])
    remote = StreamableHttpParameters(url=url, headers={"x-of": "tour"})
    prefix = ["one"]

    def name_component(name, info):
        return f"{info.name}_{prefix[0]}_{name}"

    # What is opened last is closed first: the library closes in no other order.
    async with ClientSessionGroup(component_name_hook=name_component) as group:
        await group.connect_to_server(launched, ClientSessionParameters(logging_callback=hear_log))
        said.append(list_names(group))
        prefix[0] = "two"
        second = await group.connect_to_server(remote)
        said.append(list_names(group))
        for name in ("tour_one_add", "tour_two_add"):
            answer = await group.call_tool(name, {"a": 1})
            said.append([answer.content[0].text, group.tools[name].name])
        await group.call_tool("tour_one_write", {})
        await group.call_tool("tour_two_report", {"steps": 2}, progress_callback=hear_progress)
        said.append(heard)
        said.append(await describe_failure(group.call_tool("add", {"a": 1})))
        await group.disconnect_from_server(second)
        said.append(list_names(group))
        said.append(await describe_failure(group.disconnect_from_server(second)))
        prefix[0] = "one"
        kind, text = await describe_failure(group.connect_to_server(launched))
        said.append([kind, "already exist in group prompts." in text])
        said.append(list_names(group))
    print(json.dumps(said))


asyncio.run(main(json.loads(sys.argv[2]), sys.argv[3]))
