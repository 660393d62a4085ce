"""UpstreamLogin: users log in at another authorization server, after they have agreed on a page of ours.

The third-party flow: a client comes to our ``/authorize``; our consent page asks about this very
client; only then the browser goes to the provider, with a state and a verifier made at that moment.
What comes back is exchanged by us, the provider's tokens are encrypted under the new grant, and
the client gets a code and tokens of ours, for our resource.

spec 2025-03-26 basic/authorization#third-party-authorization-flow
"""

import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.pages.browser import BrowserRequest, send_redirect
from isthmus.auth.authorization_server.storage.records import PendingAuthorization
from isthmus.auth.authorization_server.upstream.api import UpstreamDenied, UpstreamUnavailable
from isthmus.auth.authorization_server.upstream.identity import identify, make_user
from isthmus.auth.authorization_server.upstream.provider import Provider
from isthmus.auth.authorization_server.upstream.redirects import (
    LOGIN_LOST_TEXT,
    ProviderResponse,
    log_denial,
)
from isthmus.auth.authorization_server.upstream.services import UpstreamServices
from isthmus.auth.authorization_server.upstream.token_rows import UpstreamTokens
from isthmus.auth.authorization_server.users.users import (
    ApprovingServer,
    LoginRedirect,
    LoginRefused,
    LoginRequest,
    User,
)
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthRefused, UsageError
from isthmus.transports.http.authorizer import AsgiApp
from isthmus.transports.http.reply import Send

ELSEWHERE_TEXT = (
    "Users of this server sign in elsewhere. Start again in the program that sent you here."
)

AllowUser = Callable[[User], bool | Awaitable[bool]]

# any other is server_error
FORWARDED_ERRORS = frozenset({"access_denied", "temporarily_unavailable"})


