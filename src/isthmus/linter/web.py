"""How a server is talked to over HTTP: each question is a request of its own."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from isthmus.core.http_params import encode_value
from isthmus.core.sse import Events
from isthmus.errors import ConnectionLost, Misbehaved
from isthmus.linter.conversation import Conversation
from isthmus.linter.talk import ENDLESS
from isthmus.linter.visit import Outcome
from isthmus.revisions import METHODS, MODERN, Revision
from isthmus.transports.http.requests import Requests, Response

__all__ = ["Web"]

LIMIT = 16 * 2**20
SHOWN = 2000
BOTH = "application/json, text/event-stream"


class Web:
    """A conversation over HTTP.

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

    def __init__(
        self,
        url: str,
        requests: Requests,
        headers: Mapping[str, str],
        *,
        conversation: Conversation,
        timeout: float,
        revision: Revision,
    ) -> None:
        self.conversation = conversation
        self.session: str | None = None
        self.opened = False
        self._url = url
        self._requests = requests
        self._headers = headers
        self._timeout = timeout
        self._revision = revision

    async def send(
        self,
        probe: str,
        body: bytes | None,
        *,
        message: Any = None,
        verb: str = "POST",
        headers: Mapping[str, str | None] | None = None,
        stops: str = "",
        timeout: float | None = None,
    ) -> Outcome:
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
        outcome = Outcome(probe, message if message is not None else body, others=[])
        if body is not None:
            self.conversation.add("client", body)
        sent = {**self._usual(message), **(headers or {})}
        try:
            async with asyncio.timeout(timeout or self._timeout):
                response = await self._requests.send(
                    verb, self._url, {k: v for k, v in sent.items() if v is not None}, body
                )
                try:
                    await self._take(outcome, response, message, verb, stops)
                finally:
                    response.close()
        except TimeoutError:
            outcome.silent = isinstance(message, dict) and "id" in message and "method" in message
        except (ConnectionLost, Misbehaved) as error:
            outcome.lost = str(error)
        return outcome

    def _usual(self, message: Any) -> dict[str, str | None]:
        """The headers that a request of the revision has."""
        usual: dict[str, str | None] = {
            "accept": BOTH,
            "content-type": "application/json",
            **self._headers,
        }
        name = self._revision.name
        if self._revision in MODERN:
            usual |= {"mcp-protocol-version": name, **_routing(message)}
        elif self.opened and name >= "2025-06-18":
            usual["mcp-protocol-version"] = name
        if self.session is not None:
            usual["mcp-session-id"] = self.session
        return usual

    async def _take(
        self, outcome: Outcome, response: Response, message: Any, verb: str, stops: str
    ) -> None:
        """Read a response as far as it matters."""
        outcome.status = response.status
        outcome.headers = {name.lower(): value for name, value in response.headers.items()}
        kind = outcome.headers.get("content-type", "").partition(";")[0].strip().lower()
        id = message.get("id") if isinstance(message, dict) else None
        if kind == "text/event-stream":
            if verb != "GET":
                await self._stream(outcome, response, id, stops)
            return
        body = await response.read(LIMIT)
        if body and (kind == "application/json" or body[:1] in (b"{", b"[")):
            self._keep(outcome, body, id)
        if outcome.reply is None:
            outcome.body = body[:SHOWN]

    async def _stream(self, outcome: Outcome, response: Response, id: Any, stops: str) -> None:
        events = Events(limit=LIMIT)
        while piece := await response.piece():
            for event in events.feed(piece):
                data = getattr(event, "data", b"")
                if data and self._keep(outcome, data, id, stops):
                    return

    def _keep(self, outcome: Outcome, data: bytes, id: Any, stops: str = "") -> bool:
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


def _routing(message: Any) -> dict[str, str | None]:
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
