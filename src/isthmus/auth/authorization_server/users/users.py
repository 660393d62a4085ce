"""Users of the embedded authorization server, and the backends that know them.

Three backends come with isthmus: a file of passwords
(:class:`~isthmus.auth.authorization_server.users.passwords.PasswordUsers`), a proxy in front that has
logged people in already (:class:`~isthmus.auth.authorization_server.users.users.HeaderUsers`), and
another authorization server (:class:`~isthmus.auth.authorization_server.upstream.login.UpstreamLogin`).
"""

import ipaddress
import logging
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from isthmus.errors import UsageError
from isthmus.transports.http.authorizer import AsgiApp

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.storage.records import PendingAuthorization

MAX_USER_ID_CHARS = 255


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user, who can approve that a client acts for them.

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
        """The name that pages show."""
        return self.name or self.id


class LoginRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A login: the browser that is to be logged in, as far as a backend may know it.

    Attributes:
        pending: the authorization request that it came with.
        address: the address of the TCP peer, a proxy's where there is one; empty if there is none.
        headers: the request's headers, names in lower case; repeated ones joined by ``", "``.
        binding: what this one browser is recognised by, and can be kept. A backend that sends the
            browser elsewhere and sees it come back finds the same again by
            :func:`~isthmus.auth.authorization_server.pages.browser.browser_binding`.
    """

    pending: "PendingAuthorization"
    address: str = ""
    headers: Mapping[str, str] = {}
    binding: str = ""


class LoginPage(msgspec.Struct, frozen=True, kw_only=True):
    """Page with the form for a name and a password.

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
    """Redirect of the browser to another site, where its user logs in.

    Attributes:
        url: where to.
        cookies: values of ``Set-Cookie`` that go with it.
    """

    url: str
    cookies: tuple[str, ...] = ()


class LoginRefused(msgspec.Struct, frozen=True, kw_only=True):
    """Refusal of a login, whatever the user types.

    Attributes:
        text: a sentence for the page, which tells no secrets.
        status: of the HTTP response.
    """

    text: str
    status: int = 403


LoginOutcome: TypeAlias = LoginPage | LoginRedirect | User | LoginRefused


class UserBackend(Protocol):
    """Users of an authorization server. One that is disabled loses their tokens at the next check."""

    async def begin(self, request: LoginRequest) -> LoginOutcome:
        """Begin a login; the result is a :class:`User` where the user is known already.

        Args:
            request: the login of a browser.
        """
        ...

    async def submit(
        self, request: LoginRequest, form: Mapping[str, str]
    ) -> User | LoginPage | LoginRefused:
        """Judge the form that came from the login page.

        Args:
            request: where it came from.
            form: its fields; ``account`` and ``password`` on our page.
        """
        ...

    async def get(self, user_id: str) -> User | None:
        """The user ``user_id`` as they are now; None if there is none.

        Args:
            user_id: the id of the user.
        """
        ...


class ApprovingServer(Protocol):
    """An authorization server, as far as a :class:`Delegated` backend needs it.

    Attributes:
        services: the providers behind it, for logins at one of them.
    """

    @property
    def services(self) -> Any:
        """The providers behind it."""
        ...

    async def approve(
        self,
        pending: "PendingAuthorization",
        user: User,
        *,
        scopes: Collection[str] | None = None,
        upstream_id: str | None = None,
        ends_at: float | None = None,
    ) -> str:
        """Give the client a code; see ``AuthorizationServer.approve``."""
        ...

    async def deny(self, pending: "PendingAuthorization", error: str = "access_denied") -> str:
        """Tell the client that it gets nothing; see ``AuthorizationServer.deny``."""
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

    def attach(self, authority: ApprovingServer) -> Mapping[str, AsgiApp]:
        """Pages of its own by exact path, such as where users come back to.

        Args:
            authority: the server it works for; called once, when that is made.
        """
        ...


def fold_account(account: str) -> str:
    """An account name as it is compared, and as its tries are counted, however it was typed."""
    return unicodedata.normalize("NFKC", account).strip().casefold()


