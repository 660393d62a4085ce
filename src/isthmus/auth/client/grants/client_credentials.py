"""Client-credentials grant (OAuth 2.1): a program that acts for itself."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from isthmus.auth.client.discovery import Compat
from isthmus.auth.client.grants.machine import MachineClient, TokenAttempt
from isthmus.auth.client.registration import StaticClient
from isthmus.auth.client.requests import AuthorizedRequests
from isthmus.auth.client.token_request import TokenResponse
from isthmus.auth.net.network import NetworkPolicy
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import UsageError
from isthmus.transports.http.client.requests import Requests

if TYPE_CHECKING:
    from isthmus.auth.tokens.jose import PrivateKey


class ClientCredentials:
    """Client-credentials grant (OAuth 2.1): tokens for a program that was registered beforehand, without a user.

    That is the extension ``io.modelcontextprotocol/oauth-client-credentials``. With a key the
    program proves who it is by a signature, and nothing that could be stolen is sent.

    Example::

        auth = ClientCredentials("nightly-report", key=PrivateKey(pem, alg="ES256"))
        async with Client("https://mcp.example.com/mcp", auth=auth) as client:
            print(await client.list_tools())

    Args:
        client_id: what the authorization server calls the program.
        secret: the secret it was given.
        key: the private key whose public half the authorization server knows.
        method: how it authenticates, where that is not to be found out; see ``StaticClient``.
        scopes: what to ask for; None asks for what the server says.
        authorization_server: the issuer, where the MCP server does not name it, or shall not have
            a say in who sees the secret first.
        network: where discovery may go; by default the origins named here, and public addresses.
        compat: what is put up with for servers that do not keep to the specification.

    Raises:
        UsageError: there is neither a secret nor a key.
    """

    def __init__(
        self,
        client_id: str,
        *,
        secret: Secret | str | None = None,
        key: "PrivateKey | None" = None,
        method: str | None = None,
        scopes: Iterable[str] | None = None,
        authorization_server: str | None = None,
        network: NetworkPolicy | None = None,
        compat: Compat | None = None,
    ) -> None:
        if secret is None and key is None:
            raise UsageError(
                f"{client_id!r} has to authenticate itself: give it secret=… or key=PrivateKey(…)"
            )
        self._client = MachineClient(
            StaticClient(client_id, secret=secret, key=key, method=method).identity,
            self._ask,
            scopes=scopes,
            authorization_server=authorization_server,
            network=network,
            compat=compat,
        )

    def __repr__(self) -> str:
        return f"ClientCredentials({self._client.identity.client_id!r})"

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
        """Ask for a token."""
        return await attempt.token({"grant_type": "client_credentials"}, self._client.identity)
