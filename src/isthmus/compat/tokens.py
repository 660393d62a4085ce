"""Access tokens of the façades: verifiers written for ``mcp`` and ``fastmcp``, asked by isthmus' authorization.

Where a program names an authorization server, :class:`~isthmus.auth.ResourceAuth` guards its server. Where it
names none, there is nothing that metadata could say: :class:`BearerAuth` does the same without it.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pydantic

from isthmus.core.principal import Principal
from isthmus.errors import UsageError

if TYPE_CHECKING:
    from isthmus.auth.resource_server.verifier import Presented
    from isthmus.core.http.rules import Refusal
    from isthmus.transports.http.authorizer import AsgiApp, KnownScopes, MethodScopes
    from isthmus.transports.http.reply import Scope

GUIDE = "docs/guide/auth-resource-server.md"

TOKEN_ISSUER = "isthmus.compat"  # noqa: S105 - of tokens that do not say who issued them


class AccessToken(pydantic.BaseModel):
    """Access token of a caller, as its verifier found it.

    Attributes:
        token: the token.
        client_id: the client it was given to.
        scopes: the granted scopes.
        expires_at: when it ends, in seconds since 1970.
        resource: the resource it was issued for (RFC 8707).
        subject: the user.
        claims: further claims.
    """

    token: str
    client_id: str
    scopes: list[str]
    expires_at: int | None = None
    resource: str | None = None
    subject: str | None = None
    claims: dict[str, Any] | None = None


class TokenClaims(dict[str, Any]):
    """Claims of a principal, with the access token that they are of.

    The token stands in no text that is made of a principal, and only :func:`find_access_token` gives it.

    Args:
        claims: the claims.
        access_token: the token, as the program's verifier gave it.
    """

    def __init__(self, claims: Mapping[str, Any], access_token: Any) -> None:
        super().__init__(claims)
        self.access_token = access_token


class ForeignVerifier:
    """Verifier of isthmus' that asks one with ``verify_token``, as ``mcp`` and ``fastmcp`` have it.

    Args:
        verifier: the program's verifier.
        resource: the URL that tokens must say they were issued for; None where the verifier looks after that.
    """

    def __init__(self, verifier: Any, *, resource: str | None = None) -> None:
        self._verifier = verifier
        self._resource = None if resource is None else resource.removesuffix("/")

    async def verify(self, presented: "Presented", resource: str) -> Principal | None:  # noqa: ARG002 - the verifier knows it
        """The principal of a token; None where the program's verifier has none, or it has expired."""
        found = await self._verifier.verify_token(presented.token.reveal())
        if not found:
            return None
        ends = found.expires_at
        if ends and ends < int(time.time()):
            return None
        # spec 2026-07-28
        # basic/authorization/security-considerations#token-audience-binding-and-validation
        if self._resource is not None:
            issued_for = getattr(found, "resource", None) or ""
            if str(issued_for).removesuffix("/") != self._resource:
                return None
        return make_principal(found)


def make_principal(token: Any) -> Principal:
    """The principal of a token that was verified."""
    claims = dict(getattr(token, "claims", None) or {})
    subject = getattr(token, "subject", None) or claims.get("sub")
    return Principal(
        issuer=str(claims.get("iss") or TOKEN_ISSUER),
        subject=str(subject or token.client_id),
        client_id=str(token.client_id),
        scopes=frozenset(token.scopes or ()),
        expires_at=token.expires_at,
        claims=TokenClaims(claims, token),
    )


def find_access_token(principal: Any) -> Any:
    """The token of a principal as its verifier gave it; None where another authorizer admitted it."""
    return getattr(getattr(principal, "claims", None), "access_token", None)


class BearerAuth:
    """Authorizer of a server whose program names no authorization server: bearer tokens, and no metadata.

    Args:
        verifier: tells whose a token is.
        scopes: those that every request takes.

    Attributes:
        routes: none.
        hides: False.
        resource: None.
    """

    def __init__(self, verifier: ForeignVerifier, scopes: Collection[str] = ()) -> None:
        from isthmus.auth.resource_server.challenges import ResourceChallenges

        self.routes: Mapping[str, AsgiApp] = {}
        self.hides = False
        self.resource: str | None = None
        self._verifier = verifier
        self._base = frozenset(scopes)
        self._challenges = ResourceChallenges(None, self._base, dpop="off", algorithms=())

    async def admit(self, scope: "Scope") -> "Principal | Refusal":
        """Find the sender of a request by its token; see ``Authorizer.admit``."""
        from isthmus.auth.resource_server.credentials import MalformedCredentials, read_credentials
        from isthmus.auth.resource_server.verifier import Presented
        from isthmus.auth.tokens.secret import Secret

        try:
            found = read_credentials(scope["headers"])
        except MalformedCredentials as flaw:
            return self._challenges.malformed(str(flaw))
        if found is None or found.scheme != "bearer":
            return self._challenges.nobody
        presented = Presented(scheme="bearer", token=Secret(found.token))
        return await self._verify(presented)

    async def _verify(self, presented: "Presented") -> "Principal | Refusal":
        from isthmus.auth.resource_server.verifier import VerifierUnavailable

        try:
            principal = await self._verifier.verify(presented, "")
        except VerifierUnavailable as error:
            return self._challenges.unavailable(error.retry_after)
        if principal is None:
            return self._challenges.invalid("bearer", "the access token is not valid here")
        return principal

    def permit(
        self,
        principal: Principal | None,
        asked: "Sequence[MethodScopes]",
        *,
        modern: bool,  # noqa: ARG002 - the same in every revision
        known: "KnownScopes",  # noqa: ARG002 - same
    ) -> "Refusal | None":
        """The reason to refuse a request, or None; see ``Authorizer.permit``."""
        if principal is None:
            return self._challenges.nobody
        required = self._base.union(*(one.scopes for one in asked))
        if required <= principal.scopes:
            return None
        return self._challenges.insufficient(required, bound=False)

    def allows(self, principal: Principal | None, scopes: frozenset[str]) -> bool:
        """Whether a caller was granted scopes; see ``Authorizer.allows``."""
        return principal is not None and scopes <= principal.scopes

    async def lasts(self, principal: Principal) -> bool:
        """Whether a token has not ended yet; see ``Authorizer.lasts``."""
        return principal.expires_at is None or principal.expires_at > time.time()

    async def upstream(self, principal: Principal, name: str) -> NoReturn:  # noqa: ARG002 - there is none
        """No service stands behind the server.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"there is no service {name!r} behind this server: see {GUIDE}")
