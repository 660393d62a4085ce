"""PyPI ``fastmcp`` 4's client, playing the script of ``steps.py``."""

import asyncio

import mcp.client.session
import mcp_types as t
from fastmcp import Client
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from mcp.shared.exceptions import MCPError
from steps import ROOT, ROW, THOUGHT, Player, plan, report, told


class Theirs(Player):
    """The verbs, with that client."""

    def code(self, error):
        return error.error.code if isinstance(error, MCPError) else None

    async def tools(self):
        return sorted(tool.name for tool in await self.client.list_tools())

    async def resources(self):
        return sorted(str(resource.uri) for resource in await self.client.list_resources())

    async def templates(self):
        return sorted(t.uri_template for t in await self.client.list_resource_templates())

    async def prompts(self):
        return sorted(prompt.name for prompt in await self.client.list_prompts())

    async def call(self, name, arguments, begun=None):
        progress = []

        async def on_progress(done, total, message):
            progress.append(done)
            if begun is not None:
                begun()

        result = await self.client.call_tool(
            name, arguments, progress_handler=on_progress, raise_on_error=False
        )
        text = "\n".join(b.text for b in result.content if b.type == "text")
        return told(text, error=result.is_error, progress=progress)

    async def read(self, uri):
        return (await self.client.read_resource(uri))[0].text

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, prompt, argument, value):
        ref = t.PromptReference(type="ref/prompt", name=prompt)
        return sorted((await self.client.complete(ref, {"name": argument, "value": value})).values)

    async def ping(self):
        return await self.client.ping()

    async def hear(self, uris):
        session = self.client.session
        if self.client.protocol_version < "2026":
            for uri in uris:
                await session.subscribe_resource(uri)
        else:
            from mcp.client.subscriptions import listen

            self.listening = listen(session, tools_list_changed=True, resource_subscriptions=uris)
            await self.listening.__aenter__()
        return True


class Messages(MessageHandler):
    """What changes."""

    def __init__(self, player):
        self.player = player

    async def on_tool_list_changed(self, message):
        self.player.hears("changes", "tools")

    async def on_resource_updated(self, message):
        self.player.hears("changes", f"updated {message.params.uri}")


async def choose(message, shape, params, context):
    return ROW


async def think(messages, params, context):
    return THOUGHT


def connection(transport, target):
    """The way to the server."""
    if transport == "stdio":
        return StdioTransport(target[0], target[1:])
    return SSETransport(target) if transport == "sse" else StreamableHttpTransport(target)


async def main():
    player = Theirs(plan())
    revision = player.plan["revision"]
    modern = revision >= "2026"
    # The handshake has one revision to offer; there is no option to offer an older one.
    mcp.client.session.LATEST_HANDSHAKE_VERSION = revision

    async def log(message):
        player.hears("logs", message.data)

    async with Client(
        connection(player.plan["transport"], player.plan["target"]),
        mode=revision if modern else "legacy",
        roots=[ROOT],
        sampling_handler=think,
        elicitation_handler=choose,
        log_handler=log,
        message_handler=Messages(player),
        cache=False,
    ) as client:
        player.client = client
        if not modern:
            await client.set_logging_level("info")
        outcomes = await player.play()
        report(client.protocol_version, outcomes)


if __name__ == "__main__":
    asyncio.run(main())
