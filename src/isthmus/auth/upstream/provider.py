"""A service behind the server that has an authorization server of its own: who it is, what to ask."""

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from isthmus.auth.client_identity import Identity, authenticated, method_of
from isthmus.auth.flights import Flights
from isthmus.auth.foreign import lifetime, members, said
from isthmus.auth.jwks import Jwks
from isthmus.auth.network import Network, NetworkFailed, NetworkPolicy, NetworkRefused, network_of
from isthmus.auth.numbers import check_number
from isthmus.auth.secret import Secret
from isthmus.auth.upstream.endpoints import (
    Endpoints,
    check_secure,
    read_metadata,
    urls_of,
)
from isthmus.auth.upstream.faults import ENDED, UpstreamDenied, UpstreamUnavailable, code_of
from isthmus.auth.upstream.identity import check_same
from isthmus.auth.upstream.tokens import UpstreamTokens
from isthmus.auth.urls import is_same_resource, metadata_urls, origin, safe_browser_url, with_query
from isthmus.errors import AuthError, UsageError

if TYPE_CHECKING:
    from isthmus.auth.jose import PrivateKey
    from isthmus.auth.network import Fetched
    from isthmus.auth.upstream.api import Upstream

__all__ = ["Provider", "UserId"]

UserId: TypeAlias = Callable[["Upstream"], Awaitable[Any]]
"""Finds out who a provider's user is, by its API."""

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
TIMEOUT = 30.0
"""Seconds for any request to a provider."""

METADATA_LIFE = 3600.0
"""Seconds for which what a provider says of itself is believed."""


