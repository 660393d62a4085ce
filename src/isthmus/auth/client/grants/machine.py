"""What machines have in common that get tokens: no user, and nothing to refresh.

A grant says what it asks the token endpoint for; where that is, whether its metadata can be believed,
which scopes a server wants, and who waits for whom is the same as for users. Where tokens get old
new ones are asked for as the first were.
"""

import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

from isthmus.auth.client.discovery import STRICT_COMPAT, Compat, Discovery, DiscoveryResult
from isthmus.auth.client.requests import Granting, check_scopes
from isthmus.auth.client.session import TokenDemand
from isthmus.auth.client.store.records import Tokens
from isthmus.auth.client.token_request import DpopProofs, TokenResponse, make_tokens, request_token
from isthmus.auth.net.network import Network, NetworkPolicy, check_policy, desktop
from isthmus.auth.protocol import ClientIdentity, quote_foreign
from isthmus.errors import AuthUnsafe, IssuerChanged

__all__ = ["Machine", "MachineGrant", "TokenAttempt"]

MIN_REMAINING_S = 5.0
"""Seconds that a token has to be good for, so that another connection goes on with it."""


class TokenAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to get a token.

    Attributes:
        place: where, and for what resource.
        scopes: what is asked for; nothing leaves it to the authorization server.
        network: sends requests.
        proofs: binds the token to a key, where it is to be bound.
    """

    place: DiscoveryResult
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
        server, asked = self.place.server, self.scopes if scopes is None else scopes
        # spec 2026-07-28 basic/authorization#resource-parameter-implementation: in every token
        # request, whether or not the server knows it
        fields = {**form, "resource": self.place.resource}
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


class Machine(Granting):
    """An authorization that needs nobody; subclasses say what they ask for.

    A secret goes to one authorization server: the first that took it, whatever servers say later.

    Args:
        identity: who the client is.
        scopes: what to ask for; None asks for what the server says.
        authorization_server: the issuer, where the MCP server does not name it.
        network: where discovery may go; by default the origins named here, and public addresses.
        compat: what is put up with for servers that do not keep to the specification.
    """

    tries = 1  # nobody can be asked for more, and asking again changes nothing

    def __init__(
        self,
        identity: ClientIdentity,
        *,
        scopes: Iterable[str] | None = None,
        authorization_server: str | None = None,
        network: NetworkPolicy | None = None,
        compat: Compat | None = None,
    ) -> None:
        super().__init__()
        check_policy(network)
        self.identity = identity
        self.client_id = identity.client_id
        self.scopes = check_scopes(scopes)
        self.authorization_server = authorization_server
        self.compat = compat or STRICT_COMPAT
        self.now: Callable[[], float] = time.time
        self.had: dict[str, Tokens] = {}
        self._issuer: str | None = None
        self._policy = network

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.client_id!r})"

    async def ask(self, asking: TokenAttempt) -> TokenResponse:
        """Ask for a token.

        Raises:
            AuthError: it is not to be had.
        """
        raise NotImplementedError

    def ensure(self, issuer: str, url: str) -> None:
        """See to it that a secret is shown to nobody but the server that knows it already.

        Raises:
            IssuerChanged: another one is named now.
        """
        # spec 2026-07-28 basic/authorization/client-registration#authorization-server-binding
        before = self._issuer
        if self.identity.secret is not None and before is not None and before != issuer:
            raise IssuerChanged(
                f"{url} names {quote_foreign(issuer)} as its authorization server, and the secret of "
                f"{self.client_id!r} is that of {quote_foreign(before)}: if both are right, give each server "
                "an authorization of its own, with authorization_server=…",
                before,
                issuer,
            )

    def believed(self, issuer: str) -> None:
        """An authorization server has taken what the client shows it."""
        self._issuer = issuer

    def grant(self, url: str, proofs: DpopProofs) -> "MachineGrant":
        """The way to tokens for one MCP server."""
        policy = self._policy or desktop(url, *self.named())
        return MachineGrant(url, self, Network(policy), proofs)

    def named(self) -> list[str]:
        """The URLs that the application itself has named."""
        return [self.authorization_server] if self.authorization_server else []


class MachineGrant:
    """The way to tokens for one MCP server, without a user.

    Args:
        url: the MCP server.
        machine: what is asked for, and what the application has said.
        network: reaches the servers that are named on the way.
        proofs: binds tokens to a key, where they are to be bound.
    """

    asks_user = False

    def __init__(self, url: str, machine: Machine, network: Network, proofs: DpopProofs) -> None:
        self._url = url
        self._machine = machine
        self._network = network
        self._proofs = proofs
        self._discovery = Discovery(
            url,
            network,
            authorization_server=machine.authorization_server,
            compat=machine.compat,
        )

    async def load(self) -> Tokens | None:
        """The token that an earlier connection has got, while it is good."""
        tokens = self._machine.had.get(self._url)
        if tokens is None:
            return None
        end = tokens.expires_at
        return tokens if end is None or self._machine.now() + MIN_REMAINING_S < end else None

    async def refresh(self, tokens: Tokens, want: TokenDemand) -> Tokens | None:
        """Another token before the end of this one; one that was refused is no business of this."""
        return None if want.challenged else await self._asked(want, tokens.asked)

    async def obtain(self, want: TokenDemand) -> Tokens:
        """A token, from wherever the server says that they are to be had."""
        return await self._asked(want, frozenset() if want.before is None else want.before.asked)

    async def close(self) -> None:
        """Close connections."""
        await self._network.close()

    async def _asked(self, want: TokenDemand, before: frozenset[str]) -> Tokens:
        self._machine.had.pop(self._url, None)
        place = await self._discovery.find(
            want.metadata, prefer=want.before.issuer if want.before else None
        )
        if not place.server.token_endpoint:
            raise AuthUnsafe(
                f"the metadata of {quote_foreign(place.server.issuer)} name no token_endpoint"
            )
        self._machine.ensure(place.server.issuer, self._url)
        self._bind(place)
        scopes = self._scopes(place, want) | before
        asking = TokenAttempt(
            place=place, scopes=scopes, network=self._network, proofs=self._proofs
        )
        granted = await self._machine.ask(asking)
        self._machine.believed(place.server.issuer)
        tokens = make_tokens(
            granted,
            place=place,
            client_id=self._machine.client_id,
            asked=scopes,
            proofs=self._proofs,
            now=self._machine.now(),
            account="",
        )
        self._machine.had[self._url] = tokens
        return tokens

    def _scopes(self, place: DiscoveryResult, want: TokenDemand) -> frozenset[str]:
        """What is asked for: what the application says, and else what the server does."""
        # spec 2026-07-28 basic/authorization#scope-selection-strategy: the challenge's, or else
        # what the resource lists, or else none
        first, wanted = self._machine.scopes, want.scopes
        if wanted is None:
            wanted = first if first is not None else (place.scopes or frozenset())
        # spec 2026-07-28 basic/authorization#step-up-authorization-flow: and those of before
        granted = want.before.scopes if want.more and want.before else frozenset[str]()
        return wanted | (first or frozenset()) | granted

    def _bind(self, place: DiscoveryResult) -> None:
        """Have a key for tokens to be bound to, where the resource wants that."""
        if place.bound and self._proofs.key is None:
            from isthmus.auth.tokens.dpop import (
                DpopKey,  # the JOSE library is loaded where it is needed
            )

            self._proofs.key = DpopKey.generate()