NOT_THE_PROXY_REFUSAL = LoginRefused(
    text="This server lets people in through its proxy only. Open it under its public address."
)
NO_USER_REFUSAL = LoginRefused(
    text="The proxy of this server did not say who you are. Sign in there first."
)


class HeaderUsers:
    """Users whom a header of a trusted proxy names, such as ``X-Forwarded-User``.

    Anybody can send a header. So it counts only from the addresses of the proxy, as the TCP
    connection has them, and everybody else is refused. The proxy must drop the header where it
    comes from outside, and must be the only way to this server.

    An ASGI server that puts ``X-Forwarded-For`` in the place of the peer's address takes away what
    this looks at: then everybody is refused, or whoever may send that header can be anybody. Server.run
    and ``isthmus`` do not; uvicorn does, without ``--no-proxy-headers``, for programs on its machine.

    Args:
        header: its name.
        trusted_proxies: addresses and networks, such as ``"10.0.0.7"`` or ``"10.0.0.0/24"``.
        name_header: the header with the name to show, if the proxy sends one.

    Raises:
        UsageError: one of the addresses is none, or they are everybody's.
    """

    def __init__(
        self, header: str, *, trusted_proxies: Sequence[str], name_header: str | None = None
    ) -> None:
        self._header = header.lower()
        self._name_header = name_header.lower() if name_header else None
        self._trusted = [_parse_proxy_network(text) for text in trusted_proxies]
        if not self._trusted:
            raise UsageError("HeaderUsers needs trusted_proxies: the addresses of your proxy")
        self._warned = False

    async def begin(self, request: LoginRequest) -> User | LoginRefused:
        """The user that the proxy names in ``request``; read for every page, as the proxy keeps the login.

        Args:
            request: the login that begins, with the headers of the proxy.
        """
        return self.find(request.address, request.headers)

    def find(self, address: str, headers: Mapping[str, str]) -> User | LoginRefused:
        """The user whom the headers of a request name.

        Args:
            address: of the TCP peer.
            headers: names in lower case; repeated ones joined by ``", "``.
        """
        if not self._trusts(address):
            self._warn_once(address)
            return NOT_THE_PROXY_REFUSAL
        user_id = headers.get(self._header, "").strip()
        # a comma: the header is there twice, and one of the two is not the proxy's
        if (
            not user_id
            or "," in user_id
            or len(user_id) > MAX_USER_ID_CHARS
            or not user_id.isprintable()
        ):
            return NO_USER_REFUSAL
        name = headers.get(self._name_header, "") if self._name_header else ""
        return User(id=user_id, name=name.strip()[:MAX_USER_ID_CHARS])

    async def submit(
        self,
        request: LoginRequest,
        form: Mapping[str, str],  # noqa: ARG002 - there is no form of ours to send
    ) -> User | LoginRefused:
        """The user that the proxy names, whatever the form has.

        Args:
            request: the login of a browser.
            form: the fields that were sent.
        """
        return await self.begin(request)

    async def get(self, user_id: str) -> User | None:
        """The user ``user_id``, or None; the proxy alone knows whether it is still one.

        Args:
            user_id: the id of the user.
        """
        return User(id=user_id)

    def _trusts(self, address: str) -> bool:
        try:
            peer = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped is not None:
            peer = peer.ipv4_mapped
        return any(peer in network for network in self._trusted)

    def _warn_once(self, address: str) -> None:
        if self._warned:
            return
        self._warned = True
        logging.getLogger("isthmus.auth").warning(
            "a login from %r was refused: HeaderUsers believes %s only from trusted_proxies %s. "
            "If that is not the proxy's address, the ASGI server may have replaced it by what "
            "X-Forwarded-For says (uvicorn: --no-proxy-headers). This is said once.",
            address,
            self._header,
            ", ".join(map(str, self._trusted)),
        )


def _parse_proxy_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise UsageError(f"trusted_proxies: {text!r} is no address or network") from error
    if network.prefixlen == 0:
        raise UsageError(f"trusted_proxies: {text} covers every address: name those of the proxy")
    return network
