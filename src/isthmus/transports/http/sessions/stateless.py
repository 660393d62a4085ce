"""Stateless mode for clients up to 2025-11-25: no session, each POST stands alone.

A server that asks its clients for nothing, and tells them nothing of its own accord, needs no
sessions: ``stateless=True`` gives none out and holds none. What needs one is refused, and says so.
Requests since 2026-07-28 stand alone in any case.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET, Raw

from isthmus.core.batch import MAX_TAKEN_MEMBERS, find_batch_flaw, has_batches
from isthmus.core.caller import Caller, MalformedEnvelope, find_progress_token, read_envelope
from isthmus.core.http.rules import Refusal
from isthmus.errors import Refuse
from isthmus.revisions import BY_NAME, LEGACY, Revision
from isthmus.runtime.inbound import Inbound
from isthmus.transports.http.refusals import find_request_id
from isthmus.transports.http.reply import Reply
from isthmus.transports.http.request import EVENTS_ONLY, Exchange
from isthmus.transports.http.response import SERVER_STOPPING, ResponseChannel
from isthmus.wire import (
    ClientCapabilities,
    ElicitationCapability,
    RootsCapability,
    SamplingCapability,
)
from isthmus.wire.jsonrpc import ErrorBody, Frame, encode_answer, encode_error, parse
from isthmus.wire.meta import Envelope
from isthmus.wire.struct import Id, Wire

if TYPE_CHECKING:
    from isthmus.runtime.router import Router
    from isthmus.transports.http.admission import Admission
    from isthmus.transports.http.request_watch import RequestWatch

R = TypeVar("R")

# spec 2025-11-25 basic/transports#protocol-version-header: without the header SHOULD assume it
ASSUMED_REVISION = "2025-03-26"

NEEDS_SESSION = frozenset({"resources/subscribe", "resources/unsubscribe", "logging/setLevel"})

# What its client can do is not known here: so that who asks it is told why that cannot be
ALL_CAPABILITIES = ClientCapabilities(
    roots=RootsCapability(),
    sampling=SamplingCapability(context={}, tools={}),
    elicitation=ElicitationCapability(form={}, url={}),
)


def _refuse_sessionless(method: str) -> ErrorBody:
    message = f"{method} needs a session, and this server has none (stateless=True)"
    return ErrorBody(code=-32601, message=message)


class StatelessChannel(ResponseChannel):
    """The channel of one POST without a session: it takes progress and log lines, and no question."""

    __slots__ = ()

    @property
    def facts(self) -> Caller:
        """What is known of the sender."""
        return self._caller

    async def serve(self, router: "Router", watch: "RequestWatch", inbound: Inbound) -> None:
        """Serve the request and send its answer."""
        reply, self.task = self._reply, self._exchange.task
        watch.enter(self)
        try:
            await reply.answer(await self.work_out(router, inbound))
        except asyncio.CancelledError:
            if not self.was_cut():
                raise
            await reply.answer(encode_error(inbound.id, self.why(SERVER_STOPPING)), 503)
        finally:
            watch.leave(self)
            self._finish()

    async def work_out(self, router: "Router", inbound: Inbound) -> bytes:
        """The answer to a request."""
        if inbound.method in NEEDS_SESSION:
            return encode_error(inbound.id, _refuse_sessionless(inbound.method))
        outcome = await router.serve(inbound)
        if not isinstance(outcome, bytes):
            return encode_error(inbound.id, outcome)
        if inbound.method == "initialize":
            outcome = _drop_session_capabilities(outcome)
        return encode_answer(inbound.id, outcome)

    def _end(self) -> None:
        # spec 2025-11-25 basic/transports#sending-messages-to-the-server: a disconnection SHOULD
        # NOT be interpreted as the client cancelling its request
        self._reply.drop()

    async def call(
        self,
        method: str,
        params: Wire | None,  # noqa: ARG002 - part of the link's shape
        result: type[R],  # noqa: ARG002
        *,
        relates_to: Id | None = None,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
        **_more: Any,
    ) -> R:
        """Refuse: an answer could arrive at any process, and nobody would wait for it.

        Raises:
            Refuse: always.
        """
        raise Refuse(-32603, f"{method} needs a session, and this server has none (stateless=True)")


class StatelessEndpoint:
    """Serves POSTs of clients up to 2025-11-25, each for itself.

    Args:
        router: serves the requests.
        admission: says who may ask for what, or None.
        stream_answers: answer with a stream even where JSON would do.
    """

    def __init__(
        self, router: "Router", admission: "Admission | None", *, stream_answers: bool
    ) -> None:
        self._router = router
        self._admission = admission
        self._stream_answers = stream_answers

    def begin(
        self, exchange: Exchange, frame: Frame, envelope: Envelope | None, watch: "RequestWatch"
    ) -> Awaitable[Any]:
        """Begin to serve one message."""
        lack = self._find_lack(exchange, (frame,))
        if lack is not None:
            return exchange.refuse(lack, find_request_id(frame))
        channel = self._open_channel(exchange)
        inbound = self._make_inbound(exchange, frame, envelope, channel)
        if inbound is None or frame.id is UNSET or frame.id is None:
            self._take_note(inbound)
            return exchange.send_whole(202, b"", exchange.extra)
        return channel.serve(self._router, watch, inbound)

    def begin_batch(
        self, exchange: Exchange, members: Sequence[Raw], watch: "RequestWatch"
    ) -> Awaitable[Any]:
        """Begin to serve several messages in one array."""
        accepted = has_batches(self._find_revision(exchange))
        if wrong := find_batch_flaw(members, accepted=accepted):
            return exchange.refuse(Refusal(400, -32600, wrong))
        if len(members) > MAX_TAKEN_MEMBERS:
            what = (
                f"Invalid request: {len(members)} messages; at most {MAX_TAKEN_MEMBERS} are taken"
            )
            return exchange.refuse(Refusal(400, -32600, what))
        if self._admission is not None and (
            lack := self._admission.find_batch_refusal(exchange.principal, members)
        ):
            return exchange.refuse(*lack)
        parsed = [parse(bytes(one)) for one in members]
        return self._serve_batch(exchange, parsed, watch)

    async def _serve_batch(
        self, exchange: Exchange, parsed: Sequence[Any], watch: "RequestWatch"
    ) -> None:
        channel = self._open_channel(exchange)
        watch.enter(channel)
        try:
            answers = [await self._answer_member(exchange, one, channel) for one in parsed]
        finally:
            watch.leave(channel)
            channel.farewell()
        whole = [answer for answer in answers if answer is not None]
        if whole:
            await exchange.send_whole(200, b"[%b]" % b",".join(whole), exchange.extra)
        else:
            await exchange.send_whole(202, b"", exchange.extra)

    async def _answer_member(
        self, exchange: Exchange, member: Any, channel: StatelessChannel
    ) -> bytes | None:
        if not isinstance(member, Frame):
            code, what = getattr(member, "code", -32600), getattr(member, "message", "")
            error = ErrorBody(code=code, message=what or "Invalid request: a batch in a batch")
            return encode_error(getattr(member, "id", None), error)
        inbound = self._make_inbound(
            exchange, member, read_envelope(member.params or None), channel
        )
        if inbound is None or member.id is UNSET or member.id is None:
            self._take_note(inbound)
            return None
        return await channel.work_out(self._router, inbound)

    def _take_note(self, inbound: Inbound | None) -> None:
        """Act on a notification; there is no session that could begin to hear of changes."""
        if inbound is not None and inbound.method != "notifications/initialized":
            self._router.note(inbound.method, inbound.params, inbound)

    def _find_lack(self, exchange: Exchange, frames: Sequence[Frame]) -> Refusal | None:
        if self._admission is None:
            return None
        return self._admission.find_refusal(exchange.principal, frames, modern=False)

    def _find_revision(self, exchange: Exchange) -> Revision:
        """The revision that a request is served in: as its header says."""
        said = BY_NAME.get(exchange.request.head.version or ASSUMED_REVISION)
        spoken = [one for one in self._router.supported if one in LEGACY]
        return said if said in spoken else spoken[0]

    def _open_channel(self, exchange: Exchange) -> StatelessChannel:
        # Log lines take a level, which is a session's: nearly none are sent.
        caller = Caller(
            self._find_revision(exchange), ALL_CAPABILITIES, None, "emergency", exchange.principal
        )
        takes = exchange.request.takes
        takes = EVENTS_ONLY if self._stream_answers and takes.events else takes
        return StatelessChannel(exchange, Reply(exchange, takes, exchange.extra), caller)

    def _make_inbound(
        self,
        exchange: Exchange,
        frame: Frame,
        envelope: Envelope | MalformedEnvelope | None,
        channel: StatelessChannel,
    ) -> Inbound | None:
        """A request or a notification; None for an answer, which nobody waits for."""
        if frame.method is UNSET:
            return None
        return Inbound(
            0 if frame.id is UNSET or frame.id is None else frame.id,
            frame.method,
            frame.params or None,
            channel.facts,
            channel,
            exchange.origin(),
            find_progress_token(envelope),
        )


def _drop_session_capabilities(result: bytes) -> bytes:
    """The answer to ``initialize`` without what needs a session."""
    told = msgspec.json.decode(result)
    capabilities = told.get("capabilities", {})
    capabilities.pop("logging", None)
    for kind in ("tools", "prompts", "resources"):
        if kind in capabilities:
            capabilities[kind] = {
                name: value
                for name, value in capabilities[kind].items()
                if name not in {"listChanged", "subscribe"}
            }
    return msgspec.json.encode(told)
