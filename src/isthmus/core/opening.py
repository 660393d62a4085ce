"""How a client finds out what the server speaks: the whole negotiation, without any I/O.

:func:`negotiate` is a generator. It yields an :class:`Attempt` — one request to make — and is
sent the :class:`Outcome` of it: an answer, an error, an HTTP status, silence, or the end of the
connection. It returns the :class:`Agreement`, or raises
:class:`~isthmus.errors.ConnectFailed` with what to do about it.

The theory, from spec 2026-07-28 basic/versioning: a server's era is found by asking
``server/discover``. A ``DiscoverResult`` or a *recognised modern error* means modern; **anything
else**, silence included, means legacy, and the client opens with ``initialize``. Two things
happen in the field beyond that and are handled here as well: a server that dies of the probe is
started again and greeted with ``initialize``; and a server that was merely slow to start — so
that the probe met silence — but then refuses ``initialize`` is asked again.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from isthmus.errors import ConnectFailed
from isthmus.revisions import BY_NAME, METHODS, REVISIONS, Era, Revision, project
from isthmus.wire import (
    ClientCapabilities,
    DiscoverParams,
    DiscoverResult,
    Implementation,
    InitializedParams,
    InitializeParams,
    InitializeResult,
    LogLevel,
    ServerCapabilities,
)
from isthmus.wire.base import Meta, Wire
from isthmus.wire.jsonrpc import encode
from isthmus.wire.meta import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    SERVER_INFO,
)

__all__ = [
    "Agreement",
    "Answer",
    "Attempt",
    "Error",
    "Gone",
    "HttpStatus",
    "Nonsense",
    "Offer",
    "Outcome",
    "Silence",
    "facts",
    "negotiate",
    "states_facts",
]


class Offer(msgspec.Struct, frozen=True):
    """What the client brings to the table.

    Attributes:
        info: who we are.
        capabilities: what we can do for the server.
        pin: the one revision to speak, or None to find the newest common one.
        known: what this target spoke last time, or None; saves the probe of a legacy server.
        supported: the revisions we speak, oldest first.
        probe_timeout: seconds of silence that mean "legacy", or None to wait as long as for
            any other answer.
    """

    info: Implementation
    capabilities: ClientCapabilities = ClientCapabilities()
    pin: Revision | None = None
    known: Revision | None = None
    supported: tuple[Revision, ...] = tuple(REVISIONS)
    probe_timeout: float | None = 2.0


class Attempt(msgspec.Struct, frozen=True):
    """One message to send.

    Attributes:
        method: the method.
        params: its parameters in the newest shape.
        revision: the revision the message is written in.
        timeout: seconds to wait, or None for as long as opening may take.
        again: start the server again first; the connection is gone.
        note: it is a notification: nothing is awaited, and the outcome is not looked at.
    """

    method: str
    params: Wire
    revision: Revision
    timeout: float | None = None
    again: bool = False
    note: bool = False


class Answer(msgspec.Struct, frozen=True):
    """The request was answered with a result."""

    result: Raw


class Error(msgspec.Struct, frozen=True):
    """The request was answered with a JSON-RPC error."""

    code: int
    message: str
    data: Any = None


class HttpStatus(msgspec.Struct, frozen=True):
    """An HTTP status without a JSON-RPC body; ``body`` is the beginning of what came instead."""

    status: int
    body: str = ""


class Silence(msgspec.Struct, frozen=True):
    """No answer in time."""

    waited: float


class Nonsense(msgspec.Struct, frozen=True):
    """Something came back, but nothing of ours: what, in words."""

    what: str


class Gone(msgspec.Struct, frozen=True):
    """The connection ended instead, and why as far as is known."""

    reason: str


Outcome: TypeAlias = Answer | Error | HttpStatus | Nonsense | Silence | Gone

Steps: TypeAlias = Generator[Attempt, Outcome, "Agreement"]


class Agreement(msgspec.Struct, frozen=True):
    """What both sides settled on.

    Attributes:
        revision: the revision to speak.
        capabilities: what the server can do.
        info: its self-reported name and version, or None where it keeps them to itself.
        instructions: its hints for a model, or None.
    """

    revision: Revision
    capabilities: ServerCapabilities = ServerCapabilities()
    info: Implementation | None = None
    instructions: str | None = None


def states_facts(revision: Revision) -> bool:
    """True where every request states who asks and in which revision; False after a handshake."""
    return revision.era is Era.MODERN


def facts(
    revision: Revision,
    info: Implementation,
    capabilities: ClientCapabilities,
    log_level: LogLevel | None = None,
) -> Meta:
    """What a modern request says about itself in ``_meta``; the parts are encoded once, here."""
    meta: Meta = {
        PROTOCOL_VERSION: revision.name,
        CLIENT_INFO: Raw(encode(project(info, revision))),
        CLIENT_CAPABILITIES: Raw(encode(project(capabilities, revision))),
    }
    if log_level is not None:
        meta[LOG_LEVEL] = log_level
    return meta


def negotiate(offer: Offer) -> Steps:
    """Find the revision to speak with a server, newest first.

    Args:
        offer: what we bring.

    Returns:
        A generator of attempts, to be sent their outcomes, that returns the agreement.

    Raises:
        ConnectFailed: nothing in common, or the server refused or did not answer.
    """
    opening = Opening(offer)
    start = offer.pin or offer.known
    if start is not None and not states_facts(start):
        return opening.greet(offer.pin or opening.newest(Era.LEGACY))
    return opening.probe(offer.pin or opening.newest(Era.MODERN))


# Spec 2026-07-28 basic/index#error-codes: nobody but the specification may use these, so one of
# them comes from a modern server. Every other code is a legacy server's, whatever it says.
UNSUPPORTED = -32022
MODERN_CODES = frozenset({-32020, -32021, UNSUPPORTED})

ENOUGH = 2  # refusals after which a revision is not asked for again, whatever the server lists

# What HTTP says about the caller or the moment says nothing about the era: these are reported.
NO_EVIDENCE: Mapping[int, str] = {
    401: "the server wants authorization: pass auth=…, or headers={'Authorization': 'Bearer …'}",
    403: "the server forbids it: check the credentials, and the Origin and Host it accepts",
    407: "a proxy on the way wants authorization",
    408: "the server gave up waiting; try again",
    425: "the server asks to try again later",
    429: "the server asks for fewer requests; try again later",
}


class Opening:
    """The steps of one negotiation, and what has been learned so far."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.refusals: dict[Revision, int] = {}
        self.certain = offer.pin is not None  # nothing that is refused would be retried otherwise

    def newest(self, era: Era) -> Revision:
        """The newest revision of an era that we speak."""
        for revision in reversed(self.offer.supported):
            if revision.era is era:
                return revision
        raise ConnectFailed(
            f"no {era.name.lower()} revision is among {names(self.offer.supported)}"
        )

    def probe(self, revision: Revision, *, patient: bool = False) -> Steps:
        """Ask ``server/discover``.

        Args:
            revision: the modern revision to ask in.
            patient: wait as long as for any answer: silence would tell nothing new.
        """
        offer = self.offer
        params = DiscoverParams(meta=facts(revision, offer.info, offer.capabilities))
        patient = patient or offer.pin is not None
        timeout = None if patient else offer.probe_timeout
        outcome = yield Attempt("server/discover", params, revision, timeout)
        if isinstance(outcome, Answer):
            found = discovered(outcome.result)
            if found is not None:
                return (yield from self.settle(found))
        if isinstance(outcome, Error) and modern(outcome):
            return (yield from self.refused(revision, outcome))
        if isinstance(outcome, HttpStatus):
            self.weigh(outcome)
        if offer.pin is not None:
            raise ConnectFailed(
                f"the server does not speak revision {offer.pin.name}: {told(outcome)}; "
                "leave out revision= to let client and server find a common one"
            )
        # spec 2026-07-28 basic/transports/stdio#backward-compatibility: any other error, or
        # silence, is a legacy server's; the fallback MUST NOT be keyed to one error code.
        self.certain = patient or not isinstance(outcome, Silence)
        return (yield from self.greet(self.newest(Era.LEGACY), again=isinstance(outcome, Gone)))

    def settle(self, found: DiscoverResult) -> Steps:
        """The server is modern and says what it speaks: choose."""
        revision = self.common(found.supported_versions)
        if not states_facts(revision):
            return (yield from self.greet(revision))
        return Agreement(
            revision, found.capabilities, server_info(found), found.instructions or None
        )

    def refused(self, asked: Revision, error: Error) -> Steps:
        """The server is modern but not with this request: correct it if we can."""
        versions = supported(error)
        if versions is None:
            raise ConnectFailed(f"the server refused server/discover: {told(error)}")
        self.certain = True
        # spec 2026-07-28 basic/versioning#protocol-version-negotiation: select a mutually
        # supported version and retry
        revision = self.common(versions, asked, error)
        if states_facts(revision):
            return (yield from self.probe(revision, patient=True))
        return (yield from self.greet(revision))

    def greet(self, revision: Revision, *, again: bool = False) -> Steps:
        """Open with ``initialize``."""
        offer = self.offer
        params = InitializeParams(
            protocol_version=revision.name,
            capabilities=offer.capabilities,
            client_info=offer.info,
        )
        outcome = yield Attempt("initialize", params, revision, again=again)
        if not isinstance(outcome, Answer):
            return (yield from self.turned_away(revision, outcome))
        try:
            result: InitializeResult = METHODS["initialize"].decode_result(outcome.result)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ConnectFailed(f"the answer to initialize is malformed: {error}") from error
        settled = self.accepted(result.protocol_version)
        yield Attempt("notifications/initialized", InitializedParams(), settled, note=True)
        return Agreement(
            settled, result.capabilities, result.server_info, result.instructions or None
        )

    def accepted(self, version: str) -> Revision:
        """The revision the server chose, if we can live with it."""
        revision, pin = BY_NAME.get(version), self.offer.pin
        if pin is not None and revision is not pin:
            raise ConnectFailed(
                f"the server does not speak revision {pin.name}: it answered with {version}; "
                "leave out revision= to accept that"
            )
        # spec 2025-11-25 basic/lifecycle#version-negotiation: if the client does not support the
        # version in the answer, it SHOULD disconnect
        if revision is None or revision not in self.offer.supported or states_facts(revision):
            raise ConnectFailed(
                f"the server answered initialize with revision {version!r}; "
                f"we speak {names(self.offer.supported)}"
            )
        return revision

    def turned_away(self, asked: Revision, outcome: Outcome) -> Steps:
        """``initialize`` failed: try what has not been tried and may still work."""
        versions = supported(outcome) if isinstance(outcome, Error) else None
        if versions is not None and self.offer.pin is None:
            revision = self.common(versions, asked, outcome)
            self.certain = True
            if states_facts(revision):
                return (yield from self.probe(revision, patient=True))
            return (yield from self.greet(revision))
        if isinstance(outcome, HttpStatus):
            self.weigh(outcome, opening=True)
        if not self.certain and isinstance(outcome, Error | HttpStatus | Nonsense):
            # What we took for a legacy server was slow to start, or has changed since last time.
            self.certain = True
            return (yield from self.probe(self.newest(Era.MODERN), patient=True))
        raise ConnectFailed(f"the server did not accept initialize: {told(outcome)}")

    def weigh(self, outcome: HttpStatus, *, opening: bool = False) -> None:
        """Raise for a status that is no evidence of the server's era.

        Args:
            outcome: the status.
            opening: it answers ``initialize``, which settles that the URL is to blame for a 404.
        """
        status = outcome.status
        hint = NO_EVIDENCE.get(status)
        if hint is None and status not in (500, 501) and not 400 <= status < 500:
            hint = "the server cannot answer now" if status >= 500 else "check the URL"
        if hint is None and opening and self.certain and status in (404, 405):
            hint = "check the URL: no MCP endpoint answers POST there"
        if hint is not None:
            raise ConnectFailed(f"{told(outcome)}; {hint}")

    def common(
        self, versions: Sequence[str], asked: Revision | None = None, after: Outcome | None = None
    ) -> Revision:
        """The newest revision both sides speak.

        Args:
            versions: what the server says it speaks.
            asked: the revision it has just refused. It may be asked for once more if the server
                names it all the same, and not for ever.
            after: the refusal.
        """
        if asked is not None:
            self.refusals[asked] = self.refusals.get(asked, 0) + 1
        ours = (self.offer.pin,) if self.offer.pin else self.offer.supported
        for revision in reversed(ours):
            if revision.name in versions and self.refusals.get(revision, 0) < ENOUGH:
                return revision
        said = f" ({told(after)})" if after else ""
        raise ConnectFailed(
            f"no revision in common: the server speaks {', '.join(versions) or 'none'}, "
            f"we speak {names(ours)}{said}"
        )


