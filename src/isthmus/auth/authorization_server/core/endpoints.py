"""The endpoints of the authorization server as ASGI callables: authorize, token, revoke, metadata and more."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from isthmus.auth.authorization_server.core.authorization import AuthorizationRequests
from isthmus.auth.authorization_server.core.lookups import LookupResult, Lookups
from isthmus.auth.authorization_server.core.requests import (
    Limits,
    OAuthParameters,
    OAuthResponse,
    RequestRefused,
    TooManyRequests,
    UntrustedRedirect,
    body_type,
    header_values,
    peer_address,
    read_body,
    read_form,
    read_query,
)
from isthmus.auth.authorization_server.core.settings import AuthorizationSettings
from isthmus.auth.authorization_server.core.tokens import Keyring
from isthmus.auth.authorization_server.core.transactions import OAuthTransactions
from isthmus.auth.authorization_server.storage.records import PendingAuthorization
from isthmus.auth.authorization_server.storage.store import (
    LOCKED_RETRY_S,
    AuthStore,
    StoreLocked,
)
from isthmus.auth.authorization_server.users.login_limits import Allowance, count_registration
from isthmus.auth.protocol import (
    AUTH_METHODS,
    AUTHORIZATION_CODE_GRANT,
    CLIENT_CREDENTIALS_GRANT,
    CONFIDENTIAL_METHODS,
    JWT_BEARER_GRANT,
    REFRESH_GRANT,
)
from isthmus.auth.tokens.dpop import DPOP_ALGORITHMS
from isthmus.auth.tokens.jose import DEFAULT_ALGORITHMS
from isthmus.transports.http.authorizer import AsgiApp
from isthmus.transports.http.reply import JSON_TYPE, Receive, Scope, Send, send_response

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.core.oauth_core import OAuthCore
    from isthmus.auth.authorization_server.storage.clients import AuthlibClient

HOUR_S = 3600.0

T = TypeVar("T")
EndpointHandler = Callable[[Scope, Receive], Awaitable[OAuthResponse]]
HeaderPairs = list[tuple[bytes, bytes]]

MAX_REGISTRATION_BYTES = 16 * 1024

NO_STORE_HEADERS: HeaderPairs = [(b"cache-control", b"no-store"), (b"pragma", b"no-cache")]
CORS_HEADERS: HeaderPairs = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"WWW-Authenticate, DPoP-Nonce, Retry-After"),
]
PREFLIGHT_HEADERS: HeaderPairs = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-headers", b"Authorization, Content-Type, DPoP, MCP-Protocol-Version"),
    (b"access-control-max-age", b"7200"),
]
JSON_HEADERS: HeaderPairs = [
    JSON_TYPE,
    (b"x-content-type-options", b"nosniff"),
]

ID_JAG_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag"

BUSY_MESSAGE = "the server is busy: try again in a few seconds"
BROKEN_MESSAGE = "the server could not answer; its log says why"


class Front(Protocol):
    """The pages that browsers see of an authorization server.

    Attributes:
        routes: its pages by exact path.
    """

    routes: Mapping[str, AsgiApp]

    async def begin(
        self, pending: PendingAuthorization, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a validated request to ``/authorize``: log in, ask, or go on at once.

        Args:
            pending: what was asked; it is in the store.
            scope: the ASGI scope of the request; its body has been read, its query judged.
            receive: the ASGI callable.
            send: the ASGI callable.
        """
        ...

    async def problem(self, status: int, text: str, send: Send) -> None:
        """Show a page that says what was wrong; the browser is sent nowhere.

        Args:
            status: of the HTTP response.
            text: a sentence without anything that came with the request.
            send: the ASGI callable.
        """
        ...

    async def astray(self, back: str, send: Send) -> None:
        """Say that a request failed, and leave it to people whether they go on to its client.

        Args:
            back: a URL of the client's, which nobody vouches for.
            send: the ASGI callable.
        """
        ...


