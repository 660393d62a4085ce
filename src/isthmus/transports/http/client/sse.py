"""HTTP+SSE (2024-11-05), the client's side: one stream for all that the server says.

The stream is opened by GET. Its first event names the endpoint to which every message is posted;
whatever the server has to say, answers included, comes as an event of the stream. So the stream is
the session: where it ends, the session has ended, and a new one begins with a new stream.
"""

import asyncio
from collections import deque
from collections.abc import Mapping

from isthmus.core.framing import Oversize
from isthmus.core.http.sse import SseEvent, SseParser
from isthmus.errors import ConnectionLost, Misbehaved, SessionEnded, copy_error
from isthmus.revisions import Revision
from isthmus.runtime.channel import Delivery, Origin, Outgoing
from isthmus.runtime.failures import log_info
from isthmus.transports.http.client.address import MAX_MESSAGE_BYTES, redact_url
from isthmus.transports.http.client.pool import open_requests
from isthmus.transports.http.client.requests import (
    REDIRECT_STATUSES,
    Requests,
    Response,
    make_http_refused,
    read_refusal_body,
    resolve_redirect,
    same_origin,
)
from isthmus.transports.http.client.streams import ChannelTasks
from isthmus.wire.struct import Id

ENDPOINT_TIMEOUT_S = 10.0  # seconds a server may take to name its endpoint, once its stream is open

NOTIFICATION_TIMEOUT_S = 30.0  # seconds a server may take to accept a notification or an answer

VERSION_HEADER = "MCP-Protocol-Version"
JSON, STREAM = "application/json", "text/event-stream"