def discovered(result: Raw) -> DiscoverResult | None:
    """The answer to the probe, or None where it is no ``DiscoverResult``."""
    try:
        found: DiscoverResult = METHODS["server/discover"].decode_result(result)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found


def server_info(found: DiscoverResult) -> Implementation | None:
    """Who a modern server says it is, where it says so readably."""
    meta = {} if found.meta is UNSET else found.meta
    try:
        return msgspec.convert(meta.get(SERVER_INFO), Implementation)
    except msgspec.ValidationError:
        return None


def modern(error: Error) -> bool:
    """True where only a modern server answers so."""
    if error.code == UNSUPPORTED:
        return supported(error) is not None
    return error.code in MODERN_CODES


def supported(error: Error) -> list[str] | None:
    """The revisions an error says the server speaks, or None where it does not say."""
    data = error.data
    versions = data.get("supported") if isinstance(data, dict) else None
    if not isinstance(versions, list):
        return None
    return [version for version in versions if isinstance(version, str)]


def told(outcome: Outcome) -> str:
    """An outcome in words."""
    match outcome:
        case Error(code=code, message=message):
            return f"{message} ({code})"
        case HttpStatus(status=status, body=body):
            return f"HTTP {status}" + (f": {body}" if body else "")
        case Silence(waited=waited):
            return f"no answer within {waited:g} s"
        case Gone(reason=words) | Nonsense(what=words):
            return words
        case Answer():
            return "its answer makes no sense"


def names(revisions: Sequence[Revision]) -> str:
    """Revisions in words."""
    return ", ".join(revision.name for revision in revisions)
