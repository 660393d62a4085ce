"""User login: its settings, and the steps that an application is told of and asked about."""

import time
from collections.abc import Awaitable, Callable, Collection
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from isthmus.auth.client.discovery import STRICT_COMPAT, Compat
from isthmus.auth.client.redirect import Loopback, OpenBrowser, Redirect, open_default_browser
from isthmus.auth.client.registration import ClientProfile
from isthmus.auth.client.store.records import TokenStore
from isthmus.auth.net.network import Network, NetworkPolicy, desktop

if TYPE_CHECKING:
    import ssl


class Status(msgspec.Struct, frozen=True):
    """A step on the way to tokens.

    Attributes:
        step: ``"discovering"``, ``"registering"``, ``"authorizing"``, ``"exchanging"``,
            ``"refreshing"`` or ``"ready"``.
        url: the MCP server it is for.
        page: where the user is sent to, while they are; else empty.
    """

    step: str
    url: str
    page: str = ""


# Told of each step; what it returns does not matter.
OnStatus: TypeAlias = Callable[[Status], object]


class ScopeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Scopes that a user is about to be asked for.

    Attributes:
        url: the MCP server.
        issuer: the authorization server.
        scopes: what is to be asked for.
        granted: what was granted before.
        operation: for what, as in ``"tools/call delete"``; empty for the first login.
    """

    url: str
    issuer: str
    scopes: frozenset[str]
    granted: frozenset[str]
    operation: str = ""


# Says whether a user is asked for scopes: True, False, or only some of them.
ApproveScopes: TypeAlias = Callable[
    [ScopeRequest], "bool | Collection[str] | Awaitable[bool | Collection[str]]"
]


class UserLogin:
    """The settings of a user's login, for all MCP servers that one program reaches; see :class:`OAuth`.

    Args:
        profile: what the program says of itself.
        authorization_server: the issuer, where the MCP server does not name it.
        scopes: what to ask for at first; None asks for what the server says.
        approve_scopes: may refuse scopes before the user is asked for them.
        redirect: where users come back to.
        open_browser: shows the user a URL.
        store: keeps tokens and registrations; None takes the default one when it is needed.
        account: tells several accounts of the user at one server apart.
        dpop: ``"auto"``, ``"off"`` or ``"require"``.
        policy: where discovery may go; None allows the origins named here, and public addresses.
        tls: how the certificates of authorization servers are checked.
        compat: what is put up with for servers that do not keep to the specification.
        on_status: told of each step.

    Attributes:
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        profile: ClientProfile,
        *,
        authorization_server: str | None = None,
        scopes: frozenset[str] | None = None,
        approve_scopes: ApproveScopes | None = None,
        redirect: Redirect | None = None,
        open_browser: OpenBrowser = open_default_browser,
        store: TokenStore | None = None,
        account: str = "",
        dpop: str = "auto",
        policy: NetworkPolicy | None = None,
        tls: "ssl.SSLContext | None" = None,
        compat: Compat | None = None,
        on_status: OnStatus | None = None,
    ) -> None:
        self.profile = profile
        self.authorization_server = authorization_server
        self.scopes = scopes
        self.redirect: Redirect = redirect or Loopback()
        self.open_browser = open_browser
        self.account = account
        self.dpop = dpop
        self.compat = compat or STRICT_COMPAT
        self.policy = policy
        self.clock: Callable[[], float] = time.time
        self._approve_scopes = approve_scopes
        self._store = store
        self._tls = tls
        self._on_status = on_status

    @property
    def store(self) -> TokenStore:
        """The store of tokens and registrations."""
        if self._store is None:
            from isthmus.auth.client.store.keyring_store import default_store

            self._store = default_store()
        return self._store

    def make_network(self, url: str) -> Network:
        """The way to the servers that an MCP server names."""
        policy = self.policy
        if policy is None:
            named = [self.authorization_server] if self.authorization_server else []
            policy = desktop(url, *named, *self.profile.clients)
        return Network(policy, tls=self._tls)

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.clock()

    def report(self, step: str, url: str, page: str = "") -> None:
        """Tell the application which step is taken."""
        if self._on_status is not None:
            self._on_status(Status(step, url, page))

    async def approve_scopes(self, request: ScopeRequest) -> frozenset[str]:
        """The scopes that the application lets the user be asked for; nothing where it does not."""
        if self._approve_scopes is None:
            return request.scopes
        answer: Any = self._approve_scopes(request)
        if isawaitable(answer):
            answer = await answer
        if isinstance(answer, bool):
            return request.scopes if answer else frozenset()
        return request.scopes & frozenset(answer)