class UpstreamLogin:
    """Login at a provider: its users can log in here.

    Their id is ``ISSUER|SUBJECT``, so that users of two providers are never the same. What they
    granted ends when the provider ends their login, and ``ctx.upstream(NAME)`` reaches its API.

    Example::

        AuthorizationServer(issuer="https://mcp.example", users=UpstreamLogin(
            Provider("keycloak", issuer="https://login.example/realms/staff", client_id="mcp",
                client_secret=os.environ["KEYCLOAK_SECRET"], scopes=["openid", "profile"])), …)

    The provider sends users back to ``ISSUER/auth/upstream/NAME``, which is to be registered there.

    Args:
        provider: where users log in.
        allow: whether a user of the provider is one of ours; everybody is if not given. It is asked
            again while they use what they granted, which ends with the first no.

    Attributes:
        provider: what pages call the provider.
        provider_scopes: what is asked of it.
    """

    def __init__(self, provider: Provider, *, allow: AllowUser | None = None) -> None:
        self.source = provider
        self.provider = provider.title
        self.provider_scopes = provider.scopes
        self._allow = allow
        self._attachment: tuple[ApprovingServer, UpstreamServices] | None = None

    def attach(self, authority: ApprovingServer) -> Mapping[str, AsgiApp]:
        """The page at which users come back to ``authority``; see ``Delegated.attach``.

        Args:
            authority: the authorization server whose users log in this way.

        Raises:
            UsageError: it is attached to another authorization server.
        """
        if self._attachment is not None:
            raise UsageError("an UpstreamLogin serves one AuthorizationServer: make another one")
        services: UpstreamServices = authority.services
        self._attachment = authority, services
        services.add(self.source, self._finish)
        return services.routes

    async def begin(self, request: LoginRequest) -> LoginRedirect | LoginRefused:
        """Send a browser to the provider, once its user has agreed on our consent page.

        Args:
            request: the login that a browser begins.
        """
        _, services = self._require_attachment()
        back = services.paths.redirect_uri(self.source)
        try:
            url, cookies = await services.redirects.begin(
                self.source, back, "login", request.pending.txn
            )
        except UpstreamUnavailable:
            url, cookies = await self._deny(request.pending, "temporarily_unavailable"), ()
        return LoginRedirect(url=url, cookies=cookies)

    async def submit(self, request: LoginRequest, form: Mapping[str, str]) -> LoginRefused:  # noqa: ARG002 - there is no form
        """Refuse a form: users log in at the provider, and not by a form of ours.

        Args:
            request: the login of a browser.
            form: the fields that were sent.
        """
        return LoginRefused(text=ELSEWHERE_TEXT)

    async def get(self, user_id: str) -> User | None:
        """The user ``user_id``, if it is one of this provider's; None otherwise.

        Args:
            user_id: the id that the authorization server knows the user by.
        """
        if not user_id.startswith((f"{self.source.issuer}|", f"{self.source.name}|")):
            return None
        if self._allow is None or self._attachment is None:
            return User(id=user_id)
        _, services = self._attachment
        name = await services.connections.user_name(user_id, self.source.name)
        user = User(id=user_id, name=name)
        # Who is let in no more has what they granted end, too.
        return msgspec.structs.replace(user, disabled=not await self._allows(user))

    async def _allows(self, user: User) -> bool:
        """Whether a user of the provider is one of ours."""
        if self._allow is None:
            return True
        allowed = self._allow(user)
        return bool(await allowed if inspect.isawaitable(allowed) else allowed)

    def _require_attachment(self) -> tuple[ApprovingServer, UpstreamServices]:
        if self._attachment is None:
            raise UsageError("give this UpstreamLogin to an AuthorizationServer: users=…")
        return self._attachment

    async def _finish(self, provider: Provider, request: BrowserRequest, send: Send) -> None:
        """Answer a browser that comes back."""
        _, services = self._require_attachment()
        response = await services.redirects.end(provider, request)
        if response.request.purpose == "know":
            await self._finish_known(response, send)
            return
        about = response.request.about
        pending = await services.sessions.store.read(lambda records: records.pending(about))
        if pending is None:
            raise RequestRefused(LOGIN_LOST_TEXT, status=410)
        await send_redirect(send, await self._make_answer_url(pending, response), response.cookies)

    async def _finish_known(self, response: ProviderResponse, send: Send) -> None:
        """Go on with a user who only had to be known; what the provider gave for that is not kept."""
        _, services = self._require_attachment()
        try:
            user, _ = await self._identify_user(response)
        except UpstreamDenied as denial:
            log_denial(self.source, denial)
            text = f"{self.provider} did not say who you are. Nothing was connected."
            await services.sessions.send_message(
                send, "Not connected", text, status=403, cookies=response.cookies
            )
            return
        await services.connect.go_on(user, response.request.about, response.cookies, send)

    async def _make_answer_url(
        self, pending: PendingAuthorization, response: ProviderResponse
    ) -> str:
        """The URL of the client that the browser goes on to, with a code of ours or an error."""
        if response.code is None:
            # spec 2026-07-28 basic/authorization: nothing of the provider's error is handed on
            code = response.error if response.error in FORWARDED_ERRORS else "server_error"
            return await self._deny(pending, code)
        try:
            user, tokens = await self._identify_user(response)
        except UpstreamDenied as denial:
            log_denial(self.source, denial)
            return await self._deny(pending, "access_denied")
        except UpstreamUnavailable:
            return await self._deny(pending, "temporarily_unavailable")
        return await self._approve(pending, user, tokens)

    async def _approve(
        self, pending: PendingAuthorization, user: User, tokens: UpstreamTokens
    ) -> str:
        """Keep the provider's tokens under a new grant, and give the client a code."""
        (authority, services), id = self._require_attachment(), f"login-{secrets.token_urlsafe(16)}"
        await services.connections.add(id, user.id, tokens, waits=True)
        try:
            return await authority.approve(pending, user, upstream_id=id, ends_at=tokens.ends_at)
        except AuthRefused:
            await services.connections.end(id)
            raise

    async def _identify_user(self, response: ProviderResponse) -> tuple[User, UpstreamTokens]:
        """The user who came back, and the tokens that the provider gave for them.

        Raises:
            UpstreamDenied: nobody that is let in.
            UpstreamUnavailable: the provider gives no usable answer.
        """
        request, provider = response.request, self.source
        if response.code is None:
            raise UpstreamDenied(f"{provider.title} gave no code")
        tokens, members = await provider.exchange(
            response.code, Secret(request.verifier), request.redirect_uri
        )
        subject, name = await identify(provider, tokens, members, Secret(request.nonce))
        user = make_user(provider, subject, name)
        if not await self._allows(user):
            raise UpstreamDenied(f"this user of {provider.title} is not one of ours")
        return user, msgspec.structs.replace(tokens, subject=subject, name=name)

    async def _deny(self, pending: PendingAuthorization, error: str) -> str:
        authority, _ = self._require_attachment()
        return await authority.deny(pending, error)
