"""The phases of a conversation, as a table and the few lines that walk it.

Everything that decides *whether a request may be served now* is in this file, and nothing else
is. A server does not choose its era: the other side's first words do. An ``initialize`` opens a
legacy session; a request that carries its own facts ("enveloped") is served for itself. The
specification lets one process serve both at once (2026-07-28 basic/versioning), which a client
that probes and then falls back relies on, so neither choice shuts out the other.
"""

from collections.abc import Mapping
from enum import Enum


class Phase(Enum):
    """The phase of a conversation."""

    __hash__ = object.__hash__  # each is one object; Enum's own is in Python, and every call's

    NEW = "new"
    STATELESS = "stateless"
    OPENING = "opening"
    OPEN = "open"
    CLOSED = "closed"


class MessageKind(Enum):
    """The sort of message that arrived, as far as phases care."""

    __hash__ = object.__hash__  # as for Phase

    INITIALIZE = "initialize"
    INITIALIZED = "initialized"
    PING = "ping"
    ENVELOPED = "enveloped"
    PLAIN = "plain"


P, K = Phase, MessageKind

SERVER_SEES: Mapping[Phase, Mapping[MessageKind, Phase]] = {
    P.NEW: {K.INITIALIZE: P.OPENING, K.PING: P.NEW, K.ENVELOPED: P.STATELESS},
    P.STATELESS: {K.ENVELOPED: P.STATELESS, K.INITIALIZE: P.OPENING, K.PING: P.STATELESS},
    # spec 2025-11-25 basic/lifecycle: a client SHOULD NOT send requests before the answer to
    # initialize; many do not wait for their own notifications/initialized, so both are served.
    P.OPENING: {
        K.INITIALIZED: P.OPEN,
        K.PING: P.OPENING,
        K.PLAIN: P.OPENING,
        K.ENVELOPED: P.OPENING,
    },
    P.OPEN: {K.PING: P.OPEN, K.PLAIN: P.OPEN, K.INITIALIZED: P.OPEN, K.ENVELOPED: P.OPEN},
    P.CLOSED: {},
}

REFUSALS: Mapping[MessageKind, tuple[int, str]] = {
    K.INITIALIZE: (-32600, "Invalid request: this session is initialized already"),
    K.PLAIN: (
        -32602,
        (
            "Invalid params: send initialize first (up to 2025-11-25), or put "
            "io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities "
            "into params._meta (since 2026-07-28)"
        ),
    ),
}
SESSION_OVER = (-32600, "Invalid request: this session has ended")

_KINDS: Mapping[str, MessageKind] = {
    "initialize": K.INITIALIZE,
    "notifications/initialized": K.INITIALIZED,
    "ping": K.PING,
}


def step(phase: Phase, method: str, *, enveloped: bool = False) -> Phase | tuple[int, str]:
    """The phase after a message arrived, or the code and message to refuse it with.

    Args:
        phase: the phase before.
        method: the message's method.
        enveloped: it states its own revision and capabilities.
    """
    kind = K.ENVELOPED if enveloped else _KINDS.get(method, K.PLAIN)
    then = SERVER_SEES[phase].get(kind)
    return REFUSALS.get(kind, SESSION_OVER) if then is None else then
