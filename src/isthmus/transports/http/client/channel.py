"""Streamable HTTP, the client's side: every message is a POST of its own.

A request's answer comes on its own response, as JSON or as a stream of events, so
:meth:`HttpClientChannel.send` makes the exchange in the caller's task and returns when the answer
is there: what goes wrong with one request is raised to whoever made it, and no task is started
for it. The other direction exists up to 2025-11-25 only: there the server may talk on the stream
of a request, and on the standing GET stream that is opened when the handshake is over.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

from msgspec import UNSET, Raw

from isthmus.core.batch import MAX_TAKEN_MEMBERS
from isthmus.core.http.params import encode_value
from isthmus.core.negotiation import states_facts
from isthmus.errors import (
    ConnectionLost,
    HttpRefused,
    Misbehaved,
    SessionEnded,
    copy_error,
    refused,
)
from isthmus.revisions import Revision
from isthmus.runtime.channel import Delivery, Origin, Outgoing
from isthmus.runtime.failures import log_info
from isthmus.transports.http.client.address import MAX_MESSAGE_BYTES, redact_url
from isthmus.transports.http.client.pool import open_requests
from isthmus.transports.http.client.requests import (
    CREDENTIAL_STATUSES,
    REDIRECT_STATUSES,
    Requests,
    Response,
    make_http_refused,
    make_refused,
    read_refusal_body,
    resolve_redirect,
)
from isthmus.transports.http.client.streams import ChannelTasks, EventStreams
from isthmus.wire.jsonrpc import Frame, Unreadable, parse
from isthmus.wire.struct import Id

__all__ = ["MAX_MESSAGE_BYTES", "BatchAnswers", "HttpClientChannel"]


class BatchAnswers:
    """The answers that are still waited for, to the requests of one array.

    Args:
        out: the array.
    """

    __slots__ = ("_open",)

    def __init__(self, out: Outgoing) -> None:
        self._open: set[Id] = {one.calls for one in out.members if one.calls is not None}

    def __len__(self) -> int:
        return len(self._open)

    def settle(self, id: Any) -> bool:
        """Count an answer; True as soon as nothing is left to wait for."""
        self._open.discard(id)
        return not self._open

    def give_up(self, id: Id) -> bool:
        """Wait no longer for one of them; False where it is none of them."""
        known = id in self._open
        self._open.discard(id)
        return known


NOTIFICATION_TIMEOUT_S = 30.0  # seconds a server may take to accept a notification
DELETE_TIMEOUT_S = 2.0  # seconds the DELETE of a session may take
STANDING_STREAM_TIMEOUT_S = (
    1.0  # seconds a server may take to offer its standing stream before calls go out
)
SESSION_END_GRACE_S = (
    1.0  # seconds that other requests of an ended session have to hear of it themselves
)
MAX_WAITING_MESSAGES = 10_000  # messages that may wait for whoever receives

VERSION_HEADER = "MCP-Protocol-Version"
SESSION_HEADER = "Mcp-Session-Id"
JSON, STREAM = "application/json", "text/event-stream"
encode_name = lru_cache(1024)(encode_value)  # a few names are called again and again
# What servers say of a session they do not know; other codes are about the request itself.
UNKNOWN_SESSION_CODES = frozenset({-32600, -32000, -32001})
SESSION_ENDED = "the server has ended the session (HTTP 404)"


class HttpClientChannel:
    """A client's way to one MCP endpoint.

    Args:
        url: the endpoint.
        headers: sent with every request, for example ``Authorization``.
        connect_timeout: seconds until a connection counts as failed.
        limit: the most bytes one message of the server may have.
        requests: makes the requests; by default on connections of its own.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float = 30.0,
        limit: int = MAX_MESSAGE_BYTES,
        requests: Requests | None = None,
    ) -> None:
        self.url = url
        self._requests = requests or open_requests(connect_timeout=connect_timeout)
        self._limit = limit
        self._plain = {
            # spec 2026-07-28 basic/transports/streamable-http#sending-messages: both MUST be
            # listed
            "Accept": f"{JSON}, {STREAM}",
            "Content-Type": JSON,
            "User-Agent": "isthmus",
            **(headers or {}),
        }
        self._standing = self._plain
        self._modern = False
        self._session: str | None = None
        self._origin = Origin("http")
        self._tasks = ChannelTasks()
        self._streams = EventStreams(self._get_stream, self._take, self._tasks, limit)
        self._arrived: deque[Delivery] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._sink: Callable[[Delivery, Frame], None] | None = None
        self._exchanges: dict[Id | BatchAnswers, asyncio.Task[Any]] = {}
        self._cut: Id | None = None
        self._over: ConnectionLost | None = None  # why nothing can be sent any more
        self._lost: ConnectionLost | None = None  # the same, as soon as nothing will arrive either
        self._closed = False
        self._streamed = False

    def speak(self, revision: Revision) -> None:
        """Write the following messages as this revision has it; called as soon as it is known."""
        self._modern = states_facts(revision)
        self._streams.resumable = not self._modern
        # spec 2025-11-25 basic/transports#protocol-version-header: a MUST after initialization
        self._standing = {**self._plain, VERSION_HEADER: revision.name}
        if self._session is not None and not self._modern:
            self._standing[SESSION_HEADER] = self._session

    @property
    def session_id(self) -> str | None:
        """The id that the server gave the session; None where there is none."""
        return self._session

    def attach(self, sink: Callable[[Delivery, Frame], None]) -> None:
        """Hand messages to ``sink`` as they arrive, instead of keeping them for :meth:`receive`.

        They come with what was read of them already.

        An answer then reaches its caller, who waits in :meth:`send`, without a detour through
        the task that receives.
        """
        self._sink = sink

    # Channel

    async def receive(self) -> Delivery | None:
        """The next message of the server, or None when the channel was closed."""
        while not self._arrived:
            if self._lost is not None:
                raise copy_error(self._lost)
            if self._closed:
                return None
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self._arrived.popleft()

    async def send(self, out: Outgoing) -> None:
        """Post one message; for a request, return when its answer has arrived.

        Raises:
            ConnectionLost: the channel is over, or this request's connection broke.
            SessionEnded: so it is, and the server did nothing about this message.
            HttpRefused: the server answered with a status and no message.
            Misbehaved: what it answered is no answer.
        """
        if self._over is not None:
            raise copy_error(self._over)
        id, task = out.calls, asyncio.current_task()
        if id is None or task is None:  # coroutines run in tasks; type checkers do not know it
            await self._post_other(out)
            return
        self._exchanges[id] = task
        before = task.cancelling()
        try:
            await self._exchange(out, id)
        except asyncio.CancelledError:
            # The cancellation is our own where the exchange was abandoned; the task is always
            # suspended in here when that happens, so it cannot hit anything else.
            if id in self._exchanges or task.uncancel() > before:
                self._cut = id
                raise
        except ConnectionLost:
            if id in self._exchanges:
                raise
            # Abandoned: whoever did that tells the caller why.
        finally:
            del task  # which keeps what is raised, and so would this frame
            self._exchanges.pop(id, None)

    def abandon(self, id: Id) -> bool:
        """Let go of the response to our request ``id``.

        Returns:
            False where the server has to be told in a message.
        """
        exchange = self._exchanges.pop(id, None)
        if exchange is not None:
            exchange.cancel()
        elif self._cut == id:
            self._cut = None
        elif not self._leave_batch(id):
            return True  # it has failed by itself
        # spec 2026-07-28 basic/patterns/cancellation#transport-specific-cancellation: closing the
        # response is the signal; spec 2025-11-25 basic/transports: a disconnect is none
        return self._modern

    def _leave_batch(self, id: Id) -> bool:
        """Wait no longer for a request that is one of a batch; False where it is not."""
        for members, exchange in self._exchanges.items():
            if isinstance(members, BatchAnswers) and members.give_up(id):
                if not members:
                    del self._exchanges[members]
                    exchange.cancel()
                return True
        return False

    async def close(self) -> None:
        """End every exchange and stream, and the session if there is one."""
        if self._closed:
            return
        self._closed = True
        ended, self._over = self._over, ConnectionLost("the connection was closed")
        self._abandon_all()
        try:
            await self._tasks.end()
            if ended is None:
                await self._delete_session()
        finally:
            await self._requests.close()

    # One request

    async def _exchange(self, out: Outgoing, id: Id | BatchAnswers) -> None:
        response = await self._requests.send("POST", self.url, self._headers(out), out.data)
        if response.status in REDIRECT_STATUSES:
            response = await self._follow_redirect(response, out)
        try:
            if response.status != 200:
                await self._take_refusal(response, out, id)
                return
            if out.method == "initialize":
                self._session = response.headers.get(SESSION_HEADER)
            kind = response.headers.get("Content-Type", "")
            if kind != JSON:
                kind = kind.partition(";")[0].strip().lower()
            if kind == JSON:
                self._take_answer(await response.read(self._limit), id)
            elif kind == STREAM:
                await self._streams.follow(response, id)
            else:
                self._refuse_content_type(out.method or "a batch", kind)
        except BaseException:
            response.close()
            raise

    def _refuse_content_type(self, method: str, kind: str) -> NoReturn:
        raise Misbehaved(
            f"the server answered {method} with {kind or 'no content type'}, "
            f"neither {JSON} nor {STREAM}: is {redact_url(self.url)} an MCP endpoint?"
        )

    async def _post(self, out: Outgoing) -> Response:
        """Send a message that is no request."""
        response = await self._requests.send("POST", self.url, self._headers(out), out.data)
        if response.status in REDIRECT_STATUSES:
            response = await self._follow_redirect(response, out)
        return response

    async def _follow_redirect(self, response: Response, out: Outgoing) -> Response:
        """Follow a redirect within the origin, and remember it; give back any other."""
        target = resolve_redirect(self.url, response.headers.get("Location", ""))
        if target is None:
            return response
        response.close()
        self.url = target
        return await self._requests.send("POST", target, self._headers(out), out.data)

    def _headers(self, out: Outgoing) -> dict[str, str]:
        if not self._modern:
            # spec 2025-11-25 basic/transports#session-management: on all *subsequent* requests
            return self._plain if out.method == "initialize" else self._standing
        # spec 2026-07-28 basic/transports/streamable-http#standard-request-headers
        headers = {**self._standing, "Mcp-Method": out.method}
        if out.name is not None:
            headers["Mcp-Name"] = encode_name(out.name)
        headers.update(out.headers)
        return headers

    def _take_answer(self, data: bytes, id: Id | BatchAnswers) -> None:
        """A body that must be the answer to ``id``."""
        if not self._take(data, id):
            raise Misbehaved("the server answered with a message that is not the answer")

    def _take(self, data: bytes, id: Id | BatchAnswers | None) -> bool:
        """Take in one message; True where it is the answer to ``id``, or the last one to several.

        Raises:
            Refused: it is an error without an id, which on this response can only mean ``id``.
            Misbehaved: it is no message at all.
        """
        frame = parse(data)
        if isinstance(frame, Unreadable):
            raise Misbehaved(f"the server sent what is no JSON-RPC message: {frame.message}")
        if not isinstance(frame, Frame):  # spec 2025-03-26 basic/transports: streams may batch
            return self._take_all(frame, id)
        if frame.method is not UNSET:
            # spec 2026-07-28 basic/transports/streamable-http#receiving-messages: the server MUST
            # NOT send requests; answering would break a MUST NOT of ours
            if frame.id is UNSET or not self._modern:
                self._arrive(data, frame)
            return False
        if frame.error is not UNSET and (frame.id is None or frame.id is UNSET) and id is not None:
            error = frame.error
            raise refused(error.code, error.message, None if error.data is UNSET else error.data)
        self._arrive(data, frame)
        if isinstance(id, BatchAnswers):
            return id.settle(frame.id)
        return frame.id == id and type(frame.id) is type(id)

    def _take_all(self, frames: Sequence[Raw], id: Id | BatchAnswers | None) -> bool:
        """Take in the members of an array; see :meth:`_take`."""
        if len(frames) > MAX_TAKEN_MEMBERS:
            raise Misbehaved(
                f"the server sent {len(frames)} messages in one array: {MAX_TAKEN_MEMBERS} at most"
            )
        members = [bytes(frame) for frame in frames]
        if any(member[:1] == b"[" for member in members):
            raise Misbehaved("the server sent an array of messages in another")
        return sum(self._take(member, id) for member in members) > 0

    async def _take_refusal(self, response: Response, out: Outgoing, id: Id | BatchAnswers) -> None:
        """A status other than 200: the answer if the body is one, an exception if not."""
        body = await read_refusal_body(response)
        frame = parse(body) if response.status not in CREDENTIAL_STATUSES else None
        if not isinstance(frame, Frame) or frame.error is UNSET:
            self._check_session(response)
            raise make_http_refused(response, body)
        error, ours = frame.error, frame.id == id
        # spec 2025-11-25 basic/transports#session-management: 404 is the end of the session; but
        # some servers put it on an answer as well
        if not ours or error.code in UNKNOWN_SESSION_CODES:
            self._check_session(response)
        # What opens a connection has to know the status: it may be an older transport's.
        if ours and out.method != "initialize":
            self._arrive(body, frame)
            return
        raise make_refused(error, response.status)

    def _check_session(self, response: Response) -> None:
        """Everything is over where the server has forgotten our session.

        Raises:
            SessionEnded: so it is, and what was answered so was not looked at.
        """
        if response.status == 404 and self._session is not None and not self._modern:
            raise self._end_session()

    def _end_session(self) -> SessionEnded:
        """Send nothing more; what is under way has a moment to hear its own end, and say it."""
        if self._over is None:
            self._over = SessionEnded(SESSION_ENDED)
            if self._exchanges:
                asyncio.get_running_loop().call_later(SESSION_END_GRACE_S, self._lose, self._over)
            else:
                self._lose(self._over)
        return SessionEnded(SESSION_ENDED)

    # Streams of events

    async def _get_stream(self, last_id: str) -> Response | None:
        """Ask for a stream of events; None where there is none to be had now."""
        headers = {**self._standing, "Accept": STREAM}
        if last_id:
            headers["Last-Event-ID"] = last_id
        try:
            response = await self._requests.send("GET", self.url, headers)
        except ConnectionLost:
            return None
        if response.status == 200 and response.headers.get("Content-Type", "").startswith(STREAM):
            self._streamed = True
            return response
        response.close()
        known = self._session is not None and not self._modern
        # A server that never had streams may mean 405 by 404.
        if response.status == 404 and known and (last_id or self._streamed):
            self._end_session()
            # What the stream was to bring may have been done: it must not be asked for again.
            raise ConnectionLost(SESSION_ENDED)
        if 400 <= response.status < 500:
            raise HttpRefused(response.status, "no stream to resume", response.headers)
        return None

    # What is not a request

    async def _post_other(self, out: Outgoing) -> None:
        if out.members:
            await self._post_batch(out)
        elif out.answers is None:
            await self._post_notification(out)
        else:  # whoever reads the channel must not wait for this
            self._tasks.answer(self._post_answer, out)

    async def _post_batch(self, out: Outgoing) -> None:
        """Post several messages as one array, and wait for the answers to all of them."""
        members, task = BatchAnswers(out), asyncio.current_task()
        if not members or task is None:
            await self._post_notification(out)
            return
        self._exchanges[members] = task
        before = task.cancelling()
        try:
            await self._exchange(out, members)
        except asyncio.CancelledError:
            if members in self._exchanges or task.uncancel() > before:
                raise
        finally:
            del task  # as in send
            self._exchanges.pop(members, None)

    async def _post_notification(self, out: Outgoing) -> None:
        """Post a notification and wait until it is accepted, for others may depend on it."""
        try:
            async with asyncio.timeout(NOTIFICATION_TIMEOUT_S):
                response = await self._post(out)
        except TimeoutError:
            raise ConnectionLost(f"the server did not accept {out.method} in time") from None
        response.close()
        self._check_session(response)
        if response.status >= 300:
            raise ConnectionLost(f"the server refused {out.method}: HTTP {response.status}")
        if out.method == "notifications/initialized":
            # A server that asks on the standing stream asks nobody while there is none, so the
            # first call waits until it is there, or not to be had.
            settled = asyncio.get_running_loop().create_future()
            self._tasks.start(self._streams.stand_by(settled))
            await asyncio.wait((settled,), timeout=STANDING_STREAM_TIMEOUT_S)

    async def _post_answer(self, out: Outgoing) -> None:
        """Post our answer to a request of the server."""
        try:
            async with asyncio.timeout(NOTIFICATION_TIMEOUT_S):
                response = await self._post(out)
            response.close()
            self._check_session(response)
            if response.status >= 300:
                log_info("the server refused our answer: HTTP %s", response.status)
        except (ConnectionLost, TimeoutError) as error:
            log_info("our answer did not reach the server: %s", error)

    async def _delete_session(self) -> None:
        """End the session, as a courtesy: its result does not matter."""
        if self._session is None or self._modern:
            return
        try:
            async with asyncio.timeout(DELETE_TIMEOUT_S):
                response = await self._requests.send("DELETE", self.url, self._standing)
            response.close()
        except (ConnectionLost, TimeoutError):
            return

    # The inside

    def _arrive(self, data: bytes, frame: Frame) -> None:
        if self._sink is not None:
            self._sink(Delivery(data, self._origin), frame)
        elif len(self._arrived) >= MAX_WAITING_MESSAGES:
            raise Misbehaved(
                f"{MAX_WAITING_MESSAGES} messages of the server wait to be received: too many"
            )
        else:
            self._arrived.append(Delivery(data, self._origin))
            self._wake()

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    def _lose(self, error: ConnectionLost) -> None:
        if not self._closed:
            self._lost = error
            self._abandon_all()

    def _abandon_all(self) -> None:
        """Cancel every exchange, and wake whoever reads the channel, who tells every caller of its end."""
        mine = asyncio.current_task()
        others = {id: task for id, task in self._exchanges.items() if task is not mine}
        for id, exchange in others.items():
            del self._exchanges[id]
            exchange.cancel()
        self._wake()
