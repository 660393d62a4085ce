"""Provider: a service behind the server that has an authorization server of its own, and its endpoints."""

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from isthmus.auth.arguments import check_number
from isthmus.auth.authorization_server.upstream.api import (
    LOGIN_ENDED_CODES,
    Upstream,
    UpstreamDenied,
    UpstreamUnavailable,
    read_error_code,
)
from isthmus.auth.authorization_server.upstream.token_rows import UpstreamTokens
from isthmus.auth.cache import SingleFlight
from isthmus.auth.net.network import (
    Fetched,
    Network,
    NetworkFailed,
    NetworkPolicy,
    NetworkRefused,
    make_network,
)
from isthmus.auth.net.urls import (
    add_query,
    check_browser_url,
    is_same_issuer,
    is_same_resource,
    is_secure,
    metadata_urls,
    origin_of,
)
from isthmus.auth.protocol import (
    ClientIdentity,
    authenticate_form,
    choose_auth_method,
    parse_lifetime,
    parse_members,
    quote_foreign,
)
from isthmus.auth.tokens.jose import InvalidToken, PrivateKey, read_token
from isthmus.auth.tokens.jwks import Jwks
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthError, UsageError

UserId: TypeAlias = Callable[[Upstream], Awaitable[Any]]
"""Finds out who a provider's user is, by its API."""
PROVIDER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
REQUEST_TIMEOUT_S = 30.0
METADATA_LIFE_S = 3600.0


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """Endpoints of a provider, written down by hand where it publishes no metadata.

    Attributes:
        authorize: where users are sent.
        token: where codes and refresh tokens are exchanged.
        userinfo: says who a token's user is (OpenID Connect), or None.
        revoke: takes tokens back (RFC 7009), or None.
        introspect: says whether a token is good (RFC 7662), or None.
        jwks: the keys of its ID tokens, or None.
        issuer: what it says as ``iss``; None where it does not say it.
        says_issuer: it puts ``iss`` into every authorization response (RFC 9207).
        methods: how clients may authenticate; empty where nobody says.
        algorithms: what ID tokens may be signed with; empty for the usual ones.
    """

    authorize: str
    token: str
    userinfo: str | None = None
    revoke: str | None = None
    introspect: str | None = None
    jwks: str | None = None
    issuer: str | None = None
    says_issuer: bool = False
    methods: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()


def read_metadata(document: Any, issuer: str, name: str) -> Endpoints:
    """A provider's metadata, as far as they matter here.

    Raises:
        UpstreamUnavailable: they are somebody else's, or lack something; the provider is not used.
    """
    found = document if isinstance(document, dict) else {}

    def text(member: str) -> str | None:
        value = found.get(member)
        return value if isinstance(value, str) and value else None

    def texts(member: str) -> tuple[str, ...]:
        value = found.get(member)
        return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()

    named, authorize, token = text("issuer"), text("authorization_endpoint"), text("token_endpoint")
    if named is None or not is_same_issuer(named, issuer):
        raise UpstreamUnavailable(f"the metadata of {name} are those of another issuer")
    if authorize is None or token is None:
        raise UpstreamUnavailable(f"the metadata of {name} name no place to log in")
    endpoints = Endpoints(
        authorize=authorize,
        token=token,
        userinfo=text("userinfo_endpoint"),
        revoke=text("revocation_endpoint"),
        introspect=text("introspection_endpoint"),
        jwks=text("jwks_uri"),
        issuer=named,
        says_issuer=found.get("authorization_response_iss_parameter_supported") is True,
        methods=texts("token_endpoint_auth_methods_supported"),
        algorithms=texts("id_token_signing_alg_values_supported"),
    )
    if not all(map(is_secure, list_urls(endpoints))):
        raise UpstreamUnavailable(f"the metadata of {name} have a URL without https")
    return endpoints


def list_urls(endpoints: Endpoints | None) -> list[str]:
    """Every URL among some endpoints."""
    if endpoints is None:
        return []
    e = endpoints
    return [
        url for url in (e.authorize, e.token, e.userinfo, e.revoke, e.introspect, e.jwks) if url
    ]


