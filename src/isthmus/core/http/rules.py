"""Rules of Streamable HTTP: judge a request modern, legacy or refused, by its head and its envelope.

Each rung is one rule of the specification, in the specification's order, and the first that is
broken decides. :func:`judge_head` needs the head alone and runs before a byte of the body is
read; :func:`judge` runs when the body has been parsed. Neither reads a socket, raises, or knows
what a tool is; a :class:`Refusal` gets the request's id from whoever answers with it.

How a request is told to be modern or legacy: it is modern if its ``MCP-Protocol-Version`` header
names a modern revision, or its ``_meta`` names any revision at all (basic/versioning, "Backward
Compatibility"). Everything else is legacy, and so is an ``initialize`` without such a header,
whatever it asks for.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from isthmus.core.caller import Caller, MalformedEnvelope, read_caller
from isthmus.core.http.params import decode_value
from isthmus.revisions import BY_NAME, METHODS, MODERN, REVISIONS, Feature, Revision
from isthmus.wire.jsonrpc import ErrorBody, Frame
from isthmus.wire.meta import Envelope, RequestMeta


class RequestHead(msgspec.Struct, gc=False, kw_only=True):
    """The headers of an HTTP request that any rule reads; None for those that are missing."""

    content_type: str | None = None
    accept: str | None = None
    version: str | None = None
    session_id: str | None = None
    mcp_method: str | None = None
    mcp_name: str | None = None
    last_event_id: str | None = None
    origin: str | None = None
    host: str | None = None


_FIELDS = {
    b"content-type": "content_type",
    b"accept": "accept",
    b"mcp-protocol-version": "version",
    b"mcp-session-id": "session_id",
    b"mcp-method": "mcp_method",
    b"mcp-name": "mcp_name",
    b"last-event-id": "last_event_id",
    b"origin": "origin",
    b"host": "host",
}


def read_head(headers: Iterable[tuple[bytes, bytes]]) -> RequestHead:
    """The head in an ASGI scope's ``headers``, whose names are lower-case.

    A header that comes twice counts as its values joined by commas (RFC 9110 5.3), so that two
    of them never pass for whichever one somebody else reads.
    """
    found: dict[str, str] = {}
    for name, value in headers:
        field = _FIELDS.get(name)
        if field is not None:
            text = value.decode("latin-1").strip(" \t")
            found[field] = f"{found[field]}, {text}" if field in found else text
    return RequestHead(**found)


# --- verdicts --------------------------------------------------------------------------------


class ModernRequest(msgspec.Struct, frozen=True):
    """A request that stands alone: serve it for this caller, and forget it."""

    caller: Caller


class LegacyRequest(msgspec.Struct, frozen=True):
    """A request of the session with this id, or of one still to be opened."""

    session_id: str | None


class Refusal(msgspec.Struct, frozen=True):
    """A request that is not served.

    Attributes:
        status: the HTTP status.
        code: the JSON-RPC error code.
        message: one sentence for whoever wrote the client.
        data: what goes with it, or UNSET.
        headers: further HTTP headers of the answer.
    """

    status: int
    code: int
    message: str
    data: Any = UNSET
    headers: tuple[tuple[str, str], ...] = ()

    def error(self) -> ErrorBody:
        """The same as the ``error`` member of an answer."""
        return ErrorBody(code=self.code, message=self.message, data=self.data)


Verdict: TypeAlias = ModernRequest | LegacyRequest | Refusal


class _SpokenRevisions(msgspec.Struct, frozen=True):
    """The revisions a server speaks, sorted out once."""

    modern: tuple[Revision, ...]
    legacy: tuple[Revision, ...]
    names: list[str]
    allow: tuple[tuple[str, str], ...]

    def unsupported(self, requested: str) -> Refusal:
        # spec 2026-07-28 basic/versioning#protocol-version-negotiation
        message = f"Unsupported protocol version {quote_header(requested)}"
        data = {"supported": list(self.names), "requested": requested}
        return Refusal(400, -32022, message, data)


@cache
def _sort_revisions(supported: tuple[Revision, ...]) -> _SpokenRevisions:
    modern = tuple(r for r in supported if r in MODERN)
    legacy = tuple(r for r in supported if r not in MODERN)
    allow = "POST, GET, DELETE" if legacy else "POST"
    return _SpokenRevisions(modern, legacy, [r.name for r in modern or legacy], (("allow", allow),))


def quote_header(text: str) -> str:
    """A header as errors show it: quoted, and cut after 100 characters."""
    return repr(text if len(text) <= 100 else text[:100] + "…")


# --- where it comes from ---------------------------------------------------------------------


# --- the head alone --------------------------------------------------------------------------


class AcceptedForms(msgspec.Struct, frozen=True):
    """The forms of an answer that a client takes."""

    json: bool
    events: bool


@lru_cache(maxsize=64)
def parse_accept(accept: str | None) -> AcceptedForms:
    """Parse an ``Accept`` header; without one everything is accepted (RFC 9110 12.5.1).

    The specification has clients list both forms. Many list one, or ``*/*``, and are served
    what they take.
    """
    if accept is None or not accept.strip():
        return AcceptedForms(json=True, events=True)
    weights: dict[str, bool] = {}
    for item in accept.lower().split(","):
        media, *params = (part.strip() for part in item.split(";"))
        weights[media] = not any(_is_zero(param) for param in params)
    return AcceptedForms(
        json=_judge_ranges(weights, "application", "json"),
        events=_judge_ranges(weights, "text", "event-stream"),
    )


def _is_zero(param: str) -> bool:
    """Whether a parameter is a weight of nothing: ``q=0``, ``q=0.000``."""
    name, _, value = param.partition("=")
    return name.strip() == "q" and value.strip().rstrip("0") in {"", "0."}


def _judge_ranges(weights: dict[str, bool], kind: str, subtype: str) -> bool:
    """The most telling range decides."""
    for media in (f"{kind}/{subtype}", f"{kind}/*", "*/*"):
        if media in weights:
            return weights[media]
    return False


