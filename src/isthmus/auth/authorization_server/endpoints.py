"""The endpoints of the authorization server, as ASGI callables by exact path."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from isthmus.auth.authorization_server.limits import Limits
from isthmus.auth.authorization_server.locked import RETRY, StoreLocked
from isthmus.auth.authorization_server.lookups import Lookups
from isthmus.auth.authorization_server.metadata import document
from isthmus.auth.authorization_server.requests import (
    Asked,
    Astray,
    Unfit,
    address_of,
    head,
    media_type,
    read_body,
    read_form,
    read_query,
)
from isthmus.auth.extra import missing
from isthmus.transports.http.bearer import Asgi
from isthmus.transports.http.reply import JSON, Receive, Scope, Send, respond

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.authority import AuthorizationServer
    from isthmus.auth.authorization_server.clients import Known
    from isthmus.auth.authorization_server.oauth_core import Answer, Found, OAuthCore
    from isthmus.auth.authorization_server.records import Records

__all__ = ["Endpoints", "serving"]

T = TypeVar("T")
Handler = Callable[[Scope, Receive], Awaitable["Answer"]]
Pairs = list[tuple[bytes, bytes]]

REGISTRATION = 16 * 1024
"""Bytes of a registration."""

NO_STORE: Pairs = [(b"cache-control", b"no-store"), (b"pragma", b"no-cache")]
OPEN: Pairs = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"WWW-Authenticate, DPoP-Nonce, Retry-After"),
]
PREFLIGHT: Pairs = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-headers", b"Authorization, Content-Type, DPoP, MCP-Protocol-Version"),
    (b"access-control-max-age", b"7200"),
]
PLAIN: Pairs = [
    JSON,
    (b"x-content-type-options", b"nosniff"),
]

BUSY = "the server is busy: try again in a few seconds"
BROKEN = "the server could not answer; its log says why"


def serving(work: "Callable[[OAuthCore], T]", *given: Any) -> "Callable[[Records], T]":
    """Work with an :class:`OAuthCore`, as work for the store: one request, one transaction.

    Args:
        work: what to do with it.
        given: what it is made of: settings, keyring, what was found, and what was approved.

    Raises:
        UsageError: Authlib is not installed.
    """
    try:
        from isthmus.auth.authorization_server.oauth_core import OAuthCore
    except ImportError as error:
        raise missing("An authorization server", error) from error
    settings, keyring, found, *approval = given

    def run(records: "Records") -> T:
        return work(OAuthCore(settings, keyring, records, found, *approval))

    return run


class Endpoints:
    """Serves the requests to an authorization server that are no pages.

    Args:
        authority: what it is.
        lookups: finds what a request needs.
        limits: how often one may ask.

    Attributes:
        routes: the endpoints by path.
    """

    def __init__(self, authority: "AuthorizationServer", lookups: Lookups, limits: Limits) -> None:
        self._authority = authority
        self._settings = authority.settings
        self._lookups = lookups
        self._limits = limits
        self._metadata = msgspec.json.encode(document(self._settings))
        self.routes: Mapping[str, Asgi] = self._routes()

    def _routes(self) -> dict[str, Asgi]:
        settings = self._settings
        token, authorize = self._api(self._token), self.authorize
        found: dict[str, Asgi] = {
            settings.path("authorize"): authorize,
            settings.path("token"): token,
            settings.path("revoke"): self._api(self._revoke),
            settings.path("introspect"): self._api(self._introspect, shared=False),
            settings.path("jwks"): self._api(self._jwks, "GET"),
            **dict.fromkeys(settings.metadata_paths(), self._api(self._describe, "GET")),
        }
        register = self._api(self._register)
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
        front = self._authority.front
        try:
            check_method(scope, {"GET"})
            self._limits.address(address_of(scope))
            found = await self._authority.ask(read_query(scope))
        except Astray as astray:
            await front.astray(astray.back, send)
        except Unfit as unfit:
            await front.problem(unfit.status, f"{unfit.text[0].upper()}{unfit.text[1:]}.", send)
        except StoreLocked:
            await front.problem(503, f"{BUSY[0].upper()}{BUSY[1:]}.", send)
        except Exception:
            logging.getLogger("isthmus.auth").exception("an authorization request failed")
            await front.problem(500, f"{BROKEN[0].upper()}{BROKEN[1:]}.", send)
        else:
            if isinstance(found, str):
                headers = [(b"location", found.encode("ascii", "ignore")), *NO_STORE]
                await respond(send, 302, [*headers, (b"referrer-policy", b"no-referrer")])
            else:
                await front.begin(found, scope, receive, send)

    # For programs

    def _api(self, handler: Handler, method: str = "POST", *, shared: bool = True) -> Asgi:
        """An endpoint that programs call; ``shared`` ones may be called by pages of any origin."""
        cross = OPEN if shared else []

        async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] == "OPTIONS" and shared:
                allow = (b"access-control-allow-methods", f"{method}, OPTIONS".encode())
                await respond(send, 204, [*PREFLIGHT, allow])
                return
            try:
                check_method(scope, {method, "HEAD"} if method == "GET" else {method})
                done = await handler(scope, receive)
            except Unfit as unfit:
                await respond(send, unfit.status, [*refusal(unfit), *cross], problem(unfit))
            except StoreLocked:
                busy = Unfit(BUSY, status=503, error="temporarily_unavailable")
                again = (b"retry-after", str(RETRY).encode())
                await respond(send, 503, [*PLAIN, *NO_STORE, again, *cross], problem(busy))
            except Exception:
                logging.getLogger("isthmus.auth").exception("an OAuth request failed")
                broken = Unfit(BROKEN, status=500, error="server_error")
                await respond(send, 500, [*PLAIN, *NO_STORE, *cross], problem(broken))
            else:
                headers = [(k.lower().encode(), v.encode("latin-1")) for k, v in done.headers]
                known = {name for name, _ in headers}
                usual = PLAIN if b"cache-control" in known else [*PLAIN, *NO_STORE]
                headers += [pair for pair in usual if pair[0] not in known]
                headers += cross
                await respond(send, done.status, headers, done.body, verb=scope["method"])

        return endpoint

    async def _served(self, work: "Callable[[OAuthCore], T]", found: "Found") -> T:
        """Have Authlib serve a request in a transaction of its own.

        Raises:
            Unfit: what came with the request does not fit into any answer.
        """
        try:
            return await self._authority.serve(work, found)
        except ValueError:
            # Authlib raises it for an error text with characters that none may have: they came
            # with the request, and are not sent back.
            raise Unfit("the request has characters that it must not have") from None

    async def _client_form(self, scope: Scope, receive: Receive) -> "tuple[Asked, Found]":
        """A form that a client sends, and what it takes to serve it."""
        asked = await self._form(scope, receive)
        return asked, await self._lookups.find(asked)

    async def _form(self, scope: Scope, receive: Receive) -> Asked:
        self._limits.address(address_of(scope))
        return await read_form(scope, receive)

    async def _token(self, scope: Scope, receive: Receive) -> "Answer":
        asked = await self._form(scope, receive)
        if asked.get("grant_type") is None:  # RFC 6749 5.2: a required parameter is missing
            raise Unfit("grant_type is missing")
        client_id = asked.basic.client_id if asked.basic else asked.get("client_id")
        if client_id is None:
            return await self._tokens(asked)
        self._limits.client(client_id)
        status = None
        try:
            done = await self._tokens(asked)
            status = done.status
        finally:
            if status != 200:
                self._limits.not_of(client_id)
        return done

    async def _tokens(self, asked: Asked) -> "Answer":
        found = await self._lookups.find(asked)

        def work(core: "OAuthCore") -> "Answer":
            from isthmus.auth.authorization_server.oauth_core import FormRequest

            done: Answer = core.create_token_response(
                FormRequest(asked, self._settings.url("token"))
            )
            if self._settings.dpop_nonce and asked.proof is not None:
                from isthmus.auth.authorization_server.minting import nonces

                now = core.records.now
                done.headers.append(("DPoP-Nonce", nonces(core).current(now)))
            return done

        return await self._served(work, found)

    async def _revoke(self, scope: Scope, receive: Receive) -> "Answer":
        done = await self._endpoint("revocation", "revoke", scope, receive)
        self._authority.forget()
        await self._authority.sweep()
        return done

    async def _introspect(self, scope: Scope, receive: Receive) -> "Answer":
        return await self._endpoint("introspection", "introspect", scope, receive)

    async def _endpoint(self, name: str, place: str, scope: Scope, receive: Receive) -> "Answer":
        asked, found = await self._client_form(scope, receive)

        def work(core: "OAuthCore") -> "tuple[Answer, bool]":
            from isthmus.auth.authorization_server.oauth_core import FormRequest

            request = FormRequest(asked, self._settings.url(place))
            done: Answer = core.create_endpoint_response(name, request)
            client: Known | None = request.client
            return done, client is not None and client.client.introspects

        done, for_others = await self._served(work, found)
        if for_others:
            # It asks about whatever anybody sent it: that must not use up what it may ask.
            self._limits.not_from(address_of(scope))
        return done

    async def _register(self, scope: Scope, receive: Receive) -> "Answer":
        self._limits.registration(address_of(scope))
        if scope.get("query_string"):
            raise Unfit("a registration is the body of the request, not part of its URL")
        if media_type(head(scope, b"content-type")) != "application/json":
            raise Unfit("the body has to be application/json")
        body = await read_body(scope, receive, REGISTRATION)
        try:
            data = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Unfit("the body is no JSON", error="invalid_client_metadata") from None
        if not isinstance(data, dict):
            raise Unfit("the body is no JSON object", error="invalid_client_metadata")

        def work(core: "OAuthCore") -> "Answer":
            from isthmus.auth.authorization_server.oauth_core import JsonAsked
            from isthmus.auth.authorization_server.registration import Register

            core.register_endpoint(Register)
            done: Answer = core.create_endpoint_response(
                "client_registration", JsonAsked(data, self._settings.url("register"))
            )
            return done

        return await self._served(work, self._nothing())

    async def _jwks(self, scope: Scope, receive: Receive) -> "Answer":  # noqa: ARG002 - every handler gets them
        keys = await self._authority.public_keys()
        return self._document(msgspec.json.encode({"keys": keys}))

    async def _describe(self, scope: Scope, receive: Receive) -> "Answer":  # noqa: ARG002 - every handler gets them
        return self._document(self._metadata)

    def _document(self, body: bytes) -> "Answer":
        from isthmus.auth.authorization_server.oauth_core import Answer

        headers = [("Cache-Control", "public, max-age=300"), ("Content-Type", "application/json")]
        done = Answer(200, None, headers)
        done.body = body
        return done

    def _nothing(self) -> "Found":
        from isthmus.auth.authorization_server.oauth_core import Found

        return Found()


def check_method(scope: Scope, methods: set[str]) -> None:
    """See that a request is of a method that is served.

    Raises:
        Unfit: it is not.
    """
    if scope["method"] not in methods:
        raise Unfit(f"this address takes {' and '.join(sorted(methods))}", status=405)


def refusal(unfit: Unfit) -> Pairs:
    """The headers of a refusal."""
    headers = [*PLAIN, *NO_STORE]
    if unfit.retry_after is not None:
        headers.append((b"retry-after", str(unfit.retry_after).encode()))
    if unfit.status == 401:
        headers.append((b"www-authenticate", b'Basic realm="oauth"'))
    return headers


def problem(unfit: Unfit) -> bytes:
    """The body of a refusal."""
    return msgspec.json.encode({"error": unfit.error, "error_description": unfit.text})
