"""WebSocket, the server's end, on the endpoint of HTTP: each connection is one conversation.

A custom transport, as the specification allows: the subprotocol is ``mcp``, every text frame holds
one JSON-RPC message, and binary frames are refused. A client that offers no subprotocol at all (the
official Kotlin SDK and langchain4j do not) is served without one; one that offers only others is not. Every revision runs over it. There is nothing
to say after a closing handshake, so unlike a pipe's end of input it ends the work in hand.
"""

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from isthmus.core.http.rules import Refusal, read_head
from isthmus.errors import ConnectionLost
from isthmus.runtime.channel import Delivery, Origin, Outgoing
from isthmus.runtime.failures import log_warning
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import RequestServer, Router
from isthmus.transports.http.asgi_exchange import local_address
from isthmus.transports.http.origin_guard import OriginGuard
from isthmus.transports.http.reply import JSON_TYPE, Receive, Scope, Send
from isthmus.transports.http.request import RequestHeaders
from isthmus.transports.pipes import MAX_AHEAD_BYTES, MAX_UNREAD_BYTES, MAX_UNSENT_MESSAGES
from isthmus.transports.sockets import READ_TIMEOUT_S
from isthmus.wire.jsonrpc import ErrorBody, encode_error
from isthmus.wire.struct import Id

if TYPE_CHECKING:
    from isthmus.core.principal import Principal
    from isthmus.transports.http.admission import Admission

SUBPROTOCOL = "mcp"

CLOSE_TIMEOUT_S = 1.0  # seconds that the closing frame may take to leave

NORMAL, GOING_AWAY, UNSUPPORTED, TOO_BIG = 1000, 1001, 1003, 1009
# As registered for a connection whose other side has not authenticated, or no longer
UNAUTHORIZED_CLOSE_CODE = 3000

NO_SUBPROTOCOL = Refusal(
    400, -32600, f"Invalid request: offer the WebSocket subprotocol {SUBPROTOCOL!r}"
)
TOO_MANY_CONNECTIONS = Refusal(503, -32603, "Too many sessions are in use: see max_sessions")


class WebSockets:
    """Every WebSocket of an endpoint.

    Args:
        router: serves the requests.
        guard: says whose handshakes are taken.
        limit: the most bytes a message may have.
        max_connections: the most connections there may be.
        patience: seconds in which a client must read something of what waits for it.
        admission: says who may connect, and what they may ask for; None lets everybody in.
    """

    def __init__(
        self,
        router: Router,
        guard: OriginGuard,
        *,
        limit: int,
        max_connections: int,
        patience: float = READ_TIMEOUT_S,
        admission: "Admission | None" = None,
    ) -> None:
        self._admission = admission
        self._router = router
        self._guard = guard
        self.limit = limit
        self._max = max_connections
        self._patience = patience
        self._open: dict[asyncio.Task[Any] | None, WebSocketChannel] = {}
        self._count = 0
        self._noted_missing_subprotocol = False

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection from its handshake to its end."""
        known: Principal | Refusal | None = self._judge(scope)
        if known is None and self._admission is not None:
            known = await self._admission.authenticate(scope)
        await receive()  # what says that it would like to connect
        if isinstance(known, Refusal):
            await refuse_handshake(scope, send, known)
            return
        if len(self._open) >= self._max:
            await refuse_handshake(scope, send, TOO_MANY_CONNECTIONS)
            return
        offered = bool(scope.get("subprotocols"))
        if not offered:
            self._note_missing_subprotocol()
        await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL if offered else None})
        self._count += 1
        headers = RequestHeaders(scope["headers"], bare=known is not None)
        origin = Origin("websocket", headers, known, f"websocket-{self._count}")
        channel = WebSocketChannel(receive, send, origin, limit=self.limit, patience=self._patience)
        self._open[channel.task] = channel
        pump = asyncio.get_running_loop().create_task(channel.pump())
        try:
            await Peer(channel, self._choose_router(known), side="server", origin=origin).run()
        finally:
            self._open.pop(channel.task, None)
            channel.task = None  # which keeps what is raised, and so would this frame
            pump.cancel()
            await channel.close()

    def stop(self) -> None:
        """Take nothing further in on any of them; calls in hand may finish."""
        for channel in self._open.values():
            channel.stop()

    async def close(self) -> None:
        """Stop, and cut what has not finished."""
        self.stop()
        for task in self._open:
            if task is not None:
                task.cancel()

    def _judge(self, scope: Scope) -> Refusal | None:
        """Why a handshake is refused, or None."""
        # spec 2026-07-28 basic/transports/streamable-http#security-endpoint: a page elsewhere
        # must not reach a local server; browsers let it try a WebSocket without asking anybody
        verdict = self._guard.source(read_head(scope["headers"]), local_address(scope))
        if verdict is not None:
            return verdict
        offered = scope.get("subprotocols")
        return NO_SUBPROTOCOL if offered and SUBPROTOCOL not in offered else None

    def _note_missing_subprotocol(self) -> None:
        """Log, once for this endpoint, that clients connect without the subprotocol."""
        if self._noted_missing_subprotocol:
            return
        self._noted_missing_subprotocol = True
        log_warning(
            "a WebSocket client offers no subprotocol: it is served without; clients should offer %r",
            SUBPROTOCOL,
        )

    def _choose_router(self, principal: "Principal | None") -> RequestServer:
        """The router that serves somebody's connection."""
        if self._admission is None:
            return self._router
        return self._admission.make_scoped_router(principal)

    def all(self) -> list["WebSocketChannel"]:
        """Every open connection."""
        return list(self._open.values())


