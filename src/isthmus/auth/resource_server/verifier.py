"""What tells whose an access token is: the seam, and what all that fill it have in common."""

from typing import Protocol

import msgspec

from isthmus.auth.resource_server.credentials import MAX_TOKEN_BYTES
from isthmus.auth.secret import Secret
from isthmus.core.principal import Principal
from isthmus.errors import AuthError

__all__ = ["Presented", "TokenVerifier", "VerifierUnavailable"]


class Presented(msgspec.Struct, frozen=True):
    """An access token as it came, and what it came with.

    Attributes:
        scheme: ``bearer`` or ``dpop``, in lower case.
        token: the token.
        method: of the HTTP request.
        url: of the HTTP request, as clients spell it.
        proof: the value of its ``DPoP`` header, if there is exactly one.
        limit: bytes that a token may have here.
    """

    scheme: str
    token: Secret
    method: str = "POST"
    url: str = ""
    proof: str | None = None
    limit: int = MAX_TOKEN_BYTES

    @property
    def is_too_long(self) -> bool:
        """Whether the token has more bytes than it may."""
        return len(self.token.reveal()) > self.limit


class TokenVerifier(Protocol):
    """Tells whose an access token is, and whether it was issued for this resource.

    A proof that the sender holds the token's key is not its business: it says which key that is
    (``Principal.jkt``), and the resource server has the proof checked.

    One that knows of tokens which ended before their time also has ``async def lasts(principal) ->
    bool``: whether a stream that was opened by what it said of a token may stay open.

    Example::

        class Ours:
            async def verify(self, presented, resource):
                row = await database.token(sha256(presented.token.reveal()))
                return row and Principal(issuer="https://ours.example", subject=row.user,
                                         scopes=frozenset(row.scopes), expires_at=row.expires)
    """

    async def verify(self, presented: Presented, resource: str) -> Principal | None:
        """Whose it is; None where it is no token for this resource, whatever the reason.

        Args:
            presented: the token.
            resource: the URL that it must have been issued for.

        Raises:
            VerifierUnavailable: that cannot be told now.
        """
        ...


class VerifierUnavailable(AuthError):
    """Nobody can tell now whose a token is: the answer is 503, since 401 would start a login.

    Attributes:
        retry_after: seconds until it is worth another try.
    """

    def __init__(self, message: str, retry_after: float = 30.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
