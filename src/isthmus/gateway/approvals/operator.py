"""Sign-in of the operator: whoever has the token that was printed, by a cookie of this process."""

from typing import Protocol

from msgspec import Struct

from isthmus.auth.authorization_server.pages.browser import BrowserCookies, BrowserRequest
from isthmus.auth.tokens.secret import Secret
from isthmus.gateway.principals import LOCAL_PRINCIPAL


class SignedInApprover(Struct, frozen=True):
    """A person who has signed in to the pages.

    Attributes:
        name: as the audit log has it.
        principal: who they are, to be told from the caller where a second person is demanded.
        session: the value of their cookie.
    """

    name: str
    principal: str
    session: str


class ApproverIdentity(Protocol):
    """Says who has signed in; another one than the operator's token may stand here."""

    def identify(self, request: BrowserRequest) -> SignedInApprover | None:
        """Whoever sends a request; None for nobody who may decide."""
        ...


class OperatorSignIn:
    """The sign-in of the operator, who has the token that the gateway prints.

    Args:
        address: of the gateway, as browsers reach it.
        token: in place of a random one.
    """

    def __init__(self, address: str, token: str = "") -> None:
        self.token = Secret(token) if token else Secret.random()
        self._session = Secret.random()  # one for the life of the gateway
        self._cookies = BrowserCookies(address)
        self.cookie = self._cookies.named("isthmus-operator")

    def sign_in(self, token: str) -> str | None:
        """The ``Set-Cookie`` for whoever has the token; None for everybody else."""
        if self.token != token:
            return None
        # Lax: links come from other sites, as clients are and issuers; forms have tokens of ours
        return self._cookies.set(self.cookie, self._session)

    def renew_token(self) -> None:
        """Make another token: the one before signs nobody in any more, and everybody is signed out."""
        self.token, self._session = Secret.random(), Secret.random()

    def identify(self, request: BrowserRequest) -> SignedInApprover | None:
        """The operator, where the request has the cookie."""
        value = request.cookies.get(self.cookie, "")
        if not value or self._session != value:
            return None
        return SignedInApprover("operator", LOCAL_PRINCIPAL, value)

    def sign_out(self) -> str:
        """The ``Set-Cookie`` that takes the cookie away; every browser that had it is signed out."""
        self._session = Secret.random()
        return self._cookies.clear(self.cookie)
