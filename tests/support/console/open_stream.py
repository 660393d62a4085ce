"""Streams of a console's live updates, as browsers have them open."""

import asyncio
from contextlib import asynccontextmanager

from support.event_loop import run_until


class OpenStream:
    """A stream of events that a browser has open."""

    def __init__(self):
        self.status = 0
        self.text = ""
        self.task = None
        self._left = asyncio.Event()

    async def receive(self):
        """Say nothing until the browser leaves."""
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        """Take what comes."""
        self.status = message.get("status", self.status)
        self.text += message.get("body", b"").decode()

    async def leave(self):
        """Close it."""
        self._left.set()
        await self.task


@asynccontextmanager
async def open_stream(console, browser, *, method="GET", **headers):
    """A stream of a console, open as long as this lasts."""
    stream = OpenStream()
    scope = browser.make_scope(method, "/console/events", headers)
    stream.task = asyncio.ensure_future(console(scope, stream.receive, stream.send))
    await run_until(lambda: "hello" in stream.text or stream.task.done())
    try:
        yield stream
    finally:
        await stream.leave()
