"""Requests to a provider's API with a token of its own (``ctx.upstream``), and what goes wrong with them.

A provider's error texts may be written by whoever made the request, so nothing of them is shown,
logged or handed on. What is kept is its code, where that is one that a specification defines.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from isthmus.auth.net.network import Fetched, Network
from isthmus.auth.net.urls import add_query, origin_of
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthError, AuthRefused, ToolError, UsageError

MAX_API_ANSWER_BYTES = 4 * 1024 * 1024  # unless the caller says otherwise

FORBIDDEN_HEADERS = frozenset({"authorization", "host", "content-length", "transfer-encoding", "cookie",
                       "connection", "upgrade", "proxy-authorization"})  # fmt: skip

# RFC 9110 5.1; some servers read "host " with a space for "host"
HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")

# The user has to log in again; bad_refresh_token is GitHub's.
LOGIN_ENDED_CODES = frozenset({
    *("invalid_grant", "access_denied", "login_required", "interaction_required"),
    *("consent_required", "account_selection_required", "bad_refresh_token"),
})  # fmt: skip

# Codes that may be named; any other text could say anything.
KNOWN_ERROR_CODES = LOGIN_ENDED_CODES | {
    *("invalid_request", "invalid_client", "unauthorized_client", "unsupported_grant_type"),
    *("invalid_scope", "invalid_target", "invalid_token", "insufficient_scope", "server_error"),
    *("unsupported_response_type", "temporarily_unavailable", "bad_verification_code"),
    *("incorrect_client_credentials", "redirect_uri_mismatch"),
}


class UpstreamDenied(AuthRefused, ToolError):
    """A final refusal of the provider, or of its user there: the user has to log in again.

    Attributes:
        error: the provider's code, where it is a registered one; else empty.
    """


class UpstreamUnavailable(ToolError):
    """The provider gave no usable answer. It may tomorrow; nothing was taken from anybody."""


class UpstreamFailed(ToolError):
    """An error answer of the API of a provider.

    Args:
        message: the text of the error.

    Attributes:
        status: its HTTP status.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def read_error_code(answer: Any) -> str:
    """The error code in an answer, or empty where it is none that is known."""
    error = answer.get("error") if isinstance(answer, dict) else None
    return error if isinstance(error, str) and error in KNOWN_ERROR_CODES else ""


class ApiProvider(Protocol):
    """A provider, as far as requests to its API need it."""

    name: str
    title: str
    network: Network

    @property
    def api(self) -> Sequence[str]:
        """The origins of its API, the first one for paths."""
        ...

    def unavailable(self, error: Exception) -> UpstreamUnavailable:
        """The exception for a provider that gives no usable answer."""
        ...


class AccessTokenSource(Protocol):
    """Source of the access token for each request."""

    async def current(self) -> Secret:
        """The access token that is good now."""
        ...

    async def instead(self, refused: Secret) -> Secret | None:
        """Another one, as the provider refuses this; None where there is none to be had."""
        ...


class FixedToken:
    """A token that nobody renews.

    Args:
        token: the access token.
    """

    def __init__(self, token: Secret) -> None:
        self._token = token

    async def current(self) -> Secret:
        """The token."""
        return self._token

    async def instead(self, refused: Secret) -> Secret | None:  # noqa: ARG002 - there is no other
        """None."""
        return None


