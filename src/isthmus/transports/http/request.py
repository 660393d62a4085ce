"""One HTTP request: what its head says, its body on the way in, and the way to refuse it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from isthmus.core.http.rules import AcceptedForms, Refusal, RequestHead
from isthmus.runtime.channel import Origin
from isthmus.transports.http.origin_guard import (
    make_preflight_headers,
    refuse_large_body,
    refuse_many_uploads,
    refuse_slow_body,
)
from isthmus.transports.http.reply import Header, Scope
from isthmus.transports.http.request_watch import RequestWatch, WatchedRequest
from isthmus.wire.jsonrpc import encode_error
from isthmus.wire.struct import Id

CREDENTIAL_HEADERS = frozenset({b"authorization", b"dpop"})  # what proves who sends a request


class RequestHeaders(Mapping[str, str]):
    """A request's headers for whoever wants to read them: a dictionary made when first used.

    Args:
        raw: all headers as they came, names in lower case.
        bare: without credentials: somebody has judged them, and whoever reads on needs none.
    """

    __slots__ = ("_bare", "_raw", "_read")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]], *, bare: bool = False) -> None:
        self._raw = raw
        self._bare = bare
        self._read: dict[str, str] | None = None

    def _all(self) -> dict[str, str]:
        if self._read is None:
            self._read = {}
            for name, value in self._raw:
                # spec 2025-11-25 basic/authorization#access-token-privilege-restriction: MUST NOT
                # pass through the token; what no handler has, is handed to nobody
                if self._bare and name in CREDENTIAL_HEADERS:
                    continue
                key, text = name.decode("latin-1"), value.decode("latin-1")
                self._read[key] = f"{self._read[key]}, {text}" if key in self._read else text
        return self._read

    def reveal_credential(self, name: str) -> str:
        """A header with a credential, for what passes it on to the same resource; else empty."""
        wanted = name.encode()
        found = [value for key, value in self._raw if key == wanted]
        return found[0].decode("latin-1") if len(found) == 1 else ""

    def __getitem__(self, name: str) -> str:
        return self._all()[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


EVENTS_ONLY = AcceptedForms(json=False, events=True)
# RFC 9112 6.1: a server MUST NOT send chunks to a client of HTTP/1.0, and the servers that there are
# send a stream in no other way
JSON_ONLY = AcceptedForms(json=True, events=False)

UNJUDGED: Any = object()


class HttpRequest(msgspec.Struct):
    """What the head of a request says: the same for all requests whose heads are the same bytes.

    Attributes:
        method: its method.
        path: its path below what the app is mounted under, without a slash at the end.
        outer_path: its path as the client knows it.
        query: what follows the path.
        version: of HTTP.
        fields: all its fields as they came, names in lower case.
        local: the address of ours that it came in on, or "" where the server does not say.
        head: the headers that rules read.
        takes: the forms of an answer that the client takes.
        headers: all its fields for whoever wants to read them.
        verdict: what was found out about all this, or ``UNJUDGED``.
    """

    method: str
    path: str
    outer_path: str
    query: bytes
    version: str
    fields: Sequence[tuple[bytes, bytes]]
    local: str
    head: RequestHead
    takes: AcceptedForms
    headers: Any  # of a class of ours, which msgspec cannot check
    verdict: Any = UNJUDGED


class ExchangeApp:
    """An app that serves exchanges."""

    def begin(self, exchange: "Exchange") -> Awaitable[Any]:
        """Begin to serve a request; what remains to be awaited, ``DONE`` where that is nothing."""
        raise NotImplementedError


class Exchange:
    """One HTTP request and its response, whoever carries them.

    Attributes:
        request: what its head says.
        loop: the event loop it is served on.
        client: the other end of its network connection, or None.
        task: the task that it is served in, where it needs one.
        extra: headers for whatever the response becomes.
        principal: who authenticated, or None.
        is_open: there is more of its body to come.
        is_unread: its body was not read to the end.
    """

    # What most requests leave as it is costs them nothing.
    extra: tuple[Header, ...] = ()
    principal: Any = None
    is_open = True
    is_unread = True

    request: HttpRequest
    loop: asyncio.AbstractEventLoop
    client: Any = None
    task: "asyncio.Task[Any] | None" = None

    # What it is carried by

    @property
    def scope(self) -> Scope:
        """The same as an ASGI scope."""
        raise NotImplementedError

    def take_body(self, limit: int) -> bytes | None:
        """The body where it is there as a whole and within a limit of bytes; else None."""
        raise NotImplementedError

    async def read_part(self) -> bytes | None:
        """Wait for the next part of the body; None where the client has left."""
        raise NotImplementedError

    def watch(self, on_left: Callable[[], None]) -> None:
        """Have ``on_left`` called when the client leaves; its request is read to the end."""
        raise NotImplementedError

    def unwatch(self) -> None:
        """Call nobody any more."""
        raise NotImplementedError

    async def wait_until_left(self) -> None:
        """Wait until the client leaves."""
        raise NotImplementedError

    def send_whole(self, status: int, body: bytes, extra: Sequence[Header] = ()) -> Awaitable[Any]:
        """Send a whole response (:class:`~isthmus.transports.http.reply.ResponseSink`)."""
        raise NotImplementedError

    def send_part(
        self, chunk: bytes, headers: Sequence[Header] | None, *, more: bool
    ) -> Awaitable[Any]:
        """Send a part of an event stream (:class:`~isthmus.transports.http.reply.ResponseSink`)."""
        raise NotImplementedError

    async def serve_asgi(self, app: Any) -> None:
        """Leave it to an ASGI app."""
        raise NotImplementedError

    # What it asks for

    def origin(self, session: str | None = None, transport: str = "http") -> Origin:
        """The origin of the request's message, for handlers that want to know."""
        principal, headers = self.principal, self.request.headers
        if principal is not None:
            headers = RequestHeaders(self.request.fields, bare=True)
        return Origin(transport, headers, principal, session, self.client)

    @property
    def takes_streams(self) -> bool:
        """Whether its version of HTTP has event streams."""
        return self.request.version != "1.0"

    def refuse(self, refusal: Refusal, id: Id | None = None) -> Awaitable[Any]:
        """Respond with a JSON-RPC error, under the request's id where that is known."""
        # spec 2026-07-28 basic/transports/streamable-http#security-endpoint: else without an id
        body = encode_error(id, refusal.error(), null_id=False)
        own = tuple((name.encode(), value.encode()) for name, value in refusal.headers)
        return self.send_whole(refusal.status, body, (*own, *self.extra))

    def preflight(self) -> Awaitable[Any]:
        """Respond to the question whether a page may send a request (CORS)."""
        wanted = self.request.headers.get("access-control-request-headers")
        return self.send_whole(204, b"", make_preflight_headers(self.request.head.origin, wanted))


