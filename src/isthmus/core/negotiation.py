"""Version negotiation of a client, without any I/O: find the newest revision that both sides speak.

:func:`negotiate` is a generator. It yields an :class:`OpeningAttempt` — one request to make — and
is sent the :class:`OpeningOutcome` of it: an answer, an error, an HTTP status, silence, or the end
of the connection. It returns the :class:`Agreement`, or raises
:class:`~isthmus.errors.ConnectFailed` with what to do about it.

The theory, from spec 2026-07-28 basic/versioning: a server's era is found by asking
``server/discover``. A ``DiscoverResult`` or a *recognised modern error* means modern; **anything
else**, silence included, means legacy, and the client opens with ``initialize``. Three things
happen in the field beyond that and are handled here as well: a server that dies of the probe is
started again and greeted with ``initialize``; so is one that survives the probe and refuses
``initialize`` because it came second (supergateway does); and a server that was merely slow to
start — so that the probe met silence — but then refuses ``initialize`` is asked again.

Over HTTP there is an older transport as well, HTTP+SSE of 2024-11-05. Where a server turns
``initialize`` away with a status that an older one would use, the same URL may be its stream.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from isthmus.errors import ConnectFailed, summarize_body
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
from isthmus.wire.jsonrpc import encode
from isthmus.wire.meta import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    SERVER_INFO,
)
from isthmus.wire.struct import Meta, Wire

# Spec 2026-07-28 basic/index#error-codes: nobody but the specification may use these, so one of
# them comes from a modern server. Every other code is a legacy server's, whatever it says.
UNSUPPORTED_VERSION = -32022
MODERN_CODES = frozenset({-32020, -32021, UNSUPPORTED_VERSION})


class OpeningResult(msgspec.Struct, frozen=True):
    """The request was answered with a result."""

    result: Raw


class OpeningError(msgspec.Struct, frozen=True):
    """The request was answered with a JSON-RPC error; ``status`` is the one of its HTTP response."""

    code: int
    message: str
    data: Any = None
    status: int = 200


class HttpStatus(msgspec.Struct, frozen=True):
    """An HTTP status without a JSON-RPC body; ``body`` is the beginning of what came instead."""

    status: int
    body: str = ""


class OpeningTimeout(msgspec.Struct, frozen=True):
    """No answer in time."""

    waited: float


class UnknownReply(msgspec.Struct, frozen=True):
    """Something came back, but nothing of ours: what, in words."""

    what: str


class ConnectionGone(msgspec.Struct, frozen=True):
    """The connection ended instead, and why as far as is known."""

    reason: str


class NoSseStream(msgspec.Struct, frozen=True):
    """The URL is no server of HTTP+SSE: what GET met instead of a stream with an endpoint."""

    why: HttpStatus | UnknownReply


OpeningOutcome: TypeAlias = (
    OpeningResult
    | OpeningError
    | HttpStatus
    | UnknownReply
    | NoSseStream
    | OpeningTimeout
    | ConnectionGone
)


def read_discovery(result: Raw) -> DiscoverResult | None:
    """The answer to the probe, or None where it is no ``DiscoverResult``."""
    try:
        found: DiscoverResult = METHODS["server/discover"].decode_result(result)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found


def read_server_info(found: DiscoverResult) -> Implementation | None:
    """The name and version a modern server states, where they are readable."""
    meta = {} if found.meta is UNSET else found.meta
    try:
        return msgspec.convert(meta.get(SERVER_INFO), Implementation)
    except msgspec.ValidationError:
        return None


def is_modern_error(error: OpeningError) -> bool:
    """True where only a modern server answers so."""
    if error.code == UNSUPPORTED_VERSION:
        return read_supported(error) is not None
    return error.code in MODERN_CODES


def read_supported(error: OpeningError) -> list[str] | None:
    """The revisions an error says the server speaks, or None where it does not say."""
    data = error.data
    versions = data.get("supported") if isinstance(data, dict) else None
    if not isinstance(versions, list):
        return None
    return [version for version in versions if isinstance(version, str)]


def describe_outcome(outcome: OpeningOutcome) -> str:
    """An outcome in words."""
    match outcome:
        case OpeningError(code=code, message=message):
            return f"{message} ({code})"
        case HttpStatus(status=status, body=body):
            return f"HTTP {status}" + (f": {summarize_body(body)}" if body else "")
        case OpeningTimeout(waited=waited):
            return f"no answer within {waited:g} s"
        case ConnectionGone(reason=words) | UnknownReply(what=words):
            return words
        case NoSseStream(why=why):
            return describe_outcome(why)
        case OpeningResult():
            return "its answer makes no sense"


class ClientOffer(msgspec.Struct, frozen=True):
    """The client's side of a negotiation: who it is, and what it speaks and knows.

    Attributes:
        info: who we are.
        capabilities: what we can do for the server.
        pin: the one revision to speak, or None to find the newest common one.
        known: what this target spoke last time, or None; saves the probe of a legacy server.
        supported: the revisions we speak, oldest first.
        probe_timeout: seconds of silence that mean "legacy", or None to wait as long as for
            any other answer.
        sse: the target may turn out to be a server of the HTTP+SSE transport.
        known_sse: it was one last time.
        handshake: nothing but ``initialize`` opens this transport.
        startable: the server is a process of ours, which can be started again.
    """

    info: Implementation
    capabilities: ClientCapabilities = ClientCapabilities()
    pin: Revision | None = None
    known: Revision | None = None
    supported: tuple[Revision, ...] = tuple(REVISIONS)
    probe_timeout: float | None = 2.0
    sse: bool = False
    known_sse: bool = False
    handshake: bool = False
    startable: bool = False


class OpeningAttempt(msgspec.Struct, frozen=True):
    """One attempt to open the connection: a message to send.

    Attributes:
        method: the method.
        params: its parameters in the newest shape.
        revision: the revision the message is written in.
        timeout: seconds to wait, or None for as long as opening may take.
        again: start the server again first; the connection is gone.
        note: it is a notification: nothing is awaited, and the outcome is not looked at.
        sse: it travels over HTTP+SSE, whose stream is opened first if it is not open yet.
    """

    method: str
    params: Wire
    revision: Revision
    timeout: float | None = None
    again: bool = False
    note: bool = False
    sse: bool = False


NegotiationSteps: TypeAlias = Generator[OpeningAttempt, OpeningOutcome, "Agreement"]


class Agreement(msgspec.Struct, frozen=True):
    """The result of a negotiation: the revision, and what the server offers.

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