class OAuthEndpoints:
    """Serves the requests to an authorization server that are no pages.

    Args:
        settings: what requests are judged by.
        store: where everything is kept.
        keyring: the keys that tokens are signed with.
        lookups: finds what a request needs.
        requests: judges requests for authorization.
        transactions: has Authlib serve the others.
        limits: how often one may ask.
        front: what browsers see.
        after_revocation: is called when a token was revoked.

    Attributes:
        routes: the endpoints by path.
    """

    def __init__(
        self,
        settings: AuthorizationSettings,
        store: AuthStore,
        keyring: Keyring,
        *,
        lookups: Lookups,
        requests: AuthorizationRequests,
        transactions: OAuthTransactions,
        limits: Limits,
        front: Front,
        after_revocation: Callable[[], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._store = store
        self._keyring = keyring
        self._lookups = lookups
        self._requests = requests
        self._transactions = transactions
        self._limits = limits
        self._front = front
        self._after_revocation = after_revocation
        self._metadata = msgspec.json.encode(make_metadata(settings))
        self.routes: Mapping[str, AsgiApp] = self._routes()

    def _routes(self) -> dict[str, AsgiApp]:
        settings = self._settings
        token, authorize = self._make_endpoint(self._token), self.authorize
        found: dict[str, AsgiApp] = {
            settings.path("authorize"): authorize,
            settings.path("token"): token,
            settings.path("revoke"): self._make_endpoint(self._revoke),
            settings.path("introspect"): self._make_endpoint(self._introspect, shared=False),
            settings.path("jwks"): self._make_endpoint(self._jwks, "GET"),
            **dict.fromkeys(settings.metadata_paths(), self._make_endpoint(self._describe, "GET")),
        }
        register = self._make_endpoint(self._register)
        if settings.registration.dcr.enabled:
            found[settings.path("register")] = register
        if settings.legacy_paths:
            # spec 2025-03-26 basic/authorization#fallbacks-for-servers-without-metadata-discovery:
            # at the root, by the same handlers; a redirected POST would lose its body
            for path in ("/authorize", "/authorize/"):
                found.setdefault(path, authorize)
            for path in ("/token", "/token/"):
                found.setdefault(path, token)
            for path in ("/register", "/register/") if settings.registration.dcr.enabled else ():
                found.setdefault(path, register)
        return found

    # For browsers

    async def authorize(self, scope: Scope, receive: Receive, send: Send) -> None:
        """``/authorize``: the one endpoint that a browser opens, and so without CORS."""
        front = self._front
        try:
            check_method(scope, {"GET"})
            self._limits.address(peer_address(scope))
            found = await self._requests.ask(read_query(scope))
        except UntrustedRedirect as astray:
            await front.astray(astray.back, send)
        except RequestRefused as refusal:
            await front.problem(
                refusal.status, f"{refusal.text[0].upper()}{refusal.text[1:]}.", send
            )
        except StoreLocked:
            await front.problem(503, f"{BUSY_MESSAGE[0].upper()}{BUSY_MESSAGE[1:]}.", send)
        except Exception:
            logging.getLogger("isthmus.auth").exception("an authorization request failed")
            await front.problem(500, f"{BROKEN_MESSAGE[0].upper()}{BROKEN_MESSAGE[1:]}.", send)
        else:
            if isinstance(found, str):
                headers = [(b"location", found.encode("ascii", "ignore")), *NO_STORE_HEADERS]
                await send_response(send, 302, [*headers, (b"referrer-policy", b"no-referrer")])
            else:
                await front.begin(found, scope, receive, send)

    # For programs

    def _make_endpoint(
        self, handler: EndpointHandler, method: str = "POST", *, shared: bool = True
    ) -> AsgiApp:
        """An endpoint that programs call; ``shared`` ones may be called by pages of any origin."""
        cross = CORS_HEADERS if shared else []

        async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] == "OPTIONS" and shared:
                allow = (b"access-control-allow-methods", f"{method}, OPTIONS".encode())
                await send_response(send, 204, [*PREFLIGHT_HEADERS, allow])
                return
            try:
                check_method(scope, {method, "HEAD"} if method == "GET" else {method})
                done = await handler(scope, receive)
            except RequestRefused as refusal:
                await send_response(
                    send, refusal.status, [*refusal_headers(refusal), *cross], refusal_body(refusal)
                )
            except StoreLocked:
                busy = RequestRefused(BUSY_MESSAGE, status=503, error="temporarily_unavailable")
                again = (b"retry-after", str(LOCKED_RETRY_S).encode())
                await send_response(
                    send, 503, [*JSON_HEADERS, *NO_STORE_HEADERS, again, *cross], refusal_body(busy)
                )
            except Exception:
                logging.getLogger("isthmus.auth").exception("an OAuth request failed")
                broken = RequestRefused(BROKEN_MESSAGE, status=500, error="server_error")
                await send_response(
                    send, 500, [*JSON_HEADERS, *NO_STORE_HEADERS, *cross], refusal_body(broken)
                )
            else:
                headers = [(k.lower().encode(), v.encode("latin-1")) for k, v in done.headers]
                known = {name for name, _ in headers}
                usual = (
                    JSON_HEADERS
                    if b"cache-control" in known
                    else [*JSON_HEADERS, *NO_STORE_HEADERS]
                )
                headers += [pair for pair in usual if pair[0] not in known]
                headers += cross
                await send_response(send, done.status, headers, done.body, verb=scope["method"])

        return endpoint

    async def _serve(self, work: "Callable[[OAuthCore], T]", found: LookupResult) -> T:
        """Have Authlib serve a request in a transaction of its own.

        Raises:
            RequestRefused: what came with the request does not fit into any answer.
        """
        try:
            return await self._transactions.write(work, found)
        except ValueError:
            # Authlib raises it for an error text with characters that none may have: they came
            # with the request, and are not sent back.
            raise RequestRefused("the request has characters that it must not have") from None

    async def _read_client_form(
        self, scope: Scope, receive: Receive
    ) -> tuple[OAuthParameters, LookupResult]:
        """A form that a client sends, and what it takes to serve it."""
        parameters = await self._read_form(scope, receive)
        return parameters, await self._lookups.find(parameters)

    async def _read_form(self, scope: Scope, receive: Receive) -> OAuthParameters:
        self._limits.address(peer_address(scope))
        return await read_form(scope, receive)

    async def _token(self, scope: Scope, receive: Receive) -> OAuthResponse:
        parameters = await self._read_form(scope, receive)
        if parameters.get("grant_type") is None:  # RFC 6749 5.2: a required parameter is missing
            raise RequestRefused("grant_type is missing")
        client_id = parameters.basic.client_id if parameters.basic else parameters.get("client_id")
        if client_id is None:
            return await self._issue_tokens(parameters)
        self._limits.client(client_id)
        status = None
        try:
            done = await self._issue_tokens(parameters)
            status = done.status
        finally:
            if status != 200:
                self._limits.not_of(client_id)
        return done

    async def _issue_tokens(self, parameters: OAuthParameters) -> OAuthResponse:
        found = await self._lookups.find(parameters)

        def work(core: "OAuthCore") -> OAuthResponse:
            from isthmus.auth.authorization_server.core.oauth_core import FormRequest, make_nonces

            done: OAuthResponse = core.create_token_response(
                FormRequest(parameters, self._settings.url("token"))
            )
            if self._settings.dpop_nonce and parameters.proof is not None:
                now = core.records.now
                done.headers.append(("DPoP-Nonce", make_nonces(core).current(now)))
            return done

        return await self._serve(work, found)

    async def _revoke(self, scope: Scope, receive: Receive) -> OAuthResponse:
        done = await self._serve_endpoint("revocation", "revoke", scope, receive)
        await self._after_revocation()
        return done

    async def _introspect(self, scope: Scope, receive: Receive) -> OAuthResponse:
        return await self._serve_endpoint("introspection", "introspect", scope, receive)

    async def _serve_endpoint(
        self, name: str, place: str, scope: Scope, receive: Receive
    ) -> OAuthResponse:
        parameters, found = await self._read_client_form(scope, receive)

        def work(core: "OAuthCore") -> "tuple[OAuthResponse, bool]":
            from isthmus.auth.authorization_server.core.oauth_core import FormRequest

            request = FormRequest(parameters, self._settings.url(place))
            done: OAuthResponse = core.create_endpoint_response(name, request)
            client: AuthlibClient | None = request.client
            return done, client is not None and client.client.introspects

        done, for_others = await self._serve(work, found)
        if for_others:
            # It asks about whatever anybody sent it: that must not use up what it may ask.
            self._limits.not_from(peer_address(scope))
        return done

    async def _register(self, scope: Scope, receive: Receive) -> OAuthResponse:
        await self._count_registration(peer_address(scope))
        if scope.get("query_string"):
            raise RequestRefused("a registration is the body of the request, not part of its URL")
        if body_type(header_values(scope, b"content-type")) != "application/json":
            raise RequestRefused("the body has to be application/json")
        body = await read_body(scope, receive, MAX_REGISTRATION_BYTES)
        try:
            data = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise RequestRefused("the body is no JSON", error="invalid_client_metadata") from None
        if not isinstance(data, dict):
            raise RequestRefused("the body is no JSON object", error="invalid_client_metadata")

        def work(core: "OAuthCore") -> OAuthResponse:
            from isthmus.auth.authorization_server.core.oauth_core import JsonRegistration
            from isthmus.auth.authorization_server.core.registration import RegistrationEndpoint

            core.register_endpoint(RegistrationEndpoint)
            done: OAuthResponse = core.create_endpoint_response(
                "client_registration", JsonRegistration(data, self._settings.url("register"))
            )
            return done

        return await self._serve(work, LookupResult())

    async def _count_registration(self, address: str) -> None:
        """Count a registration here, and with those of other processes that share the store.

        Raises:
            TooManyRequests: too many came from this address.
        """
        self._limits.registration(address)
        allowance = Allowance(self._limits.per_ip_hour, HOUR_S)
        wait = await self._store.write(
            lambda records: count_registration(records, allowance, address)
        )
        if wait:
            raise TooManyRequests(wait)

    async def _jwks(self, scope: Scope, receive: Receive) -> OAuthResponse:  # noqa: ARG002 - every handler gets them
        keys = await self._keyring.published(self._store)
        return self._make_document(msgspec.json.encode({"keys": keys}))

    async def _describe(self, scope: Scope, receive: Receive) -> OAuthResponse:  # noqa: ARG002 - every handler gets them
        return self._make_document(self._metadata)

    def _make_document(self, body: bytes) -> OAuthResponse:
        headers = [("Cache-Control", "public, max-age=300"), ("Content-Type", "application/json")]
        done = OAuthResponse(200, None, headers)
        done.body = body
        return done


def check_method(scope: Scope, methods: set[str]) -> None:
    """See that a request is of a method that is served.

    Raises:
        RequestRefused: it is not.
    """
    if scope["method"] not in methods:
        raise RequestRefused(f"this address takes {' and '.join(sorted(methods))}", status=405)


def refusal_headers(refusal: RequestRefused) -> HeaderPairs:
    """The headers of a refusal."""
    headers = [*JSON_HEADERS, *NO_STORE_HEADERS]
    if refusal.retry_after is not None:
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b'Basic realm="oauth"'))
    return headers


