"""Failures of a host's attempts, as the clients of a gateway are told of them.

What a model can mend, or has to know, is the result of the tool that it called. What went wrong on the
way is an error of the request, with a code that says whether it may be tried again.
"""

import re
from typing import Any

from isthmus.errors import (
    AuthError,
    CallTimedOut,
    CapabilityMissing,
    ConnectFailed,
    ConnectionLost,
    HttpRefused,
    IsthmusError,
    Misbehaved,
    Refuse,
    Refused,
    TooManyRounds,
)
from isthmus.host.model.errors import (
    AccountRequired,
    BadArguments,
    ConnectRequired,
    Denied,
    Exhausted,
    OutcomeUnknown,
    ServerUnavailable,
    Unknown,
    UserDeclined,
)
from isthmus.revisions.codes import (
    FORBIDDEN_CODE,
    LIMITED_CODE,
    UNAUTHENTICATED_CODE,
    UNAVAILABLE_CODE,
)
from isthmus.wire import CallToolResult, TextContent

RETRY_AFTER_MS = 2_000
CAPABILITY_CODE = -32021

ADDRESS = re.compile(r"https?://[^\s'\"<>]*[^\s'\"<>:,.;)]")

# what a server says of the connection to the gateway, and nothing of that to the gateway's client: a
# client would choose another revision, log in, or open pages that nobody has looked at
CODES_OF_CONNECTIONS = frozenset(
    {-32700, -32600, -32601, -32020, -32022, -32042, UNAUTHENTICATED_CODE}
)

# failures of a tool call that its model is told of as the result of the call
TOLD_AS_RESULT = (Denied, BadArguments, OutcomeUnknown, UserDeclined)


def make_tool_failure(error: IsthmusError) -> CallToolResult | None:
    """The result of a call that failed so that its model should read why; None for other failures."""
    if not isinstance(error, TOLD_AS_RESULT):
        return None
    text = hide_addresses(str(error)) if isinstance(error, OutcomeUnknown) else str(error)
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def make_refusal(error: IsthmusError, server: str) -> Refuse:
    """The refusal of a request, for whatever the host or the server behind made of it."""
    if isinstance(error, Refuse):
        return error
    if isinstance(error, Refused) and error.code not in CODES_OF_CONNECTIONS:
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
        named = getattr(error, "server", "") or server
        data = {"server": named, "retryAfterMs": RETRY_AFTER_MS}
        text = str(error) if isinstance(error, ConnectRequired) else hide_addresses(str(error))
        return Refuse(UNAVAILABLE_CODE, text, data)
    return name_faulty_server(error, server) or Refuse(code, str(error), data)


def hide_addresses(text: str) -> str:
    """A text about a server without its URL, which is for whoever runs the gateway, and may hold a key."""
    return ADDRESS.sub("…", text)


def name_faulty_server(error: IsthmusError, server: str) -> Refuse | None:
    """The refusal for a failure that is the server's: it has the server's name, and not its address."""
    if isinstance(error, CallTimedOut):
        return Refuse(-32603, f"The server {server!r} did not answer in time")
    if isinstance(error, AuthError) and not isinstance(error, AccountRequired):
        # what has to be done is for whoever runs the gateway, who reads it in the server's state
        return Refuse(
            -32603, f"The server {server!r} wants a login: whoever runs this gateway can log in"
        )
    if isinstance(error, HttpRefused):
        return Refuse(
            -32603, f"The server {server!r} is at fault: it answered with HTTP {error.status}"
        )
    if isinstance(error, Misbehaved | TooManyRounds | Refused):
        return Refuse(-32603, f"The server {server!r} is at fault: {error}")
    return None


def is_unsent(error: Any) -> bool:
    """Whether a connection broke before the request was on its way."""
    return isinstance(error, ConnectionLost) and not error.sent
