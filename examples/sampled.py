"""A model behind an API writes for a server. Run it: ``python examples/sampled.py qwen3 http://127.0.0.1:11434/v1``."""

import asyncio
import sys

from isthmus import Client, Context, Server
from isthmus.sampling import OpenAISamplingHandler

server = Server("writer", version="1.0")


@server.tool
async def summary(text: str, ctx: Context) -> str:
    """Sum up a text with the client's model."""
    return (await ctx.sample(f"Sum up in one sentence: {text}", max_tokens=200)).text


async def main(model: str, base_url: str, api_key: str | None = None) -> None:
    """Have the tool called."""
    async with (
        OpenAISamplingHandler(model, base_url=base_url, api_key=api_key) as sample,
        Client(server, sample=sample) as client,
    ):
        print((await client.call_tool("summary", {"text": "Isthmus connects two seas."})).text)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