def judge_head(
    method: str, head: RequestHead, supported: tuple[Revision, ...] = REVISIONS
) -> LegacyRequest | Refusal | None:
    """Judge a request before its body is read.

    Args:
        method: the HTTP method, upper-case.
        head: the request's head.
        supported: the revisions this server speaks.

    Returns:
        For GET and DELETE the verdict; for POST a refusal, or None: read the body and
        :func:`judge` it.
    """
    if method == "POST":
        return _judge_post_head(head)
    sides = _sort_revisions(supported)
    if method not in {"GET", "DELETE"} or not sides.legacy or _find_revision(head) in sides.modern:
        # spec 2026-07-28 basic/transports/streamable-http#earlier-streamable-http-revisions
        return Refusal(
            405, -32600, f"{method} is not a method of this endpoint", UNSET, sides.allow
        )
    if method == "GET" and not parse_accept(head.accept).events:
        return Refusal(406, -32600, "A GET opens an event stream: accept text/event-stream")
    return _judge_legacy(head, sides)


def _judge_post_head(head: RequestHead) -> Refusal | None:
    kind = head.content_type or ""
    if kind != "application/json" and kind.partition(";")[0].strip().lower() != "application/json":
        # a missing type is refused too: a page elsewhere can send that without asking (CORS)
        message = f"Content-Type must be application/json, not {quote_header(kind)}"
        return Refusal(415, -32600, message, UNSET, (("accept", "application/json"),))
    takes = parse_accept(head.accept)
    if not (takes.json or takes.events):
        return Refusal(406, -32600, "Answers are application/json or text/event-stream: accept one")
    return None


# --- head and envelope -----------------------------------------------------------------------


