"""Token exchange (RFC 8693): a token for one MCP server, for what somebody else says of a user."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from isthmus.auth.client.discovery import Compat
from isthmus.auth.client.grants.machine import MachineClient, TokenAttempt
from isthmus.auth.client.registration import StaticClient
from isthmus.auth.client.requests import AuthorizedRequests
from isthmus.auth.client.token_request import TokenResponse
from isthmus.auth.net.network import NetworkPolicy
from isthmus.auth.protocol import EXCHANGE_GRANT, TOKEN_TYPE_PREFIX, quote_foreign
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthUnsafe
from isthmus.transports.http.client.requests import Requests

# Gives a token about the user, for the authorization server that is named to it.
SubjectSource: TypeAlias = Callable[[str], Awaitable[Secret | str]]

USABLE_TOKEN_TYPES = frozenset(f"{TOKEN_TYPE_PREFIX}{kind}" for kind in ("access_token", "jwt"))


class TokenExchange:
    """Tokens for a user whom another token is about, which is exchanged at the server's issuer.

    Example::

        auth = TokenExchange(StaticClient("gateway", secret=secret), subject_token=sign_subject)

    Args:
        client: who exchanges, as the authorization server of the MCP server knows it.
        subject_token: gives the token about the user; called for each exchange.
        subject_token_type: what that is: ``"jwt"``, ``"access_token"``, ``"id_token"`` or ``"saml2"``.
        audience: names the service that the token is for, where the issuer goes by such names.
        scopes: what to ask for; None asks for what the server says.
        authorization_server: the issuer, where the MCP server does not name it, or shall not have a
            say in who sees the subject token.
        network: where discovery may go; by default the origins named here, and public addresses.
        compat: what is put up with for servers that do not keep to the specification.
    """

    def __init__(
        self,
        client: StaticClient,
        subject_token: SubjectSource,
        *,
        subject_token_type: str = "jwt",  # noqa: S107 - a kind
        audience: str = "",
        scopes: Iterable[str] | None = None,
        authorization_server: str | None = None,
        network: NetworkPolicy | None = None,
        compat: Compat | None = None,
    ) -> None:
        self._client = MachineClient(
            client.identity,
            self._ask,
            scopes=scopes,
            authorization_server=authorization_server,
            network=network,
            compat=compat,
        )
        self._subject_token = subject_token
        self._kind = f"{TOKEN_TYPE_PREFIX}{subject_token_type}"
        self._audience = audience

    def __repr__(self) -> str:
        return f"TokenExchange({self._client.identity.client_id!r})"

    def over(self, url: str, requests: Requests) -> AuthorizedRequests:
        """Requests that carry tokens; see ``Authorization``."""
        return self._client.sessions.over(url, requests)

    def context(self, url: str) -> object:
        """The token that requests to a URL carry just now; see ``Authorization``."""
        return self._client.sessions.context(url)

    async def _ask(self, attempt: TokenAttempt) -> TokenResponse:
        """Exchange the token about the user.

        Raises:
            AuthRefused: the authorization server says no.
            AuthUnsafe: what it gave is no token for an MCP server.
        """
        issuer = attempt.discovered.server.issuer
        form = {
            "grant_type": EXCHANGE_GRANT,
            "subject_token": Secret(await self._subject_token(issuer)).reveal(),
            "subject_token_type": self._kind,
            # RFC 8693 2.1: what is wanted in its place
            "requested_token_type": f"{TOKEN_TYPE_PREFIX}access_token",
        }
        if self._audience:
            form["audience"] = self._audience
        granted = await attempt.token(form, self._client.identity)
        kind = granted.more.get("issued_token_type")
        # RFC 8693 2.2.1: REQUIRED; some leave it out, and none may give another kind
        if kind is not None and kind not in USABLE_TOKEN_TYPES:
            raise AuthUnsafe(
                f"{quote_foreign(issuer)} exchanged the token for {quote_foreign(kind)}, which is no "
                "access token: it is sent nowhere"
            )
        return granted
