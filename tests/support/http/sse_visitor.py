"""A client of HTTP+SSE (2024-11-05), by hand."""

import json

from support.http.asgi_driver import Exchange
from support.http.messages import INITIALIZE, INITIALIZED

HOST = {"host": "localhost:8000"}


class Visitor:
    """A client of 2024-11-05, by hand."""

    def __init__(self, target, path="/sse", scope=None, **head):
        self.target = target
        self.head = {**HOST, **{name.replace("_", "-"): value for name, value in head.items()}}
        self.stream = Exchange(target, "GET", path, headers=self.head, scope=scope)
        self.taken = 0

    @property
    def frames(self):
        """The events so far: their types and data."""
        blocks = self.stream.body.decode().split("\n\n")[:-1]
        fields = [dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
                  for block in blocks]  # fmt: skip
        return [(found["event"], found["data"]) for found in fields if "data" in found]

    async def event(self):
        """The next event."""
        while len(self.frames) <= self.taken:
            self.stream._more.clear()
            await self.stream._more.wait()
        self.taken += 1
        return self.frames[self.taken - 1]

    async def message(self):
        """The next message."""
        kind, data = await self.event()
        assert "message" == kind
        return json.loads(data)

    async def arrive(self):
        """Wait for the endpoint."""
        kind, self.endpoint = await self.event()
        assert "endpoint" == kind
        return self

    def post(self, body, **options):
        """Begin to post a message."""
        path, _, query = self.endpoint.partition("?")
        scope = {"query_string": query.encode(), **options.pop("scope", {})}
        head = {**self.head, "content-type": "application/json", **options.pop("headers", {})}
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Exchange(self.target, "POST", path, headers=head, body=[body], scope=scope)

    async def say(self, body):
        """Post a message that is accepted."""
        answer = await self.post(body).done()
        assert (202, b"") == (answer.status, answer.body)

    async def open(self, revision="2024-11-05"):
        """Shake hands; the server's answer."""
        await self.arrive()
        params = {**INITIALIZE["params"], "protocolVersion": revision}
        await self.say({**INITIALIZE, "params": params})
        answer = await self.message()
        await self.say(INITIALIZED)
        return answer

    async def leave(self):
        """Close the stream."""
        self.stream.leave()
        await self.stream.done()
