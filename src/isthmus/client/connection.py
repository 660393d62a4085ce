"""One connection: how it opens, how calls go out on it, and how it ends.

:class:`Connection` is what :class:`~isthmus.client.client.Client` is made of. It owns the one task
that runs the peer; everything else runs in the tasks of whoever calls, so a connection may be
used from any task, and closed by any, in any order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.client.answering import Answering, given
from isthmus.client.opening import Link, Opening, speak
from isthmus.client.settings import OnProgress, Settings
from isthmus.client.targets import Target
from isthmus.core.opening import Agreement, facts, states_facts
from isthmus.errors import (
    CapabilityMissing,
    ConnectionLost,
    Misbehaved,
    OutOfPhase,
    TooManyRounds,
)
from isthmus.revisions import METHODS, Method
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.wire import (
    InputRequiredResult,
    LogLevel,
    Meta,
    Result,
    ServerCapabilities,
    UnsetType,
)
from isthmus.wire.base import Wire

__all__ = ["Connection", "OnProgress", "Settings"]

R = TypeVar("R")

Headers = tuple[tuple[str, str], ...]

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
        self._opening: Opening | None = None
        self._link: Link | None = None
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
            self._opening = Opening(
                self.target, self._router, self._answering, self.settings, self._dialled
            )
            agreement = await self._opening.open()
            self._link = self._opening.link
            self._agree(agreement)
            return True

    def _dialled(self, peer: Peer) -> None:
        self.peer = peer

    def _agree(self, agreement: Agreement) -> None:
        speak(self.live(), agreement.revision)
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
        if self._opening is not None:
            await self._opening.give_up()


def tell(peer: Peer, told: Callable[[Any], Awaitable[None] | None], what: object) -> None:
    """Tell a callback something; what an async one has to do runs beside the conversation."""
    done = told(what)
    if hasattr(done, "__await__"):
        peer.start(given(done))


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
