"""Every exception isthmus raises, and who is to blame for it.

The type says which side broke the rules, so that a caller can tell its own mistake from the
other side's, and both from a broken wire::

    IsthmusError
    ├── UsageError                we were about to break the rules
    │   ├── NotInRevision         the agreed revision has no such method or field
    │   ├── CapabilityMissing     the other side did not declare it
    │   └── OutOfPhase            too early, or after the end
    ├── PeerError                 the other side broke them, or said no
    │   ├── Refused               it answered with an error: code, message, data
    │   │   ├── ParseFailed, InvalidRequest, MethodNotFound, InvalidParams, InternalError
    │   │   ├── ResourceNotFound
    │   │   ├── HeaderMismatch, CapabilityRequired, UnsupportedRevision
    │   │   └── UrlElicitationRequired
    │   ├── HttpRefused           it answered with an HTTP status instead of a message
    │   ├── ToolFailed            a tool's result said isError
    │   └── Misbehaved            it sent what no revision allows
    ├── ConnectFailed             no connection came about
    ├── ConnectionLost            the connection ended with this call in flight
    │   └── SessionEnded          a session over HTTP has ended, and this was not served in it
    ├── CallTimedOut              no answer in time; also a TimeoutError
    ├── AuthError                 no authorization was to be had, and no request was sent without
    │   ├── AuthRequired          somebody has to log in, register or set something up
    │   ├── AuthRefused           an authorization server, or the user there, said no
    │   ├── AuthUnsafe            what a server said cannot be believed, so nothing was sent to it
    │   ├── DiscoveryFailed       nobody says where, or how, authorization is to be had
    │   ├── IssuerChanged         the server now names another authorization server
    │   └── ScopeShortfall        what was granted is not enough, and more is not to be had
    ├── TaskCancelled             the task waited for was cancelled
    ├── TooManyRounds             the server kept asking
    ├── StoreUnavailable          what processes share cannot be reached now
    └── raised by authors
        ├── ToolError             becomes an ``isError`` result the model can read
        └── Refuse                becomes a JSON-RPC error: code, message, data
            ├── Rejected          by a client: the user does not want this question answered
            └── UrlRequired       by a server: the user must visit a page first
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, TypeVar

__all__ = [
    "AuthError",
    "AuthRefused",
    "AuthRequired",
    "AuthUnsafe",
    "CallTimedOut",
    "CapabilityMissing",
    "CapabilityRequired",
    "ConnectFailed",
    "ConnectionLost",
    "DiscoveryFailed",
    "HeaderMismatch",
    "HttpRefused",
    "InternalError",
    "InvalidParams",
    "InvalidRequest",
    "IssuerChanged",
    "IsthmusError",
    "LifespanFailed",
    "MethodNotFound",
    "Misbehaved",
    "NotInRevision",
    "OutOfPhase",
    "ParseFailed",
    "PeerError",
    "Refuse",
    "Refused",
    "Rejected",
    "ResourceNotFound",
    "ScopeShortfall",
    "SessionEnded",
    "StoreUnavailable",
    "TaskCancelled",
    "TooManyRounds",
    "ToolError",
    "ToolFailed",
    "UnsupportedRevision",
    "UpstreamRequired",
    "UrlElicitationRequired",
    "UrlRequired",
    "UsageError",
    "refused",
]


E = TypeVar("E", bound=BaseException)

MAX_QUOTED_CHARS = 4000
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def quote_text(text: object) -> str:
    """Text that may hold words of the other side, as the message of an exception has it.

    It is at most 4,000 characters long and has no control characters and no direction marks, so that
    it can be logged and printed. Line ends and tabs stay.
    """
    whole = str(text)
    shown = _UNSAFE.sub("", whole[:MAX_QUOTED_CHARS])
    more = len(whole) - MAX_QUOTED_CHARS
    return shown if more <= 0 else f"{shown} [… {more} more characters are left out]"


class IsthmusError(Exception):
    """The root of everything isthmus raises on purpose."""


def copy_error(error: E) -> E:
    """A copy of an exception that was kept, to be raised.

    One that is raised itself, time and again, would keep the frames of everybody it reached, with
    all that is in them.
    """
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    copy.__cause__ = error.__cause__
    return copy


class QuotingError(IsthmusError):
    """An error whose message may repeat what the other side said; see :func:`quote_text`."""

    def __init__(self, message: object = "") -> None:
        super().__init__(quote_text(message))


class UsageError(IsthmusError):
    """We were about to break the rules; nothing was sent."""


class NotInRevision(UsageError):
    """The revision agreed on has no such method, field or feature."""


class CapabilityMissing(UsageError):
    """A capability that the request needs was not declared by the other side.

    Args:
        message: the text of the error.

    Attributes:
        required: what it would have had to declare, as in its capabilities: ``{"sampling": {}}``.
    """

    def __init__(self, message: str, required: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.required = dict(required or {})


class OutOfPhase(UsageError):
    """The connection is not open yet, or no longer."""


class LifespanFailed(IsthmusError):
    """A server's lifespan raised when it was entered, so that nothing is served.

    ``__cause__`` is what it raised.
    """


class PeerError(QuotingError):
    """The other side said no, or broke the rules."""


class Refused(PeerError):
    """The other side answered with a JSON-RPC error.

    Attributes:
        code: the JSON-RPC error code, an integer.
        message: the other side's words, as they came; the exception's own text is made from them,
            cleaned and cut to a length that can be printed.
        data: whatever came along, decoded JSON, or None.
        status: the HTTP status it came with, as far as that was looked at.
        CODE: the error code that a subclass stands for; None in this class.
    """

    code: int
    status: int = 200
    CODE: ClassVar[int | None] = None

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class ParseFailed(Refused):
    """-32700: what we sent was not JSON to the other side."""

    CODE = -32700


class InvalidRequest(Refused):
    """-32600: what we sent was not a JSON-RPC request to the other side."""

    CODE = -32600


class MethodNotFound(Refused):
    """-32601: the other side does not offer this method."""

    CODE = -32601


class InvalidParams(Refused):
    """-32602: the parameters do not fit the method."""

    CODE = -32602


class InternalError(Refused):
    """-32603: the other side failed for reasons of its own."""

    CODE = -32603


class ResourceNotFound(InvalidParams):
    """Unknown resource URI: -32002 up to 2025-11-25, -32602 with ``data.uri`` since."""

    CODE = -32002


class HeaderMismatch(Refused):
    """-32020 (2026-07-28): headers and body of an HTTP request say different things."""

    CODE = -32020


class CapabilityRequired(Refused):
    """-32021 (2026-07-28): the server needs a capability we did not declare."""

    CODE = -32021


class UnsupportedRevision(Refused):
    """-32022 (2026-07-28): the server does not speak the revision we asked for."""

    CODE = -32022


class UrlElicitationRequired(Refused):
    """-32042 (2025-11-25): the user must visit a URL before this call can succeed."""

    CODE = -32042


BY_CODE: Mapping[int, type[Refused]] = {
    kind.CODE: kind
    for kind in (
        ParseFailed,
        InvalidRequest,
        MethodNotFound,
        InvalidParams,
        InternalError,
        ResourceNotFound,
        HeaderMismatch,
        CapabilityRequired,
        UnsupportedRevision,
        UrlElicitationRequired,
    )
}


def refused(code: int, message: str, data: Any = None) -> Refused:
    """The exception for an error answer, of the most specific type that its code allows.

    Args:
        code: the JSON-RPC code.
        message: the text of the error.
        data: what the error carries, decoded.
    """
    kind = BY_CODE.get(code, Refused)
    if kind is InvalidParams and isinstance(data, dict) and "uri" in data:
        kind = ResourceNotFound  # spec 2026-07-28 server/resources#error-handling
    return kind(code, message, data)


class HttpRefused(PeerError):
    """An answer with an HTTP error status, and without a JSON-RPC message.

    Args:
        hint: what the text of the error adds in brackets; nothing by default.

    Attributes:
        status: the HTTP status code.
        body: the beginning of what came along, as text.
        headers: the response's headers, case-insensitive by name.
    """

    def __init__(self, status: int, body: str, headers: Mapping[str, str], hint: str = "") -> None:
        said = f": {summarize_body(body)}" if body else ""
        super().__init__(f"HTTP {status}{said}" + (f" ({hint})" if hint else ""))
        self.status = status
        self.body = body
        self.headers = headers


def summarize_body(body: str) -> str:
    """The body of a refusal as a message has it: of a page for people the kind is enough."""
    return "a page of HTML" if body.lower().startswith(("<!doctype html", "<html")) else body


class ToolFailed(PeerError):
    """The result of ``tool`` has ``isError``: ``text`` is its text, ``result`` the whole of it."""

    def __init__(self, tool: str, text: str, result: Any) -> None:
        super().__init__(f"tool {tool!r} failed: {text}")
        self.tool = tool
        self.text = text
        self.result = result


class Misbehaved(PeerError):
    """The other side sent what no revision allows."""


class ConnectFailed(QuotingError):
    """A connection could not be opened: the message says which step failed and what to try."""


class ConnectionLost(QuotingError):
    """The connection ended while this call was in flight.

    Attributes:
        sent: False where no byte of the call can have left, so that it may be made again.
    """

    sent = True


def make_unsent(why: str, kind: type[ConnectionLost] = ConnectionLost) -> ConnectionLost:
    """A loss before any byte of the call can have left."""
    lost = kind(why)
    lost.sent = False
    return lost


class SessionEnded(ConnectionLost):
    """The session has ended, and the server did nothing about this call: it may be made again.

    A client starts a new session by itself, so this reaches only those who use a channel.
    """


class CallTimedOut(IsthmusError, TimeoutError):
    """A call without an answer in time; it was cancelled."""


class AuthError(QuotingError):
    """Authorization failed: the message says at which step, and what to do."""


class AuthRequired(AuthError):
    """A user or an operator has to do something first: log in, register this program, set something up."""


class AuthRefused(AuthError):
    """An authorization server said no, or the user did when asked there.

    Args:
        message: the text of the error.

    Attributes:
        error: the code of RFC 6749 and its kin, such as ``access_denied``; empty without one.
        status: the HTTP status that came without a code; 0 where there was one.
    """

    status: int = 0

    def __init__(self, message: str, error: str = "") -> None:
        super().__init__(message)
        self.error = error


class AuthUnsafe(AuthError):
    """A server's word about authorization cannot be believed: nothing secret was sent to it."""


