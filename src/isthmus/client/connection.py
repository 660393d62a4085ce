"""One connection: how it opens, how calls go out on it, and how it ends.

:class:`Connection` is what :class:`~isthmus.client.client.Client` is made of. It owns the one task
that runs the peer; everything else runs in the tasks of whoever calls, so a connection may be
used from any task, and closed by any, in any order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.client.answering import Answering, given
from isthmus.client.known import forget, recall, remember
from isthmus.client.targets import Target
from isthmus.core.caller import Caller
from isthmus.core.opening import (
    Agreement,
    Answer,
    Attempt,
    Error,
    Gone,
    HttpStatus,
    Nonsense,
    Offer,
    Outcome,
    Silence,
    facts,
    negotiate,
    states_facts,
)
from isthmus.errors import (
    CallTimedOut,
    CapabilityMissing,
    ConnectFailed,
    ConnectionLost,
    HttpRefused,
    Misbehaved,
    OutOfPhase,
    PeerError,
    Refused,
    TooManyRounds,
)
from isthmus.revisions import METHODS, Method, Revision
from isthmus.runtime.channel import Delivery
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.wire import (
    Implementation,
    InputRequiredResult,
    LogLevel,
    Meta,
    ProgressParams,
    Result,
    ServerCapabilities,
    UnsetType,
)
from isthmus.wire.base import Wire
from isthmus.wire.jsonrpc import Frame

__all__ = ["Connection", "OnProgress", "Settings"]

R = TypeVar("R")

OnProgress: TypeAlias = Callable[[ProgressParams], Awaitable[None] | None]
"""Called with each progress notification of a call, in order; an async one runs beside it."""

Headers = tuple[tuple[str, str], ...]


class Settings(msgspec.Struct, frozen=True):
    """How patient a client is, and who it says it is; see ``Client`` for each."""

    info: Implementation
    revision: Revision | None = None
    timeout: float = 60.0
    max_timeout: float = 1800.0
    connect_timeout: float = 30.0
    probe_timeout: float | None = None
    max_rounds: int = 10
    log_level: LogLevel | None = None


PROBE_TIMEOUT = 2.0
"""Seconds of silence after which a launched server is taken for a legacy one."""

PROBE_TIMEOUT_HTTP = 10.0
"""The same over HTTP, where old servers answer with a status, and silence is a cold start."""

_head = msgspec.json.Decoder(Result).decode
_questions = msgspec.json.Decoder(InputRequiredResult).decode


class Connection:
    """One conversation with one server, from a client's side.

    Args:
        target: where the server is.
        router: serves what a legacy server asks for.
        answering: answers what a modern server asks for; and our capabilities.
        settings: limits and names.

    Attributes:
        agreement: what was settled when the connection opened, or None before that.
        peer: our side of the conversation while there is one.
    """

    def __init__(
        self, target: Target, router: Router, answering: Answering, settings: Settings
    ) -> None:
        self.target = target
        self.settings = settings
        self.agreement: Agreement | None = None
        self.peer: Peer | None = None
        self.meta: Meta | UnsetType = UNSET
        self._router = router
        self._answering = answering
        self._owner: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None
        self._missing: frozenset[str] = frozenset()

    # Opening

    async def open(self) -> bool:
        """Connect and agree on a revision.

        Returns:
            False where that was done already.

        Raises:
            ConnectFailed: no connection came about; the message says why and what to try.
            OutOfPhase: it was closed before.
        """
        async with self._lock:
            if self._closing is not None:
                raise OutOfPhase("this client was closed; make a new one to connect again")
            if self.agreement is not None:
                return False
            try:
                async with asyncio.timeout(self.settings.connect_timeout):
                    agreement = await self._negotiate()
            except BaseException as error:
                forget(self.target.key)
                await self._hang_up()
                if isinstance(error, TimeoutError):
                    raise self._failed(
                        f"no connection within {self.settings.connect_timeout:g} s"
                    ) from None
                if isinstance(error, ConnectFailed | ConnectionLost | OutOfPhase):
                    raise self._failed(str(error)) from error
                raise
            if self.settings.revision is None:  # a pin says what we want, not what the server can
                remember(self.target.key, agreement.revision)
            self._agree(agreement)
            return True

    def _failed(self, why: str) -> ConnectFailed:
        name = self.target.name
        return ConnectFailed(why if name in why else f"cannot connect to {name}: {why}")

    async def _negotiate(self) -> Agreement:
        """Walk through the negotiation, doing what it asks and telling it what came of it."""
        settings, target = self.settings, self.target
        patience = PROBE_TIMEOUT_HTTP if target.http else PROBE_TIMEOUT
        steps = negotiate(
            Offer(
                settings.info,
                self._answering.capabilities,
                pin=settings.revision,
                known=recall(target.key),
                probe_timeout=patience
                if settings.probe_timeout is None
                else settings.probe_timeout,
            )
        )
        attempt = next(steps)
        while True:
            if attempt.again or self.peer is None:
                await self._dial()
            outcome = await self._try(attempt)
            try:
                attempt = steps.send(outcome)
            except StopIteration as agreed:
                agreement: Agreement = agreed.value
                return agreement

    async def _dial(self) -> None:
        await self._hang_up()
        channel = await self.target.dial()
        if self._closing is not None:
            await channel.close()
            raise ConnectFailed("the client was closed meanwhile")
        self.peer = Peer(channel, self._router, side="client")
        attach = getattr(channel, "attach", None)  # transports that need no task to receive
        if attach is not None:
            attach(partial(take, self.peer))
        self._owner = asyncio.get_running_loop().create_task(self.peer.run())

    async def _try(self, attempt: Attempt) -> Outcome:
        """Make one attempt and say what came of it."""
        peer = self.live()
        self._speak(peer, attempt.revision)
        if attempt.note:
            await peer.note(attempt.method, attempt.params)
            return Silence(0.0)
        try:
            return Answer(
                await peer.call(attempt.method, attempt.params, Raw, timeout=attempt.timeout)
            )
        except (ConnectionLost, OutOfPhase) as error:
            if self.target.key is None or self.target.http:
                raise  # nothing there that could be started again
            return Gone(str(peer.lost or error))
        except (PeerError, CallTimedOut) as error:
            return outcome(error, attempt)

    def _speak(self, peer: Peer, revision: Revision) -> None:
        """Write what follows as this revision has it."""
        peer.agree(Caller(revision=revision))
        # spec 2026-07-28 basic/transports/stdio#sending-messages: the client MUST NOT write
        # responses, whatever a server that MUST NOT send requests sends
        peer.session.deaf = states_facts(revision)
        speak = getattr(peer.channel, "speak", None)  # transports that spell it out in headers
        if speak is not None:
            speak(revision)

    def _agree(self, agreement: Agreement) -> None:
        self._speak(self.live(), agreement.revision)
        self.agreement = agreement
        # Only what the revision can announce can be missing.
        self._missing = frozenset(
            capability
            for capability in agreement.revision.members[ServerCapabilities]
            if getattr(agreement.capabilities, capability) is UNSET
        )
        self.state_facts(self.settings.log_level)

    def state_facts(self, log_level: LogLevel | None) -> None:
        """Work out what every request says about us, where the revision wants that."""
        revision = self.settled().revision
        if states_facts(revision):
            capabilities = self._answering.capabilities
            self.meta = facts(revision, self.settings.info, capabilities, log_level)

    # Being open

    def settled(self) -> Agreement:
        """What was agreed.

        Raises:
            OutOfPhase: nothing yet.
        """
        if self.agreement is None:
            raise OutOfPhase("not connected yet: use `async with Client(…)`, or await open()")
        return self.agreement

    def live(self) -> Peer:
        """The peer, while the connection is up.

        Raises:
            OutOfPhase: it is not open yet, or was closed by us.
            ConnectionLost: it broke before.
        """
        peer = self.peer
        if self._closing is not None:
            raise OutOfPhase("this client was closed")
        if peer is None:
            raise OutOfPhase("not connected yet: use `async with Client(…)`, or await open()")
        if peer.lost is not None:
            raise ConnectionLost(str(peer.lost))
        return peer

    def require(self, capability: str, method: str) -> None:
        """Check that the server offers what a method needs.

        Raises:
            CapabilityMissing: it does not; nothing was sent.
        """
        self.settled()
        if capability in self._missing:
            raise CapabilityMissing(
                f"the server does not offer {capability!r}, which {method} needs"
            )

    def about(self, meta: Mapping[str, Any] | None) -> Meta | UnsetType:
        """The ``_meta`` of a request: the caller's members and ours, ours first."""
        if not meta:
            return self.meta
        return {**meta, **(self.meta or {})}

    async def ask(  # noqa: PLR0917 - the path of every call: keywords cost
        self,
        method: str,
        params: Any,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        name: str | None = None,
        headers: Headers = (),
    ) -> Any:
        """Make a call to its end, answering what the server asks on the way.

        Args:
            method: one of the specification's.
            params: its parameters.
            timeout: seconds without answer or progress, for each round; None for the default.
            on_progress: told of progress.
            name: what the call is about, for headers.
            headers: arguments that travel in headers, too.

        Raises:
            Refused, CallTimedOut, ConnectionLost, Misbehaved: as it went.
            TooManyRounds: the server kept asking.
        """
        row, settings = METHODS[method], self.settings
        patience = settings.timeout if timeout is None else timeout
        limit = max(patience, settings.max_timeout)
        for _ in range(settings.max_rounds + 1):
            # spec 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow: each retry
            # has an id of its own
            peer = self.live()
            raw = await peer.call(
                method,
                params,
                Raw,
                timeout=patience,
                max_timeout=limit,
                on_progress=None if on_progress is None else partial(tell, peer, on_progress),
                name=name,
                headers=headers,
            )
            result = self._read(row, raw)
            if type(result) is not InputRequiredResult:
                return result
            params = await self._answered(result, params)
        raise TooManyRounds(
            f"the server asked {self.settings.max_rounds} times in a row while serving {method}"
        )

    async def send(
        self,
        method: str,
        params: Any,
        result: type[R],
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        name: str | None = None,
        headers: Headers = (),
    ) -> R:
        """Make one call as it is."""
        settings = self.settings
        patience = settings.timeout if timeout is None else timeout
        peer = self.live()
        return await peer.call(
            method,
            params,
            result,
            timeout=patience,
            max_timeout=max(patience, settings.max_timeout),
            on_progress=None if on_progress is None else partial(tell, peer, on_progress),
            name=name,
            headers=headers,
        )

    def _read(self, row: Method, raw: Raw) -> Result | InputRequiredResult:
        """A result by its type.

        Raises:
            Misbehaved: it is malformed, or of a type we do not know.
        """
        modern = self.meta is not UNSET
        try:
            result: Result = row.decode_result(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if modern and row.asks and (questions := asked(raw)) is not None:
                return questions
            raise Misbehaved(f"the answer to {row.name} is malformed: {error}") from error
        kind = result.result_type
        # spec 2026-07-28 basic#resulttype: clients MUST treat an absent resultType as "complete",
        # and any other value they do not recognize as invalid
        if not modern or kind is UNSET or kind == "complete":
            return result
        if row.asks and (questions := asked(raw)) is not None:
            return questions
        raise Misbehaved(f"the answer to {row.name} is of the type {kind!r}, which is unknown here")

    async def _answered(self, result: InputRequiredResult, params: Any) -> Any:
        """The parameters of the next round."""
        questions = result.input_requests or {}
        if not questions and result.request_state is UNSET:
            raise Misbehaved("the server wants input, but neither asks nor gives a state")
        answers: Any = UNSET
        if questions:
            answers = await self._answering.answers(questions, self.settled().revision)
        # spec 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow: the state MUST
        # be echoed exactly, and MUST NOT be sent where none was given
        return structs.replace(params, input_responses=answers, request_state=result.request_state)

    # The end

    async def close(self) -> None:
        """End the connection; safe to call twice, from any task, and before it opened.

        Being cancelled here does not keep the connection from closing.
        """
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._hang_up())
        await asyncio.shield(self._closing)

    async def _hang_up(self) -> None:
        peer, owner = self.peer, self._owner
        self._owner = None
        try:
            if peer is not None:
                await peer.close()
        finally:
            if owner is not None:
                await asyncio.wait((owner,))


