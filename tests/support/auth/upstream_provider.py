"""A service behind an MCP server: an OAuth or OpenID provider and its API, on this machine.

It does what real ones do: has a consent cookie of its own and asks nobody twice, rotates refresh
tokens, revokes, introspects, and writes down every bearer token it sees. It can also be refusing,
slow, broken, gone or rude.
"""

import asyncio
import base64
import json
import secrets
import time
from typing import Any, Self
from urllib.parse import parse_qsl, unquote_plus, urlencode

from aiohttp import web

from support.auth.authority import s256_challenge

__all__ = ["NASTY", "UpstreamProvider"]

NASTY = '<script>alert("1")</script>\r\nSet-Cookie: pwned=1; your password is hunter2'
"""What no page, error or redirect of ours may repeat."""

RUDE = "hunter2"
"""A part of it that survives every way of escaping."""


class UpstreamProvider:
    """An OAuth provider with users, tokens and an API.

    Args:
        oidc: it is an OpenID provider; else it has bare endpoints, as GitHub does.
        lifetime: seconds that its access tokens last; None does not say.
        refreshes: it issues refresh tokens.

    Attributes:
        user: who is logged in with it, in every browser.
        asked: what it was asked for, as ``METHOD /path``.
        bearers: every bearer token that its API saw.
        authorizations: the parameters of each authorization request.
        refresh_error: refuses each refresh with this code.
        fault: a status that token, user and introspection endpoints answer with instead.
        hold: waits for this event before a token request is answered.
        held: a token request waits for that.
        asks: shows a page instead of approving silently.
        deny: refuses each authorization with this code, rudely.
        iss: what it says as ``iss`` of responses; "" says nothing.
        claims: what else its ID tokens say; None as a value leaves a claim out.
        told: what else its token answers say.
    """

    def __init__(
        self, *, oidc: bool = True, lifetime: float | None = 3600, refreshes: bool = True
    ) -> None:
        self.oidc = oidc
        self.lifetime = lifetime
        self.refreshes = refreshes
        self.client_id, self.client_secret = "our-static-id", secrets.token_urlsafe(24)
        self.user = "alice"
        self.asked: list[str] = []
        self.bearers: list[str] = []
        self.authorizations: list[dict[str, str]] = []
        self.refresh_error: str | None = None
        self.fault: int | None = None
        self.hold: asyncio.Event | None = None
        self.held = asyncio.Event()
        self.asks = False
        self.deny: str | None = None
        self.iss: str | None = None
        self.claims: dict[str, Any] = {}
        self.told: dict[str, Any] = {}
        self.api_status: int | None = None
        self.redirect_to: str | None = None
        self.codes: dict[str, dict[str, str]] = {}
        self.access: dict[str, dict[str, Any]] = {}
        self.refresh: dict[str, dict[str, Any]] = {}
        self.url = ""
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, on the same port as before."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        """Go away; :meth:`start` comes back."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def count(self, what: str) -> int:
        """The number of requests: ``count("POST /token")``."""
        return self.asked.count(what)

    def expire(self) -> None:
        """Every access token ends now."""
        for token in self.access.values():
            token["ends"] = 0

    def revoke_all(self) -> None:
        """Nothing that was issued is good any more."""
        self.access.clear()
        self.refresh.clear()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        page = PAGES.get(request.path)
        if request.path.startswith("/.well-known/") and page is None:
            return web.Response(status=404)
        if page is None:
            return await self._api(request)
        answer: web.StreamResponse = await page(self, request)
        return answer

    # Metadata

    async def _metadata(self, _: web.Request) -> web.Response:
        if not self.oidc:
            return web.Response(status=404)
        document = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "revocation_endpoint": f"{self.url}/revoke",
            "introspection_endpoint": f"{self.url}/introspect",
            "jwks_uri": f"{self.url}/jwks",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "response_types_supported": ["code"],
        }
        if self.iss is not None:
            document["authorization_response_iss_parameter_supported"] = True
        return web.json_response(document)

    async def _jwks(self, _: web.Request) -> web.Response:
        return web.json_response({"keys": [make_signing_key().as_dict(private=False)]})

    # What the browser sees

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = dict(request.query)
        self.authorizations.append(asked)
        if asked.get("client_id") != self.client_id:
            return web.Response(status=400, text="no such client")
        if self.asks:
            return web.Response(text="<h1>Do you agree?</h1>", content_type="text/html")
        back = {"state": asked.get("state", "")}
        if self.iss != "" and (self.iss or self.oidc):
            back["iss"] = self.iss or self.url
        if self.deny is not None:
            back |= {"error": self.deny, "error_description": NASTY, "error_uri": NASTY}
        else:
            code = secrets.token_urlsafe(16)
            self.codes[code] = {**asked, "user": request.cookies.get("user", self.user)}
            back["code"] = code
        url = asked["redirect_uri"]
        where = f"{url}{'&' if '?' in url else '?'}{urlencode(back)}"
        # Its consent cookie: who agreed once, for our static client id, is asked no more.
        answer = web.Response(status=302, headers={"Location": where})
        answer.set_cookie("consent", self.client_id)
        return answer

    # What our server asks

    async def _token(self, request: web.Request) -> web.Response:
        form = dict(parse_qsl(await request.text()))
        if self.hold is not None:
            self.held.set()
            await self.hold.wait()
        if self.fault is not None:
            return web.Response(status=self.fault, text=NASTY)
        if not self._knows(request, form):
            return make_refusal("invalid_client", 401)
        if form.get("grant_type") == "refresh_token":
            return self._refreshed(form)
        return self._exchanged(form)

    def _knows(self, request: web.Request, form: dict[str, str]) -> bool:
        kind, _, basic = request.headers.get("Authorization", "").partition(" ")
        pair = (form.get("client_id", ""), form.get("client_secret", ""))
        if kind == "Basic":
            name, _, secret = base64.b64decode(basic).decode().partition(":")
            pair = (unquote_plus(name), unquote_plus(secret))
        return pair == (self.client_id, self.client_secret)

    def _exchanged(self, form: dict[str, str]) -> web.Response:
        asked = self.codes.pop(form.get("code", ""), None)
        hashed = s256_challenge(form.get("code_verifier", ""))
        if (
            asked is None
            or asked.get("redirect_uri") != form.get("redirect_uri")
            or asked.get("code_challenge_method") != "S256"
            or asked.get("code_challenge") != hashed
        ):
            return make_refusal("invalid_grant")
        return self._granted(asked["user"], asked.get("scope", ""), asked.get("nonce"))

    def _refreshed(self, form: dict[str, str]) -> web.Response:
        if self.refresh_error is not None:
            return make_refusal(self.refresh_error)
        held = self.refresh.pop(form.get("refresh_token", ""), None)
        if held is None:
            return make_refusal("invalid_grant")
        return self._granted(held["user"], held["scope"])

    def _granted(self, user: str, scope: str, nonce: str | None = None) -> web.Response:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        ends = float("inf") if self.lifetime is None else time.time() + self.lifetime
        self.access[access] = {"user": user, "scope": scope, "ends": ends}
        answer: dict[str, Any] = {"access_token": access, "token_type": "bearer", "scope": scope}
        if self.lifetime is not None:
            answer["expires_in"] = self.lifetime
        if self.refreshes:
            self.refresh[refresh] = {"user": user, "scope": scope}
            answer["refresh_token"] = refresh
        if self.oidc and "openid" in scope.split():
            answer["id_token"] = self._id_token(user, nonce)
        return web.json_response({**answer, **self.told})

    def _id_token(self, user: str, nonce: str | None) -> str:
        from joserfc import jwt

        now = int(time.time())
        claims = {
            "iss": self.url,
            "sub": f"id-of-{user}",
            "aud": self.client_id,
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
            "name": user.title(),
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        key = make_signing_key()
        return jwt.encode({"alg": "ES256", "kid": key.kid}, claims, key)

    async def _revoke(self, request: web.Request) -> web.Response:
        form = dict(parse_qsl(await request.text()))
        if not self._knows(request, form):
            return make_refusal("invalid_client", 401)
        token = form.get("token", "")
        held = self.refresh.pop(token, None) or self.access.pop(token, None)
        if held is not None:  # as most do: what belongs to it goes, too
            self.access = {k: v for k, v in self.access.items() if v["user"] != held["user"]}
        return web.Response(status=200)

    async def _introspect(self, request: web.Request) -> web.Response:
        if self.fault is not None:
            return web.Response(status=self.fault, text=NASTY)
        form = dict(parse_qsl(await request.text()))
        return web.json_response({"active": self._user(form.get("token", "")) is not None})

    async def _userinfo(self, request: web.Request) -> web.Response:
        if self.fault is not None:
            return web.Response(status=self.fault, text=NASTY)
        user = self._bearer(request)
        if user is None:
            return web.json_response({"error": "invalid_token"}, status=401)
        return web.json_response({"sub": f"id-of-{user}", "name": user.title()})

    def _user(self, token: str) -> str | None:
        held = self.access.get(token)
        return held["user"] if held is not None and held["ends"] > time.time() else None

    def _bearer(self, request: web.Request) -> str | None:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if token:
            self.bearers.append(token)
        return self._user(token) if kind == "Bearer" else None

    # Its API

    async def _api(self, request: web.Request) -> web.Response:
        user = self._bearer(request)
        if self.redirect_to is not None:
            return web.Response(status=302, headers={"Location": self.redirect_to})
        if self.api_status is not None:
            return web.Response(status=self.api_status, text=NASTY)
        if user is None:
            return web.json_response({"message": "Bad credentials"}, status=401)
        told = {"login": user, "id": len(user), "path": request.path, "method": request.method}
        if request.can_read_body:
            told["sent"] = json.loads(await request.text())
        return web.json_response(told)


PAGES: dict[str, Any] = {
    "/.well-known/openid-configuration": UpstreamProvider._metadata,
    "/authorize": UpstreamProvider._authorize,
    "/token": UpstreamProvider._token,
    "/userinfo": UpstreamProvider._userinfo,
    "/revoke": UpstreamProvider._revoke,
    "/introspect": UpstreamProvider._introspect,
    "/jwks": UpstreamProvider._jwks,
}


def make_refusal(error: str, status: int = 400) -> web.Response:
    """An OAuth error, with words that are not to be repeated."""
    return web.json_response({"error": error, "error_description": NASTY}, status=status)


_KEYS: list[Any] = []


def make_signing_key() -> Any:
    """The key of ID tokens; one for every provider of a run."""
    if not _KEYS:
        from joserfc.jwk import ECKey

        _KEYS.append(ECKey.generate_key("P-256", {"use": "sig", "alg": "ES256"}, auto_kid=True))
    return _KEYS[0]
