"""Login of the console at an authorization server: the code flow with PKCE, for several users.

The access token that a login gives is looked at once, to learn whose it is, and kept nowhere. The browser
gets a cookie that means nothing to anybody else.
"""

import asyncio
import re
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from msgspec import Struct

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.pages.browser import (
    BrowserCookies,
    BrowserRequest,
    browser_binding,
)
from isthmus.auth.cache import BoundedDict
from isthmus.auth.client.grants.login import UserLogin
from isthmus.auth.client.registration import ClientProfile, StaticClient
from isthmus.auth.client.store.records import MemoryTokenStore, TokenStore
from isthmus.auth.resource_server.jwt import JWTVerifier
from isthmus.auth.resource_server.verifier import Presented, TokenVerifier
from isthmus.auth.tokens.secret import Secret, sha256_digest
from isthmus.console.login import ConsoleVisitor, LoginStep
from isthmus.core.principal import Principal
from isthmus.errors import AuthError
from isthmus.gateway.principals import make_principal
from isthmus.host.accounts.web_login import LoginProspect, PendingLogin, WebLogin, WebRedirect

if TYPE_CHECKING:
    from isthmus.auth.net.network import NetworkPolicy

CLIENT_NAME = "isthmus console"
SESSION_LIFE_S = 8 * 3600.0
LOGIN_LIFE_S = 600.0  # for the way to the issuer and back
PROSPECT_LIFE_S = 600.0  # after which the issuer's metadata are read again
MAX_SESSIONS = 10_000
MAX_PENDING_LOGINS = 10_000
TARGET = re.compile(r"/[A-Za-z0-9._~%!$&'()*+,;=:@-]*")

BEGIN_AGAIN_TEXT = "This browser did not begin the login, or it took too long. Sign in again."
NOT_YOURS_TEXT = "The login was not accepted: {reason} Sign in again."
NO_USER_TEXT = "The token of this login belongs to no user of this console."
NO_ISSUER_TEXT = "Sign-in is not possible now: {reason}"


class BegunLogin(Struct, frozen=True):
    """A login whose user is at the issuer.

    Attributes:
        pending: what was sent along.
        target: the page that they come to afterwards.
        until: when it is too late.
    """

    pending: PendingLogin
    target: str
    until: float


class ConsoleSession(Struct, frozen=True):
    """A browser that has signed in, until a time."""

    visitor: ConsoleVisitor
    until: float


