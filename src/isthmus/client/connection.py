"""Connection of a client: it opens, carries calls with their rounds of questions, and ends.

:class:`Connection` is what :class:`~isthmus.client.client.Client` is made of. It owns the one task
that runs the peer; everything else runs in the tasks of whoever calls, so a connection may be
used from any task, and closed by any, in any order. Where OpenTelemetry is at work, each call says
which trace it belongs to.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import ContextVar
from functools import partial
from sys import modules
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, structs

from isthmus.client.features.answering import Answering
from isthmus.client.handshake import ConnectionOpener, SessionRenewal, set_revision
from isthmus.client.model.callbacks import CallbackQueue, only_increasing
from isthmus.client.model.limits import ClientSettings, OnProgress
from isthmus.client.model.relay import CONTINUED_ROUND, RoundRelayed
from isthmus.client.model.trace_context import TRACER_MODULE, add_trace_context
from isthmus.client.targets import Target
from isthmus.core.negotiation import Agreement, make_facts_meta, states_facts
from isthmus.errors import (
    CapabilityMissing,
    ConnectFailed,
    ConnectionLost,
    Misbehaved,
    OutOfPhase,
    SessionEnded,
    TooManyRounds,
    UrlElicitationRequired,
    UsageError,
    make_unsent,
    quote_text,
)
from isthmus.revisions import METHODS, Method
from isthmus.runtime.clocks import Clocks
from isthmus.runtime.failures import log_warning
from isthmus.runtime.outbound import ProgressCallback, UnclaimedCalls
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.tasks.shapes import LenientCreateTaskResult, LenientTaskCreated
from isthmus.wire import (
    ClientCapabilities,
    CreateTaskResult,
    InputRequiredResult,
    LogLevel,
    Meta,
    Result,
    ServerCapabilities,
    TaskCreated,
    UnsetType,
)
from isthmus.wire.meta import LOG_LEVEL, find_key_flaw
from isthmus.wire.reading import read_well_formed_items

R = TypeVar("R")

# members of ``_meta`` of every request that is made in this context, as a gateway passes them on
PASSED_META: ContextVar[Mapping[str, Any] | None] = ContextVar("isthmus_passed_meta", default=None)

# level of the log messages that is asked for by every request of this context, where requests say
# one
PASSED_LOG_LEVEL: ContextVar[LogLevel | None] = ContextVar("isthmus_passed_log_level", default=None)

Headers = tuple[tuple[str, str], ...]
RecoveredErrors = tuple[type[Exception], ...]

NONE_RECOVERED: RecoveredErrors = ()

MAX_LOGGED_ITEMS = 10
MAX_CALL_FACTS = 64  # different capabilities of calls whose facts are kept

_decode_result_head = msgspec.json.Decoder(Result).decode
_decode_questions = msgspec.json.Decoder(InputRequiredResult).decode
_decode_created_task = msgspec.json.Decoder(LenientCreateTaskResult).decode
_decode_flat_task = msgspec.json.Decoder(LenientTaskCreated).decode


CONNECTION_WATCHERS: "list[Callable[[Connection], None]]" = []  # told of each new connection


class Connection:
    """One conversation with one server, from a client's side.

    Args:
        target: where the server is.
        router: serves what a legacy server asks for.
        answering: answers what a modern server asks for; and our capabilities.
        settings: limits and names.
        max_result_bytes: bytes that one result may have; None for any number.

    Attributes:
        agreement: what was settled when the connection opened, or None before that.
        peer: our side of the conversation while there is one.
        on_lost: told when the connection has ended for good.
        on_renewed: makes of a new session what the one before had become; runs beside.
        clocks: stop while a user is waited for.
        traced: each request has a span, and says itself which trace it belongs to.
        on_peer: told of each peer before it says its first word.
        find_call_capabilities: finds what is declared with the request that is being made, where that
            differs from call to call (since 2026-07-28); a host finds the client of its gateway.
        on_unclaimed_task: told of a task that a call has begun whose caller has stopped waiting.
    """

    def __init__(
        self,
        target: Target,
        router: Router,
        answering: Answering,
        settings: ClientSettings,
        max_result_bytes: int | None = None,
    ) -> None:
        self.target = target
        self.settings = settings
        self.agreement: Agreement | None = None
        self.peer: Peer | None = None
        self.meta: Meta | UnsetType = UNSET
        self._router = router
        self._max_result_bytes = max_result_bytes
        self.answering = answering
        self.on_lost: Callable[[ConnectionLost], None] = ignore_event
        self.on_peer: Callable[[Peer], None] = ignore_event
        self.traced = False
        self.find_call_capabilities: Callable[[], ClientCapabilities | None] | None = None
        self.on_unclaimed_task: Callable[[TaskCreated | CreateTaskResult], None] = ignore_event
        self._call_facts: dict[int, tuple[ClientCapabilities, Meta]] = {}
        self.on_renewed: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._opening: ConnectionOpener | None = None
        self._renewal = SessionRenewal(self._renew, self._not_renewed)
        self._lock = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None
        self._missing: frozenset[str] = frozenset()
        self.clocks = Clocks()
        for watch in CONNECTION_WATCHERS:
            watch(self)

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
            opening = self._opening = self._make_opener(self._keep_peer)
            self._agree(await opening.open())
            self._watch(self.live())
            return True

    def _make_opener(self, on_dial: Callable[[Peer], None]) -> ConnectionOpener:
        return ConnectionOpener(
            self.target,
            self._router,
            self.answering,
            self.settings,
            on_dial,
            clocks=self.clocks,
        )

    def _keep_peer(self, peer: Peer) -> None:
        self.on_peer(peer)
        self.peer = peer

    def _agree(self, agreement: Agreement) -> None:
        set_revision(self.live(), agreement.revision)
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
        revision = self.require_agreement().revision
        if states_facts(revision):
            capabilities = self.answering.capabilities
            self.meta = make_facts_meta(revision, self.settings.info, capabilities, log_level)
            self._call_facts.clear()

    # Being open

    def require_agreement(self) -> Agreement:
        """The agreement with the server.

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
            ConnectionLost: it broke before; as ``SessionEnded`` where :meth:`renewed` helps.
        """
        peer = self.peer
        if self._closing is not None:
            raise OutOfPhase("this client was closed")
        if peer is None:
            raise OutOfPhase("not connected yet: use `async with Client(…)`, or await open()")
        if peer.lost is not None:
            kind = SessionEnded if isinstance(peer.lost, SessionEnded) else ConnectionLost
            raise make_unsent(str(peer.lost), kind)
        return peer

    def require(self, capability: str, method: str) -> None:
        """Check that the server offers what a method needs.

        Raises:
            CapabilityMissing: it does not; nothing was sent.
        """
        if self.agreement is None:
            self.require_agreement()
        if capability in self._missing:
            raise CapabilityMissing(
                f"the server does not offer {capability!r}, which {method} needs"
            )

    def about(self, meta: Mapping[str, Any] | None) -> Meta | UnsetType:
        """The ``_meta`` of a request: the caller's members, those that are passed on, and ours; ours first.

        Raises:
            UsageError: a member of the caller's has no name that may be there.
        """
        passed = PASSED_META.get()
        if passed is not None:
            meta = {**passed, **meta} if meta else passed
        ours = self.meta if self.find_call_capabilities is None else self._state_call_facts()
        if not meta:
            return ours
        for key in meta:
            wrong = find_key_flaw(key)
            if wrong:
                raise UsageError(wrong)
        level = None if passed is None else PASSED_LOG_LEVEL.get()
        if level is None or self.meta is UNSET:
            return {**meta, **(ours or {})}
        return {**meta, **(ours or {}), LOG_LEVEL: level}

    def find_passed_meta(self) -> Meta | UnsetType:
        """The ``_meta`` of a request that is no call: the members that are passed on in this context, and ours."""
        passed = PASSED_META.get()
        return {**passed, **(self.meta or {})} if passed else self.meta

    def _state_call_facts(self) -> Meta | UnsetType:
        """What a request says about us, with what can be answered in the course of this very call."""
        if self.meta is UNSET or self.find_call_capabilities is None:
            return self.meta
        found = self.find_call_capabilities()
        if found is None:
            return self.meta
        known = self._call_facts.get(id(found))
        if known is None or known[0] is not found:
            if len(self._call_facts) >= MAX_CALL_FACTS:
                self._call_facts.clear()
            capabilities = structs.replace(
                self.answering.capabilities,
                elicitation=found.elicitation,
                sampling=found.sampling,
                roots=found.roots,
            )
            # spec 2026-07-28 basic#_meta: every request MUST carry the capabilities of its client
            revision = self.require_agreement().revision
            stated = make_facts_meta(revision, self.settings.info, capabilities)
            known = self._call_facts[id(found)] = found, {**self.meta, **stated}
        return known[1]

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
            RoundRelayed: somebody answers in a later round what it asks.
        """
        row, settings = METHODS[method], self.settings
        patience = settings.timeout if timeout is None else timeout
        if TRACER_MODULE in modules and not self.traced:
            params = add_trace_context(params)
        if (continued := CONTINUED_ROUND.get()) is not None:
            params = continued.fill(method, params, modern=self.meta is not UNSET)
        rounds, recovered = 0, NONE_RECOVERED
        while rounds <= settings.max_rounds:
            # spec 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow: each retry
            # has an id of its own
            peer = None
            try:
                peer = self.live()
                raw = await peer.call(
                    method,
                    params,
                    Raw,
                    timeout=patience,
                    max_timeout=max(patience, settings.max_timeout),
                    on_progress=self._make_progress(peer, method, on_progress),
                    name=name,
                    headers=headers,
                )
            except (SessionEnded, UrlElicitationRequired) as error:
                again = await self._recover(error, peer, recovered)
                if again is None:
                    raise
                recovered = again
                continue
            result = self.read_result(row, raw)
            if type(result) is not InputRequiredResult:
                return result if not rounds else mark_uncacheable(result)
            params = await self._answer_questions(result, params)
            rounds += 1
        most = settings.max_rounds
        raise TooManyRounds(f"the server asked {most} times in a row while serving {method}")

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
        limit = max(patience, settings.max_timeout)
        return await self.run_with_peer(
            lambda peer: peer.call(
                method,
                params,
                result,
                timeout=patience,
                max_timeout=limit,
                on_progress=self._make_progress(peer, method, on_progress),
                name=name,
                headers=headers,
            )
        )

    async def run_with_peer(self, work: Callable[[Peer], Awaitable[R]]) -> R:
        """Do something with the peer; once more in a new session, where the one at hand has ended.

        Args:
            work: does it; safe to do again when it has raised ``SessionEnded``.
        """
        recovered = NONE_RECOVERED
        while True:
            peer = None
            try:
                peer = self.live()
                return await work(peer)
            except SessionEnded as error:
                again = await self._recover(error, peer, recovered)
                if again is None:
                    raise
                recovered = again

    def read_result(self, row: Method, raw: Raw) -> Result | InputRequiredResult | CreateTaskResult:
        """A result by its type.

        Raises:
            Misbehaved: it is malformed, or of a type we do not know.
        """
        modern = self.meta is not UNSET
        most = self._max_result_bytes
        if most is not None and len(raw) > most:
            raise Misbehaved(
                f"the answer to {row.name} has {len(raw)} bytes, and this client takes {most} "
                "(Limits.result_bytes)"
            )
        try:
            result: Result = row.decode_result(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if row.asks and (other := read_interim_result(row, raw, modern=modern)) is not None:
                return other
            salvaged = self._salvage_list(row, raw)
            if salvaged is None:
                raise Misbehaved(f"the answer to {row.name} is malformed: {error}") from error
            result = salvaged
        kind = result.result_type
        # spec 2026-07-28 basic#resulttype: clients MUST treat an absent resultType as "complete",
        # and any other value they do not recognize as invalid
        if kind is UNSET or (modern and kind == "complete"):
            return result
        if (
            not modern
        ):  # up to 2025-11-25 it means nothing, and must not come to mean something later on
            return structs.replace(result, result_type=UNSET)
        if row.asks and (other := read_interim_result(row, raw, modern=modern)) is not None:
            return other
        raise Misbehaved(f"the answer to {row.name} is of the type {kind!r}, which is unknown here")

    def _take_unclaimed(self, method: str, raw: Raw) -> None:
        """Take the result of a call whose caller has stopped waiting: it may be a task."""
        if method == "tools/call":
            made = read_interim_result(METHODS[method], raw, modern=self.meta is not UNSET)
            if isinstance(made, TaskCreated | CreateTaskResult):
                self.on_unclaimed_task(made)

    def _make_progress(
        self, peer: Peer, method: str, told: OnProgress | None
    ) -> ProgressCallback | None:
        """What a call's progress is told to; None asks for none, so that none extends its time."""
        if told is not None:
            return wrap_progress(peer, told)
        return ignore_event if self.settings.progress and method == "tools/call" else None

    def _salvage_list(self, row: Method, raw: Raw) -> Result | None:
        """A malformed list without its malformed items, which are logged; None for all else."""
        try:
            read = read_well_formed_items(row.result, raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if read is None:
            return None
        result: Result = read[0]
        for place, why in read[1][:MAX_LOGGED_ITEMS]:
            logged = quote_text(f"{self.target.name}: {place} is left out of {row.name}: {why}")
            log_warning("%s", logged)
        if len(read[1]) > MAX_LOGGED_ITEMS:
            log_warning(
                "%s: %d more are left out of %s",
                self.target.name,
                len(read[1]) - MAX_LOGGED_ITEMS,
                row.name,
            )
        return result

    async def _answer_questions(self, result: InputRequiredResult, params: Any) -> Any:
        """The parameters of the next round."""
        questions = result.input_requests or {}
        if not questions and result.request_state is UNSET:
            raise Misbehaved("the server wants input, but neither asks nor gives a state")
        answers: Any = UNSET
        if questions:
            try:
                answers = await self.answering.answers(questions, self.require_agreement().revision)
            except RoundRelayed as relayed:
                relayed.state = result.request_state
                raise
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
        await self._renewal.close()
        if self._opening is not None:
            await self._opening.give_up()

    # A new session

    async def renew_session(self, old: Peer | None) -> None:
        """Have a new session where one has ended; there is one for all who need it.

        Args:
            old: whose session has ended; None where it had ended before.

        Raises:
            ConnectionLost: there is no new session to be had.
        """
        if self.peer is (old or self.peer):
            await self._renewal.join()

    async def _recover(
        self, error: Exception, peer: Peer | None, before: RecoveredErrors
    ) -> RecoveredErrors | None:
        """Do away with what kept a call from being served, so that it can be made again.

        Args:
            error: what it was.
            peer: whom the call was made to, as far as it came.
            before: what was recovered for this call already; no kind of error is recovered twice.

        Returns:
            What was recovered by now; None where it cannot be: the pages were not dealt with.

        Raises:
            ConnectionLost: no new session serves the call either.
        """
        if isinstance(error, UrlElicitationRequired):
            # spec 2025-11-25 client/elicitation#url-elicitation-required-error: once the pages
            # are dealt with, the request can be retried; once is enough
            visited = UrlElicitationRequired in before
            if visited or not await self.answering.visit(error, self.require_agreement().revision):
                return None
            return (*before, UrlElicitationRequired)
        if SessionEnded in before:
            raise ConnectionLost(f"a new session did not serve the call either: {error}") from error
        if not self.target.http:  # who made the channel may make another
            raise ConnectionLost(str(error)) from error
        # spec 2025-11-25 basic/transports#session-management: on 404 the client MUST start a new
        # session. What was answered so was not done, so doing it there is safe.
        await self.renew_session(peer)
        return (*before, SessionEnded)

    def _watch(self, peer: Peer) -> None:
        """Hear of the end of a session, which a new one may follow, and of results of calls that were given up."""
        peer.on_close(partial(self._on_end, peer))
        peer.unclaimed = UnclaimedCalls(self._take_unclaimed)

    def _on_end(self, peer: Peer) -> None:
        if self.peer is not peer or peer.lost is None:
            return  # another one is in its place
        if self._closing is None and self.target.http and isinstance(peer.lost, SessionEnded):
            self._renewal.begin()
        else:
            self.on_lost(peer.lost)

    async def _renew(self) -> None:
        """Put a new session in the place of the one that has ended."""
        before, opening = self._opening, self._make_opener(self.on_peer)
        agreement = await opening.open()
        if opening.link is None or states_facts(agreement.revision):
            await opening.give_up()
            raise ConnectFailed(f"the server now speaks {agreement.revision}: connect anew")
        self._opening, self.peer = opening, opening.link.peer
        self._agree(agreement)
        self._watch(self.peer)
        if before is not None and before.link is not None:
            before.forget_calls()
            self._renewal.leave(before.link)
        log_warning("%s has ended the session; a new one was started", self.target.name)
        if self.on_renewed is not None:
            self.peer.start(self.on_renewed())

    def _not_renewed(self, error: ConnectionLost) -> None:
        self.on_lost(error)


def ignore_event(_what: object) -> None:
    """Nobody wants to know."""


def wrap_progress(peer: Peer, told: OnProgress) -> ProgressCallback:
    """A callback for the progress of one call: in order, and only for what is progress."""
    return only_increasing(CallbackQueue(told, peer.start))


def mark_uncacheable(result: Any) -> Any:
    """The result of a call that answered questions, which nobody may give to anybody else."""
    # spec 2026-07-28 server/utilities/caching#cache-key: MUST NOT be cached, since it depends on
    # inputs that are not part of the cache key
    return structs.replace(result, ttl_ms=0) if hasattr(result, "cache_scope") else result


def read_interim_result(
    row: Method, raw: Raw, *, modern: bool
) -> InputRequiredResult | TaskCreated | CreateTaskResult | None:
    """An answer that is no result yet: questions, or a task that will have one; else None."""
    # spec 2026-07-28 ext-tasks#capability-negotiation: a task in the answer to any other request
    # MUST be taken for an invalid one
    becomes_task = row.name == "tools/call"
    try:
        if not modern:
            return _decode_created_task(raw) if becomes_task else None
        kind = _decode_result_head(raw).result_type
        if kind == "task" and becomes_task:
            return _decode_flat_task(raw)
        return _decode_questions(raw) if kind == "input_required" else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def add_facts(params: Struct | Mapping[str, Any] | None, meta: Meta | UnsetType) -> Any:
    """The parameters of a custom method, saying what the revision wants said."""
    if meta is UNSET:
        return params
    plain: Any = params or {}
    if isinstance(params, Struct):
        if hasattr(params, "meta"):
            return structs.replace(params, meta={**(params.meta or {}), **meta})
        plain = msgspec.to_builtins(params)  # an author's own, which has no room for it
    return {**plain, "_meta": {**plain.get("_meta", {}), **meta}}