async def refuse_handshake(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Answer a handshake with a JSON-RPC error where the ASGI server can, else with 403."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close"})
        return
    body = encode_error(None, refusal.error(), null_id=False)
    own = [(name.encode(), value.encode()) for name, value in refusal.headers]
    headers = [JSON_TYPE, (b"content-length", b"%d" % len(body)), *own]
    kind = "websocket.http.response"
    await send({"type": f"{kind}.start", "status": refusal.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})


class WebSocketChannel:
    """The server's end of one WebSocket.

    :meth:`pump` must run beside whoever receives: so the end of the connection is noticed at
    once, whatever is being waited for.

    Args:
        receive: the ASGI callable that gives what the client sent.
        send: the ASGI callable that takes what it shall get.
        origin: where its messages come from.
        limit: the most bytes a message may have.
        patience: seconds in which the client must read something of what waits for it.
    """

    def __init__(
        self, receive: Receive, send: Send, origin: Origin, *, limit: int, patience: float
    ) -> None:
        self.origin = origin
        self._receive = receive
        self._send = send
        self._limit = limit
        self._patience = patience
        self._ready: deque[Delivery] = deque()
        self._ahead = 0
        self._unsent = 0
        self._waiting = 0
        self._lost: str | None = None  # why, and no exception: it would keep the frames it reached
        self._stopped = False
        self._closed = False
        self._code = NORMAL
        self._turn = asyncio.Lock()
        self.task = asyncio.current_task()
        self._changed: asyncio.Future[None] | None = None
        self._taken: asyncio.Future[None] | None = None

    @property
    def principal(self) -> Any:
        """The principal whose permission it lasts by, or None."""
        return self.origin.principal

    async def pump(self) -> None:
        """Take in what the client sends, until it hangs up."""
        while self._lost is None and not self._stopped:
            message = await self._receive()
            if message["type"] != "websocket.receive":
                code, reason = message.get("code", 1005), message.get("reason") or ""
                self._end(f"the client closed the WebSocket: {code} {reason}".rstrip())
                return
            text = message.get("text")
            if text is None:
                self._code = UNSUPPORTED
                self._end("the client sent a binary frame; messages are text frames")
                return
            data = text.encode(errors="replace")
            if len(data) > self._limit:
                self._code = TOO_BIG
                self._end(f"the client sent more than {self._limit} bytes in one message")
                return
            self._ready.append(Delivery(data, self.origin))
            self._ahead += len(data)
            self._wake()
            if self._ahead > MAX_AHEAD_BYTES:
                self._taken = asyncio.get_running_loop().create_future()
                await self._taken

    async def receive(self) -> Delivery | None:
        """The next message, or None once the server stops.

        Waits while much of what was sent is not read yet: a client that asks and does not read
        gets no more work done.

        Raises:
            ConnectionLost: the client hung up, or sent what is no message.
        """
        while not self._ready:
            if self._lost is not None:
                raise ConnectionLost(self._lost)
            if self._stopped:
                return None
            self._ahead = 0
            if self._taken is not None and not self._taken.done():
                self._taken.set_result(None)
            self._changed = asyncio.get_running_loop().create_future()
            await self._changed
        while self._unsent > MAX_UNREAD_BYTES and self._lost is None and not self._stopped:
            async with self._turn:  # everybody who waited to send before us has
                pass
        return self._ready.popleft()

    async def send(self, out: Outgoing) -> None:
        """Send one message as a text frame; waits while the client reads more slowly than we send.

        Raises:
            ConnectionLost: the client hung up, or does not read.
        """
        size = len(out.data)
        if self._waiting >= MAX_UNSENT_MESSAGES:
            self._end(f"the client left {MAX_UNSENT_MESSAGES} messages unread")
        self._unsent += size
        self._waiting += 1
        try:
            async with self._turn:
                self._must_be_open()
                async with asyncio.timeout(self._patience):
                    await self._send({"type": "websocket.send", "text": out.data.decode()})
        except TimeoutError as error:
            why = self._end(f"the client read nothing for {self._patience:g} s")
            raise ConnectionLost(why) from error
        except ConnectionLost:
            raise
        except Exception as error:  # each ASGI server has its own for a client that hung up
            why = self._end(f"the client hung up: {str(error) or type(error).__name__}")
            raise ConnectionLost(why) from error
        finally:
            self._unsent -= size
            self._waiting -= 1

    def abandon(self, id: Id) -> bool:  # noqa: ARG002 - the protocol of channels
        """False: both directions are shared by all calls, so a message has to say it."""
        return False

    def expire(self, why: ErrorBody) -> None:
        """End the connection, and the calls in hand: whoever connected may not listen any more."""
        self._code = UNAUTHORIZED_CLOSE_CODE
        self._end(why.message)

    def stop(self) -> None:
        """Take nothing more in, and say at the end that the server goes away."""
        self._code = GOING_AWAY
        self._stopped = True
        self._wake()

    async def close(self) -> None:
        """Say goodbye, for at most a second; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        with suppress(Exception):  # the client may have gone before us, and each server says it so
            async with asyncio.timeout(CLOSE_TIMEOUT_S), self._turn:
                await self._send({"type": "websocket.close", "code": self._code})

    def _must_be_open(self) -> None:
        if self._lost is not None:
            raise ConnectionLost(self._lost)
        if self._closed:
            raise ConnectionLost("the WebSocket was closed")

    def _end(self, why: str) -> str:
        """Note that it is over; says why, which may be an earlier reason than this."""
        if self._lost is None:
            self._lost = why
            self._wake()
        return self._lost

    def _wake(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None and not changed.done():
            changed.set_result(None)
