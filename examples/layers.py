"""A server in layers: one of its own that sees each call of a tool, and ready ones around it.

``isthmus call layers.py search word=tea``; ``isthmus run --http layers.py`` serves it.
"""

import asyncio

from isthmus import Refuse, Server
from isthmus.server.middleware import (
    Caching,
    CallNext,
    Concurrency,
    Deadline,
    Logging,
    MaxResult,
    Middleware,
    MiddlewareContext,
    RequestTiming,
    Retry,
    Timing,
    ToolOutcome,
)
from isthmus.types import CallToolParams


class OpeningHours(Middleware):
    """Refuses what writes while the shop is closed; reading is always allowed."""

    def __init__(self) -> None:
        self.open = True

    async def on_call_tool(
        self,
        ctx: MiddlewareContext[CallToolParams],
        call_next: CallNext[CallToolParams, ToolOutcome],
    ) -> ToolOutcome:
        """Let a call pass, or refuse it."""
        tool = ctx.tool
        reads = tool is not None and tool.annotations and tool.annotations.read_only_hint
        if not self.open and not reads:
            raise Refuse(-32001, "The shop is closed; come back tomorrow.")
        return await call_next(ctx)


hours = OpeningHours()
slowest: list[RequestTiming] = []
searched: list[str] = []

server = Server(
    "layers",
    version="1.0",
    middleware=[
        Logging(),
        Timing(slowest.append),
        MaxResult(20_000),
        hours,
        Caching(60),
        Concurrency(20, per="caller"),
        Deadline(10),
        Retry(3, on=(ConnectionError,)),
    ],
)


@server.tool(read_only=True)
async def search(word: str) -> list[str]:
    """Find articles by a word; the same search within a minute is answered from the cache."""
    searched.append(word)
    await asyncio.sleep(0)
    return [f"{word} {number}" for number in range(3)]


@server.tool
async def order(article: str) -> str:
    """Order an article."""
    return f"{article} is on its way."


@server.tool(read_only=True)
async def catalogue() -> str:
    """Everything there is: too much for one answer, so that it ends with a link to the rest."""
    return "\n".join(f"article {number}" for number in range(5_000))


if __name__ == "__main__":
    server.run()