def judge(
    head: RequestHead,
    frame: Frame | Sequence[Raw],
    envelope: Envelope | MalformedEnvelope,
    supported: tuple[Revision, ...] = REVISIONS,
    principal: Any = None,
) -> Verdict:
    """Judge a POST whose head :func:`judge_head` let pass.

    Args:
        head: its head.
        frame: its body, or the members of a batch.
        envelope: what :func:`~isthmus.core.caller.read_envelope` made of the frame's params.
        supported: the revisions this server speaks.
        principal: who authenticated, or None; handed on in the caller.
    """
    if isinstance(frame, Frame) and isinstance(envelope, Envelope):
        sides, meta = _sort_revisions(supported), envelope.meta
        if meta is UNSET or meta.protocol_version is UNSET:
            if BY_NAME.get(head.version or "") in sides.legacy:
                return LegacyRequest(head.session_id)
        elif _says_alike(head, frame, envelope, meta):
            caller = read_caller(envelope, sides.modern, principal)
            if isinstance(caller, Caller):
                return ModernRequest(caller)
    return judge_by_rungs(head, frame, envelope, supported, principal)


def judge_by_rungs(
    head: RequestHead,
    frame: Frame | Sequence[Raw],
    envelope: Envelope | MalformedEnvelope,
    supported: tuple[Revision, ...] = REVISIONS,
    principal: Any = None,
) -> Verdict:
    """As :func:`judge`, rule by rule: the first that is broken decides."""
    sides = _sort_revisions(supported)
    revision = _find_revision(head)
    if revision not in sides.modern:
        revision = None
    if not isinstance(frame, Frame):
        flaw = Refusal(400, -32600, "A POST carries one message: batches ended with 2025-03-26")
        return flaw if revision else _judge_legacy(head, sides)
    if isinstance(envelope, MalformedEnvelope):
        return _make_refusal(envelope)
    if revision is None and (frame.method == "initialize" or _states_revision(envelope) is UNSET):
        return _judge_legacy(head, sides, opening=frame.method == "initialize")
    if revision and frame.method is not UNSET and frame.id is UNSET:
        # spec 2026-07-28 basic/transports/streamable-http#sending-messages: header requirements
        # for notification POSTs are not defined
        return ModernRequest(Caller(revision, principal=principal))
    return _judge_modern(_Post(head, frame, envelope, sides), principal)


def _says_alike(head: RequestHead, frame: Frame, envelope: Envelope, meta: RequestMeta) -> bool:
    """Whether a modern request says the same in its head as in its body, told at a glance.

    No rung then has anything against it. Where the answer is no, the ladder tells why, or that
    there is nothing: a name is spelled in more than one way in a header.
    """
    method = frame.method
    if (
        method is UNSET
        or method != head.mcp_method
        or meta.protocol_version != head.version
        or method == "initialize"
        or frame.id is UNSET
    ):
        return False
    member = _NAMED_BY.get(method)
    name = getattr(envelope, member) if member else None
    if not isinstance(name, str):
        return True
    # what is spelled without blanks and "=?" stands for itself in a header
    plain = name.isascii() and name.isprintable() and " " not in name and name[:2] != "=?"
    return plain and name == head.mcp_name


def _find_revision(head: RequestHead) -> Revision | None:
    return None if head.version is None else BY_NAME.get(head.version)


def _make_refusal(flaw: MalformedEnvelope) -> Refusal:
    return Refusal(400, flaw.code, flaw.message, UNSET if flaw.data is None else flaw.data)


def _states_revision(envelope: Envelope) -> str | UnsetType:
    return envelope.meta.protocol_version if envelope.meta else UNSET


def _judge_legacy(
    head: RequestHead, sides: _SpokenRevisions, *, opening: bool = False
) -> LegacyRequest | Refusal:
    """A request of a session; which revision it speaks is settled when the session opens."""
    version = head.version
    if (
        version is not None
        and _find_revision(head) not in sides.legacy
        and not (opening and sides.legacy)
    ):
        # spec 2025-06-18 basic/transports#protocol-version-header: 400 for an invalid version
        return sides.unsupported(version)
    if not sides.legacy:
        # spec 2026-07-28 basic/versioning: the error to an initialize names what is spoken here,
        # for a legacy client has nothing else to go by
        spoken = ", ".join(sides.names)
        message = f"MCP-Protocol-Version header is missing; this server speaks {spoken}"
        return Refusal(400, -32020, message, {"supported": list(sides.names)})
    return LegacyRequest(head.session_id)