class AuthorizationLogin:
    """Users of an authorization server, who sign in there (OAuth 2.1, code flow with PKCE).

    Example::

        login = AuthorizationLogin("https://gateway.example", "https://login.example",
                                   operators=["user:ada@login.example"])
        console = Console(host.view, "https://gateway.example", identity=login)

    Args:
        address: of the console, as browsers reach it.
        issuer: the authorization server, as it spells itself.
        operators: the principals who see everything, such as ``user:ada@login.example``.
        operator_scope: whoever's token has this scope sees everything, too; empty for nobody.
        resource: what tokens are asked for; by default the console's own URL.
        client: the console as it is registered at the issuer; by default it registers itself.
        verifier: says whose a token is; by default the issuer's keys do, which it publishes.
        prefix: the console's path.
        life: seconds that a login lasts.
        policy: where requests to the issuer may go.
        store: keeps the registration; by default this process does.
        now: says the seconds since the epoch.
    """

    def __init__(
        self,
        address: str,
        issuer: str,
        *,
        operators: Collection[str] = (),
        operator_scope: str = "",
        resource: str = "",
        client: StaticClient | None = None,
        verifier: TokenVerifier | None = None,
        prefix: str = "/console",
        life: float = SESSION_LIFE_S,
        policy: "NetworkPolicy | None" = None,
        store: TokenStore | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        address = address.rstrip("/")
        self.issuer = self.users_issuer = issuer
        self._operators = frozenset(operators)
        self._operator_scope = operator_scope
        self._resource = resource or f"{address}{prefix}"
        self._verifier: TokenVerifier = verifier or JWTVerifier(issuer, network=policy)
        self._prefix = prefix
        self._life = life
        self._now = now
        self._cookies = BrowserCookies(address)
        self._session_cookie = self._cookies.named("isthmus-console")
        self._binding_cookie = self._cookies.named("isthmus-console-login")
        self._login = UserLogin(
            ClientProfile(name=CLIENT_NAME, clients={issuer: client} if client else {}),
            authorization_server=issuer,
            redirect=WebRedirect(f"{address}{prefix}/login/back"),
            store=store or MemoryTokenStore(),
            policy=policy,
        )
        self._flow = WebLogin("the console", self._resource, "", self._login)
        self._begun: BoundedDict[bytes, BegunLogin] = BoundedDict(MAX_PENDING_LOGINS)
        self._sessions: BoundedDict[bytes, ConsoleSession] = BoundedDict(MAX_SESSIONS)
        self._prospect: tuple[float, LoginProspect] | None = None
        self._asking = asyncio.Lock()

    # As ConsoleIdentity has it

    async def identify(self, request: BrowserRequest) -> ConsoleVisitor | None:
        """Whoever has signed in at this browser, as long as that holds.

        Args:
            request: the request of the browser.
        """
        value = self._cookies.opaque(request, self._session_cookie)
        found = None if value is None else self._sessions.get(sha256_digest(value))
        return found.visitor if found is not None and self._now() < found.until else None

    def sign_in(self, token: str) -> str | None:  # noqa: ARG002 - ConsoleIdentity's shape
        """Nothing is pasted here: users sign in at the issuer.

        Args:
            token: not used.
        """
        return None

    def sign_out(self, request: BrowserRequest | None = None) -> str:
        """End the login of this browser here; the one at the issuer is the issuer's.

        Args:
            request: the request of the browser; without one, only the cookie ends.
        """
        value = request and self._cookies.opaque(request, self._session_cookie)
        if value:
            self._sessions.pop(sha256_digest(value), None)
        return self._cookies.clear(self._session_cookie)

    # The way to the issuer and back

    async def begin(self, request: BrowserRequest) -> LoginStep:
        """Send a browser to the issuer; its state is bound to a cookie of this browser.

        Args:
            request: the request of the browser.

        Raises:
            RequestRefused: the issuer cannot be asked.
        """
        binding = Secret.random()
        try:
            async with self._asking:
                prospect = await self._find_prospect()
                url, pending = await self._flow.begin(prospect, browser_binding(binding))
        except AuthError as error:
            raise RequestRefused(NO_ISSUER_TEXT.format(reason=error), status=503) from error
        target = check_target(request.fields.get("next", ""), self._prefix)
        until = self._now() + LOGIN_LIFE_S
        self._begun[sha256_digest(pending.state)] = BegunLogin(pending, target, until)
        # Lax: the way back is from the issuer's site
        cookie = self._cookies.set(self._binding_cookie, binding, int(LOGIN_LIFE_S))
        return LoginStep(url, (cookie,))

    async def _find_prospect(self) -> LoginProspect:
        """The issuer and what it is asked for; metadata are read once in a while, whoever begins."""
        known, now = self._prospect, self._now()
        if known is None or now - known[0] >= PROSPECT_LIFE_S:
            found = await self._flow.prepare()
            scopes = frozenset({self._operator_scope} - {""})
            known = (now, LoginProspect(discovered=found.discovered, scopes=scopes))
            self._prospect = known
        return known[1]

    async def finish(self, request: BrowserRequest) -> LoginStep:
        """Sign a browser in that comes back from the issuer.

        Args:
            request: the request with which the browser comes back from the issuer.

        Raises:
            RequestRefused: this browser has begun no such login, or the answer is not to be believed.
        """
        begun = self._take_begun(request)
        try:
            # spec 2026-07-28 basic/authorization#authorization-response-validation: iss, then the rest
            tokens = await self._flow.finish(begun.pending, request.fields)
            await self._login.store.delete(tokens.key)
            presented = Presented(tokens.kind.lower(), tokens.access)
            principal = await self._verifier.verify(presented, self._resource)
        except AuthError as error:
            raise RequestRefused(NOT_YOURS_TEXT.format(reason=error), status=403) from error
        if principal is None or not is_user(principal, self.issuer):
            raise RequestRefused(NO_USER_TEXT, status=403)
        self.sign_out(request)  # whoever was signed in here before is not any more
        session = Secret.random()  # a new one each time: none that somebody put there is taken up
        digest = sha256_digest(session)
        visitor = self._make_visitor(principal, digest.hex())
        self._sessions[digest] = ConsoleSession(visitor, self._now() + self._life)
        cookies = (
            self._cookies.set(self._session_cookie, session, int(self._life)),
            self._cookies.clear(self._binding_cookie),
        )
        return LoginStep(begun.target, cookies)

    def _take_begun(self, request: BrowserRequest) -> BegunLogin:
        """The login of a state, which is taken once, by the browser that has begun it."""
        key = sha256_digest(Secret(request.fields.get("state", "")))
        begun = self._begun.get(key)
        browser = browser_binding(self._cookies.opaque(request, self._binding_cookie))
        # A foreign browser does not even end the login.
        if begun is None or not browser or begun.pending.browser != browser:
            raise RequestRefused(BEGIN_AGAIN_TEXT, status=403)
        del self._begun[key]
        if self._now() >= begun.until:
            raise RequestRefused(BEGIN_AGAIN_TEXT, status=403)
        return begun

    def _make_visitor(self, principal: Principal, session: str) -> ConsoleVisitor:
        name = make_principal(principal)
        by_scope = bool(self._operator_scope) and self._operator_scope in principal.scopes
        return ConsoleVisitor(
            name=principal.subject,
            principal=name,
            operator=by_scope or name in self._operators,
            session=session,
            assurance="authenticated_web",
        )


def is_user(principal: Principal, issuer: str) -> bool:
    """Whether a token is of a user of an issuer, and not of a program that acts for itself."""
    return principal.issuer == issuer and principal.subject not in {"", principal.client_id}


def check_target(path: str, prefix: str) -> str:
    """The page that a login leads to: one of the console, or its first page."""
    segments = path.removeprefix(prefix)
    inside = path.startswith(f"{prefix}/") and all(
        TARGET.fullmatch(f"/{part}") and part.strip(".") for part in segments.split("/")[1:]
    )
    return path if inside else f"{prefix}/"
