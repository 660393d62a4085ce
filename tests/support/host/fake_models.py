"""A provider of models on this machine that answers as a test says, also with half an answer."""

import asyncio
import json
from contextlib import asynccontextmanager

from aiohttp import web


def event(data, name=""):
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "") + f"data: {text}\n\n"


class FakeModels:
    """Answers each request with the next thing it was given, and keeps what it was asked.

    Attributes:
        url: where it is.
        asked: the bodies of all requests.
        headers: the headers of the last one.
        dropped: set when a client let go of a request.
    """

    def __init__(self):
        self.url = ""
        self.asked = []
        self.paths = []
        self.headers = {}
        self.answers = []
        self.dropped = asyncio.Event()

    def stream(self, *events, cut=False, hang=False):
        """Answer with events; ``cut`` breaks off after them, ``hang`` falls silent."""
        self.answers.append(("stream", events, cut, hang))

    def refuse(self, status, body, **headers):
        """Answer with an error."""
        text = body if isinstance(body, str) else json.dumps(body)
        self.answers.append(("refuse", status, text, headers))

    def hang_up(self):
        """Close the connection instead of an answer."""
        self.answers.append(("hang up",))

    async def handle(self, request):
        """One request."""
        self.headers = dict(request.headers)
        self.paths.append(request.path_qs)
        body = await request.read()
        self.asked.append(json.loads(body) if body else None)
        kind, *rest = self.answers.pop(0)
        if kind == "hang up":
            request.transport.close()
            return web.Response()
        if kind == "refuse":
            status, text, headers = rest
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(status=status, text=text, headers=named)
        return await self.send(request, *rest)

    async def send(self, request, events, cut, hang):
        """Events, one write each."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for one in events:
            await response.write(one if isinstance(one, bytes) else one.encode())
        if hang:
            try:
                await asyncio.Event().wait()
            finally:
                self.dropped.set()
        if cut:
            request.transport.close()
        return response


@asynccontextmanager
async def fake_models():
    """A provider, for the time of a test."""
    fake = FakeModels()
    server = web.Server(fake.handle, handler_cancellation=True)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        await runner.cleanup()
