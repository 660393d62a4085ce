"""PyPI ``mcp`` 1.x's client, playing the script of ``steps.py``."""

import asyncio

import mcp.types as t
from mcp import ClientSession, McpError, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from steps import ROOT, ROW, THOUGHT, Player, plan, report, told


class Theirs(Player):
    """The verbs, with that client."""

    def code(self, error):
        return error.error.code if isinstance(error, McpError) else None

    async def pages(self, method, items):
        found, cursor = [], None
        while True:
            page = await method(params=t.PaginatedRequestParams(cursor=cursor))
            found += getattr(page, items)
            cursor = page.nextCursor
            if cursor is None:
                return found

    async def tools(self):
        return sorted(tool.name for tool in await self.pages(self.session.list_tools, "tools"))

    async def resources(self):
        found = await self.pages(self.session.list_resources, "resources")
        return sorted(str(resource.uri) for resource in found)

    async def templates(self):
        found = await self.pages(self.session.list_resource_templates, "resourceTemplates")
        return sorted(template.uriTemplate for template in found)

    async def prompts(self):
        found = await self.pages(self.session.list_prompts, "prompts")
        return sorted(prompt.name for prompt in found)

    async def call(self, name, arguments, begun=None):
        progress = []

        async def on_progress(done, total, message):
            progress.append(done)
            if begun is not None:
                begun()

        result = await self.session.call_tool(name, arguments, progress_callback=on_progress)
        text = "\n".join(b.text for b in result.content if b.type == "text")
        return told(text, error=result.isError, progress=progress)

    async def stop(self, task):
        # Ending the task says nothing to the server: the notification is sent by hand.
        last = t.CancelledNotificationParams(requestId=self.session._request_id - 1)
        await self.session.send_notification(
            t.ClientNotification(t.CancelledNotification(params=last))
        )
        task.cancel()

    async def read(self, uri):
        return (await self.session.read_resource(uri)).contents[0].text

    async def prompt(self, name, arguments):
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, prompt, argument, value):
        ref = t.PromptReference(type="ref/prompt", name=prompt)
        found = await self.session.complete(ref, {"name": argument, "value": value})
        return sorted(found.completion.values)

    async def ping(self):
        await self.session.send_ping()
        return True

    async def hear(self, uris):
        for uri in uris:
            await self.session.subscribe_resource(uri)
        return True

    async def message(self, message):
        match getattr(message, "root", None):
            case t.ToolListChangedNotification():
                self.hears("changes", "tools")
            case t.ResourceUpdatedNotification(params=params):
                self.hears("changes", f"updated {params.uri}")

    async def log(self, params):
        self.hears("logs", params.data)


async def choose(context, question):
    if question.mode == "url":
        return t.ElicitResult(action="accept")
    return t.ElicitResult(action="accept", content=ROW)


async def think(context, request):
    text = t.TextContent(type="text", text=THOUGHT)
    return t.CreateMessageResult(role="assistant", content=text, model="official")


async def roots(context):
    return t.ListRootsResult(roots=[t.Root(uri=ROOT)])


def connection(transport, target):
    """The streams to the server."""
    if transport == "stdio":
        return stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    return sse_client(target) if transport == "sse" else streamable_http_client(target)


async def main():
    player = Theirs(plan())
    # The handshake offers this constant; there is no option to offer an older revision.
    t.LATEST_PROTOCOL_VERSION = player.plan["revision"]
    async with (
        connection(player.plan["transport"], player.plan["target"]) as (read, write, *_),
        ClientSession(
            read,
            write,
            sampling_callback=think,
            elicitation_callback=choose,
            list_roots_callback=roots,
            logging_callback=player.log,
            message_handler=player.message,
        ) as session,
    ):
        player.session = session
        revision = (await session.initialize()).protocolVersion
        await session.set_logging_level("info")
        outcomes = await player.play()
        report(revision, outcomes)


if __name__ == "__main__":
    asyncio.run(main())
