"""Context, request and dependencies of a call, under the names of ``fastmcp.server.dependencies``."""

from typing import Any

from isthmus.compat.fastmcp.components.injection import (
    ContextDependency,
    Dependency,
    Depends,
    OptionalContextDependency,
    Shared,
)
from isthmus.compat.fastmcp.server.context import Context, find_context, get_context

__all__ = [
    "Context",
    "CurrentAccessToken",
    "CurrentContext",
    "CurrentFastMCP",
    "CurrentHeaders",
    "CurrentRequest",
    "Dependency",
    "Depends",
    "OptionalCurrentContext",
    "Progress",
    "Shared",
    "TokenClaim",
    "get_access_token",
    "get_context",
    "get_http_headers",
    "get_http_request",
    "get_server",
]

EXCLUDED_HEADERS = frozenset(
    {
        *("host", "content-length", "connection", "transfer-encoding", "upgrade", "te"),
        *("keep-alive", "expect", "accept", "content-type", "authorization", "mcp-session-id"),
        *("proxy-authenticate", "proxy-authorization", "proxy-connection"),
    }
)


def get_server() -> Any:
    """The server that serves the request."""
    return get_context().fastmcp


def find_http_request() -> Any:
    """The HTTP request as starlette has it; None where it came otherwise."""
    context = find_context()
    own = None if context is None else context.find_own()
    if own is None or not own.headers:
        return None
    from starlette.requests import Request  # of the environment of whoever asks for it

    headers = [
        (name.encode("latin-1"), text.encode("latin-1")) for name, text in own.headers.items()
    ]
    return Request(
        {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": headers}
    )


def get_http_request() -> Any:
    """The HTTP request as starlette has it: its method, path and headers.

    Raises:
        RuntimeError: it did not come over HTTP.
    """
    request = find_http_request()
    if request is None:
        raise RuntimeError("No active HTTP request found.")
    return request


def get_http_headers(include_all: bool = False, include: Any = None) -> dict[str, str]:
    """The headers of the HTTP request by lower-case name; none where it came otherwise."""
    context = find_context()
    own = None if context is None else context.find_own()
    wanted = {name.lower() for name in include or ()}
    return {
        name: text
        for name, text in (own.headers.items() if own is not None else ())
        if include_all or name in wanted or name not in EXCLUDED_HEADERS
    }


def get_access_token() -> Any:
    """The access token of the caller; None where nobody authenticated."""
    context = find_context()
    own = None if context is None else context.find_own()
    if own is None or own.principal is None:
        return None
    from isthmus.compat.fastmcp.server.auth.auth import make_access_token

    return make_access_token(own.principal)


class ServerDependency(Dependency[Any]):
    """The server that serves the request."""

    async def __aenter__(self) -> Any:
        return get_server()


class RequestDependency(Dependency[Any]):
    """The HTTP request."""

    async def __aenter__(self) -> Any:
        return get_http_request()


class HeadersDependency(Dependency[dict[str, str]]):
    """The headers of the HTTP request."""

    async def __aenter__(self) -> dict[str, str]:
        return get_http_headers(include={"authorization"})


class TokenDependency(Dependency[Any]):
    """The access token of the caller, or a claim of it.

    Args:
        claim: the claim.
    """

    def __init__(self, claim: str | None = None) -> None:
        self._claim = claim

    async def __aenter__(self) -> Any:
        token = get_access_token()
        if token is None:
            raise RuntimeError("No access token found. Ensure authentication is configured.")
        return token if self._claim is None else token.claims[self._claim]


class Progress(Dependency["Progress"]):
    """Progress of a call: ``progress: Progress = Progress()``."""

    def __init__(self) -> None:
        self.current: int | None = None
        self.total = 1
        self.message: str | None = None

    async def __aenter__(self) -> "Progress":  # noqa: PYI034 - each call has its own
        return Progress()

    async def set_total(self, total: int) -> None:
        """Say how far it will go."""
        self.total = total

    async def increment(self, amount: int = 1) -> None:
        """Go on."""
        self.current = (self.current or 0) + amount
        await self._tell()

    async def set_message(self, message: str | None) -> None:
        """Say it in words."""
        self.message = message
        await self._tell()

    async def _tell(self) -> None:
        context = find_context()
        if context is not None:
            await context.report_progress(self.current or 0, self.total, self.message)


def CurrentContext() -> Any:  # noqa: N802 - the foreign name
    """Mark a default as the context of the request."""
    return ContextDependency()


def OptionalCurrentContext() -> Any:  # noqa: N802 - same
    """Mark a default as the context of the request, or None outside of one."""
    return OptionalContextDependency()


def CurrentFastMCP() -> Any:  # noqa: N802 - same
    """Mark a default as the server that serves the request."""
    return ServerDependency()


def CurrentRequest() -> Any:  # noqa: N802 - same
    """Mark a default as the HTTP request."""
    return RequestDependency()


def CurrentHeaders() -> Any:  # noqa: N802 - same
    """Mark a default as the headers of the HTTP request."""
    return HeadersDependency()


def CurrentAccessToken() -> Any:  # noqa: N802 - same
    """Mark a default as the access token of the caller."""
    return TokenDependency()


def TokenClaim(name: str) -> Any:  # noqa: N802 - same
    """Mark a default as a claim of the caller's access token."""
    return TokenDependency(name)
