"""Several issuers for one server: each token is judged by its own issuer's verifier alone."""

from collections.abc import Mapping

from isthmus.auth.jose import InvalidToken, read_token
from isthmus.auth.resource_server.verifier import Presented, TokenVerifier
from isthmus.core.principal import Principal

__all__ = ["ByIssuer"]


class ByIssuer:
    """Asks the verifier of the issuer that a token names.

    That name is not believed: it only says who is to judge, and no other verifier is ever tried.

    Example::

        ByIssuer({
            "https://login.example.com": JWTVerifier("https://login.example.com"),
            "https://partner.example": JWTVerifier("https://partner.example"),
        }, other=IntrospectionVerifier(…))

    Args:
        verifiers: by issuer, as it spells itself.
        other: judges tokens that are no JWT and so name nobody; without it they are refused.
    """

    def __init__(
        self, verifiers: Mapping[str, TokenVerifier], *, other: TokenVerifier | None = None
    ) -> None:
        self._verifiers = dict(verifiers)
        self._other = other

    async def verify(self, presented: Presented, resource: str) -> Principal | None:
        """Whose a token is; None where its issuer is unknown, or says no.

        Raises:
            VerifierUnavailable: its issuer's verifier cannot tell now.
        """
        try:
            issuer = read_token(presented.token).claims.get("iss")
        except InvalidToken:
            judge = self._other
        else:
            judge = self._verifiers.get(issuer) if isinstance(issuer, str) else None
        if judge is None:
            return None
        principal = await judge.verify(presented, resource)
        if principal is not None and judge is not self._other and principal.issuer != issuer:
            return None
        return principal

    async def lasts(self, principal: Principal) -> bool:
        """Whether a stream may stay open, as the issuer's verifier says; True where it cannot tell."""
        judge = self._verifiers.get(principal.issuer, self._other)
        lasts = getattr(judge, "lasts", None)
        return True if lasts is None else bool(await lasts(principal))
