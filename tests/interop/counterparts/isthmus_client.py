"""Our client, playing the script of ``steps.py``."""

import asyncio
from contextlib import suppress

from steps import ROOT, ROW, THOUGHT, Player, plan, report, told

from isthmus import Accepted, Client, Command
from isthmus.errors import ConnectionLost
from isthmus.types import PromptReference


class Ours(Player):
    """The verbs, with our client."""

    async def tools(self):
        return sorted(tool.name for tool in await self.client.list_tools())

    async def resources(self):
        return sorted(resource.uri for resource in await self.client.list_resources())

    async def templates(self):
        return sorted(t.uri_template for t in await self.client.list_resource_templates())

    async def prompts(self):
        return sorted(prompt.name for prompt in await self.client.list_prompts())

    async def call(self, name, arguments, begun=None):
        progress = []

        def on_progress(report):
            progress.append(report.progress)
            if begun is not None:
                begun()

        result = await self.client.call_tool(name, arguments, on_progress=on_progress)
        return told(result.text, error=result.is_error, progress=progress)

    async def read(self, uri):
        return (await self.client.read_resource(uri)).contents[0].text

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, prompt, argument, value):
        ref = PromptReference(name=prompt)
        return sorted((await self.client.complete(ref, argument, value)).values)

    async def ping(self):
        await self.client.ping()
        return True

    async def hear(self, uris):
        """Listen until the connection ends."""
        self.listening = self.client.listen(tools=True, uris=uris)
        changes = await self.listening.__aenter__()

        async def attend():
            with suppress(ConnectionLost):
                async for change in changes:
                    self.hears("changes", f"updated {change.uri}" if change.uri else change.kind)

        self.attending = asyncio.ensure_future(attend())
        return True


async def main():
    player = Ours(plan())
    target = player.plan["target"]
    async with Client(
        Command(*target) if player.plan["transport"] == "stdio" else target,
        revision=player.plan["revision"],
        probe_timeout=25,
        elicit=lambda question: Accepted(None if question.mode == "url" else ROW),
        sample=lambda _: THOUGHT,
        roots=[ROOT],
        log_level="info",
        on_log=lambda params: player.hears("logs", params.data),
    ) as client:
        player.client = client
        outcomes = await player.play()
        report(client.revision.name, outcomes)


asyncio.run(main())
