"""A server that is restarted under its client: ``python sessions.py``."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import uvicorn

from isthmus import Client, Server


def make_server() -> Server:
    """A server with a secret of its own; with a fixed ``secret=`` sessions would outlive its end."""
    server, calls = Server("counter", version="1.0"), itertools.count(1)

    @server.tool
    def count() -> int:
        """Count the calls since the start."""
        return next(calls)

    return server


class Supervisor:
    """Serves whatever was started last, at one place."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin anew: no sessions, no counts."""
        self.app = make_server().asgi()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request."""
        await self.app(scope, receive, send)


async def work(url: str, restart: Callable[[], None]) -> None:
    """Count, with a restart in between."""
    async with Client(url, revision="2025-11-25") as client:

        @client.on_reconnect
        def told(client: Client) -> None:
            """Hear of it."""
            print(f"a new session with {client.info.name}, which has forgotten its counts")

        for _ in range(2):
            print((await client.call_tool("count")).text)
        restart()
        print((await client.call_tool("count")).text)


async def main() -> None:
    """Serve it, and restart it in the middle of the work."""
    supervisor = Supervisor()
    options = uvicorn.Config(supervisor, port=0, log_level="error", lifespan="off")
    running = uvicorn.Server(options)
    task = asyncio.create_task(running.serve())
    while not running.started:  # noqa: ASYNC110 - uvicorn says it no other way
        await asyncio.sleep(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    await work(f"http://127.0.0.1:{port}/mcp", supervisor.restart)
    running.should_exit = True
    await task


if __name__ == "__main__":
    asyncio.run(main())