def check_secure_urls(name: str, urls: Sequence[str]) -> None:
    """See to it that nobody on the way can read tokens.

    Raises:
        UsageError: a URL is neither ``https`` nor on this machine.
    """
    # spec 2026-07-28 basic/authorization/security-considerations#communication-security
    for url in urls:
        if not is_secure(url):
            raise UsageError(f"the provider {name!r} has {url!r}: it takes https, or this machine")


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
            endpoint: gets an :class:`~isthmus.auth.authorization_server.upstream.api.Upstream`, returns the id.
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
        key: PrivateKey | None = None,
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
        if not PROVIDER_NAME.fullmatch(name):
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
        self.identity = ClientIdentity(
            client_id=client_id,
            secret=None if client_secret is None else Secret(client_secret),
            key=key,
        )
        self._issuer = issuer
        self._endpoints = endpoints
        self._known_at = 0.0
        self._parameters = dict(parameters or {})
        self._keys: tuple[str, Jwks] | None = None
        self._learning: SingleFlight[Endpoints] = SingleFlight()
        given = [url for url in (issuer, *list_urls(endpoints), *api) if url]
        check_secure_urls(name, given)
        try:
            self._places = [] if issuer is None else metadata_urls(issuer)
        except ValueError as error:
            raise UsageError(f"the provider {name!r}: {error}") from None
        origins = frozenset(map(origin_of, given))
        self.network = make_network(
            network or NetworkPolicy(origins=origins), keep=True, total=REQUEST_TIMEOUT_S
        )

    def __repr__(self) -> str:
        return f"Provider({self.name!r})"

    @property
    def issuer(self) -> str:
        """The issuer that vouches for its users, or the origin where they log in."""
        if self._issuer is not None or self._endpoints is None:
            return self._issuer or ""
        return self._endpoints.issuer or origin_of(self._endpoints.authorize)

    async def endpoints(self) -> Endpoints:
        """Its endpoints, from its metadata or as they were given.

        Raises:
            UpstreamUnavailable: the metadata cannot be had, or are somebody else's.
        """
        fresh = self._issuer is None or self.clock() - self._known_at < METADATA_LIFE_S
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
        """The URL where the user logs in at the provider and agrees.

        Args:
            state: returns with the browser and ties it to the login (RFC 6749, section 10.12).
            challenge: the PKCE challenge, S256 (RFC 7636).
            nonce: returns in the ID token (OpenID Connect Core, section 3.1.2.1).
            redirect_uri: the page at which the browser comes back.

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
        return check_browser_url(add_query(endpoints.authorize, fields))

    async def exchange(
        self, code: Secret, verifier: Secret, redirect_uri: str
    ) -> tuple[UpstreamTokens, Mapping[str, Any]]:
        """Exchange a code for tokens (RFC 6749, section 4.1.3).

        Args:
            code: the authorization code.
            verifier: the PKCE verifier (RFC 7636).
            redirect_uri: the same as for :meth:`login_url`.

        Returns:
            The tokens, and the whole answer, in which the ID token names the user.

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
        return await self._request_tokens(fields, None)

    async def renew(self, tokens: UpstreamTokens) -> UpstreamTokens:
        """The next tokens after some, by their refresh token.

        Args:
            tokens: the tokens to renew, with a refresh token.

        Raises:
            UpstreamDenied: the user has to log in again.
            UpstreamUnavailable: the provider gives no usable answer.
        """
        if tokens.refresh is None:
            raise UpstreamDenied(f"what {self.title} gave has expired and cannot be renewed")
        fields = {"grant_type": "refresh_token", "refresh_token": tokens.refresh.reveal()}
        renewed, members = await self._request_tokens(fields, tokens)
        check_same_user(self, tokens, members)
        return renewed

    async def revoke(self, tokens: UpstreamTokens) -> None:
        """Take tokens back there (RFC 7009), as far as the provider offers that.

        Args:
            tokens: the tokens to take back.

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
        """Whether the provider still honours ``tokens`` (RFC 7662); None where it cannot be asked.

        Args:
            tokens: the tokens to ask about; the access token is sent.

        Raises:
            UpstreamUnavailable: the provider gives no usable answer.
        """
        endpoints = await self.endpoints()
        if endpoints.introspect is None:
            return None
        answer = await self.post(endpoints.introspect, {"token": tokens.access.reveal()})
        members = parse_members(answer.body)
        if answer.status != 200 or not isinstance(members.get("active"), bool):
            raise UpstreamUnavailable(f"{self.title} does not say whether a token is good")
        return bool(members["active"])

    async def post(self, url: str, fields: Mapping[str, str]) -> Fetched:
        """Post a form, authenticated as the client that we are at the provider.

        Args:
            url: the endpoint.
            fields: the fields of the form.

        Raises:
            UpstreamUnavailable: no answer.
        """
        endpoints = await self.endpoints()
        form, headers = authenticate_form(
            fields, self._identity(endpoints), issuer=self.issuer, methods=endpoints.methods
        )
        try:
            return await self.network.form(url, form, headers)
        except AuthError as error:
            raise self.unavailable(error) from None

    def keys(self, endpoints: Endpoints) -> Jwks:
        """The keys for ID tokens, from the JWKS of ``endpoints``.

        Args:
            endpoints: the endpoints of the provider.
        """
        url = endpoints.jwks or ""
        if self._keys is None or self._keys[0] != url:
            self._keys = url, Jwks(url, self.network)
        return self._keys[1]

    async def close(self) -> None:
        """Close its connections; safe to call twice."""
        await self.network.close()

    def unavailable(self, error: Exception) -> UpstreamUnavailable:
        """The exception for a provider that gives no usable answer; the reason, ``error``, goes to the log.

        Args:
            error: what went wrong; it is logged, and users do not see it.
        """
        import logging  # for what rarely happens

        logging.getLogger("isthmus.auth").warning(
            "the provider %s: %s", self.name, quote_foreign(str(error))
        )
        return UpstreamUnavailable(f"{self.title} cannot be reached at the moment")

    def _identity(self, endpoints: Endpoints) -> ClientIdentity:
        # What a provider lists is what it takes; one that lists nothing takes a Basic header.
        method = choose_auth_method(self.identity, endpoints.methods)
        return msgspec.structs.replace(self.identity, method=method)

    async def _request_tokens(
        self, fields: Mapping[str, str], before: UpstreamTokens | None
    ) -> tuple[UpstreamTokens, Mapping[str, Any]]:
        answer = await self.post((await self.endpoints()).token, fields)
        members = parse_members(answer.body)
        if answer.status not in (200, 201) or "error" in members:
            raise self._make_refusal(answer.status, members)
        access, kind = members.get("access_token"), str(members.get("token_type", "bearer"))
        if not isinstance(access, str) or not access or kind.lower() != "bearer":
            raise UpstreamUnavailable(f"{self.title} answered with no token that can be used")
        return self._read_tokens(Secret(access), members, before), members

    def _read_tokens(
        self, access: Secret, members: Mapping[str, Any], before: UpstreamTokens | None
    ) -> UpstreamTokens:
        now, scope = self.clock(), members.get("scope")
        refresh, life = members.get("refresh_token"), parse_lifetime(members.get("expires_in"))
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
            ends_at=self._find_session_end(members, before, expires_at if given is None else None),
            scopes=tuple(scope.split()) if isinstance(scope, str) else self.scopes,
            checked_at=now,
            name="" if before is None else before.name,
        )

    def _find_session_end(
        self, members: Mapping[str, Any], before: UpstreamTokens | None, last: float | None
    ) -> float | None:
        """When the session there is over: the soonest of what anybody says."""
        now, ends = self.clock(), [last] if last is not None else []
        for name in ("refresh_expires_in", "refresh_token_expires_in"):
            life = parse_lifetime(members.get(name))
            ends += [] if life is None else [now + life]
        if before is None:
            ends += [] if self.session is None else [now + self.session]
        elif self.session is not None and before.ends_at is not None:
            ends.append(before.ends_at)  # renewing does not prolong a login
        return min(ends, default=None)

    def _make_refusal(
        self, status: int, members: Mapping[str, Any]
    ) -> UpstreamDenied | UpstreamUnavailable:
        code = read_error_code(members)
        # RFC 6749 5.2 answers with 400 or 401, and GitHub with 200. Another status may be that of a
        # proxy, whose access_denied does not end a login.
        if code in LOGIN_ENDED_CODES and status in {200, 201, 400, 401}:
            return UpstreamDenied(f"{self.title} wants its user to log in again", code)
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
    found = origin_of(url)
    if not is_same_resource(found, url):
        raise ValueError(f"a path does not keep a token below it: {found}")
    return found


def check_same_user(provider: Provider, before: UpstreamTokens, members: Mapping[str, Any]) -> None:
    """See that renewed tokens are still those of their user (OpenID Connect Core 12.2).

    The provider's own answer holds the ID token, so that its signature proves nothing more.

    Raises:
        UpstreamDenied: they are somebody else's.
    """
    id_token = members.get("id_token")
    if provider.user_id is not None or not before.subject or not isinstance(id_token, str):
        return
    try:
        claims = read_token(Secret(id_token)).claims
    except InvalidToken as error:
        raise refuse_id_token(provider, str(error)) from None
    issuer = claims.get("iss")
    same = isinstance(issuer, str) and is_same_issuer(issuer, before.issuer)
    if not same or claims.get("sub") != before.subject:
        raise refuse_id_token(provider, "it is of another user")


def refuse_id_token(provider: Provider, why: str) -> UpstreamDenied:
    """The exception for an ID token that proves nothing."""
    return UpstreamDenied(f"the ID token of {provider.title} is refused: {why}")
