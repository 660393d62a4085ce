"""Refusals of the HTTP endpoint: what is said to a request that is not served."""

from msgspec import UNSET

from isthmus.core.http.rules import Refusal
from isthmus.wire.jsonrpc import Frame
from isthmus.wire.struct import Id

NO_SESSION = Refusal(
    400,
    -32600,
    "Mcp-Session-Id header is missing: send initialize first (up to 2025-11-25), or "
    "MCP-Protocol-Version and _meta with every request (since 2026-07-28)",
)
UNKNOWN_SESSION = Refusal(404, -32600, "There is no such session: send initialize again")
TOO_MANY_SESSIONS = Refusal(503, -32603, "Too many sessions are in use: see max_sessions")
BATCH_WITHOUT_SESSION = Refusal(
    400,
    -32600,
    "Invalid request: a batch is part of a session of 2025-03-26: send initialize first",
)
NO_STANDING_STREAM = Refusal(
    405,
    -32600,
    "There are no sessions here (stateless=True): no stream to GET, and nothing to DELETE",
    UNSET,
    (("allow", "POST, OPTIONS"),),
)
NEEDS_STREAM = Refusal(406, -32600, "The answer is an event stream: accept text/event-stream")
HTTP_TOO_OLD = Refusal(
    406, -32600, "The answer is an event stream: HTTP/1.0 has none, use HTTP/1.1"
)
NOT_STARTED = Refusal(500, -32603, "Internal error: the server could not start")
SHUTTING_DOWN = Refusal(
    503,
    -32603,
    "The server is shutting down",
    UNSET,
    (("connection", "close"), ("retry-after", "5")),
)

STORE_RETRY_S = 2

STORE_LOST = Refusal(
    503,
    -32603,
    "The store that the nodes of this server share cannot be reached: try again later",
    UNSET,
    (("retry-after", str(STORE_RETRY_S)),),
)


def find_request_id(frame: Frame) -> Id | None:
    """The id to answer a request under; None for messages that have no answer."""
    return None if frame.id is UNSET or frame.method is UNSET else frame.id


def refuse_resumption(event_id: str, why: Exception) -> Refusal:
    """The refusal to resume a stream; not 404, which would mean that the session has ended."""
    message = f"Last-Event-ID {event_id[:80]!r} cannot be resumed: {why}; open a stream without it"
    return Refusal(400, -32600, message)