class DiscoveryFailed(AuthError):
    """Discovery of the authorization server failed: nobody says where authorization is to be had."""


class IssuerChanged(AuthError):
    """The server names another authorization server than the one its credentials are of.

    Args:
        message: the text of the error.

    Attributes:
        before: the issuer they are of.
        now: the issuer that the server names.
    """

    def __init__(self, message: str, before: str, now: str) -> None:
        super().__init__(message)
        self.before = before
        self.now = now


class ScopeShortfall(AuthError):
    """The scopes that were granted are not enough, and more are not to be had.

    Args:
        message: the text of the error.

    Attributes:
        missing: the scopes that were asked for and not granted, as far as that is known.
    """

    def __init__(self, message: str, missing: frozenset[str] = frozenset()) -> None:
        super().__init__(message)
        self.missing = missing


class TaskCancelled(IsthmusError):
    """The awaited task was cancelled, so that it has no result."""


class TooManyRounds(IsthmusError):
    """The server answered with questions more often than the client allows."""


class StoreUnavailable(IsthmusError):
    """The store cannot be read or written now; it may be usable again later.

    Where the connection broke before an answer came, a write may have been done all the same.
    """


class ToolError(IsthmusError):
    """Raise it in a tool: the model reads the text as an ``isError`` result and can try again."""


