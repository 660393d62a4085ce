"""The HTTP endpoint: guard and judge each request, then hand it over.

It is an ASGI app, with no framework and nothing to wire up: mount it anywhere, under any prefix, and
it works from the first request on. Under ``isthmus run`` a connection of ours
(:mod:`isthmus.transports.http.connections`) hands it requests without ASGI in between; both ways meet
in :meth:`HttpApp.begin`. A modern request is served by a
:class:`~isthmus.transports.http.response.ResponseChannel`, a legacy one by the
:class:`~isthmus.transports.http.sessions.session.HttpSession` it names; which it is,
:mod:`isthmus.core.http.rules` decides.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from isthmus.core.batch import find_batch_flaw
from isthmus.core.caller import Caller, find_progress_token, read_envelope
from isthmus.core.http.rules import LegacyRequest, ModernRequest, Refusal, judge
from isthmus.revisions import LEGACY
from isthmus.runtime.channel import Delivery
from isthmus.runtime.failures import log_error
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import Router
from isthmus.store.log import Forgotten, Log
from isthmus.store.store import StoreUnavailable
from isthmus.transports.http.asgi_exchange import AsgiExchange, inner_path
from isthmus.transports.http.asgi_lifespan import (
    DRAIN_TIMEOUT_S,
    AppDrain,
    attach_routes,
    serve_lifespan,
)
from isthmus.transports.http.origin_guard import (
    OriginGuard,
    is_foreign,
    make_cors_headers,
)
from isthmus.transports.http.probes import HealthProbes
from isthmus.transports.http.refusals import (
    BATCH_WITHOUT_SESSION,
    HTTP_TOO_OLD,
    NEEDS_STREAM,
    NO_SESSION,
    NO_STANDING_STREAM,
    NOT_STARTED,
    SHUTTING_DOWN,
    STORE_LOST,
    TOO_MANY_SESSIONS,
    find_request_id,
    refuse_resumption,
)
from isthmus.transports.http.reply import Receive, Reply, Scope, Send
from isthmus.transports.http.request import (
    EVENTS_ONLY,
    UNJUDGED,
    BodyReader,
    Exchange,
    ExchangeApp,
    HttpRequest,
)
from isthmus.transports.http.request_watch import RequestCut, RequestWatch
from isthmus.transports.http.response import SERVER_STOPPING, ResponseChannel
from isthmus.transports.http.sessions.requests import GetRequest, PostRequest
from isthmus.transports.http.sessions.seal import SessionSeal, make_lone_node
from isthmus.transports.http.sessions.session import HttpSession, SessionBook
from isthmus.transports.http.sessions.stateless import StatelessEndpoint
from isthmus.transports.http.sessions.stream_letters import open_stream_log
from isthmus.wire.jsonrpc import Frame, Unreadable, parse
from isthmus.wire.meta import Envelope
from isthmus.wire.struct import Id

if TYPE_CHECKING:
    from isthmus.nodes.node import Node
    from isthmus.transports.http.admission import Admission
    from isthmus.transports.http.authorizer import Authorizer
    from isthmus.transports.http.sse_server import SseServer
    from isthmus.transports.http.websocket import WebSockets

LifespanHook = Callable[[], Awaitable[None]]

NO_ENVELOPE = Envelope()
OTHER_PATH: Any = object()


class HttpApp(ExchangeApp):
    """An MCP endpoint for every revision with Streamable HTTP.

    Args:
        router: serves the requests.
        path: where the endpoint is; the root of the mount is it, too.
        public_url: where the world reaches this server; its host is then the one accepted.
        allowed_hosts: further names of this server; ``"*"`` for all. Without this and ``public_url``, requests over loopback
            must name this machine, others may name any.
        allowed_origins: pages elsewhere that may call this server; ``"*"`` for all.
        body_limit: the most bytes a request's body may have.
        head_limit: the most bytes a request's head may have, where one of our own connections reads it (``isthmus run``).
        target_limit: the same of its first line, with method and path.
        session_idle: seconds without a request or an open stream until a session's memory is given back; its client finds
            it as it was. One that would lose something ends instead: without a ``store``, a log level or subscriptions.
        session_life: seconds from its beginning that a session's id is good for.
        max_sessions: the most sessions in memory; the idlest gives way to a new one.
        heartbeat: seconds between comments on an open stream; a client that takes none of four in
            a row counts as gone.
        stateless: up to 2025-11-25, open no sessions: each POST stands alone.
        stream_answers: answer legacy requests with a stream even where JSON would do.
        upload_budget: the most bytes that bodies may take together while they come, at least ``body_limit``; beyond it 503.
        body_timeout: seconds a request's body may take.
        body_idle: seconds it may take from one piece to the next.
        retry: seconds that a client is asked to wait before it comes back for the rest of a stream that was let go of.
        stream_log: keeps what was said on streams, for clients that come back at this node; by default the store of the nodes
            does, for clients that come back anywhere, or memory where there is none.
        sse: where clients of 2024-11-05 listen, or None not to serve them.
        messages: where they send their messages.
        websocket: take WebSockets, too, in all revisions.
        health: the path that says that the process lives, or None. Like ``ready`` it is open to everybody, and tells nothing else.
        ready: the path that says whether new clients are welcome: not while it starts or drains, nor while its store is away.
        drain: seconds that calls in flight get to finish once the server is told to stop; then they are answered by an error.
        drain_lead: seconds after a signal to stop in which only ``ready`` changes: balancers need some to notice.
        auth: says who may ask for what; None lets everybody ask for everything.
        node: this process among those that serve together; one that is alone by default.
        session_keys: gives the secrets that session ids are sealed with, the one that seals first; asked once the app has
            started. Made up for this process by default.
        on_start: awaited once before the first request is served.
        on_stop: awaited when the server stops.

    Example:
        >>> app = Starlette(routes=[Mount("/tools", HttpApp(server.router))])  # doctest: +SKIP
    """

    _request_watch: RequestWatch
    _book: SessionBook
    _loop: asyncio.AbstractEventLoop | None = None
    failure: str | None = None
    _unavailable = NOT_STARTED

    def __init__(
        self,
        router: Router,
        *,
        path: str = "/mcp",
        public_url: str | None = None,
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        body_limit: int = 4 * 1024 * 1024,
        head_limit: int = 32 * 1024,
        target_limit: int = 8 * 1024,
        session_idle: float = 1800.0,
        session_life: float = 86_400.0,
        max_sessions: int = 10_000,
        heartbeat: float = 15.0,
        stateless: bool = False,
        stream_answers: bool = False,
        upload_budget: int = 256 * 1024 * 1024,
        body_timeout: float = 60.0,
        body_idle: float = 15.0,
        retry: float = 1.0,
        stream_log: Log | None = None,
        sse: str | None = "/sse",
        messages: str = "/messages",
        websocket: bool = False,
        health: str | None = "/health",
        ready: str | None = "/ready",
        drain: float = DRAIN_TIMEOUT_S,
        drain_lead: float = 0.0,
        auth: "Authorizer | None" = None,
        node: "Node | None" = None,
        session_keys: Callable[[], Sequence[bytes]] | None = None,
        on_start: LifespanHook | None = None,
        on_stop: LifespanHook | None = None,
    ) -> None:
        self.router = router
        self.node = make_lone_node() if node is None else node
        self.path = "/" + path.strip("/")
        self._paths = frozenset({"", self.path.rstrip("/")})
        self._guard = OriginGuard(
            router.supported,
            public_url=public_url,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            resource=None if auth is None else auth.resource,
        )
        self.head_limit, self.target_limit = head_limit, target_limit
        self._body_limit = body_limit
        self._bodies = BodyReader(body_limit, upload_budget, idle=body_idle, total=body_timeout)
        self._admission = None if auth is None else _make_admission(auth, router, head_limit)
        self._probes = HealthProbes(self, health, ready, self.node.store)
        self.drain = AppDrain(self._stop, drain, drain_lead)
        self._sse = self._make_sse_server(None if stateless else sse, messages)
        endpoint = StatelessEndpoint(router, self._admission, stream_answers=stream_answers)
        self._stateless = endpoint if stateless else None
        self.sockets = self._make_websockets(max_sessions) if websocket else None
        self._session_idle, self._max_sessions, self._retry = session_idle, max_sessions, retry
        self._seal = SessionSeal(session_keys, router.server, self.node.id, session_life)
        self._stream_log, self._heartbeat = stream_log, heartbeat
        self._stream_answers, self._on_start, self._on_stop = stream_answers, on_start, on_stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection: an HTTP request, or the server's lifespan."""
        if scope["type"] == "http":
            await self.begin(AsgiExchange(scope, receive, send))
        else:
            await self._serve_other_scope(scope, receive, send)

    def begin(self, exchange: Exchange) -> Awaitable[Any]:
        """Begin to serve a request: all that needs no waiting is done at once.

        Returns:
            What remains to be awaited: ``DONE`` where that is nothing.
        """
        request = exchange.request
        verdict = request.verdict
        if verdict is UNJUDGED:
            verdict = request.verdict = self._judge_head(request)
        if verdict is OTHER_PATH:
            return self._begin_other_path(exchange)
        origin = request.head.origin
        if origin is not None and not is_foreign(verdict):
            exchange.extra = make_cors_headers(origin)
        if (
            self._admission is not None
            and not (request.method == "OPTIONS" or is_foreign(verdict))
            and not self._admission.recall(exchange)
        ):
            return self._admit(self._admission, exchange)
        return self._begin_admitted(exchange)

    def _judge_head(self, request: HttpRequest) -> Any:
        """What a head alone says: the same for each request that has it."""
        if request.path not in self._paths:
            return OTHER_PATH
        return self._guard.check(request.method, request.head, request.local)

    async def _admit(self, admission: "Admission", exchange: Exchange) -> None:
        if await admission.admit(exchange):
            await self._begin_admitted(exchange)

    def _begin_admitted(self, exchange: Exchange) -> Awaitable[Any]:
        """Begin to serve a request whose sender may send it."""
        verdict = exchange.request.verdict
        if isinstance(verdict, Refusal):
            return exchange.refuse(verdict)
        if exchange.request.method == "OPTIONS":
            return exchange.preflight()
        if self._loop is not exchange.loop:
            return self._start_and_begin(exchange)
        if isinstance(verdict, LegacyRequest):
            return self._begin_get_or_delete(exchange, verdict.session_id)
        body = exchange.take_body(self._body_limit)
        if body is None:
            return self._read_and_serve(exchange)
        return self._begin_post(exchange, body)

    async def _start_and_begin(self, exchange: Exchange) -> None:
        if self._loop is exchange.loop or await self.ensure_started():
            await self._begin_admitted(exchange)
        else:
            await exchange.refuse(self._unavailable)

    def _make_websockets(self, limit: int) -> "WebSockets":
        from isthmus.transports.http.websocket import WebSockets  # few want them

        return WebSockets(
            self.router,
            self._guard,
            limit=self._body_limit,
            max_connections=limit,
            admission=self._admission,
        )

    def _make_sse_server(self, sse: str | None, messages: str) -> "SseServer | None":
        if sse is None or not any(revision in LEGACY for revision in self.router.supported):
            return None
        from isthmus.transports.http.sse_server import SseServer  # few clients are that old

        return SseServer(self.router, sse, messages, self._admission, node=self.node)

    def _begin_other_path(self, exchange: Exchange) -> Awaitable[Any]:
        """A request to another path than the endpoint's."""
        older, path = self._sse, exchange.request.path
        if path in self._probes.paths:
            return self._probes.begin(exchange)
        if self._admission is not None and path in self._admission.routes:
            return self._admission.serve_page(exchange, self._guard)
        if older is None or path not in older.paths:
            return exchange.refuse(Refusal(404, -32600, f"Not found: the endpoint is {self.path}"))
        return self._serve_sse(exchange, older)

    async def _serve_sse(self, exchange: Exchange, older: "SseServer") -> None:
        """A request to one of the two paths of HTTP+SSE."""
        request = exchange.request
        refusal = self._guard.source(request.head, request.local)
        if refusal is not None:
            await exchange.refuse(refusal)
            return
        if request.head.origin is not None:
            exchange.extra = make_cors_headers(request.head.origin)
        if request.method == "OPTIONS":
            await exchange.preflight()
        elif older.admission is not None and not await older.admission.admit(exchange):
            return
        elif (lack := await self.find_unavailable(request.path == older.listening)) is not None:
            await exchange.refuse(lack)
        elif request.path == older.listening:
            await older.listen(exchange, self._request_watch, self._max_sessions)
        elif (session := await older.find_session(exchange)) is not None:
            body = exchange.take_body(self._body_limit)
            if body is None:
                body = await self._bodies.read(exchange, self._request_watch)
            if body is not None:
                await older.post(exchange, session, body)

    def add_page(self, path: str, make: "Callable[[OriginGuard, Admission | None], Any]") -> None:
        """Serve a page of the server's own; ``make`` is given what judges the endpoint's requests."""
        admission, older = self._admission, self._sse
        taken = {self.path, *(() if admission is None else admission.routes)}
        taken |= frozenset() if older is None else older.paths
        self._probes.add_page(path, make(self._guard, admission), taken)

    async def find_unavailable(self, opens_stream: bool) -> Refusal | None:
        """Why a request cannot be served now, or None; starts the app where nobody did."""
        if not self.has_started and not await self.ensure_started():
            return self._unavailable
        return SHUTTING_DOWN if opens_stream and self.drain.has_begun else None

    # One request

    async def _read_and_serve(self, exchange: Exchange) -> None:
        """Serve a POST whose body has to be waited for."""
        body = await self._bodies.read(exchange, self._request_watch)
        if body is not None:
            await self._begin_post(exchange, body)

    def _begin_post(self, exchange: Exchange, body: bytes) -> Awaitable[Any]:
        frame, head = parse(body), exchange.request.head
        if not isinstance(frame, Frame):
            if isinstance(frame, Unreadable):
                return exchange.refuse(Refusal(400, frame.code, frame.message), frame.id)
            return self._begin_batch(exchange, frame, body)
        envelope = read_envelope(frame.params or None)
        verdict = judge(head, frame, envelope, self.router.supported, exchange.principal)
        if isinstance(verdict, ModernRequest):
            # spec 2026-07-28 basic/transports/streamable-http#server-validation: what is permitted
            # is told by the body, with which the headers have been found to agree
            if self._admission is not None and (
                lack := self._admission.find_refusal(exchange.principal, (frame,), modern=True)
            ):
                return exchange.refuse(lack, find_request_id(frame))
            token = find_progress_token(envelope)
            return self._begin_modern(exchange, frame, token, verdict.caller)
        if isinstance(verdict, LegacyRequest):
            read = envelope if isinstance(envelope, Envelope) else None
            return self._begin_legacy(exchange, verdict.session_id, frame, read, body)
        return exchange.refuse(verdict, find_request_id(frame))

    def _begin_batch(
        self, exchange: Exchange, members: Sequence[Raw], body: bytes
    ) -> Awaitable[Any]:
        head, supported = exchange.request.head, self.router.supported
        verdict = judge(head, members, NO_ENVELOPE, supported, exchange.principal)
        if isinstance(verdict, LegacyRequest) and self._stateless is not None:
            return self._stateless.begin_batch(exchange, members, self._request_watch)
        if not isinstance(verdict, LegacyRequest) or verdict.session_id is None:
            refusal = verdict if isinstance(verdict, Refusal) else BATCH_WITHOUT_SESSION
            return exchange.refuse(refusal)
        session = self._book.find(verdict.session_id, exchange.principal)
        if session is None:
            again = partial(self._begin_batch, exchange, members, body)
            return self._book.shared.serve_adopted(exchange, verdict.session_id, None, again)
        if wrong := find_batch_flaw(members, accepted=session.peer.session.batches):
            return exchange.refuse(Refusal(400, -32600, wrong))
        if self._admission is not None and (
            lack := self._admission.find_batch_refusal(exchange.principal, members)
        ):
            return exchange.refuse(*lack)
        takes = exchange.request.takes
        takes = EVENTS_ONLY if self._stream_answers and takes.events else takes
        post = PostRequest(exchange, takes, session)
        return session.post_batch(Delivery(body, exchange.origin(session.id)), post)

    def _begin_modern(
        self, exchange: Exchange, frame: Frame, token: Id | None, caller: Caller
    ) -> Awaitable[Any]:
        takes = exchange.request.takes
        reply = Reply(exchange, takes, exchange.extra)
        channel = ResponseChannel(exchange, reply, caller)
        inbound = Inbound(
            0 if frame.id is UNSET or frame.id is None else frame.id,
            frame.method,  # type: ignore[arg-type]  # an answer was refused by judge
            frame.params or None,
            caller,
            channel,
            exchange.origin(),
            token,
        )
        if frame.id is UNSET:
            self.router.note(inbound.method, inbound.params, inbound)
            return reply.end(202)
        if frame.method == "subscriptions/listen" and (self.drain.has_begun or not takes.events):
            no_stream = NEEDS_STREAM if exchange.takes_streams else HTTP_TOO_OLD
            return exchange.refuse(SHUTTING_DOWN if self.drain.has_begun else no_stream, inbound.id)
        return channel.serve(self.router, self._request_watch, inbound)

    def _begin_legacy(
        self,
        exchange: Exchange,
        session_id: str | None,
        frame: Frame,
        envelope: Envelope | None,
        body: bytes,
    ) -> Awaitable[Any]:
        if self._stateless is not None:
            return self._stateless.begin(exchange, frame, envelope, self._request_watch)
        session = None
        if session_id is not None:
            session = self._book.find(session_id, exchange.principal)
            if session is None:
                again = partial(self._begin_legacy, exchange, session_id, frame, envelope, body)
                id = find_request_id(frame)
                return self._book.shared.serve_adopted(exchange, session_id, id, again)
        elif frame.method != "initialize" or frame.id is UNSET:
            return exchange.refuse(NO_SESSION, find_request_id(frame))
        if self._admission is not None and (
            lack := self._admission.find_refusal(exchange.principal, (frame,), modern=False)
        ):
            return exchange.refuse(lack, find_request_id(frame))
        delivery = Delivery(body, exchange.origin(session_id))
        takes = exchange.request.takes
        takes = EVENTS_ONLY if self._stream_answers and takes.events else takes
        post = PostRequest(exchange, takes, session)
        if session is not None:
            return session.post(frame, delivery, post, envelope)
        return self._open_session(exchange, frame, delivery, post)

    async def _open_session(
        self, exchange: Exchange, frame: Frame, delivery: Delivery, post: PostRequest
    ) -> None:
        if not await self._book.open(frame, delivery, post):
            await exchange.refuse(TOO_MANY_SESSIONS, find_request_id(frame))

    def _begin_get_or_delete(self, exchange: Exchange, session_id: str | None) -> Awaitable[Any]:
        """GET and DELETE, which are about a session as a whole."""
        if session_id is None or self._stateless is not None:
            return exchange.refuse(NO_STANDING_STREAM if self._stateless else NO_SESSION)
        session = self._book.find(session_id, exchange.principal)
        if session is None:
            again = partial(self._begin_get_or_delete, exchange, session_id)
            return self._book.shared.serve_adopted(exchange, session_id, None, again)
        if self._admission is not None and (
            lack := self._admission.find_refusal(exchange.principal, (), modern=False)
        ):
            return exchange.refuse(lack)
        if exchange.request.method == "DELETE":
            return self._book.shared.delete(exchange, session)
        if not exchange.takes_streams:
            return exchange.refuse(HTTP_TOO_OLD)
        return self._listen(exchange, session)

    async def _listen(self, exchange: Exchange, session: HttpSession) -> None:
        last_id = exchange.request.head.last_event_id
        if self.drain.has_begun and last_id is None:
            await exchange.refuse(SHUTTING_DOWN)
            return
        try:
            await session.listen(exchange, GetRequest(exchange, session, self._retry), last_id)
        except Forgotten as error:
            await exchange.refuse(refuse_resumption(last_id or "", error))
        except StoreUnavailable:
            await exchange.refuse(STORE_LOST)
        except RequestCut:
            await exchange.refuse(SHUTTING_DOWN)

    # The app's own life

    def attach(self, outer: Any, prefix: str = "/mcp") -> None:
        """Put the app into a Starlette or FastAPI application, with and without a slash.

        A plain mount redirects the prefix without a slash, which not every client follows.

        Args:
            outer: the application.
            prefix: where the endpoint shall be.
        """
        prefix = "/" + prefix.strip("/")
        self._paths |= {prefix.rstrip("/")}  # a route, unlike a mount, leaves the path as it is
        attach_routes(
            self, outer, prefix, {} if self._admission is None else self._admission.list_pages()
        )

    async def start(self) -> None:
        """Get ready; the first request does it where nobody did before.

        Raises:
            Exception: whatever ``on_start`` raised.
        """
        loop = asyncio.get_running_loop()
        self.failure = None
        if self._on_start is not None:
            try:
                await self._on_start()
            except Exception as error:
                self.failure = str(error) or type(error).__name__
                raise
        if self._loop is not loop:
            self._request_watch = RequestWatch(loop, self._heartbeat)
            log, letters = open_stream_log(self._stream_log, self.node)
            self._book = SessionBook(
                self.router,
                self._request_watch,
                loop,
                node=self.node,
                seal=self._seal,
                log=log,
                letters=letters,
                idle=self._session_idle,
                limit=self._max_sessions,
                retry=self._retry,
            )
            if self._admission is not None:
                self._admission.watch(self._request_watch, self.sockets)
            self.drain.listen(loop)
            self._loop = loop
            await self._join_nodes()

    async def _join_nodes(self) -> None:
        try:
            await self._book.shared.join()
        except BaseException:
            self._loop = None  # it starts again with the next request, and with parts of its own
            if self._admission is not None:
                self._admission.close()
            await self._book.close()
            self._request_watch.close()
            raise

    @property
    def has_started(self) -> bool:
        """Whether requests are served on this event loop."""
        return self._loop is asyncio.get_running_loop()

    @property
    def is_draining(self) -> bool:
        """Whether it was told to stop."""
        return self.drain.is_draining

    async def close(self, drain: float | None = None) -> None:
        """Stop: end the streams, let calls finish, end the sessions. It can start again later.

        Args:
            drain: seconds that calls in flight get before they are cut short; those of
                ``HttpApp(drain=…)`` if not given.
        """
        await self.drain.close(drain, has_started=self.has_started)

    async def _stop(self, drain: float, closer: "asyncio.Task[Any] | None") -> None:
        if self.sockets is not None:
            self.sockets.stop()
        for one in self._request_watch.all():
            one.farewell()
        await self.drain.wait_for_calls(self._list_tasks, drain, closer)
        if self._admission is not None:
            self._admission.close()
        for one in self._request_watch.all():
            one.cut(SERVER_STOPPING)
        if self.sockets is not None:
            await self.sockets.close()
        await self._book.close()
        self._request_watch.close()
        self._loop = None
        if self._on_stop is not None:
            await self._on_stop()

    def _list_tasks(self) -> "set[asyncio.Task[Any]]":
        """The tasks of all calls and streams."""
        sockets = () if self.sockets is None else self.sockets.all()
        running = (one.task for one in (*self._request_watch.all(), *sockets))
        return {task for task in running if task is not None}

    async def ensure_started(self) -> bool:
        """Start where that has not happened; False where it cannot, or has stopped just now."""
        self._unavailable = SHUTTING_DOWN
        if asyncio.get_running_loop().time() < self.drain.refuses_until:
            return False
        self._unavailable = NOT_STARTED
        try:
            await self.start()
        except Exception as error:  # noqa: BLE001 - the author's hook may raise anything
            if isinstance(error.__cause__ or error, StoreUnavailable):
                self._unavailable = STORE_LOST  # it starts when the store is back
            log_error("the server could not start", error=error)
            if any(isinstance(one, StoreUnavailable) for one in (error, error.__cause__)):
                self._unavailable = STORE_LOST
            return False
        return True

    async def _serve_other_scope(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await serve_lifespan(self, receive, send)
        elif self.sockets is not None and inner_path(scope) in self._paths:
            if self._loop is asyncio.get_running_loop() or await self.ensure_started():
                await self.sockets.serve(scope, receive, send)
            else:
                await send({"type": "websocket.close"})
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})


def _make_admission(auth: "Authorizer", router: Router, head_limit: int) -> "Admission":
    from isthmus.transports.http.admission import make_admission  # most let everybody in

    return make_admission(auth, router, head_limit)
