"""Grants without a user, for programs and workloads: no login, and nothing to refresh.

A grant says what it asks the token endpoint for; where that is, whether its metadata can be
believed, which scopes a server wants, and who waits for whom is the same as for users. Where tokens
get old new ones are asked for as the first were.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from isthmus.auth.client.discovery import STRICT_COMPAT, Compat, Discovery, DiscoveryResult
from isthmus.auth.client.requests import SharedSessions, check_scopes
from isthmus.auth.client.session import TokenDemand
from isthmus.auth.client.store.records import Tokens
from isthmus.auth.client.token_request import DpopProofs, TokenResponse, make_tokens, request_token
from isthmus.auth.net.network import Network, NetworkPolicy, check_policy, desktop
from isthmus.auth.protocol import ClientIdentity, quote_foreign
from isthmus.errors import AuthUnsafe, IssuerChanged

MIN_REMAINING_S = 5.0  # of a token that another connection goes on with


class TokenAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to get a token.

    Attributes:
        discovered: where, and for what resource.
        scopes: what is asked for; nothing leaves it to the authorization server.
        network: sends requests.
        proofs: binds the token to a key, where it is to be bound.
    """

    discovered: DiscoveryResult
    scopes: frozenset[str]
    network: Network
    proofs: DpopProofs

    async def token(
        self,
        form: Mapping[str, str],
        identity: ClientIdentity,
        *,
        scopes: frozenset[str] | None = None,
    ) -> TokenResponse:
        """Ask the authorization server of the MCP server.

        Args:
            form: ``grant_type``, and what belongs to it.
            identity: who asks.
            scopes: other scopes than those wanted, or None.

        Raises:
            AuthError: it says no, or nothing of use.
        """
        server, asked = self.discovered.server, self.scopes if scopes is None else scopes
        # spec 2026-07-28 basic/authorization#resource-parameter-implementation: in every token
        # request, whether or not the server knows it
        fields = {**form, "resource": self.discovered.resource}
        if asked:
            fields["scope"] = " ".join(sorted(asked))
        return await request_token(
            self.network,
            server.token_endpoint,
            fields,
            identity,
            issuer=server.issuer,
            methods=server.methods,
            proofs=self.proofs,
        )


# Asks the token endpoint for what a grant asks for; raises AuthError where it is not to be had.
AskForToken: TypeAlias = Callable[[TokenAttempt], Awaitable[TokenResponse]]


