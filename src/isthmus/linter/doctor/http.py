"""Probe session over HTTP: each question is a request of its own."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from isthmus.core.http.params import encode_value
from isthmus.core.http.sse import SseParser
from isthmus.errors import ConnectionLost, Misbehaved
from isthmus.linter.doctor.lines import ENDLESS
from isthmus.linter.doctor.probes import Probe
from isthmus.linter.rules.conversation import SERVER_ONLY, ObservedConversation
from isthmus.linter.rules.visit import ProbeOutcome
from isthmus.revisions import METHODS, MODERN, Revision
from isthmus.transports.http.client.requests import Requests, Response

MAX_RESPONSE_BYTES = 16 * 2**20
MAX_BODY_BYTES = 2000
ACCEPT_BOTH = "application/json, text/event-stream"


class HttpProbeSession:
    """A :class:`ProbeSession` over HTTP.

    Args:
        url: the endpoint.
        requests: makes the requests.
        headers: what every request carries beside the usual.
        conversation: takes down what is said.
        timeout: seconds to wait for an answer.
        revision: what headers say.

    Attributes:
        session: the session's id, once there is one.
    """

    one_connection = False

    def __init__(
        self,
        url: str,
        requests: Requests,
        headers: Mapping[str, str],
        *,
        conversation: ObservedConversation,
        timeout: float,
        revision: Revision,
    ) -> None:
        self.conversation = conversation
        self.session: str | None = None
        self._opened = False
        self._url = url
        self._requests = requests
        self._headers = headers
        self._timeout = timeout
        self._revision = revision

    async def ask(self, probe: Probe, message: Any) -> ProbeOutcome:
        """Send a request, and wait for its answer."""
        outcome = await self._post(
            probe.name,
            msgspec.json.encode(message),
            message=message,
            headers=probe.headers,
            stops=probe.stops,
            timeout=probe.timeout,
        )
        if message["method"] == "initialize" and outcome.result is not None:
            self.session = outcome.headers.get("mcp-session-id")
            self._opened = True
        return outcome

    async def say(self, probe: Probe, data: bytes, message: Any, fence: Any) -> ProbeOutcome:
        """Send what may have no answer."""
        del fence
        if probe.verb != "POST":
            return await self._post(probe.name, None, verb=probe.verb, headers=probe.headers)
        return await self._post(probe.name, data, message=message, headers=probe.headers)

    async def tell(self, method: str) -> ProbeOutcome:
        """Send a notification that is in order."""
        message = {"jsonrpc": "2.0", "method": method}
        return await self._post(method, msgspec.json.encode(message), message=message)

    async def wait_lost(self) -> None:
        """None: nothing is open between two requests."""

    async def close(self) -> None:
        """Do nothing: nothing is open between two requests."""

    async def _post(
        self,
        probe: str,
        body: bytes | None,
        *,
        message: Any = None,
        verb: str = "POST",
        headers: Mapping[str, str | None] | None = None,
        stops: str = "",
        timeout: float | None = None,
    ) -> ProbeOutcome:
        """Send one request.

        Args:
            probe: what the outcome is called.
            body: what to send.
            message: the body decoded, where it is a message: it is taken down, and its answer
                looked for.
            verb: the HTTP method.
            headers: those that differ from the usual; None leaves one out.
            stops: a notification that ends the waiting.
            timeout: seconds to wait, where it is not the usual.
        """
        outcome = ProbeOutcome(probe, message if message is not None else body, others=[])
        if body is not None:
            self.conversation.add("client", body)
        sent = {**self._make_headers(message), **(headers or {})}
        try:
            async with asyncio.timeout(timeout or self._timeout):
                response = await self._requests.send(
                    verb, self._url, {k: v for k, v in sent.items() if v is not None}, body
                )
                try:
                    await self._read_response(outcome, response, message, verb, stops)
                finally:
                    response.close()
        except TimeoutError:
            outcome.silent = isinstance(message, dict) and "id" in message and "method" in message
        except (ConnectionLost, Misbehaved) as error:
            outcome.lost = str(error)
        return outcome

    def _make_headers(self, message: Any) -> dict[str, str | None]:
        """The headers that a request of the revision has."""
        usual: dict[str, str | None] = {
            "accept": ACCEPT_BOTH,
            "content-type": "application/json",
            **self._headers,
        }
        name = self._revision.name
        if self._revision in MODERN:
            usual |= {"mcp-protocol-version": name, **_make_routing_headers(message)}
        elif self._opened and name >= "2025-06-18":
            usual["mcp-protocol-version"] = name
        if self.session is not None:
            usual["mcp-session-id"] = self.session
        return usual

    async def _read_response(
        self, outcome: ProbeOutcome, response: Response, message: Any, verb: str, stops: str
    ) -> None:
        """Read a response as far as it matters."""
        outcome.status = response.status
        outcome.headers = {name.lower(): value for name, value in response.headers.items()}
        kind = outcome.headers.get("content-type", "").partition(";")[0].strip().lower()
        id = message.get("id") if isinstance(message, dict) else None
        if kind == "text/event-stream":
            if verb != "GET":
                await self._read_stream(outcome, response, id, stops)
            return
        body = await response.read(MAX_RESPONSE_BYTES)
        if body and (kind == "application/json" or body[:1] in (b"{", b"[")):
            self._keep_message(outcome, body, id)
        if outcome.reply is None:
            outcome.body = body[:MAX_BODY_BYTES]

    async def _read_stream(
        self, outcome: ProbeOutcome, response: Response, id: Any, stops: str
    ) -> None:
        events = SseParser(limit=MAX_RESPONSE_BYTES)
        while piece := await response.piece():
            for event in events.feed(piece):
                data = getattr(event, "data", b"")
                if data and self._keep_message(outcome, data, id, stops):
                    return

    def _keep_message(self, outcome: ProbeOutcome, data: bytes, id: Any, stops: str = "") -> bool:
        """Take down a message; True where nothing more is waited for."""
        self.conversation.add("server", data)
        if self.conversation.endless:
            raise Misbehaved(ENDLESS)
        try:
            message = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            outcome.others.append(None)
            return False
        if isinstance(message, dict) and "method" in message:
            outcome.others.append(message)
            return bool(stops) and message["method"] == stops
        if outcome.reply is None:
            outcome.reply = message
        else:
            outcome.others.append(message)
        return id is not None and isinstance(message, dict) and message.get("id") == id


def _make_routing_headers(message: Any) -> dict[str, str | None]:
    """The headers that repeat a modern request's body."""
    if not isinstance(message, dict) or "method" not in message:
        return {}
    headers: dict[str, str | None] = {"mcp-method": message["method"]}
    row = METHODS.get(message["method"])
    member = {"task_id": "taskId"}.get(row.named_by or "", row.named_by) if row else None
    name = message.get("params", {}).get(member) if member else None
    if isinstance(name, str):
        headers["mcp-name"] = encode_value(name)
    return headers


class HttpTarget:
    """A server at a URL.

    Args:
        url: the endpoint.
        requests: makes the requests.
        headers: what every request carries.
        loopback: it is on this machine.
    """

    over = "http"

    def __init__(
        self,
        url: str,
        requests: Requests,
        headers: Mapping[str, str] | None = None,
        *,
        loopback: bool = False,
    ) -> None:
        self.loopback = loopback
        self._url = url
        self._requests = requests
        self._headers = {"user-agent": "isthmus-check", **(headers or {})}

    async def enter(self, revision: Revision, timeout: float) -> HttpProbeSession:
        """Prepare to ask; no connection is needed before."""
        conversation = ObservedConversation(judged=SERVER_ONLY, expected=revision)
        return HttpProbeSession(
            self._url,
            self._requests,
            self._headers,
            conversation=conversation,
            timeout=timeout,
            revision=revision,
        )

    def noise(self) -> list[str]:
        """None: HTTP has a place for everything."""
        return []