def make_facts_meta(
    revision: Revision,
    info: Implementation,
    capabilities: ClientCapabilities,
    log_level: LogLevel | None = None,
) -> Meta:
    """Make the facts that a modern request states in ``_meta``; the parts are encoded once, here."""
    meta: Meta = {
        PROTOCOL_VERSION: revision.name,
        CLIENT_INFO: Raw(encode(project(info, revision))),
        CLIENT_CAPABILITIES: Raw(encode(project(capabilities, revision))),
    }
    if log_level is not None:
        meta[LOG_LEVEL] = log_level
    return meta


def negotiate(offer: ClientOffer) -> NegotiationSteps:
    """Find the revision to speak with a server, newest first.

    Args:
        offer: what we bring.

    Returns:
        A generator of attempts, to be sent their outcomes, that returns the agreement.

    Raises:
        ConnectFailed: nothing in common, or the server refused or did not answer.
    """
    return _bound_attempts(_begin_negotiation(offer))


def _bound_attempts(steps: NegotiationSteps) -> NegotiationSteps:
    """A negotiation that ends, whatever the server answers.

    Raises:
        ConnectFailed: it led nowhere.
    """
    attempt = next(steps)
    for _ in range(MAX_ATTEMPTS):
        outcome = yield attempt
        try:
            attempt = steps.send(outcome)
        except StopIteration as agreed:
            agreement: Agreement = agreed.value
            return agreement
    steps.close()
    raise ConnectFailed(f"the server's answers lead nowhere: it was asked {MAX_ATTEMPTS} times")


def _begin_negotiation(offer: ClientOffer) -> NegotiationSteps:
    opening = VersionNegotiation(offer)
    start = offer.pin or offer.known
    if offer.known_sse and not (offer.pin and states_facts(offer.pin)):
        return opening.greet_over_sse(opening.choose_greeting())
    if offer.handshake or (start is not None and not states_facts(start)):
        return opening.greet(opening.choose_greeting())
    return opening.probe(offer.pin or opening.find_newest(Era.MODERN))


MAX_ATTEMPTS = 16
MAX_REFUSALS = (
    2  # refusals after which a revision is not asked for again, whatever the server lists
)

# What HTTP says about the caller or the moment says nothing about the era: these are reported.
STATUS_HINTS: Mapping[int, str] = {
    401: "the server wants authorization: pass auth=…, or headers={'Authorization': 'Bearer …'}",
    403: "the server forbids it: check the credentials, and the Origin and Host it accepts",
    407: "a proxy on the way wants authorization",
    408: "the server gave up waiting; try again",
    425: "the server asks to try again later",
    429: "the server asks for fewer requests; try again later",
}