class BodyTooLarge(Exception):
    """A body longer than allowed; raised as soon as that is known."""


class BodyTooSlow(Exception):
    """A body that took longer than allowed, as a whole or from one piece to the next."""


class UploadsOverBudget(Exception):
    """All bodies on their way in are together more than is kept of them."""


class UploadBudget:
    """The bytes that unfinished bodies may take, of all connections together.

    Args:
        limit: so many.
    """

    __slots__ = ("_limit", "_used")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0

    def take(self, size: int) -> None:
        """Keep so many bytes more.

        Raises:
            UploadsOverBudget: that is too many; they are counted, and are to be given back.
        """
        self._used += size
        if self._used > self._limit:
            raise UploadsOverBudget

    def give_back(self, size: int) -> None:
        """Keep so many bytes less."""
        self._used -= size


class Upload(WatchedRequest):
    """A request's body on its way in: one that is not there as a whole yet, and so is timed.

    Args:
        exchange: the request; its Content-Length is believed where it says "too long".
        limit: the most bytes taken, however they come.
        budget: the bytes that all bodies may take while they come.
        idle: seconds from one piece to the next.
        total: seconds from the first to the last.
    """

    __slots__ = ("_budget", "_end", "_exchange", "_heard", "_idle", "_limit", "_timer", "_total")

    def __init__(
        self,
        exchange: Exchange,
        limit: int,
        budget: UploadBudget,
        *,
        idle: float,
        total: float,
    ) -> None:
        super().__init__(exchange.task)
        self._exchange = exchange
        self._limit = limit
        self._budget = budget
        self._idle = idle
        self._total = total
        self._end = self._heard = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def read(self) -> bytes | None:
        """The body, or None when the client left before its end.

        Raises:
            BodyTooLarge: there is more of it than allowed.
            BodyTooSlow: it took longer than allowed.
            UploadsOverBudget: there are too many bodies on their way.
        """
        exchange = self._exchange
        try:
            body = await exchange.read_part()
            if body is not None and exchange.is_open:
                return await self._read_rest(body)
        except asyncio.CancelledError:
            if not self.was_cut():
                raise
            raise BodyTooSlow from None
        finally:
            self.task = None
            if self._timer is not None:
                self._timer.cancel()
        if body is not None and len(body) > self._limit:
            raise BodyTooLarge
        return body

    async def _read_rest(self, body: bytes) -> bytes | None:
        """Read a body that comes in pieces."""
        exchange = self._exchange
        # Only for bodies in pieces does it pay to look what was announced.
        if _read_content_length(exchange.request.fields) > self._limit:
            raise BodyTooLarge
        parts, size = [body], len(body)
        try:
            self._budget.take(size)
            while exchange.is_open:
                if size > self._limit:
                    raise BodyTooLarge
                if self._timer is not None:
                    self._heard = exchange.loop.time()
                part = await exchange.read_part()
                if part is None:
                    return None
                parts.append(part)
                size += len(part)
                self._budget.take(len(part))
        finally:
            self._budget.give_back(size)
        if size > self._limit:
            raise BodyTooLarge
        return b"".join(parts)

    def linger(self, loop: asyncio.AbstractEventLoop) -> None:
        """It was not there at once: it is timed from now on."""
        self._heard = loop.time()
        self._end = self._heard + self._total
        self._timer = loop.call_at(min(self._end, self._heard + self._idle), self._late, loop)

    def _late(self, loop: asyncio.AbstractEventLoop) -> None:
        due = min(self._end, self._heard + self._idle)
        if due <= loop.time():
            self.cut()
        else:
            self._timer = loop.call_at(due, self._late, loop)


