"""JWT bearer grant (RFC 7523), for workload identity: a program whose platform vouches for it."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from isthmus.auth.client.discovery import Compat
from isthmus.auth.client.grants.machine import MachineClient, TokenAttempt
from isthmus.auth.client.registration import StaticClient
from isthmus.auth.client.requests import AuthorizedRequests
from isthmus.auth.client.token_request import TokenResponse
from isthmus.auth.net.network import NetworkPolicy
from isthmus.auth.protocol import JWT_BEARER_GRANT, ClientIdentity
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthRefused, UsageError
from isthmus.transports.http.client.requests import Requests

# Gives a JWT for an issuer, which is to be its audience.
AssertionSource: TypeAlias = Callable[[str], Awaitable[Secret | str]]


class JwtBearer:
    """JWT-bearer grant (RFC 7523): tokens for the JWT that a platform gives to programs that run on it.

    That is the extension ``io.modelcontextprotocol/auth/wif``, which is experimental. The JWT is
    asked for whenever a token is needed. After a refusal the same JWT is never presented again, and
    no other grant is tried.

    Example::

        async def workload(issuer: str) -> str:
            return Path("/var/run/secrets/tokens/mcp").read_text()

        auth = JwtBearer(workload, client="report-job")

    Args:
        assertion: gives the JWT for the authorization server that is named to it.
        client: the client that the JWT is for: its ``client_id``, or a ``StaticClient`` where it
            has to authenticate, too; empty where the JWT says it all.
        scopes: what to ask for; None asks for what the server says.
        authorization_server: the issuer, where the MCP server does not name it.
        network: where discovery may go; by default the origins named here, and public addresses.
        compat: what is put up with for servers that do not keep to the specification.

    Raises:
        UsageError: ``assertion`` is no function.
    """

    def __init__(
        self,
        assertion: AssertionSource,
        *,
        client: StaticClient | str = "",
        scopes: Iterable[str] | None = None,
        authorization_server: str | None = None,
        network: NetworkPolicy | None = None,
        compat: Compat | None = None,
    ) -> None:
        if not callable(assertion):
            raise UsageError(
                "the JWT comes from an async function that is given the issuer: async def "
                "workload(issuer): …"
            )
        self._client = MachineClient(
            client.identity
            if isinstance(client, StaticClient)
            else ClientIdentity(client_id=client, method="none"),
            self._ask,
            scopes=scopes,
            authorization_server=authorization_server,
            network=network,
            compat=compat,
        )
        self._assertion = assertion
        self._refused: tuple[Secret, AuthRefused] | None = None

    def __repr__(self) -> str:
        return f"JwtBearer({self._client.identity.client_id!r})"

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
        """Ask for a token, once for each JWT."""
        jwt = Secret(await self._assertion(attempt.discovered.server.issuer))
        if self._refused is not None and self._refused[0] == jwt:
            before = self._refused[1]
            raise AuthRefused(f"{before}; the same assertion is not presented again", before.error)
        try:
            form = {"grant_type": JWT_BEARER_GRANT, "assertion": jwt.reveal()}
            return await attempt.token(form, self._client.identity)
        except AuthRefused as error:
            self._refused = jwt, error
            raise
