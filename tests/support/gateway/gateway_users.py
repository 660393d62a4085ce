"""Users of a gateway over HTTP, each with a token of their own, who speak in both eras."""

import contextlib

from isthmus.gateway import Gateway
from isthmus.wire import TASKS
from support.gateway.http_gateway import make_auth
from support.gateway.small_gateway import make_allowing_host
from support.http.asgi_driver import fetch
from support.http.messages import INITIALIZE, INITIALIZED, legacy_head, modern_body, modern_head

SECRET = bytes(range(32))
HOST = "127.0.0.1:8000"
CAPABILITIES = {
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {"form": {}, "url": {}},
        "extensions": {TASKS: {}},
    }
}


class GatewayUser:
    """A user of a gateway over HTTP, who authenticates with a token of their own.

    Args:
        app: the gateway.
        name: of the user.
        path: the endpoint.
    """

    def __init__(self, app, name, path="/mcp"):
        self.app = app
        self.path = path
        self.who = {"authorization": f"Bearer {name}", "host": HOST}
        self.session = None

    async def ask(self, method, params=None, name=None):
        """Send a request of 2026-07-28: its result, or its error."""
        head = {**modern_head(method, name), **self.who}
        body = modern_body(method, params or {}, **CAPABILITIES)
        return read_outcome(await fetch(self.app, path=self.path, headers=head, body=body))

    async def order(self, before=None, tool="shop__order", **arguments):
        """Order something; after ``before``, with the answer to what that asked."""
        params = {"name": tool, "arguments": arguments or {"item": "shoe"}}
        if before is not None:
            answer = {"action": "accept", "content": {"value": "ann"}}
            params["requestState"] = before["requestState"]
            params["inputResponses"] = dict.fromkeys(before["inputRequests"], answer)
        return await self.ask("tools/call", params, tool)

    async def open_session(self):
        """Open a session of 2025-11-25."""
        head = {**legacy_head(), **self.who}
        opened = await fetch(self.app, path=self.path, headers=head, body=INITIALIZE)
        self.session = opened.header("mcp-session-id")
        await self.post(INITIALIZED)

    async def post(self, body):
        """Send a message in its session; the exchange."""
        return await fetch(self.app, path=self.path, headers=self.make_head(), body=body)

    def make_head(self, **more):
        """The headers of a request in its session."""
        return {**legacy_head(self.session, **more), **self.who}

    async def call(self, method, **params):
        """Send a request in its session: its result, or its error."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return read_outcome(await self.post(body))


def read_outcome(exchange):
    """The result or the error of an exchange."""
    said = (
        exchange.events[-1] if exchange.body.startswith((b"id", b"event", b"data", b":")) else None
    )
    said = exchange.json if said is None else said
    return said.get("result") or said["error"]


@contextlib.asynccontextmanager
async def open_users(secret=SECRET, path="/mcp", **servers):
    """A gateway that two users authenticate to, and both users."""
    host = make_allowing_host()
    for name, server in servers.items():
        host.add(name, server)
    async with Gateway(host, auth=make_auth(), secret=secret) as gateway:
        app = gateway.asgi()
        yield app, GatewayUser(app, "ann", path), GatewayUser(app, "bob", path)