class BodyReader:
    """Reads the bodies that have to be waited for, and refuses those that are too much.

    Args:
        limit: the most bytes one body may have.
        budget: the most that all may take together while they come; at least ``limit``.
        idle: seconds from one piece of a body to the next.
        total: seconds from the first to the last.
    """

    def __init__(self, limit: int, budget: int, *, idle: float, total: float) -> None:
        self._limit = limit
        self._all = max(budget, limit)
        self._budget = UploadBudget(self._all)
        self._idle = idle
        self._total = total

    async def read(self, exchange: Exchange, watch: RequestWatch) -> bytes | None:
        """A body that has to be waited for, or None where there is nobody to serve any more."""
        upload = Upload(exchange, self._limit, self._budget, idle=self._idle, total=self._total)
        watch.enter(upload)
        try:
            body = await upload.read()
        except BodyTooLarge:
            exchange.is_unread = exchange.is_open
            await exchange.refuse(refuse_large_body(self._limit))
        except UploadsOverBudget:
            await exchange.refuse(refuse_many_uploads(self._all))
        except BodyTooSlow:
            exchange.is_unread = False  # there is nothing to drain
            await exchange.refuse(refuse_slow_body(self._idle, self._total))
        else:
            exchange.is_unread = False
            return body
        finally:
            watch.leave(upload)
        return None


def _read_content_length(fields: Iterable[tuple[bytes, bytes]]) -> int:
    """The body's length as its head gives it; 0 where it does not."""
    lengths = [int(v) for name, v in fields if name == b"content-length" and v.isdigit()]
    return max(lengths, default=0)
