"""Who the users of the embedded authorization server are, and how one of them is recognised.

Three backends come with isthmus: a file of passwords
(:class:`~isthmus.auth.authorization_server.passwords.PasswordUsers`), a proxy in front that has
logged people in already (:class:`~isthmus.auth.authorization_server.proxy_users.HeaderUsers`), and
another authorization server (:class:`~isthmus.auth.upstream.login.UpstreamLogin`).
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import msgspec

from isthmus.transports.http.bearer import Asgi

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.authority import AuthorizationServer
    from isthmus.auth.authorization_server.pending import Pending

__all__ = [
    "Delegated",
    "LoginPage",
    "LoginRedirect",
    "LoginRefused",
    "LoginRequest",
    "Outcome",
    "User",
    "UserBackend",
    "folded",
]  # fmt: skip


class User(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who can approve that a client acts for them.

    Attributes:
        id: what tokens call them (``sub``): never reassigned, at most 255 characters.
        name: what pages call them; the id where it is empty.
        disabled: may not log in, and what they granted is honoured no longer.
    """

    id: str
    name: str = ""
    disabled: bool = False

    @property
    def label(self) -> str:
        """How pages name them."""
        return self.name or self.id


class LoginRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend may know of the browser that is to be logged in.

    Attributes:
        pending: the authorization request that it came with.
        address: the address of the TCP peer, a proxy's where there is one; empty if there is none.
        headers: the request's headers, names in lower case; repeated ones joined by ``", "``.
        binding: what this one browser is recognised by, and can be kept. A backend that sends the
            browser elsewhere and sees it come back finds the same again by
            :func:`~isthmus.auth.authorization_server.browser.binding_of`.
    """

    pending: "Pending"
    address: str = ""
    headers: Mapping[str, str] = {}
    binding: str = ""


class LoginPage(msgspec.Struct, frozen=True, kw_only=True):
    """Show the form for a name and a password.

    Attributes:
        notice: what went wrong, if something did; the same for unknown names and wrong passwords.
        account: the name to begin with.
        status: of the HTTP response.
        retry_after: seconds until another try has a chance, where tries are limited.
    """

    notice: str = ""
    account: str = ""
    status: int = 200
    retry_after: int | None = None


class LoginRedirect(msgspec.Struct, frozen=True, kw_only=True):
    """Send the browser elsewhere, where its user is logged in.

    Attributes:
        url: where to.
        cookies: values of ``Set-Cookie`` that go with it.
    """

    url: str
    cookies: tuple[str, ...] = ()


class LoginRefused(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody can be logged in by this request, whatever is typed.

    Attributes:
        text: a sentence for the page, which tells no secrets.
        status: of the HTTP response.
    """

    text: str
    status: int = 403


Outcome: TypeAlias = LoginPage | LoginRedirect | User | LoginRefused


class UserBackend(Protocol):
    """Knows the users. One that is disabled loses their tokens when they are next checked."""

    async def begin(self, request: LoginRequest) -> Outcome:
        """What a browser gets that is not logged in; a :class:`User` where that is known already."""
        ...

    async def submit(
        self, request: LoginRequest, form: Mapping[str, str]
    ) -> User | LoginPage | LoginRefused:
        """Judge the form that somebody sent from the login page.

        Args:
            request: where it came from.
            form: its fields; ``account`` and ``password`` on our page.
        """
        ...

    async def get(self, user_id: str) -> User | None:
        """The user of that id as they are now; None if there is none."""
        ...


@runtime_checkable
class Delegated(Protocol):
    """A :class:`UserBackend` whose users are logged in elsewhere, after our own consent page.

    Consent comes first here, because the other place may approve without asking: then a link
    would be enough to have a client act for whoever clicks it.
    :meth:`UserBackend.begin` is called once somebody approved, and answers a :class:`LoginRedirect`.

    Attributes:
        provider: what pages call the other place.
        provider_scopes: what is then asked of it, which the consent page names.
    """

    provider: str
    provider_scopes: Sequence[str]

    def attach(self, authority: "AuthorizationServer") -> Mapping[str, Asgi]:
        """Pages of its own by exact path, such as where users come back to.

        Args:
            authority: the server it works for; called once, when that is made.
        """
        ...


def folded(account: str) -> str:
    """An account name as it is compared, and as its tries are counted, however it was typed."""
    return unicodedata.normalize("NFKC", account).strip().casefold()