class _Post(msgspec.Struct, frozen=True, gc=False):
    """A modern POST, as the rungs of the ladder look at it."""

    head: RequestHead
    frame: Frame
    envelope: Envelope
    sides: _SpokenRevisions


_Rung: TypeAlias = Callable[[_Post], Refusal | None]


def _judge_modern(post: _Post, principal: Any) -> ModernRequest | Refusal:
    """Climb; a request that is as it should be passes some ten comparisons."""
    for rung in _RUNGS:
        flaw = rung(post)
        if flaw is not None:
            return flaw
    caller = read_caller(post.envelope, post.sides.modern, principal)
    if isinstance(caller, MalformedEnvelope):
        return _make_refusal(caller)
    for rung in _ROUTING if caller.revision.has(Feature.ROUTING_HEADERS) else ():
        flaw = rung(post)
        if flaw is not None:
            return flaw
    return ModernRequest(caller)


def _check_call(post: _Post) -> Refusal | None:
    if post.frame.method is not UNSET:
        return None
    # spec 2026-07-28 basic/transports/streamable-http#sending-messages
    return Refusal(400, -32600, "A POST carries a request or a notification, not an answer")


def _check_no_handshake(post: _Post) -> Refusal | None:
    if post.frame.method != "initialize":
        return None
    # other methods that are no more are the router's to refuse; the params of this one never
    # were a modern request's, and would be blamed instead
    return Refusal(404, -32601, "Method not found: initialize ended with 2025-11-25")


def _check_version_mirrored(post: _Post) -> Refusal | None:
    stated = _states_revision(post.envelope)
    if stated is UNSET or stated == post.head.version:
        return None  # the unstated one is malformed, which is said later
    return _refuse_mismatch("MCP-Protocol-Version", post.head.version, stated)


def _check_version_spoken(post: _Post) -> Refusal | None:
    stated = _states_revision(post.envelope)
    if stated is UNSET or BY_NAME.get(stated) in post.sides.modern:
        return None
    return post.sides.unsupported(stated)


def _check_method_mirrored(post: _Post) -> Refusal | None:
    method, header = str(post.frame.method), post.head.mcp_method
    return None if header == method else _refuse_mismatch("Mcp-Method", header, method)


_NAMED_BY = {row.name: row.named_by for row in METHODS.values() if row.named_by}


def _check_name_mirrored(post: _Post) -> Refusal | None:
    member = _NAMED_BY.get(str(post.frame.method))
    name = getattr(post.envelope, member) if member else None
    if not isinstance(name, str):
        return None  # nothing to compare with; params without their name are refused later
    header = post.head.mcp_name
    if header is None:
        return _refuse_mismatch("Mcp-Name", header, name)
    # spec 2026-07-28 basic/transports/streamable-http#value-encoding: decode, then compare
    value = decode_value(header)
    return None if value == name else _refuse_mismatch("Mcp-Name", value or header, name)


def _refuse_mismatch(header: str, value: str | None, body: str) -> Refusal:
    # spec 2026-07-28 basic/transports/streamable-http#server-validation
    if value is None:
        return Refusal(400, -32020, f"Header mismatch: {header} header is missing")
    message = f"{header} header value {quote_header(value)} does not match body value {quote_header(body)}"
    return Refusal(400, -32020, f"Header mismatch: {message}")


# The rules about what a modern request is, in order
_RUNGS: tuple[_Rung, ...] = (
    _check_call,
    _check_no_handshake,
    _check_version_mirrored,
    _check_version_spoken,
)

# The rules about headers that repeat the body for whoever stands between
_ROUTING: tuple[_Rung, ...] = (_check_method_mirrored, _check_name_mirrored)
