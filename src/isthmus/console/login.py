"""Logins of the console: who is at a browser, and what they may see.

A login is a :class:`ConsoleIdentity`. :class:`LocalLogin` is for the user of this machine, who has the token
that was printed; :class:`ProxyLogin` for users whom a trusted proxy names;
:class:`~isthmus.console.authorization_login.AuthorizationLogin` for users of an authorization server.
"""

from collections.abc import Collection
from typing import Protocol, runtime_checkable

from msgspec import Struct

from isthmus.auth.authorization_server.pages.browser import BrowserRequest
from isthmus.auth.authorization_server.users.users import HeaderUsers, User
from isthmus.auth.tokens.secret import Secret
from isthmus.gateway.approvals.operator import OperatorSignIn
from isthmus.gateway.principals import make_user_principal
from isthmus.host.model.trace import Assurance


class ConsoleVisitor(Struct, frozen=True, kw_only=True):
    """A person who has signed in to the console.

    Attributes:
        name: as the audit log has it.
        principal: who they are; what waits for this principal is theirs.
        operator: whether they see and decide what is anybody's.
        session: a name of their login, which forms are bound to.
        assurance: how sure one can be that it was they.
    """

    name: str
    principal: str
    operator: bool
    session: str
    assurance: Assurance = "local_ui"


class ConsoleIdentity(Protocol):
    """Says who is at a browser."""

    async def identify(self, request: BrowserRequest) -> ConsoleVisitor | None:
        """Whoever sends a request; None for nobody who may see anything.

        Args:
            request: the request of the browser.
        """
        ...

    def sign_in(self, token: str) -> str | None:
        """The ``Set-Cookie`` for a token that was pasted or posted; None where it is none.

        Args:
            token: the token, as it was pasted or posted.
        """
        ...

    def sign_out(self, request: BrowserRequest) -> str | None:
        """The ``Set-Cookie`` that ends the login of a browser; None where that is not ours to end.

        Args:
            request: the request of the browser.
        """
        ...


class LoginStep(Struct, frozen=True):
    """A step of a login: where the browser is sent, and the cookies that it gets.

    Attributes:
        url: the issuer's, or the path of a page.
        cookies: values of ``Set-Cookie``.
    """

    url: str
    cookies: tuple[str, ...]


@runtime_checkable
class RedirectIdentity(ConsoleIdentity, Protocol):
    """An identity whose users sign in at another site.

    Attributes:
        issuer: that site.
    """

    issuer: str

    async def begin(self, request: BrowserRequest) -> LoginStep:
        """Send a browser there."""
        ...

    async def finish(self, request: BrowserRequest) -> LoginStep:
        """Sign a browser in that comes back."""
        ...


class LocalLogin:
    """The user of this machine: the token stands in the fragment of the URL that is printed.

    Args:
        address: of the console, as browsers reach it.
        operator: the sign-in of a gateway's other pages, which this one is then, too.
        assurance: how sure one can be that it was they.
    """

    def __init__(
        self,
        address: str,
        operator: OperatorSignIn | None = None,
        *,
        assurance: Assurance = "local_ui",
    ) -> None:
        self._operator = operator or OperatorSignIn(address)
        self._assurance: Assurance = assurance

    @property
    def token(self) -> Secret:
        """The token that signs in."""
        return self._operator.token

    def renew_token(self) -> None:
        """Make another token, which alone signs in from now on."""
        self._operator.renew_token()

    async def identify(self, request: BrowserRequest) -> ConsoleVisitor | None:
        """The user of this machine, where the request has the cookie.

        Args:
            request: the request of the browser.
        """
        found = self._operator.identify(request)
        if found is None:
            return None
        return ConsoleVisitor(
            name=found.name,
            principal=found.principal,
            operator=True,
            session=found.session,
            assurance=self._assurance,
        )

    def sign_in(self, token: str) -> str | None:
        """The cookie for whoever has the token.

        Args:
            token: the token, as it was pasted or posted.
        """
        return self._operator.sign_in(token)

    def sign_out(self, request: BrowserRequest | None = None) -> str | None:  # noqa: ARG002 - ConsoleIdentity's shape
        """Take the cookie away; every browser that had it is signed out.

        Args:
            request: not used: all browsers are signed out.
        """
        return self._operator.sign_out()


class ProxyLogin:
    """Users whom a header of a trusted proxy names.

    Args:
        users: the header, and the addresses of the proxy.
        operators: the ids of those who see everything.
        issuer: the authorization server whose users they are, as it spells itself, where calls come with
            its tokens: the ids that the proxy gives are the subjects of these then. Empty for a gateway
            without ``auth=``.
    """

    def __init__(
        self, users: HeaderUsers, *, operators: Collection[str] = (), issuer: str = ""
    ) -> None:
        self.users_issuer = issuer
        self._users = users
        self._operators = frozenset(operators)
        self._key = Secret.random()

    async def identify(self, request: BrowserRequest) -> ConsoleVisitor | None:
        """The user whom the proxy names.

        Args:
            request: the request of the browser, with the headers of the proxy.
        """
        found = self._users.find(request.address, request.headers)
        if not isinstance(found, User):
            return None
        return ConsoleVisitor(
            name=found.id,
            principal=make_user_principal(found.id, self.users_issuer),
            operator=found.id in self._operators,
            session=f"{self._key.reveal()} {found.id}",
            assurance="authenticated_web",
        )

    def sign_in(self, token: str) -> str | None:  # noqa: ARG002 - ConsoleIdentity's shape
        """Nothing is pasted here.

        Args:
            token: not used.
        """
        return None

    def sign_out(self, request: BrowserRequest | None = None) -> str | None:  # noqa: ARG002 - ConsoleIdentity's shape
        """The proxy keeps the login.

        Args:
            request: not used.
        """
        return None
