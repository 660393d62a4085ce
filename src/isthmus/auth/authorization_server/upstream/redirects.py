"""Redirects to a provider and back: state, PKCE verifier and nonce, good once and in one browser.

A browser is sent away when somebody has agreed on a page of ours, and never before: the provider may
approve without asking, so that to be sent there is as good as an approval.
"""

import logging
from typing import Literal, TypeAlias

import msgspec

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.pages.browser import (
    BrowserCookies,
    BrowserRequest,
    browser_binding,
)
from isthmus.auth.authorization_server.storage.records import Records
from isthmus.auth.authorization_server.storage.store import AuthStore
from isthmus.auth.authorization_server.upstream.api import UpstreamDenied, read_error_code
from isthmus.auth.authorization_server.upstream.provider import Provider
from isthmus.auth.net.urls import split_url
from isthmus.auth.tokens.secret import Secret, s256, sha256_digest

REDIRECT_LIFE_S = 600

STATE_TICKET = "upstream-state"

LOGIN_LOST_TEXT = (
    "This sign-in was finished before, or it took too long, or it was begun in another browser. "
    "Nothing was done. If you still want to connect, start again in the program that sent you here."
)

LoginPurpose: TypeAlias = Literal["login", "know", "connect"]


class ProviderPaths:
    """URLs of the pages for providers.

    Args:
        issuer: the authorization server's URL.

    Attributes:
        connect: the path of the page where an account is connected.
    """

    def __init__(self, issuer: str) -> None:
        parts = split_url(issuer)
        self._issuer = issuer.rstrip("/")
        self._origin = parts.origin
        self.connect = f"{parts.path.rstrip('/')}/auth/connect"

    def redirect_uri(self, provider: Provider) -> str:
        """The redirect URI of a provider; to be registered there.

        Each has one of its own, so that no provider's answer passes for another's.
        """
        return f"{self._issuer}/auth/upstream/{provider.name}"

    def connect_url(self, ticket: str) -> str:
        """The URL of the page where an account is connected."""
        return f"{self._origin}{self.connect}?ticket={ticket}"


class ProviderRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that was sent to a provider: what is remembered while it is away.

    Attributes:
        provider: where it went.
        purpose: ``login`` for an authorization request that was approved, ``know`` to find out
            who is at the browser, ``connect`` for an account that somebody wants to use.
        about: the authorization request, or the ticket of the connection.
        user_id: whose connection it is to be.
        verifier: of the code challenge that the provider got.
        nonce: what the ID token has to hold.
        binding: what the browser is recognised by.
        redirect_uri: where it comes back to.
    """

    provider: str
    purpose: LoginPurpose
    about: str
    user_id: str = ""
    verifier: str
    nonce: str
    binding: str
    redirect_uri: str

    def __repr__(self) -> str:
        return f"ProviderRequest(provider={self.provider!r}, purpose={self.purpose!r})"


class ProviderResponse(msgspec.Struct, frozen=True):
    """A browser that came back, and what it brought.

    Attributes:
        request: what it left for.
        code: the provider's code; None where it brought none that can be used.
        error: the code of the provider's error, where it is one that is known.
        cookies: values of ``Set-Cookie`` that go with the answer.
    """

    request: ProviderRequest
    code: Secret | None
    error: str
    cookies: tuple[str, ...]


class ProviderRedirects:
    """Sends browsers away and takes them back.

    Args:
        store: remembers them meanwhile.
        cookies: how our cookies are set.
    """

    def __init__(self, store: AuthStore, cookies: BrowserCookies) -> None:
        self._store = store
        self._cookies = cookies

    async def begin(
        self,
        provider: Provider,
        redirect_uri: str,
        purpose: LoginPurpose,
        about: str,
        user_id: str = "",
    ) -> tuple[str, tuple[str, ...]]:
        """Begin a login at a provider: the URL for the browser, and the cookies that go with it.

        Raises:
            UpstreamUnavailable: the provider does not say where.
        """
        # spec 2025-11-25 basic/authorization#confused-deputy-problem: state is made, kept and bound
        # to the browser after approval only
        state, verifier, nonce, browser = (Secret.random() for _ in range(4))
        url = await provider.login_url(
            state=state, challenge=s256(verifier), nonce=nonce, redirect_uri=redirect_uri
        )
        login = ProviderRequest(
            provider=provider.name,
            purpose=purpose,
            about=about,
            user_id=user_id,
            verifier=verifier.reveal(),
            nonce=nonce.reveal(),
            binding=browser_binding(browser),
            redirect_uri=redirect_uri,
        )

        def keep(records: Records) -> None:
            packed = msgspec.json.encode(login)
            records.put_ticket(STATE_TICKET, state.reveal(), packed, records.now + REDIRECT_LIFE_S)

        await self._store.write(keep)
        return url, (self._cookies.set(self._name(state), browser, REDIRECT_LIFE_S),)

    async def end(self, provider: Provider, request: BrowserRequest) -> ProviderResponse:
        """Take a browser back.

        The order is: our state, once; the same browser; the provider that we sent it to; and only
        then what it brought.

        Raises:
            RequestRefused: there is no such login, or it is another browser's.
        """
        state = Secret(request.fields.get("state", ""))
        packed = await self._store.write(
            lambda records: records.take_ticket(STATE_TICKET, state.reveal()) if state else None
        )
        if packed is None:
            raise RequestRefused(LOGIN_LOST_TEXT, status=410)
        login = msgspec.json.decode(packed, type=ProviderRequest)
        name = self._name(state)
        binding = browser_binding(self._cookies.opaque(request, name))
        if Secret(login.binding) != binding or login.provider != provider.name:
            raise RequestRefused(LOGIN_LOST_TEXT, status=410)
        cookies = (self._cookies.clear(name),)
        if not await is_from_provider(provider, request):
            return ProviderResponse(login, None, "", cookies)
        error, code = request.fields.get("error"), request.fields.get("code")
        if error is not None or not code:
            return ProviderResponse(login, None, read_error_code({"error": error}), cookies)
        return ProviderResponse(login, Secret(code), "", cookies)

    def _name(self, state: Secret) -> str:
        """The name of a login's cookie: two logins in one browser do not disturb each other."""
        return self._cookies.named(f"isthmus-upstream-{sha256_digest(state).hex()[:16]}")


def log_denial(provider: Provider, denial: UpstreamDenied) -> None:
    """Log why somebody was not let in; it holds none of the provider's words."""
    logging.getLogger("isthmus.auth").warning("the provider %s: %s", provider.name, denial)


async def is_from_provider(provider: Provider, request: BrowserRequest) -> bool:
    """Whether an answer is from the provider that was asked (RFC 9207).

    What is not says nothing, not even an error.
    """
    # spec 2026-07-28 basic/authorization/security-considerations#mix-up-attacks
    endpoints = await provider.endpoints()
    iss = request.fields.get("iss")
    if (iss is None and not endpoints.says_issuer) or (iss is not None and iss == endpoints.issuer):
        return True
    logging.getLogger("isthmus.auth").warning(
        "the provider %s: an answer did not name %s as its issuer, and was thrown away",
        provider.name,
        endpoints.issuer or "the issuer (see Endpoints.issuer)",
    )
    return False
