"""The caller of a request: its revision, capabilities and name, the same facts in both eras.

This is the *Facts* seam. In the legacy era they are fixed by the handshake and live as long as
the session; in the modern era every request states them in its ``_meta``. Whoever reads a
:class:`Caller` cannot tell which.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from isthmus.revisions import BY_NAME, LATEST_LEGACY, Era, Revision
from isthmus.wire import ClientCapabilities, Implementation, LogLevel
from isthmus.wire.jsonrpc import MAX_QUOTED_CHARS, shorten
from isthmus.wire.meta import Envelope
from isthmus.wire.struct import Id


class Caller(msgspec.Struct):
    """The facts about the side that sends requests to us.

    Attributes:
        revision: the revision this request is served in.
        capabilities: what the caller declared it can do.
        info: its self-reported name and version, or None; never a basis for decisions.
        log_level: the least severe log level it wants, or None for the era's default.
        principal: who authenticated, or None.
    """

    revision: Revision = LATEST_LEGACY
    capabilities: ClientCapabilities = ClientCapabilities()
    info: Implementation | None = None
    log_level: LogLevel | None = None
    principal: Any = None


class MalformedEnvelope(msgspec.Struct, frozen=True):
    """An envelope that cannot be served: the error to answer with."""

    code: int
    message: str
    data: Any = None


_decode_envelope = msgspec.json.Decoder(Envelope).decode
_EMPTY_ENVELOPE = Envelope()


def read_envelope(params: Raw | None) -> Envelope | MalformedEnvelope:
    """The parts of ``params`` that concern every method: ``_meta``, and what it is about."""
    if params is None:
        return _EMPTY_ENVELOPE
    try:
        return _decode_envelope(params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return MalformedEnvelope(-32602, f"Invalid params: {shorten(error, MAX_QUOTED_CHARS)}")


def read_caller(
    envelope: Envelope, supported: tuple[Revision, ...], principal: Any = None
) -> Caller | MalformedEnvelope:
    """The facts a modern request states about itself, or why it cannot be served.

    Args:
        envelope: what :func:`read_envelope` made of the request's params.
        supported: the revisions this server speaks; those that open with a handshake take no
            facts from an envelope, and are as good as unknown here.
        principal: who authenticated, or None.
    """
    meta = envelope.meta
    if meta is UNSET or meta.protocol_version is UNSET or meta.client_capabilities is UNSET:
        # spec 2026-07-28 basic#_meta: a request missing a required field is malformed, -32602
        return MalformedEnvelope(
            -32602,
            "Invalid params: _meta must carry io.modelcontextprotocol/protocolVersion and "
            "io.modelcontextprotocol/clientCapabilities on every request",
        )
    revision = BY_NAME.get(meta.protocol_version)
    if revision is None or revision.era is not Era.MODERN or revision not in supported:
        return _refuse_revision(meta.protocol_version, supported)
    return Caller(
        revision,
        meta.client_capabilities,
        meta.client_info or None,
        meta.log_level or None,
        principal,
    )


def _refuse_revision(requested: str, supported: tuple[Revision, ...]) -> MalformedEnvelope:
    """The refusal of a revision that takes no facts from an envelope, or not from this one."""
    modern = [known.name for known in supported if known.era is Era.MODERN]
    if not modern:
        # Not an error of that era: a client that can do both then falls back to the handshake.
        names = ", ".join(known.name for known in supported)
        return MalformedEnvelope(
            -32602, f"Invalid params: send initialize first; spoken here: {names}"
        )
    # spec 2026-07-28 basic/versioning#protocol-version-negotiation
    return MalformedEnvelope(
        -32022,
        f"Unsupported protocol version {shorten(requested)!r}",
        {"supported": modern, "requested": shorten(requested)},
    )


def find_progress_token(envelope: Envelope | MalformedEnvelope | None) -> Id | None:
    """The token that progress is reported under; None where nobody asked for it."""
    meta = envelope.meta if isinstance(envelope, Envelope) else UNSET
    return None if meta is UNSET or meta.progress_token is UNSET else meta.progress_token
