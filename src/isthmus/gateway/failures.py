"""Failures of a host's attempts, as the clients of a gateway are told of them.

What a model can mend, or has to know, is the result of the tool that it called. What went wrong on the
way is an error of the request, with a code that says whether it may be tried again.
"""

from typing import Any

from isthmus.errors import (
    CallTimedOut,
    CapabilityMissing,
    ConnectFailed,
    ConnectionLost,
    IsthmusError,
    Misbehaved,
    Refuse,
    Refused,
)
from isthmus.host.model.errors import (
    BadArguments,
    Denied,
    Exhausted,
    OutcomeUnknown,
    ServerUnavailable,
    Unknown,
    UserDeclined,
)
from isthmus.revisions.codes import FORBIDDEN_CODE, LIMITED_CODE, UNAVAILABLE_CODE
from isthmus.wire import CallToolResult, TextContent

RETRY_AFTER_MS = 2_000
CAPABILITY_CODE = -32021

# failures of a tool call that its model is told of as the result of the call
TOLD_AS_RESULT = (Denied, BadArguments, OutcomeUnknown, UserDeclined)


def make_tool_failure(error: IsthmusError) -> CallToolResult | None:
    """The result of a call that failed so that its model should read why; None for other failures."""
    if not isinstance(error, TOLD_AS_RESULT):
        return None
    return CallToolResult(content=[TextContent(text=str(error))], is_error=True)


def make_refusal(error: IsthmusError, server: str) -> Refuse:
    """The refusal of a request, for whatever the host or the server behind made of it."""
    if isinstance(error, Refuse):
        return error
    if isinstance(error, Refused):
        return Refuse(error.code, error.message, error.data)
    code = -32603
    data: dict[str, Any] | None = None
    if isinstance(error, CapabilityMissing) and error.required:
        # spec 2026-07-28 basic#_meta: a request that needs a capability which the client did not
        # declare MUST be refused so
        code, data = CAPABILITY_CODE, {"requiredCapabilities": error.required}
    elif isinstance(error, Unknown | BadArguments):
        code = -32602
    elif isinstance(error, Denied | UserDeclined):
        code = FORBIDDEN_CODE
    elif isinstance(error, Exhausted):
        wait = error.retry_after
        code, data = LIMITED_CODE, None if wait is None else {"retryAfterMs": int(wait * 1000) + 1}
    elif isinstance(error, ServerUnavailable | ConnectFailed) or is_unsent(error):
        code, data = UNAVAILABLE_CODE, {"server": server, "retryAfterMs": RETRY_AFTER_MS}
    elif isinstance(error, CallTimedOut):
        return Refuse(code, f"The server {server!r} did not answer in time", data)
    elif isinstance(error, Misbehaved):
        return Refuse(code, f"The server {server!r} is at fault: {error}", data)
    return Refuse(code, str(error), data)


def is_unsent(error: Any) -> bool:
    """Whether a connection broke before the request was on its way."""
    return isinstance(error, ConnectionLost) and not error.sent
