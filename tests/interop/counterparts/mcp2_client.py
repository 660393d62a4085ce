"""PyPI ``mcp`` 2.3's client, playing the script of ``steps.py``."""

import mcp.client.session
import mcp.types as t
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.shared.exceptions import MCPError
from steps import ROOT, ROW, THOUGHT, Player, plan, report, told


class Theirs(Player):
    """The verbs, with that client."""

    def code(self, error):
        return error.error.code if isinstance(error, MCPError) else None

    async def pages(self, method, items):
        found, cursor = [], None
        while True:
            page = await method(cursor=cursor)
            found += getattr(page, items)
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def tools(self):
        return sorted(tool.name for tool in await self.pages(self.client.list_tools, "tools"))

    async def resources(self):
        found = await self.pages(self.client.list_resources, "resources")
        return sorted(str(resource.uri) for resource in found)

    async def templates(self):
        found = await self.pages(self.client.list_resource_templates, "resource_templates")
        return sorted(template.uri_template for template in found)

    async def prompts(self):
        return sorted(
            prompt.name for prompt in await self.pages(self.client.list_prompts, "prompts")
        )

    async def call(self, name, arguments, begun=None):
        progress = []

        async def on_progress(done, total, message):
            progress.append(done)
            if begun is not None:
                begun()

        result = await self.client.call_tool(name, arguments, progress_callback=on_progress)
        text = "\n".join(b.text for b in result.content if b.type == "text")
        return told(text, error=result.is_error, progress=progress)

    async def read(self, uri):
        return (await self.client.read_resource(uri)).contents[0].text

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, prompt, argument, value):
        ref = t.PromptReference(type="ref/prompt", name=prompt)
        found = await self.client.complete(ref, {"name": argument, "value": value})
        return sorted(found.completion.values)

    async def ping(self):
        await self.client.send_ping()
        return True

    async def hear(self, uris):
        if self.client.protocol_version < "2026":
            for uri in uris:
                await self.client.subscribe_resource(uri)
        else:
            self.listening = self.client.listen(
                tools_list_changed=True, resource_subscriptions=uris
            )
            await self.listening.__aenter__()
        return True

    async def message(self, message):
        match message:
            case t.ToolListChangedNotification():
                self.hears("changes", "tools")
            case t.ResourceUpdatedNotification():
                self.hears("changes", f"updated {message.params.uri}")


async def choose(context, question):
    if question.mode == "url":
        return t.ElicitResult(action="accept")
    return t.ElicitResult(action="accept", content=ROW)


async def think(context, request):
    text = t.TextContent(type="text", text=THOUGHT)
    return t.CreateMessageResult(role="assistant", content=text, model="official")


async def roots(context):
    return t.ListRootsResult(roots=[t.Root(uri=ROOT)])


async def main():
    player = Theirs(plan())
    transport, target = player.plan["transport"], player.plan["target"]
    revision = player.plan["revision"]
    if transport == "stdio":
        target = StdioServerParameters(command=target[0], args=target[1:])
    elif transport == "sse":
        target = sse_client(target)
    mode = revision if revision >= "2026" else "legacy"
    # The handshake has one revision to offer; there is no option to offer an older one.
    mcp.client.session.LATEST_HANDSHAKE_VERSION = revision

    async def log(params):
        player.hears("logs", params.data)

    async with Client(
        target,
        mode=mode,
        elicitation_callback=choose,
        sampling_callback=think,
        list_roots_callback=roots,
        logging_callback=log,
        log_level="info",
        message_handler=player.message,
        cache=None,
    ) as client:
        player.client = client
        if mode == "legacy":
            await client.set_logging_level("info")
        outcomes = await player.play()
        report(client.protocol_version, outcomes)


if __name__ == "__main__":
    import asyncio

    asyncio.run(main())