class Refuse(IsthmusError):
    """Raise it in any handler to answer with a JSON-RPC error.

    Args:
        code: an integer outside -32768..-32000 unless the specification defines it.
        message: one sentence for the other side's developer.
        data: anything JSON can carry.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Rejected(Refuse):
    """Raise it in a client's ``sample`` handler: the user does not want a model to write this.

    A server of up to 2025-11-25 hears -1; since 2026-07-28 it hears nothing, and the call that
    led to the question ends with this exception.

    Args:
        message: one sentence for the server's developer.
    """

    # spec 2025-11-25 client/sampling#error-handling: user rejected sampling request: -1
    def __init__(self, message: str = "User rejected sampling request") -> None:
        super().__init__(-1, message)


class UrlRequired(Refuse):
    """Raise it in a tool, prompt or resource: the user must visit pages before it can go on.

    A client of 2025-11-25 hears -32042 and calls again when the pages were dealt with; since
    2026-07-28 the pages are asked for like any other question, and the function runs again.

    Args:
        *pages: URLs, or pairs of a URL and the reason the user is told.
        message: one sentence for the client's developer.
    """

    def __init__(
        self,
        *pages: str | tuple[str, str],
        message: str = "This request requires more information.",
    ) -> None:
        super().__init__(-32042, message)
        self.pages = tuple((page, message) if isinstance(page, str) else page for page in pages)


class UpstreamRequired(ToolError):
    """The user has no account yet, with a service behind the server, that a call needs.

    ``await ctx.upstream(name)`` sees to it; who calls an ``Authorizer`` directly may get it.

    Args:
        message: what the user is asked for.
        page: makes the URL of the page where the account is connected; good once, for this user.
        connected: waits so many seconds, and tells whether the account is connected.
    """

    def __init__(
        self,
        message: str,
        page: Callable[[], Awaitable[str]],
        connected: Callable[[float], Awaitable[bool]],
    ) -> None:
        super().__init__(message)
        self.page = page
        self.connected = connected
