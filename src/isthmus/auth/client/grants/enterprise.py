"""Enterprise-managed authorization (ID-JAG): a company's identity provider grants the access."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Literal, TypeAlias

from isthmus.auth.client.discovery import Compat
from isthmus.auth.client.grants.machine import MachineClient, TokenAttempt
from isthmus.auth.client.registration import StaticClient
from isthmus.auth.client.requests import AuthorizedRequests
from isthmus.auth.client.token_request import TokenResponse, request_token
from isthmus.auth.net.network import NetworkPolicy
from isthmus.auth.net.urls import is_secure
from isthmus.auth.protocol import (
    EXCHANGE_GRANT,
    ID_JAG_URN,
    JWT_BEARER_GRANT,
    TOKEN_TYPE_PREFIX,
    quote_foreign,
)
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthUnsafe, UsageError
from isthmus.transports.http.client.requests import Requests

SUBJECT_TOKEN_TYPES = ("id_token", "saml2", "jwt")

# Gives what the identity provider said when the user logged in.
SubjectToken: TypeAlias = Callable[[], Awaitable[Secret | str]]


class EnterpriseManaged:
    """Tokens for a user who has logged in at their company's identity provider.

    That is the extension ``io.modelcontextprotocol/enterprise-managed-authorization``: what the
    identity provider said of the user is exchanged there for a grant for one MCP server (RFC 8693),
    and that for a token at the server's own authorization server. Nobody is sent to a browser.

    Example::

        auth = EnterpriseManaged(
            "https://acme.idp.example/oauth2/token",
            idp_client=StaticClient("chat-app", secret=idp_secret),
            subject_token=current_id_token,
            client=StaticClient("chat-app-at-mcp", secret=secret),
        )

    Args:
        idp_token_endpoint: where the identity provider exchanges tokens.
        idp_client: the client that the user has logged in to, as the provider knows it.
        subject_token: gives the user's ID token or SAML assertion; called for each token.
        client: the same client, as the MCP server's authorization server knows it.
        subject_token_type: ``"id_token"`` or ``"saml2"``; ``"jwt"`` where the provider trusts
            whoever signs it.
        idp_issuer: the identity provider's issuer, where ``idp_client`` authenticates by a key.
        scopes: what to ask for; None asks for what the server says.
        authorization_server: the issuer, where the MCP server does not name it.
        network: where discovery may go; by default the origins named here, and public addresses.
        compat: what is put up with for servers that do not keep to the specification.

    Raises:
        UsageError: the type of the token is none of the three, or the endpoint is not https.
    """

    def __init__(
        self,
        idp_token_endpoint: str,
        *,
        idp_client: StaticClient,
        subject_token: SubjectToken,
        client: StaticClient,
        subject_token_type: Literal["id_token", "saml2", "jwt"] = "id_token",  # noqa: S107 - a kind
        idp_issuer: str | None = None,
        scopes: Iterable[str] | None = None,
        authorization_server: str | None = None,
        network: NetworkPolicy | None = None,
        compat: Compat | None = None,
    ) -> None:
        if subject_token_type not in SUBJECT_TOKEN_TYPES:
            raise UsageError(
                f"subject_token_type={subject_token_type!r}: it is id_token, saml2 or jwt"
            )
        if not is_secure(idp_token_endpoint):
            # spec 2026-07-28 basic/authorization/security-considerations#communication-security
            raise UsageError(f"idp_token_endpoint={idp_token_endpoint!r}: it is an https URL")
        self._client = MachineClient(
            client.identity,
            self._ask,
            scopes=scopes,
            authorization_server=authorization_server,
            own_urls=[idp_token_endpoint],
            network=network,
            compat=compat,
        )
        self._endpoint = idp_token_endpoint
        self._idp_client = idp_client.identity
        self._idp_issuer = idp_issuer or idp_token_endpoint
        self._subject_token = subject_token
        self._kind = f"{TOKEN_TYPE_PREFIX}{subject_token_type}"

    def __repr__(self) -> str:
        return f"EnterpriseManaged({self._client.identity.client_id!r})"

    def over(self, url: str, requests: Requests) -> AuthorizedRequests:
        """Put tokens into the requests of a connection; see ``Authorization``.

        Args:
            url: the URL of the server.
            requests: sends the requests.
        """
        return self._client.sessions.over(url, requests)

    def context(self, url: str) -> object:
        """The token that requests to ``url`` carry just now; see ``Authorization``.

        Args:
            url: the URL of the MCP endpoint.
        """
        return self._client.sessions.context(url)

    async def _ask(self, attempt: TokenAttempt) -> TokenResponse:
        """Exchange what the provider said for a grant, and that for a token."""
        jag = await self._exchange(attempt)
        form = {"grant_type": JWT_BEARER_GRANT, "assertion": jag.access.reveal()}
        return await attempt.token(form, self._client.identity, scopes=jag.scopes)

    async def _exchange(self, attempt: TokenAttempt) -> TokenResponse:
        """The identity provider's grant for the MCP server.

        Raises:
            AuthRefused: the provider, or the company's policy, says no.
            AuthUnsafe: what it gave is something else.
        """
        fields = {
            "grant_type": EXCHANGE_GRANT,
            "requested_token_type": ID_JAG_URN,
            "audience": attempt.discovered.server.issuer,
            "resource": attempt.discovered.resource,
            "subject_token": Secret(await self._subject_token()).reveal(),
            "subject_token_type": self._kind,
        }
        if attempt.scopes:
            fields["scope"] = " ".join(sorted(attempt.scopes))
        jag = await request_token(
            attempt.network, self._endpoint, fields, self._idp_client, issuer=self._idp_issuer
        )
        kind = jag.more.get("issued_token_type")
        if kind != ID_JAG_URN:
            raise AuthUnsafe(
                f"{quote_foreign(self._idp_issuer)} exchanged the user's token for {quote_foreign(kind)}, and not for "
                f"{ID_JAG_URN}: it is sent nowhere; is the exchange set up there for {self._client.identity.client_id!r}?"
            )
        return jag