def take(peer: Peer, delivery: Delivery, frame: Frame) -> None:
    """Let a peer have a message that arrived while somebody was sending one."""
    for inbound in peer.take(delivery, frame):
        peer.start(peer.serve(inbound), inbound)
    if peer.outbox:
        peer.start(peer.flush())


def tell(peer: Peer, told: Callable[[Any], Awaitable[None] | None], what: object) -> None:
    """Tell a callback something; what an async one has to do runs beside the conversation."""
    done = told(what)
    if hasattr(done, "__await__"):
        peer.start(given(done))


def outcome(error: PeerError | CallTimedOut, attempt: Attempt) -> Outcome:
    """What an exception means for the negotiation."""
    if isinstance(error, Refused):
        return Error(error.code, error.message, error.data)
    if isinstance(error, HttpRefused):
        return HttpStatus(error.status, error.body)
    if isinstance(error, CallTimedOut):
        return Silence(attempt.timeout or 0.0)
    return Nonsense(str(error))


def asked(raw: Raw) -> InputRequiredResult | None:
    """A result as questions, if it is that."""
    try:
        return _questions(raw) if _head(raw).result_type == "input_required" else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def with_facts(params: Wire | Mapping[str, Any] | None, meta: Meta | UnsetType) -> Any:
    """The parameters of a custom method, saying what the revision wants said."""
    if meta is UNSET:
        return params
    if isinstance(params, msgspec.Struct):
        own = getattr(params, "meta", UNSET) or {}
        return structs.replace(params, meta={**own, **meta})
    own = (params or {}).get("_meta", {})
    return {**(params or {}), "_meta": {**own, **meta}}