def refusal_body(refusal: RequestRefused) -> bytes:
    """The body of a refusal."""
    return msgspec.json.encode({"error": refusal.error, "error_description": refusal.text})


def make_metadata(settings: AuthorizationSettings) -> dict[str, Any]:
    """The metadata."""
    # spec 2025-06-18 basic/authorization#overview: RFC 8414
    grants = [AUTHORIZATION_CODE_GRANT, REFRESH_GRANT, CLIENT_CREDENTIALS_GRANT]
    if settings.trusted_idps or settings.workloads:
        grants.append(JWT_BEARER_GRANT)
    found: dict[str, Any] = {
        "issuer": settings.issuer,
        "authorization_endpoint": settings.url("authorize"),
        "token_endpoint": settings.url("token"),
        "revocation_endpoint": settings.url("revoke"),
        "introspection_endpoint": settings.url("introspect"),
        "jwks_uri": settings.url("jwks"),
        "scopes_supported": list(settings.scopes),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": grants,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": settings.registration.cimd.enabled,
        "dpop_signing_alg_values_supported": list(DPOP_ALGORITHMS),
        "protected_resources": list(settings.resources),
    }
    for endpoint, methods in (
        ("token", AUTH_METHODS),
        ("revocation", AUTH_METHODS),
        ("introspection", CONFIDENTIAL_METHODS),
    ):
        found[f"{endpoint}_endpoint_auth_methods_supported"] = list(methods)
        found[f"{endpoint}_endpoint_auth_signing_alg_values_supported"] = list(DEFAULT_ALGORITHMS)
    if settings.registration.dcr.enabled:
        found["registration_endpoint"] = settings.url("register")
    if settings.trusted_idps:
        # spec 2026-07-28 basic/authorization#mcp-authorization-extensions
        found["authorization_grant_profiles_supported"] = [ID_JAG_PROFILE]
    return found
