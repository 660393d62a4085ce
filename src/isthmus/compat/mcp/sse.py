"""``SseServerTransport`` of ``mcp``: the transport of 2024-11-05 in an app of the program's own."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from isthmus.compat.mcp.http import FacadeApp, make_http_app
from isthmus.compat.placement import COMMAND_LINE

LISTENING_PATH = "/sse"
SESSION_ID = re.compile(rb"session_id=([\w.]+)")


class SseConnection:
    """One client's stream of events, which ``Server.run`` takes and serves.

    Args:
        transport: that it came to.
        scope: the ASGI scope of the client's GET.
        receive: the ASGI callable that gives the disconnect.
        send: the ASGI callable that takes the events.
    """

    def __init__(
        self, transport: "SseServerTransport", scope: Any, receive: Any, send: Any
    ) -> None:
        self._transport = transport
        self._scope = scope
        self._receive = receive
        self._send = send
        self._session = b""

    async def serve(self, server: Any, options: Any) -> None:
        """Serve the client of this stream until it leaves.

        Args:
            server: the low-level server.
            options: what it says of itself.
        """
        COMMAND_LINE.served = True
        app = self._transport.find_app(server, options)

        async def send(message: Any) -> None:
            if not self._session and (found := SESSION_ID.search(message.get("body", b""))):
                self._session = found[1]
                self._transport.apps[self._session] = app
            await self._send(message)

        path = self._scope.get("root_path", "").rstrip("/") + LISTENING_PATH
        try:
            await app({**self._scope, "path": path}, self._receive, send)
        finally:
            self._transport.apps.pop(self._session, None)


class SseServerTransport:
    """Transport of 2024-11-05: an event stream for each client, and the POSTs that belong to them.

    The lifespan of a server begins with its first client, and lasts as long as the process.

    Args:
        endpoint: the path that clients post to, below the app.
        security_settings: hosts and origins that requests may come from.
        **other: what isthmus decides itself.

    Attributes:
        apps: the app of each stream that is open, by the id of its session.
    """

    def __init__(self, endpoint: str, security_settings: Any = None, **other: Any) -> None:
        del other
        if "://" in endpoint or endpoint.startswith("//") or "?" in endpoint or "#" in endpoint:
            raise ValueError(
                f"Given endpoint: {endpoint} is not a relative path (e.g., '/messages/'), "
                "expecting a relative path (e.g., '/messages/')."
            )
        self.apps: dict[bytes, FacadeApp] = {}
        self._endpoint = "/" + endpoint.removeprefix("/")
        self._security = security_settings
        self._newest: tuple[Any, FacadeApp] | None = None

    @asynccontextmanager
    async def connect_sse(
        self, scope: Any, receive: Any, send: Any
    ) -> AsyncIterator[tuple[SseConnection, SseConnection]]:
        """Give the stream of a client for ``Server.run``, which takes it in the place of two."""
        stream = SseConnection(self, scope, receive, send)
        yield stream, stream

    async def handle_post_message(self, scope: Any, receive: Any, send: Any) -> None:
        """Take in a message of a client."""
        found = SESSION_ID.search(scope["query_string"])
        app = self.apps.get(found[1]) if found else None
        if app is not None:
            await app({**scope, "path": self._endpoint, "root_path": ""}, receive, send)
            return
        status, text = (
            (404, b"Could not find session") if found else (400, b"session_id is required")
        )
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    def find_app(self, server: Any, options: Any) -> FacadeApp:
        """The app of a server, made for its first client."""
        if self._newest is None or self._newest[0] is not server:
            given = {
                "sse_path": LISTENING_PATH,
                "message_path": self._endpoint,
                "transport_security": self._security,
            }
            isthmus = server.make_isthmus_server(options)
            self._newest = server, make_http_app(isthmus, given, transport="sse")
        return self._newest[1]