class HttpSseChannel:
    """A client's way to a server of HTTP+SSE; :meth:`open` it first.

    Args:
        url: where the stream is.
        headers: sent with every request, for example ``Authorization``.
        connect_timeout: seconds until a connection counts as failed.
        limit: the most bytes one message of the server may have.
        requests: makes the requests; by default on connections of its own.

    Attributes:
        endpoint: where messages are posted to; empty before the channel is open.
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
        self.endpoint = ""
        self._requests = requests or open_requests(connect_timeout=connect_timeout)
        self._headers = {"User-Agent": "isthmus", **(headers or {})}
        self._limit = limit
        self._events = SseParser(limit)
        self._origin = Origin("http+sse")
        self._stream: Response | None = None
        self._arrived: deque[Delivery] = deque()
        self._tasks = ChannelTasks()
        self._over: ConnectionLost | None = None
        self._closed = False

    async def open(self) -> None:
        """Open the stream, and wait until the server has named its endpoint.

        Nothing is left open where that fails.

        Raises:
            HttpRefused: the server answered GET with another status.
            Misbehaved: what it answered with is no stream of this transport, or names an
                endpoint of another origin.
            ConnectionLost: the connection failed.
        """
        try:
            self._stream = await self._open_stream()
            async with asyncio.timeout(ENDPOINT_TIMEOUT_S):
                self.endpoint = await self._read_endpoint()
        except TimeoutError:
            await self.close()
            raise Misbehaved(
                f"the server named no endpoint within {ENDPOINT_TIMEOUT_S:g} s, as a server of "
                f"HTTP+SSE does at once: does {redact_url(self.url)} speak another transport?"
            ) from None
        except BaseException:
            await self.close()
            raise

    def speak(self, revision: Revision) -> None:
        """Write the following messages as this revision has it; called as soon as it is known."""
        # spec 2025-11-25 basic/transports#protocol-version-header: if using HTTP, on all requests
        # after initialization
        self._headers[VERSION_HEADER] = revision.name

    # Channel

    async def receive(self) -> Delivery | None:
        """The next message of the server, or None when the channel was closed.

        The stream is read no faster than messages are received.

        Raises:
            SessionEnded: the stream has ended, and with it the session.
        """
        while not self._arrived:
            if self._closed:
                return None
            if self._over is not None:
                raise copy_error(self._over)
            if self._tasks.full:
                await self._tasks.wait_for_room()
            try:
                self._keep_messages(await self._read_events())
            except ConnectionLost as error:
                self._lose(str(error))
        return self._arrived.popleft()

    async def send(self, out: Outgoing) -> None:
        """Post one message, and return when the server has taken it.

        Raises:
            SessionEnded: the stream has ended, or the server knows the session no more; it did
                nothing about this message.
            ConnectionLost: the connection broke, and nobody knows what was done.
            HttpRefused: the server answered with another status than that of acceptance.
        """
        if self._over is not None or not self.endpoint:
            raise SessionEnded(str(self._over or "the stream is not open"))
        if out.answers is not None:  # whoever reads the channel must not wait for this
            self._tasks.answer(self._post_answer, out)
        elif out.calls is None:
            await self._post_in_time(out)
        else:
            await self._post(out)

    def abandon(self, id: Id) -> bool:  # noqa: ARG002 - the protocol of channels
        """False: a message has to say it."""
        return False

    async def close(self) -> None:
        """End the stream, which ends the session."""
        if self._closed:
            return
        self._closed = True
        self._over = ConnectionLost("the connection was closed")
        if self._stream is not None:
            self._stream.close()
        try:
            await self._tasks.end()
        finally:
            await self._requests.close()

    # The stream

    async def _open_stream(self) -> Response:
        """The stream, redirects within the origin followed."""
        headers = {**self._headers, "Accept": STREAM, "Cache-Control": "no-store"}
        response = await self._requests.send("GET", self.url, headers)
        target = resolve_redirect(self.url, response.headers.get("Location", ""))
        if response.status in REDIRECT_STATUSES and target is not None:
            response.close()
            self.url = target
            response = await self._requests.send("GET", target, headers)
        if response.status != 200:
            raise make_http_refused(response, await read_refusal_body(response))
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != STREAM:
            response.close()
            raise Misbehaved(f"GET brings {kind or 'no content type'}, and not {STREAM}")
        return response

    async def _read_endpoint(self) -> str:
        """The endpoint, which the first event of the stream names."""
        while True:
            events = await self._read_events()
            for number, event in enumerate(events):
                if event.event == "endpoint":
                    self._keep_messages(events[number + 1 :])
                    return self._check_endpoint(event.data.decode("utf-8", "replace").strip())
                if event.data:
                    raise Misbehaved(
                        f"the stream at {redact_url(self.url)} does not begin with an endpoint event"
                    )

    def _keep_messages(self, events: list[SseEvent]) -> None:
        """Have the messages among some events received."""
        for event in events:
            if event.event == "message" and event.data:
                self._arrived.append(Delivery(event.data, self._origin))

    async def _read_events(self) -> list[SseEvent]:
        """The next events; there is at least one.

        Raises:
            ConnectionLost: the stream has ended, or an event is too long.
        """
        if self._stream is None:
            raise ConnectionLost("the stream is not open")
        while piece := await self._stream.piece():
            if events := self._events.feed(piece):
                return [self._check_size(event) for event in events]
        raise ConnectionLost("the server has ended the stream")

    def _check_size(self, event: SseEvent | Oversize) -> SseEvent:
        if isinstance(event, Oversize):
            raise ConnectionLost(
                f"the server sent a message of {event.size} bytes, and the limit is {self._limit}; "
                "HttpSse takes another one as limit=…"
            )
        return event

    def _check_endpoint(self, named: str) -> str:
        """The endpoint as a URL that messages may be posted to.

        Raises:
            Misbehaved: it is of another origin, or no URL.
        """
        from urllib.parse import urljoin  # has been imported by the HTTP client already

        try:
            endpoint = urljoin(self.url, named)
        except ValueError:
            endpoint = ""
        # Ours: what is posted there may hold credentials of the user's.
        if not named or not same_origin(self.url, endpoint):
            raise Misbehaved(
                f"the server names {named!r} as its endpoint, which is not of the origin of "
                f"{redact_url(self.url)}: nothing is sent there. A server behind a proxy has to be told its "
                "public URL, or to name its endpoint by its path alone"
            )
        return endpoint

    def _lose(self, why: str) -> SessionEnded:
        """Remember that the session is over."""
        if self._over is None:
            self._over = SessionEnded(f"the stream of the session has ended: {why}")
            if self._stream is not None:
                self._stream.close()
        return SessionEnded(str(self._over))

    # What is posted

    async def _post(self, out: Outgoing) -> None:
        headers = {**self._headers, "Content-Type": JSON}
        response = await self._requests.send("POST", self.endpoint, headers, out.data)
        target = resolve_redirect(self.endpoint, response.headers.get("Location", ""))
        if response.status in REDIRECT_STATUSES and target is not None:
            response.close()
            self.endpoint = target
            response = await self._requests.send("POST", target, headers, out.data)
        if response.status == 404 and out.method != "initialize":
            response.close()
            raise self._lose("the server knows the session no more (HTTP 404)")
        if response.status >= 300:
            raise make_http_refused(response, await read_refusal_body(response))
        await read_refusal_body(response)  # so that the connection can be used again

    async def _post_in_time(self, out: Outgoing) -> None:
        try:
            async with asyncio.timeout(NOTIFICATION_TIMEOUT_S):
                await self._post(out)
        except TimeoutError:
            raise ConnectionLost(
                f"the server did not accept {out.method or 'our answer'} in time"
            ) from None

    async def _post_answer(self, out: Outgoing) -> None:
        """Post our answer to a request of the server."""
        try:
            await self._post_in_time(out)
        except Exception as error:  # noqa: BLE001 - nobody waits for it: the log is where it is said
            log_info("our answer did not reach the server: %s", error)
