"""Bearer token that the application has already: a fixed one, or one that a function gives."""

import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from isthmus.auth.client.requests import AuthorizedRequests, SharedSessions
from isthmus.auth.client.session import TokenDemand
from isthmus.auth.client.store.records import Tokens
from isthmus.auth.client.token_request import is_header_safe
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthRefused, ScopeShortfall, UsageError
from isthmus.transports.http.client.address import redact_url
from isthmus.transports.http.client.requests import Requests

TokenSource: TypeAlias = Callable[[], Awaitable[Secret | str]]  # gives the token of the moment


class BearerToken:
    """A bearer token from outside: a fixed one, or one that a function gives.

    Nothing is discovered and nobody is asked. A token that the server does not take is an error,
    unless the function then gives another one.

    Example::

        async with Client(url, auth=BearerToken(os.environ["MCP_TOKEN"])) as client:
            ...

    Args:
        token: the token, or an async function that gives it. The function is called before the
            first request, and again when the server has refused what it gave.

    Attributes:
        fixed: there can be no other token.

    Raises:
        UsageError: the token is empty, or has characters that no token has.
    """

    def __init__(self, token: Secret | str | TokenSource) -> None:
        self.sessions = SharedSessions(
            lambda url, _proofs: BearerTokenGrant(url, self),  # bound to no key
            allow_plain_http=self._warn_of_plain_http,
        )
        self._warned: set[str] = set()
        self.fixed = isinstance(token, Secret | str)
        self._token: Secret | TokenSource
        self._token = check_bearer_token(token) if isinstance(token, Secret | str) else token

    def __repr__(self) -> str:
        return f"BearerToken({self._token!r})"

    def over(self, url: str, requests: Requests) -> AuthorizedRequests:
        """Put tokens into the requests of a connection; see ``Authorization``.

        Args:
            url: the URL of the server.
            requests: sends the requests.
        """
        return self.sessions.over(url, requests)

    def context(self, url: str) -> object:
        """The token that requests to ``url`` carry just now; see ``Authorization``.

        Args:
            url: the URL of the MCP endpoint.
        """
        return self.sessions.context(url)

    def _warn_of_plain_http(self, url: str) -> None:
        """A token of one's own may go wherever one says; it is said once what that means."""
        if url in self._warned:
            return
        self._warned.add(url)
        import logging  # not needed where all is well

        logging.getLogger("isthmus").warning(
            "%s is reached by plain http: anybody on the way can read its tokens; give its https URL",
            redact_url(url),
        )

    async def current(self) -> Secret:
        """The token of the moment."""
        given = self._token
        return given if isinstance(given, Secret) else check_bearer_token(await given())


class BearerTokenGrant:
    """The way to a token that the application has.

    Args:
        url: the MCP server.
        token: where it comes from.
    """

    asks_user = False

    def __init__(self, url: str, token: BearerToken) -> None:
        self._url = url
        self._token = token

    async def load(self) -> Tokens | None:
        """The token, before it is asked for."""
        return self._make_tokens(await self._token.current())

    async def refresh(self, tokens: Tokens, want: TokenDemand) -> Tokens | None:  # noqa: ARG002
        """None: a given token has no refresh token."""
        return None

    async def obtain(self, want: TokenDemand) -> Tokens:
        """Another token than the one that did not do.

        Raises:
            AuthRefused: there is none.
            ScopeShortfall: the token is good, and not for this.
        """
        if want.more:
            scopes = ", ".join(sorted(want.scopes or ())) or "more scopes"
            raise ScopeShortfall(
                f"{self._url} wants {scopes} for {want.operation}, and the token that was given "
                "does not have that: give one that does",
                want.scopes or frozenset(),
            )
        current = await self._token.current()
        if self._token.fixed or (want.before is not None and want.before.access == current):
            raise AuthRefused(
                f"{self._url} does not take the token that was given: it is over, or for another "
                "server; give another one, or let OAuth() get one",
                "invalid_token",
            )
        return self._make_tokens(current)

    async def close(self) -> None:
        """Do nothing: no connection is open."""

    def _make_tokens(self, token: Secret) -> Tokens:
        return Tokens(
            access=token,
            issuer="the application",
            client_id="",
            resource=self._url,
            issued_at=time.time(),
        )


def check_bearer_token(token: Secret | str) -> Secret:
    """A token as it can be sent.

    Raises:
        UsageError: it cannot be.
    """
    secret = Secret(token)
    text = secret.reveal()
    if not text:
        raise UsageError("the token is empty: is the variable that holds it set?")
    if not is_header_safe(text):
        raise UsageError(
            "the token has invalid characters: give it without the word Bearer, and "
            "without the line break"
        )
    return secret