class MachineClient:
    """A client without a user, for all MCP servers that it reaches.

    A secret goes to one authorization server: the first that took it, whatever servers say later.

    Args:
        identity: who the client is.
        ask: asks for a token.
        scopes: what to ask for; None asks for what the server says.
        authorization_server: the issuer, where the MCP server does not name it.
        own_urls: further URLs that the application itself has named.
        network: where discovery may go; by default the origins named here, and public addresses.
        compat: what is put up with for servers that do not keep to the specification.

    Attributes:
        sessions: one for each MCP server.
        tokens: those that are good, by the URL of the MCP server.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        identity: ClientIdentity,
        ask: AskForToken,
        *,
        scopes: Iterable[str] | None = None,
        authorization_server: str | None = None,
        own_urls: Sequence[str] = (),
        network: NetworkPolicy | None = None,
        compat: Compat | None = None,
    ) -> None:
        check_policy(network)
        self.identity = identity
        self.ask = ask
        self.scopes = check_scopes(scopes)
        self.authorization_server = authorization_server
        self.compat = compat or STRICT_COMPAT
        self.now: Callable[[], float] = time.time
        self.tokens: dict[str, Tokens] = {}
        self.sessions = SharedSessions(
            self._make_grant,
            compat=self.compat,
            max_step_ups=1,  # nobody can be asked for more, and asking again changes nothing
            now=self.now,
        )
        self._own_urls = own_urls
        self._issuer: str | None = None
        self._policy = network

    def check_issuer(self, issuer: str, url: str) -> None:
        """See to it that a secret is shown to nobody but the server that knows it already.

        Raises:
            IssuerChanged: another one is named now.
        """
        # spec 2026-07-28 basic/authorization/client-registration#authorization-server-binding
        before = self._issuer
        if self.identity.secret is not None and before is not None and before != issuer:
            raise IssuerChanged(
                f"{url} names {quote_foreign(issuer)} as its authorization server, and the secret of "
                f"{self.identity.client_id!r} is that of {quote_foreign(before)}: if both are right, "
                "give each server an authorization of its own, with authorization_server=…",
                before,
                issuer,
            )

    def bind_issuer(self, issuer: str) -> None:
        """Note that an authorization server has taken what the client shows it."""
        self._issuer = issuer

    def _make_grant(self, url: str, proofs: DpopProofs) -> "MachineGrant":
        own = [self.authorization_server] if self.authorization_server else []
        policy = self._policy or desktop(url, *own, *self._own_urls)
        return MachineGrant(url, self, Network(policy), proofs)


class MachineGrant:
    """The way to tokens for one MCP server, without a user.

    Args:
        url: the MCP server.
        client: what is asked for, and what the application has said.
        network: reaches the servers that are named on the way.
        proofs: binds tokens to a key, where they are to be bound.
    """

    asks_user = False

    def __init__(
        self, url: str, client: MachineClient, network: Network, proofs: DpopProofs
    ) -> None:
        self._url = url
        self._client = client
        self._network = network
        self._proofs = proofs
        self._discovery = Discovery(
            url,
            network,
            authorization_server=client.authorization_server,
            compat=client.compat,
        )

    async def load(self) -> Tokens | None:
        """The token that an earlier connection has got, while it is good."""
        tokens = self._client.tokens.get(self._url)
        if tokens is None:
            return None
        end = tokens.expires_at
        return tokens if end is None or self._client.now() + MIN_REMAINING_S < end else None

    async def refresh(self, tokens: Tokens, want: TokenDemand) -> Tokens | None:
        """Another token before the end of this one; one that was refused is no business of this."""
        return None if want.challenged else await self._request(want, tokens.asked)

    async def obtain(self, want: TokenDemand) -> Tokens:
        """A token, from wherever the server says that they are to be had."""
        return await self._request(want, frozenset() if want.before is None else want.before.asked)

    async def close(self) -> None:
        """Close connections."""
        await self._network.close()

    async def _request(self, want: TokenDemand, before: frozenset[str]) -> Tokens:
        self._client.tokens.pop(self._url, None)
        discovered = await self._discovery.find(
            want.metadata, prefer=want.before.issuer if want.before else None
        )
        if not discovered.server.token_endpoint:
            raise AuthUnsafe(
                f"the metadata of {quote_foreign(discovered.server.issuer)} name no token_endpoint"
            )
        self._client.check_issuer(discovered.server.issuer, self._url)
        self._choose_key(discovered)
        scopes = self._choose_scopes(discovered, want) | before
        asking = TokenAttempt(
            discovered=discovered, scopes=scopes, network=self._network, proofs=self._proofs
        )
        granted = await self._client.ask(asking)
        self._client.bind_issuer(discovered.server.issuer)
        tokens = make_tokens(
            granted,
            discovered=discovered,
            client_id=self._client.identity.client_id,
            asked=scopes,
            proofs=self._proofs,
            now=self._client.now(),
            account="",
        )
        self._client.tokens[self._url] = tokens
        return tokens

    def _choose_scopes(self, discovered: DiscoveryResult, want: TokenDemand) -> frozenset[str]:
        """The scopes to ask for: the application's, or else the server's."""
        # spec 2026-07-28 basic/authorization#scope-selection-strategy: the challenge's, or else
        # what the resource lists, or else none
        first, wanted = self._client.scopes, want.scopes
        if wanted is None:
            wanted = first if first is not None else (discovered.scopes or frozenset())
        # spec 2026-07-28 basic/authorization#step-up-authorization-flow: and those of before
        granted = want.before.scopes if want.more and want.before else frozenset[str]()
        return wanted | (first or frozenset()) | granted

    def _choose_key(self, discovered: DiscoveryResult) -> None:
        """Have a key for tokens to be bound to, where the resource wants that."""
        if discovered.bound and self._proofs.key is None:
            from isthmus.auth.tokens.dpop import (
                DpopKey,  # the JOSE library is loaded where it is needed
            )

            self._proofs.key = DpopKey.generate()