class VersionNegotiation:
    """The steps of one negotiation, and what has been learned so far."""

    def __init__(self, offer: ClientOffer) -> None:
        self.offer = offer
        self.refusals: dict[Revision, int] = {}
        # Nothing that is refused would be retried otherwise.
        self.certain = offer.pin is not None or offer.handshake
        self.probed = False  # this process was asked server/discover
        self.sse = False  # what follows travels over HTTP+SSE
        self.no_stream: NoSseStream | None = None  # that was tried, and is not to be had
        self.before: OpeningOutcome | None = None  # why it was tried

    def find_newest(self, era: Era) -> Revision:
        """The newest revision of an era that we speak."""
        for revision in reversed(self.offer.supported):
            if revision.era is era:
                return revision
        raise ConnectFailed(
            f"no {era.name.lower()} revision is among {name_revisions(self.offer.supported)}"
        )

    def choose_greeting(self) -> Revision:
        """The revision to open a handshake with."""
        return self.offer.pin or self.find_newest(Era.LEGACY)

    def probe(self, revision: Revision, *, patient: bool = False) -> NegotiationSteps:
        """Ask ``server/discover``.

        Args:
            revision: the modern revision to ask in.
            patient: wait as long as for any answer: silence would tell nothing new.
        """
        offer = self.offer
        params = DiscoverParams(meta=make_facts_meta(revision, offer.info, offer.capabilities))
        patient = patient or offer.pin is not None
        timeout = None if patient else offer.probe_timeout
        self.probed = True
        outcome = yield OpeningAttempt("server/discover", params, revision, timeout)
        if isinstance(outcome, OpeningResult):
            found = read_discovery(outcome.result)
            if found is not None:
                return (yield from self.settle(found))
        if isinstance(outcome, OpeningError) and is_modern_error(outcome):
            return (yield from self.correct_request(revision, outcome))
        if isinstance(outcome, HttpStatus):
            self.check_evidence(outcome)
        if offer.pin is not None:
            raise ConnectFailed(
                f"the server does not speak revision {offer.pin.name}: {describe_outcome(outcome)}; "
                "leave out revision= and era= to let client and server find a common one"
            )
        # Whatever an error lists, what it lists was not confirmed: it is not asked for for ever.
        self.refusals[revision] = self.refusals.get(revision, 0) + 1
        # spec 2026-07-28 basic/transports/stdio#backward-compatibility: any other error, or
        # silence, is a legacy server's; the fallback MUST NOT be keyed to one error code.
        self.certain = patient or not isinstance(outcome, OpeningTimeout)
        return (
            yield from self.greet(
                self.find_newest(Era.LEGACY), again=isinstance(outcome, ConnectionGone)
            )
        )

    def settle(self, found: DiscoverResult) -> NegotiationSteps:
        """The server is modern and says what it speaks: choose."""
        revision = self.choose_common(found.supported_versions)
        if not states_facts(revision):
            return (yield from self.greet(revision))
        return Agreement(
            revision, found.capabilities, read_server_info(found), found.instructions or None
        )

    def correct_request(self, asked: Revision, error: OpeningError) -> NegotiationSteps:
        """The server is modern but not with this request: correct it if we can."""
        versions = read_supported(error)
        if versions is None:
            raise ConnectFailed(f"the server refused server/discover: {describe_outcome(error)}")
        self.certain = True
        # spec 2026-07-28 basic/versioning#protocol-version-negotiation: select a mutually
        # supported version and retry
        revision = self.choose_common(versions, asked, error)
        if states_facts(revision):
            return (yield from self.probe(revision, patient=True))
        return (yield from self.greet(revision))

    def greet(self, revision: Revision, *, again: bool = False) -> NegotiationSteps:
        """Open with ``initialize``."""
        offer = self.offer
        self.probed = self.probed and not again
        params = InitializeParams(
            protocol_version=revision.name,
            capabilities=offer.capabilities,
            client_info=offer.info,
        )
        outcome = yield OpeningAttempt("initialize", params, revision, again=again, sse=self.sse)
        if isinstance(outcome, NoSseStream):
            return (yield from self.go_without_stream(outcome))
        if not isinstance(outcome, OpeningResult):
            return (yield from self.try_otherwise(revision, outcome))
        try:
            result: InitializeResult = METHODS["initialize"].decode_result(outcome.result)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ConnectFailed(f"the answer to initialize is malformed: {error}") from error
        settled = self.check_version(result.protocol_version)
        done = InitializedParams()
        yield OpeningAttempt("notifications/initialized", done, settled, note=True, sse=self.sse)
        return Agreement(
            settled, result.capabilities, result.server_info, result.instructions or None
        )

    def greet_over_sse(self, revision: Revision) -> NegotiationSteps:
        """Open with ``initialize``, over HTTP+SSE."""
        self.sse = True
        return self.greet(revision)

    def go_without_stream(self, outcome: NoSseStream) -> NegotiationSteps:
        """The URL is no server of HTTP+SSE: say so, or begin anew where it was one last time."""
        self.sse, self.no_stream = False, outcome
        if isinstance(outcome.why, HttpStatus):
            self.check_evidence(outcome.why)
        if self.before is not None:
            raise self.make_failure(self.before)
        if self.offer.pin is not None:
            return self.greet(self.offer.pin)
        return self.probe(self.find_newest(Era.MODERN))

    def make_failure(self, outcome: OpeningOutcome) -> ConnectFailed:
        """The error after an answer to ``initialize`` that leaves nothing to be tried."""
        why = f"the server did not accept initialize: {describe_outcome(outcome)}"
        if isinstance(outcome, HttpStatus) and outcome.status in (404, 405) and not self.sse:
            why = f"{describe_outcome(outcome)}; check the URL: no MCP endpoint answers POST there"
        if self.no_stream is not None:
            why += f", and GET opens no stream of HTTP+SSE ({describe_outcome(self.no_stream)})"
        return ConnectFailed(why)

    def check_version(self, version: str) -> Revision:
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
                f"we speak {name_revisions(self.offer.supported)}"
            )
        return revision

    def try_otherwise(self, asked: Revision, outcome: OpeningOutcome) -> NegotiationSteps:
        """``initialize`` failed: try what has not been tried and may still work."""
        versions = read_supported(outcome) if isinstance(outcome, OpeningError) else None
        if versions is not None and self.offer.pin is None:
            revision = self.choose_common(versions, asked, outcome)
            self.certain = True
            if states_facts(revision):
                return (yield from self.probe(revision, patient=True))
            return (yield from self.greet(revision))
        if isinstance(outcome, HttpStatus):
            self.check_evidence(outcome)
        if not self.certain and isinstance(outcome, OpeningError | HttpStatus | UnknownReply):
            # What we took for a legacy server was slow to start, or has changed since last time.
            self.certain = True
            return (yield from self.probe(self.find_newest(Era.MODERN), patient=True))
        if (
            self.probed
            and self.offer.startable
            and isinstance(outcome, OpeningError | ConnectionGone | UnknownReply)
        ):
            return (yield from self.greet(asked, again=True))
        if self.may_be_older(outcome):
            self.before = outcome
            return (yield from self.greet_over_sse(asked))
        raise self.make_failure(outcome)

    def may_be_older(self, outcome: OpeningOutcome) -> bool:
        """Whether a refused ``initialize`` may mean that the server speaks HTTP+SSE."""
        if not self.offer.sse or self.sse or self.no_stream is not None:
            return False
        # spec 2026-07-28 basic/transports/streamable-http#http-sse-transport-2024-11-05: not after
        # a recognised modern error
        if isinstance(outcome, OpeningError) and is_modern_error(outcome):
            return False
        # spec 2025-11-25 basic/transports#backwards-compatibility: 400, 404 or 405;
        # spec 2025-03-26 basic/transports#backwards-compatibility: any 4xx. Those that are about
        # the caller or the moment say nothing about the server.
        return (
            isinstance(outcome, HttpStatus | OpeningError)
            and 400 <= outcome.status < 500
            and outcome.status not in STATUS_HINTS
        )

    def check_evidence(self, outcome: HttpStatus) -> None:
        """Raise for a status that is no evidence of the server's era."""
        status = outcome.status
        hint = STATUS_HINTS.get(status)
        if hint is None and status not in (500, 501) and not 400 <= status < 500:
            hint = "the server cannot answer now" if status >= 500 else "check the URL"
        if hint is not None:
            raise ConnectFailed(f"{describe_outcome(outcome)}; {hint}")

    def choose_common(
        self,
        versions: Sequence[str],
        asked: Revision | None = None,
        after: OpeningOutcome | None = None,
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
            if revision.name in versions and self.refusals.get(revision, 0) < MAX_REFUSALS:
                return revision
        said = f" ({describe_outcome(after)})" if after else ""
        raise ConnectFailed(
            f"no revision in common: the server speaks {', '.join(versions) or 'none'}, "
            f"we speak {name_revisions(ours)}{said}"
        )


def name_revisions(revisions: Sequence[Revision]) -> str:
    """Revisions in words."""
    return ", ".join(revision.name for revision in revisions)