class Provider:
    """A service that users have accounts with, such as GitHub or a company's Keycloak.

    Example::

        Provider("github", endpoints=Endpoints(
            authorize="https://github.com/login/oauth/authorize",
            token="https://github.com/login/oauth/access_token"),
            client_id="Iv1.8a61f9b3a7aba766", client_secret=os.environ["GITHUB_SECRET"],
            scopes=["repo"], api=["https://api.github.com"])

    Args:
        name: what ``ctx.upstream`` calls it: lower-case letters, digits, ``-`` and ``_``.
        issuer: an OpenID provider, or another authorization server that publishes metadata.
        endpoints: the same by hand, instead of ``issuer``.
        client_id: what we are called there.
        client_secret: how we authenticate there, or
        key: the private key with which we do.
        scopes: what we ask of its users.
        api: the origins of its API, without a path: its tokens go there and nowhere else. A path
            in a request is meant at the first of them.
        title: what pages call it; the name where it is not given.
        user_id: finds the user by the API, where there are neither ID tokens nor a user info
            endpoint: gets an :class:`~isthmus.auth.upstream.api.Upstream`, returns the id.
        parameters: further ones of authorization requests, such as ``{"access_type": "offline"}``.
        check_interval: seconds after which the provider is asked again whether a token is still
            good; None trusts it until it expires.
        session: the most seconds that a login there counts here; None as long as it can be renewed.
        network: makes the requests, or the policy for them; by default one that goes to the URLs given here, and beyond
            them to public addresses only.
        clock: seconds since the epoch.

    Raises:
        UsageError: what is given does not go together; says what.
    """

    def __init__(
        self,
        name: str,
        *,
        client_id: str,
        issuer: str | None = None,
        endpoints: Endpoints | None = None,
        client_secret: Secret | str | None = None,
        key: "PrivateKey | None" = None,
        scopes: Sequence[str] = (),
        api: Sequence[str] = (),
        title: str = "",
        user_id: UserId | None = None,
        parameters: Mapping[str, str] | None = None,
        check_interval: float | None = None,
        session: float | None = None,
        network: Network | NetworkPolicy | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not NAME.fullmatch(name):
            raise UsageError(f"{name!r} is no name of a provider: use a-z, 0-9, - and _")
        if (issuer is None) == (endpoints is None):
            raise UsageError(f"the provider {name!r} takes either issuer= or endpoints=")
        if isinstance(scopes, str) or isinstance(api, str):
            raise UsageError(f"the provider {name!r}: scopes= and api= are lists")
        for limit, value in (("check_interval", check_interval), ("session", session)):
            if value is not None:
                check_number(limit, value)
        self.name = name
        self.title = title or name
        self.scopes = tuple(scopes)
        try:
            self.api = tuple(map(read_origin, api))
        except ValueError as flaw:
            raise UsageError(f"the provider {name!r}: api= has origins: {flaw}") from None
        self.user_id = user_id
        self.check_interval = check_interval
        self.session = session
        self.clock = clock
        self.identity = Identity(
            client_id=client_id,
            secret=None if client_secret is None else Secret(client_secret),
            key=key,
        )
        self._issuer = issuer
        self._endpoints = endpoints
        self._known_at = 0.0
        self._parameters = dict(parameters or {})
        self._keys: tuple[str, Jwks] | None = None
        self._learning: Flights[Endpoints] = Flights()
        given = [url for url in (issuer, *urls_of(endpoints), *api) if url]
        check_secure(name, given)
        try:
            self._places = [] if issuer is None else metadata_urls(issuer)
        except ValueError as error:
            raise UsageError(f"the provider {name!r}: {error}") from None
        origins = frozenset(map(origin, given))
        self.network = network_of(
            network or NetworkPolicy(origins=origins), keep=True, total=TIMEOUT
        )

    def __repr__(self) -> str:
        return f"Provider({self.name!r})"

    @property
    def issuer(self) -> str:
        """Who vouches for its users: its issuer, or where they log in."""
        if self._issuer is not None or self._endpoints is None:
            return self._issuer or ""
        return self._endpoints.issuer or origin(self._endpoints.authorize)

    async def endpoints(self) -> Endpoints:
        """Where it takes what, from its metadata or as it was given.

        Raises:
            UpstreamUnavailable: the metadata cannot be had, or are somebody else's.
        """
        fresh = self._issuer is None or self.clock() - self._known_at < METADATA_LIFE
        if self._endpoints is not None and fresh:
            return self._endpoints
        return await self._learning.run("metadata", self._learn)

    async def _learn(self) -> Endpoints:
        issuer = self._issuer or ""
        for place in self._places:
            try:
                document = await self.network.json(place)
            except NetworkRefused as error:
                raise self.unavailable(error) from None
            except NetworkFailed:
                continue
            self._endpoints = read_metadata(document, issuer, self.name)
            self._known_at = self.clock()
            return self._endpoints
        if self._endpoints is not None:  # what was true an hour ago is better than nothing
            return self._endpoints
        raise UpstreamUnavailable(f"{self.title} does not answer: its metadata cannot be read")

    async def login_url(
        self, *, state: Secret, challenge: str, nonce: Secret, redirect_uri: str
    ) -> str:
        """Where a browser goes for the user to log in and agree.

        Raises:
            UpstreamUnavailable: the provider does not say where.
        """
        endpoints = await self.endpoints()
        fields = {
            **self._parameters,
            "response_type": "code",
            "client_id": self.identity.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(self.scopes),
            "state": state.reveal(),
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        if "openid" in self.scopes:
            fields["nonce"] = nonce.reveal()
        if not self.scopes:
            del fields["scope"]
        return safe_browser_url(with_query(endpoints.authorize, fields))

    async def exchange(
        self, code: Secret, verifier: Secret, redirect_uri: str
    ) -> tuple[UpstreamTokens, Mapping[str, Any]]:
        """Tokens for a code, and the whole answer, whose ID token says whose they are.

        Raises:
            UpstreamDenied: the provider says no.
            UpstreamUnavailable: it gives no usable answer.
        """
        fields = {
            "grant_type": "authorization_code",
            "code": code.reveal(),
            "redirect_uri": redirect_uri,
            "code_verifier": verifier.reveal(),
        }
        return await self._granted(fields, None)

    async def renew(self, tokens: UpstreamTokens) -> UpstreamTokens:
        """The next tokens after some, by their refresh token.

        Raises:
            UpstreamDenied: the user has to log in again.
            UpstreamUnavailable: the provider gives no usable answer.
        """
        if tokens.refresh is None:
            raise UpstreamDenied(f"what {self.title} gave has expired and cannot be renewed")
        fields = {"grant_type": "refresh_token", "refresh_token": tokens.refresh.reveal()}
        renewed, told = await self._granted(fields, tokens)
        check_same(self, tokens, told)
        return renewed

    async def revoke(self, tokens: UpstreamTokens) -> None:
        """Take tokens back there (RFC 7009), as far as the provider offers that.

        Raises:
            UpstreamUnavailable: the provider gives no usable answer.
        """
        endpoints = await self.endpoints()
        if endpoints.revoke is None:
            return
        # The refresh token first: most providers take everything with it.
        held = (("refresh_token", tokens.refresh), ("access_token", tokens.access))
        for hint, token in held:
            if token is not None:
                fields = {"token": token.reveal(), "token_type_hint": hint}
                await self.post(endpoints.revoke, fields)

    async def introspect(self, tokens: UpstreamTokens) -> bool | None:
        """Whether the provider still honours a token (RFC 7662); None where it cannot be asked.

        Raises:
            UpstreamUnavailable: the provider gives no usable answer.
        """
        endpoints = await self.endpoints()
        if endpoints.introspect is None:
            return None
        answer = await self.post(endpoints.introspect, {"token": tokens.access.reveal()})
        told = members(answer.body)
        if answer.status != 200 or not isinstance(told.get("active"), bool):
            raise UpstreamUnavailable(f"{self.title} does not say whether a token is good")
        return bool(told["active"])

    async def post(self, url: str, fields: Mapping[str, str]) -> "Fetched":
        """Post a form as the client that we are there.

        Raises:
            UpstreamUnavailable: no answer.
        """
        endpoints = await self.endpoints()
        form, headers = authenticated(
            fields, self._identity(endpoints), issuer=self.issuer, methods=endpoints.methods
        )
        try:
            return await self.network.form(url, form, headers)
        except AuthError as error:
            raise self.unavailable(error) from None

    def keys(self, endpoints: Endpoints) -> Jwks:
        """The keys of its ID tokens."""
        url = endpoints.jwks or ""
        if self._keys is None or self._keys[0] != url:
            self._keys = url, Jwks(url, self.network)
        return self._keys[1]

    async def close(self) -> None:
        """Close its connections; safe to call twice."""
        await self.network.close()

    def unavailable(self, error: Exception) -> UpstreamUnavailable:
        """The exception for a provider that gives no usable answer; the reason goes to the log."""
        import logging  # for what rarely happens

        logging.getLogger("isthmus.auth").warning(
            "the provider %s: %s", self.name, said(str(error))
        )
        return UpstreamUnavailable(f"{self.title} cannot be reached at the moment")

    def _identity(self, endpoints: Endpoints) -> Identity:
        # What a provider lists is what it takes; one that lists nothing takes a Basic header.
        method = method_of(self.identity, endpoints.methods)
        return msgspec.structs.replace(self.identity, method=method)

    async def _granted(
        self, fields: Mapping[str, str], before: UpstreamTokens | None
    ) -> tuple[UpstreamTokens, Mapping[str, Any]]:
        answer = await self.post((await self.endpoints()).token, fields)
        told = members(answer.body)
        if answer.status not in (200, 201) or "error" in told:
            raise self._refusal(answer.status, told)
        access, kind = told.get("access_token"), str(told.get("token_type", "bearer"))
        if not isinstance(access, str) or not access or kind.lower() != "bearer":
            raise UpstreamUnavailable(f"{self.title} answered with no token that can be used")
        return self._read(Secret(access), told, before), told

    def _read(
        self, access: Secret, told: Mapping[str, Any], before: UpstreamTokens | None
    ) -> UpstreamTokens:
        now, scope = self.clock(), told.get("scope")
        refresh, life = told.get("refresh_token"), lifetime(told.get("expires_in"))
        given = Secret(refresh) if isinstance(refresh, str) and refresh else None
        if given is None and before is not None:
            given = before.refresh  # RFC 6749 6: the old one stays good
        expires_at = None if life is None else now + life
        return UpstreamTokens(
            provider=self.name,
            issuer=self.issuer,
            subject="" if before is None else before.subject,
            access=access,
            refresh=given,
            expires_at=expires_at,
            ends_at=self._end(told, before, expires_at if given is None else None),
            scopes=tuple(scope.split()) if isinstance(scope, str) else self.scopes,
            checked_at=now,
            name="" if before is None else before.name,
        )

    def _end(
        self, told: Mapping[str, Any], before: UpstreamTokens | None, last: float | None
    ) -> float | None:
        """When the session there is over: the soonest of what anybody says."""
        now, ends = self.clock(), [last] if last is not None else []
        for name in ("refresh_expires_in", "refresh_token_expires_in"):
            life = lifetime(told.get(name))
            ends += [] if life is None else [now + life]
        if before is None:
            ends += [] if self.session is None else [now + self.session]
        elif self.session is not None and before.ends_at is not None:
            ends.append(before.ends_at)  # renewing does not prolong a login
        return min(ends, default=None)

    def _refusal(
        self, status: int, told: Mapping[str, Any]
    ) -> UpstreamDenied | UpstreamUnavailable:
        code = code_of(told)
        # RFC 6749 5.2 answers with 400 or 401, and GitHub with 200. Another status may be that of a
        # proxy, whose access_denied does not end a login.
        if code in ENDED and status in {200, 201, 400, 401}:
            return UpstreamDenied(f"{self.title} says that one has to log in there again", code)
        # Our own credentials may be wrong: then nobody's login is, and asking again would not help.
        return self.unavailable(
            UpstreamUnavailable(
                f"a token request was answered with {status} {code or 'and no code'}"
            )
        )


def read_origin(url: str) -> str:
    """The origin that a URL without a path is.

    Raises:
        ValueError: it has a path, below which no token would be kept, or is no URL of HTTP.
    """
    found = origin(url)
    if not is_same_resource(found, url):
        raise ValueError(f"a path does not keep a token below it: {found}")
    return found
