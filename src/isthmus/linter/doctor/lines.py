"""Probe session over lines: pipes, sockets, memory, WebSockets."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import msgspec

from isthmus.errors import ConnectionLost, HttpRefused
from isthmus.linter.doctor.probes import Probe
from isthmus.linter.rules.conversation import SERVER_ONLY, ObservedConversation
from isthmus.linter.rules.visit import ProbeOutcome
from isthmus.revisions import Revision
from isthmus.runtime.channel import Channel, Outgoing

MAX_READ_AHEAD = 64  # messages that are read before they are looked at

ENDLESS = "the server says more than anybody asked for, without end"

# An answer to what has no legible id may come so long after the answer to what follows it; less
# where little is waited for at all.
STRAY_DELAY_S = 0.1
DEATH_TIMEOUT_DIVISOR = 10  # a server that fell over is gone in this part of the time for an answer


class LineProbeSession:
    """A :class:`ProbeSession` over one channel, on which one question is asked at a time.

    Args:
        channel: the channel.
        conversation: takes down what is said.
        timeout: seconds to wait for an answer.

    Attributes:
        lost: why the connection ended, or None.
    """

    session = None
    one_connection = True

    def __init__(
        self, channel: Channel, conversation: ObservedConversation, timeout: float
    ) -> None:
        self.conversation = conversation
        self.lost: str | None = None
        self._channel = channel
        self._timeout = timeout
        self._stray = min(STRAY_DELAY_S, timeout / 20)
        self._arrived: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_READ_AHEAD)
        self._reader = asyncio.get_running_loop().create_task(self._read())

    async def ask(self, probe: Probe, message: Any) -> ProbeOutcome:
        """Send a request, and wait for its answer."""
        outcome = ProbeOutcome(probe.name, message, others=[])
        async with self._observing(outcome, probe.timeout):
            await self._send(msgspec.json.encode(message))
            await self._hear(outcome, message["id"], probe.stops)
        waited = probe.stops or (probe.timeout and outcome.silent)
        if waited and outcome.reply is None and outcome.lost is None:
            await self._notify("notifications/cancelled", {"requestId": message["id"]})
        return outcome

    async def say(self, probe: Probe, data: bytes, message: Any, fence: Any) -> ProbeOutcome:
        """Send what may have no answer, then a request that has one; what comes before is about it.

        Args:
            probe: the question.
            data: the bytes.
            message: the same, decoded.
            fence: the request, decoded.
        """
        del message
        outcome = ProbeOutcome(probe.name, data, others=[])
        async with self._observing(outcome):
            await self._send(data)
            await self._send(msgspec.json.encode(fence))
            await self._hear_until(outcome, fence["id"])
        return outcome

    async def tell(self, method: str) -> ProbeOutcome:
        """Send a notification that is in order."""
        await self._notify(method, {})
        return ProbeOutcome(method)

    async def _notify(self, method: str, params: dict[str, Any]) -> None:
        note = {"jsonrpc": "2.0", "method": method, "params": params}
        try:
            await self._send(msgspec.json.encode(note))
        except (ConnectionLost, HttpRefused) as error:
            self.lost = str(error)

    @asynccontextmanager
    async def _observing(
        self, outcome: ProbeOutcome, timeout: float | None = None
    ) -> AsyncIterator[None]:
        """Note how an exchange ended, where it did not end by an answer."""
        try:
            async with asyncio.timeout(timeout or self._timeout):
                yield
        except TimeoutError:
            outcome.silent = True
        except ConnectionLost as error:
            outcome.lost = self.lost = str(error)
        except HttpRefused as refused:  # HTTP+SSE: a message that is refused when it is posted
            outcome.status, outcome.body = refused.status, refused.body.encode()

    async def wait_lost(self) -> str | None:
        """Why the connection ended, if it ends in a moment; None where it goes on."""
        await asyncio.wait((self._reader,), timeout=self._timeout / DEATH_TIMEOUT_DIVISOR)
        return self.lost if self._reader.done() else None

    async def close(self) -> None:
        """Hang up."""
        self._reader.cancel()
        await asyncio.wait((self._reader,))
        await self._channel.close()

    async def _read(self) -> None:
        try:
            while (delivery := await self._channel.receive()) is not None:
                await self._arrived.put(delivery.data)
            self.lost = self.lost or "the server hung up"
        except ConnectionLost as error:
            self.lost = str(error)
        await self._arrived.put(None)

    async def _send(self, data: bytes) -> None:
        self.conversation.add("client", data)
        await self._channel.send(Outgoing(data))

    async def _next(self) -> Any:
        """The next message, decoded; None where it is no JSON."""
        data = await self._arrived.get()
        if data is None:
            self._arrived.put_nowait(None)
            raise ConnectionLost(self.lost or "the server hung up")
        self.conversation.add("server", data)
        if self.conversation.endless:
            raise ConnectionLost(ENDLESS)
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    async def _hear(self, outcome: ProbeOutcome, id: Any, stops: str) -> None:
        """Wait for the answer to a request; an error without an id is taken for it."""
        while True:
            message = await self._next()
            if not isinstance(message, dict):
                outcome.others.append(message)
            elif "method" in message:
                outcome.others.append(message)
                await self._serve(message)
                if message["method"] == stops:
                    return
            elif message.get("id") == id or ("error" in message and message.get("id") is None):
                outcome.reply = message
                return
            else:
                outcome.others.append(message)

    async def _hear_until(self, outcome: ProbeOutcome, id: Any) -> None:
        """Hear everything up to the answer of the fence, and a moment longer."""
        passed = False
        while True:
            try:
                async with asyncio.timeout(self._stray if passed else None):
                    message = await self._next()
            except TimeoutError:
                if passed:
                    return
                raise
            if isinstance(message, dict) and message.get("id") == id and "method" not in message:
                passed = True
            elif isinstance(message, dict) and "method" in message:
                outcome.others.append(message)
                await self._serve(message)
            elif outcome.reply is None:
                outcome.reply = message
            else:
                outcome.others.append(message)

    async def _serve(self, message: dict[str, Any]) -> None:
        """Answer a request of the server's: a ping, or something we did not offer."""
        if "id" not in message:
            return
        error = {"code": -32601, "message": "this client offers nothing"}
        what = {"result": {}} if message["method"] == "ping" else {"error": error}
        await self._send(msgspec.json.encode({"jsonrpc": "2.0", "id": message["id"], **what}))


class LineTarget:
    """A server at the other end of a pipe, a socket, or in memory.

    Args:
        dial: makes a channel to it.
        over: how it is spoken to.
    """

    loopback = True

    def __init__(
        self,
        dial: Callable[[], Awaitable[Channel]],
        over: Literal["lines", "http+sse"] = "lines",
    ) -> None:
        self.over = over
        self._dial = dial
        self._channel: Channel | None = None

    async def enter(self, revision: Revision, timeout: float) -> LineProbeSession:
        """Connect."""
        self._channel = await self._dial()
        conversation = ObservedConversation(judged=SERVER_ONLY, expected=revision)
        return LineProbeSession(self._channel, conversation, timeout)

    def noise(self) -> list[str]:
        """Lines that a launched server wrote that are no messages."""
        lines: Sequence[bytes] = getattr(self._channel, "noise", ())
        return [line.decode(errors="replace") for line in lines]