class Upstream:
    """A provider's API, as the user that this call is served for.

    Every request carries the provider's own token, which neither the function that asks nor the
    client ever sees. It goes to the origins that the :class:`Provider` lists as ``api``, and
    nowhere else; redirects are not followed. A token that the API refuses is renewed once.

    Example::

        github = await ctx.upstream("github")
        for repository in await github.json("/user/repos", params={"sort": "pushed"}):
            ...

    Args:
        provider: whose API.
        tokens: where the token of each request comes from.
        subject: the user's id there; empty where that is not known.
    """

    def __init__(self, provider: ApiProvider, tokens: AccessTokenSource, subject: str = "") -> None:
        self._provider = provider
        self._tokens = tokens
        self.subject = subject

    def __repr__(self) -> str:
        return f"Upstream({self.name!r})"

    @property
    def name(self) -> str:
        """The name of the provider that the API belongs to."""
        return self._provider.name

    async def access_token(self, url: str, *, refused: Secret | None = None) -> Secret:
        """The token for a request to a URL that something else sends.

        Args:
            url: where the request goes.
            refused: the token that the API refused: another one is asked for, where there is any.

        Raises:
            UsageError: the URL is not at an origin of the API.
            UpstreamDenied: the token cannot be renewed: its user has to log in there again.
        """
        resolve_api_url(self._provider, url, None)
        if refused is None:
            return await self._tokens.current()
        return await self._tokens.instead(refused) or refused

    async def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        data: Any = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        limit: int = MAX_API_ANSWER_BYTES,
    ) -> Fetched:
        """Send one request, and wait for the whole answer, whatever its status.

        Args:
            method: of HTTP.
            url: a path at the first of the provider's ``api`` origins, or a URL at any of them.
            params: to be added to its query.
            data: sent as JSON.
            body: sent as it is, instead of ``data``.
            headers: further ones.
            limit: bytes that the answer may have.

        Raises:
            UsageError: the URL is not at an origin of the API, or a header is not yours to set.
            UpstreamUnavailable: there was no answer.
            UpstreamDenied: the token cannot be renewed: its user has to log in there again.
        """
        # spec 2026-07-28 basic/authorization/security-considerations#access-token-privilege-restriction
        where = resolve_api_url(self._provider, url, params)
        asked = check_headers(headers or {})
        if data is not None:
            body, asked = msgspec.json.encode(data), {"content-type": "application/json", **asked}
        call = partial(self._provider.network.fetch, method, where, body=body, limit=limit)
        token = await self._tokens.current()
        answer = await self._send(call, asked, token)
        if answer.status != 401:
            return answer
        other = await self._tokens.instead(token)
        return answer if other is None else await self._send(call, asked, other)

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """Send a GET request; as :meth:`request`, with all that it raises.

        Args:
            url: a path at the first of the provider's ``api`` origins, or a URL at any of them.
            params: added to the query, by name.
            headers: further headers, by name.
        """
        return await self.request("GET", url, params=params, headers=headers)

    async def post(
        self, url: str, data: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> Fetched:
        """Send a POST request; as :meth:`request`, with all that it raises.

        Args:
            url: a path at the first of the provider's ``api`` origins, or a URL at any of them.
            data: the body, as for :meth:`request`.
            headers: further headers, by name.
        """
        return await self.request("POST", url, data=data, headers=headers)

    async def json(
        self,
        url: str,
        *,
        method: str = "GET",
        params: Mapping[str, str] | None = None,
        data: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The API's answer as decoded JSON; an error of it is raised.

        Args:
            url: a path at the first of the provider's ``api`` origins, or a URL at any of them.
            method: the HTTP method.
            params: added to the query, by name.
            data: the body, as for :meth:`request`.
            headers: further headers, by name.

        Raises:
            UpstreamFailed: the API answered with an error, or with what is no JSON. In a tool it
                becomes a result that says so, without the API's own words.
            UsageError, UpstreamUnavailable, UpstreamDenied: as :meth:`request`.
        """
        answer = await self.request(method, url, params=params, data=data, headers=headers)
        if not 200 <= answer.status < 300:
            raise UpstreamFailed(
                f"{self._provider.title} answered with HTTP status {answer.status}", answer.status
            )
        try:
            return msgspec.json.decode(answer.body) if answer.body else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise UpstreamFailed(
                f"{self._provider.title} answered something that is not JSON", answer.status
            ) from None

    async def _send(
        self, call: Callable[..., Awaitable[Fetched]], headers: Mapping[str, str], token: Secret
    ) -> Fetched:
        sent = {
            "accept": "application/json",
            "user-agent": "isthmus",
            **headers,
            "authorization": f"Bearer {token.reveal()}",
        }
        try:
            return await call(headers=sent)
        except AuthError as error:
            raise self._provider.unavailable(error) from None


def resolve_api_url(provider: ApiProvider, url: str, params: Mapping[str, str] | None) -> str:
    """The URL of an API request, if the provider's token may go there.

    Raises:
        UsageError: it may not.
    """
    if not provider.api:
        raise UsageError(f"the provider {provider.name!r} has no API: give it api=[ORIGIN]")
    if url.startswith("/") and not url.startswith(("//", "/\\")):
        url = provider.api[0] + url
    try:
        found = origin_of(url)
    except ValueError as error:
        raise UsageError(f"the API of {provider.name!r}: {error}") from None
    if found not in provider.api:
        raise UsageError(
            f"the token of {provider.name!r} goes to {' and '.join(provider.api)} only, and not "
            f"to {found}: if that is its API too, list it in api=[…]"
        )
    return add_query(url, params or {})


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers by name in lower case.

    Raises:
        UsageError: one of them is set by the connection itself, or is no name of a header.
    """
    if odd := [name for name in headers if not HEADER_NAME.fullmatch(name)]:
        raise UsageError(f"{odd[0]!r} is no name of a header")
    asked = {name.lower(): value for name, value in headers.items()}
    if wrong := FORBIDDEN_HEADERS & set(asked):
        raise UsageError(f"{', '.join(sorted(wrong))}: set by Upstream itself, leave it out")
    return asked
