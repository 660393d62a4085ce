"""WebSocket, the client's end, through aiohttp."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from isthmus.errors import ConnectFailed, ConnectionLost
from isthmus.runtime.channel import Delivery, Origin, Outgoing
from isthmus.runtime.failures import log_warning
from isthmus.transports.http.client.address import redact_url
from isthmus.transports.http.client.failures import describe_error, find_hint
from isthmus.transports.http.client.requests import resolve_redirect
from isthmus.transports.pipes import MAX_LINE_BYTES
from isthmus.wire.struct import Id

if TYPE_CHECKING:
    import aiohttp

    from isthmus.transports.http.client.requests import Authorization, Requests

SUBPROTOCOL = "mcp"
SWITCHING_PROTOCOLS = 101

# Seconds between pings; a server that does not answer one in half that time is gone
HEARTBEAT_S = 20.0

CLOSE_TIMEOUT_S = 1.0  # seconds that the server has to answer our closing frame

WEBSOCKET_ORIGIN = Origin("websocket")

STATUS_HINTS: Mapping[int, str] = {
    400: "it may want another subprotocol than 'mcp'",
    401: "it wants to know who you are: pass auth=…, or headers={'Authorization': …}",
    403: "it refuses this client's Host or Origin, or takes no WebSockets at this path",
    404: "there is no endpoint at this path",
    405: "its endpoint takes no WebSockets",
    503: "it has too many connections",
}


async def connect_websocket(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    connect_timeout: float,
    limit: int = MAX_LINE_BYTES,
    auth: "Authorization | None" = None,
) -> "WebSocketClientChannel":
    """Open a WebSocket.

    Args:
        url: ``ws://…`` or ``wss://…``.
        headers: for the handshake.
        connect_timeout: seconds until it counts as failed.
        limit: the most bytes a message may have.
        auth: gets the tokens that the server wants to see in the handshake.

    Raises:
        ConnectFailed: no connection came about; the message says why and what to try.
        AuthError: the server wants authorization, and none was to be had.
    """
    handshake = WebSocketHandshake(url, connect_timeout, limit)
    requests: Requests = handshake
    try:
        if auth is not None:
            requests = auth.over(to_http_url(url), handshake)
        answer = await requests.send("GET", to_http_url(url), headers or {})
        channel = handshake.channel(answer.status)
    except BaseException:
        await requests.close()
        raise
    if auth is not None:
        await requests.close()  # the connection has left it
    if not channel.agreed:  # some servers speak MCP all the same; what does not fails the handshake
        log_warning(
            "%s did not agree to the subprotocol %r: is it an MCP server?",
            redact_url(url),
            SUBPROTOCOL,
        )
    return channel


class WebSocketHandshake:
    """A WebSocket's handshake as the HTTP request that it is, so that credentials go with it.

    Args:
        url: ``ws://…`` or ``wss://…``.
        connect_timeout: seconds until one counts as failed.
        limit: the most bytes a message may have.
    """

    def __init__(self, url: str, connect_timeout: float, limit: int) -> None:
        import aiohttp

        self._url = url
        self._patience = connect_timeout
        self._limit = limit
        self._session: aiohttp.ClientSession | None = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(), middlewares=(stay_on_origin,)
        )
        self._socket: Any = None

    async def send(
        self,
        method: str,  # noqa: ARG002 - the protocol of requests; a handshake is always a GET
        url: str,  # noqa: ARG002 - and always to the same URL
        headers: Mapping[str, str],
        body: bytes | None = None,  # noqa: ARG002
    ) -> "HandshakeAnswer":
        """Try to open the WebSocket; 101 where it is open.

        Raises:
            ConnectFailed: nobody answered.
        """
        import aiohttp

        if self._session is None:
            raise ConnectFailed(
                f"cannot connect to {redact_url(self._url)}: the client was closed meanwhile"
            )
        try:
            async with asyncio.timeout(self._patience):
                self._socket = await self._session.ws_connect(
                    self._url,
                    protocols=(SUBPROTOCOL,),
                    headers=headers,
                    heartbeat=HEARTBEAT_S,
                    max_msg_size=self._limit,
                    autoclose=False,  # which would hide the server's reason where it has gone already
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT_S),
                )
        except aiohttp.WSServerHandshakeError as error:
            return HandshakeAnswer(error.status, {} if error.headers is None else error.headers)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            why = _explain_failure(error, self._patience)
            raise ConnectFailed(f"cannot connect to {redact_url(self._url)}: {why}") from error
        return HandshakeAnswer(SWITCHING_PROTOCOLS, {})

    def channel(self, status: int) -> "WebSocketClientChannel":
        """The channel that was opened, which is nobody else's to close from now on.

        Args:
            status: how the server answered in the end.

        Raises:
            ConnectFailed: it refused.
        """
        if status != SWITCHING_PROTOCOLS:
            raise ConnectFailed(
                f"cannot connect to {redact_url(self._url)}: {_describe_refusal(status)}"
            )
        session, self._session = self._session, None
        if session is None or self._socket is None:
            raise ConnectFailed(
                f"cannot connect to {redact_url(self._url)}: the client was closed meanwhile"
            )
        return WebSocketClientChannel(session, self._socket, self._url, self._limit)

    async def close(self) -> None:
        """Give up what was not opened."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class HandshakeAnswer:
    """The head of the answer to a handshake; it has no body that matters."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers

    async def read(self, limit: int) -> bytes:  # noqa: ARG002 - the protocol of responses
        """Nothing."""
        return b""

    async def piece(self) -> bytes:
        """Nothing."""
        return b""

    def close(self) -> None:
        """Nothing is left to close."""


async def stay_on_origin(
    request: "aiohttp.ClientRequest", handler: "aiohttp.ClientHandlerType"
) -> "aiohttp.ClientResponse":
    """Follow no redirect to another origin: what is sent along may hold credentials."""
    import aiohttp

    response = await handler(request)
    location = response.headers.get("Location", "")
    if (
        300 <= response.status < 400
        and resolve_redirect(to_http_url(str(request.url)), to_http_url(location)) is None
    ):
        response.close()
        raise aiohttp.ClientConnectionError(
            f"the server redirects to {location!r}: use that URL if you trust it"
        )
    return response


def to_http_url(url: str) -> str:
    """A URL of a WebSocket as that of the HTTP request which opens it."""
    return "http" + url[2:] if url.startswith(("ws:", "wss:")) else url


def _explain_failure(error: Exception, connect_timeout: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no connection within {connect_timeout:g} s"
    status = getattr(error, "status", None)
    return (
        f"{describe_error(error)}{find_hint(error)}"
        if status is None
        else _describe_refusal(status)
    )


def _describe_refusal(status: int) -> str:
    text = f"the server refused the WebSocket with HTTP status {status}"
    return f"{text}: {STATUS_HINTS[status]}" if status in STATUS_HINTS else text


class WebSocketClientChannel:
    """Carries messages over an open WebSocket, one in each text frame.

    Args:
        session: what the connection belongs to; closed with this.
        socket: the connection.
        url: where it leads.
        limit: the most bytes a message may have.
    """

    def __init__(self, session: "aiohttp.ClientSession", socket: Any, url: str, limit: int) -> None:
        self._session = session
        self._socket = socket
        self._url = url
        self._limit = limit
        self._closing: asyncio.Task[None] | None = None

    @property
    def agreed(self) -> bool:
        """Whether the server speaks our subprotocol."""
        return bool(self._socket.protocol == SUBPROTOCOL)

    async def receive(self) -> Delivery | None:
        """The next message, or None once we have closed.

        Raises:
            ConnectionLost: the server hung up, or sent what is no message.
        """
        import aiohttp  # loaded already, or there would be no socket

        message = await self._socket.receive()
        if message.type is aiohttp.WSMsgType.TEXT:
            return Delivery(message.data.encode(errors="replace"), WEBSOCKET_ORIGIN)
        if self._closing is not None:
            return None
        raise ConnectionLost(await self._why(message))

    async def send(self, out: Outgoing) -> None:
        """Send one message; waits while the server reads more slowly than we send.

        Raises:
            ConnectionLost: the connection is over.
        """
        try:
            await self._socket.send_str(out.data.decode())
        except (OSError, RuntimeError) as error:
            why = "was closed" if self._closing is not None else f"broke: {describe_error(error)}"
            raise ConnectionLost(f"the connection to {redact_url(self._url)} {why}") from error

    def abandon(self, id: Id) -> bool:  # noqa: ARG002 - the protocol of channels
        """False: both directions are shared by all calls, so a message has to say it."""
        return False

    async def close(self) -> None:
        """Close the connection, waiting a second at most for the server to agree."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._shut())
        await asyncio.shield(self._closing)

    async def _shut(self) -> None:
        try:
            await self._socket.close()
        finally:
            await self._session.close()
            await asyncio.sleep(0)

    async def _why(self, message: Any) -> str:
        """Why there will be no more messages, from what came in the place of one."""
        import aiohttp

        kind = message.type
        if kind is aiohttp.WSMsgType.BINARY:
            await self._socket.close(code=aiohttp.WSCloseCode.UNSUPPORTED_DATA)
            return f"the server at {redact_url(self._url)} sent a binary frame; messages are text frames"
        fault = message.data if kind is aiohttp.WSMsgType.ERROR else self._socket.exception()
        if isinstance(fault, aiohttp.WebSocketError) and fault.code == TOO_BIG_CLOSE_CODE:
            return (
                f"the server at {redact_url(self._url)} sent a message of more than {self._limit} bytes, "
                "which is as much as this client takes"
            )
        if isinstance(fault, Exception):
            return f"the connection to {redact_url(self._url)} broke: {describe_error(fault)}"
        closing = kind is aiohttp.WSMsgType.CLOSE
        code, reason = (message.data, message.extra or "") if closing else (1006, "")
        return (
            f"the server at {redact_url(self._url)} closed the WebSocket: {code} {reason}".rstrip()
        )


TOO_BIG_CLOSE_CODE = 1009
