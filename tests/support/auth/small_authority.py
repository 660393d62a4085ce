"""A small authorization server in memory, whose user says yes to everything, and ways to ask it."""

import json
import time
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from isthmus.auth.authorization_server.server import AuthorizationServer
from isthmus.auth.authorization_server.storage.records import PendingAuthorization
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from isthmus.auth.authorization_server.users.users import User
from isthmus.auth.resource_server.verifier import Presented
from isthmus.auth.tokens.secret import Secret
from support.auth.authority import VERIFIER, s256_challenge
from support.clock import ManualClock
from support.http.asgi_driver import Exchange

__all__ = ["BACK", "CHALLENGE", "ISSUER", "OTHER", "RESOURCE", "VERIFIER", "SmallAuthority",
           "Users", "redirect_parameters"]  # fmt: skip

ISSUER = "https://as.example"
RESOURCE = "https://as.example/mcp"
OTHER = "https://other.example/mcp"
BACK = "http://127.0.0.1:51000/callback"
CHALLENGE = s256_challenge()
FORM = "application/x-www-form-urlencoded"


class Users:
    """Everybody exists; ``disabled`` and ``gone`` hold who may do nothing."""

    def __init__(self) -> None:
        self.disabled: set[str] = set()
        self.gone: set[str] = set()

    async def get(self, user_id: str) -> User | None:
        if user_id in self.gone:
            return None
        return User(id=user_id, disabled=user_id in self.disabled)


class Agreeing:
    """Instead of pages: the user says yes at once."""

    def __init__(self, authority: AuthorizationServer) -> None:
        self.routes: dict[str, Any] = {}
        self.authority = authority
        self.asked: list[PendingAuthorization] = []

    async def begin(
        self, pending: PendingAuthorization, scope: Any, receive: Any, send: Any
    ) -> None:
        self.asked.append(pending)
        url = await self.authority.approve(pending, User(id="ada"))
        headers = [(b"location", url.encode())]
        await send({"type": "http.response.start", "status": 302, "headers": headers})
        await send({"type": "http.response.body"})

    async def problem(self, status: int, text: str, send: Any) -> None:
        headers = [(b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})

    async def astray(self, back: str, send: Any) -> None:
        await self.problem(400, f"back: {back}", send)


class SmallAuthority:
    """An authorization server to ask.

    Args:
        more: arguments of :class:`AuthorizationServer` that differ from the usual ones here.
    """

    def __init__(self, **more: Any) -> None:
        self.clock = ManualClock(float(int(time.time())))
        self.users = Users()
        given = {
            "resources": [RESOURCE, OTHER],
            "scopes": {"read": "Read", "write": "Write"},
            "users": self.users,
            "front": Agreeing,
            "clock": self.clock,
            "store": None,
            **more,
        }
        if given["store"] is None:
            given["store"] = MemoryAuthStore(clock=self.clock)
        self.app = AuthorizationServer(given.pop("issuer", ISSUER), **given)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.app.close()

    @property
    def asked(self) -> list[PendingAuthorization]:
        """The consents that users were asked for so far."""
        return self.app.front.asked  # type: ignore[attr-defined]

    async def get(self, path: str, query: Any = (), **more: Any) -> Exchange:
        """GET something."""
        text = query if isinstance(query, bytes) else urlencode(query, doseq=True).encode()
        return await Exchange(self.app, "GET", path, scope={"query_string": text}, **more).done()

    async def post(
        self, path: str, fields: Any, headers: dict[str, Any] | None = None, **more: Any
    ) -> Exchange:
        """POST a form."""
        body = fields if isinstance(fields, bytes) else urlencode(fields, doseq=True).encode()
        named = {"content-type": FORM, **(headers or {})}
        return await Exchange(self.app, "POST", path, headers=named, body=body, **more).done()

    async def registering(self, body: Any, **more: Any) -> Exchange:
        """POST a registration."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        return await Exchange(
            self.app, "POST", "/register", headers=headers, body=raw, **more
        ).done()

    async def register(self, **metadata: Any) -> dict[str, Any]:
        """Register a client; a public one with refresh tokens by default."""
        done = await self.registering(
            {
                "redirect_uris": [BACK],
                "token_endpoint_auth_method": "none",
                "grant_types": ["authorization_code", "refresh_token"],
                "client_name": "Notes",
                **metadata,
            }
        )
        assert done.status == 201, done.body
        return done.json

    async def public(self, **metadata: Any) -> str:
        """The id of a new client."""
        return (await self.register(**metadata))["client_id"]

    def request(self, client_id: str, **params: Any) -> dict[str, Any]:
        """The parameters of a good authorization request; None leaves one out."""
        usual = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": BACK,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": "s1",
            **params,
        }
        return {name: value for name, value in usual.items() if value is not None}

    async def ask(self, client_id: str, **params: Any) -> Exchange:
        """GET /authorize."""
        return await self.get("/authorize", self.request(client_id, **params))

    async def code(self, client_id: str, **params: Any) -> str:
        """A new code."""
        return redirect_parameters(await self.ask(client_id, **params))["code"]

    async def redeem(
        self, code: str, client_id: str, headers: dict[str, Any] | None = None, **params: Any
    ) -> Exchange:
        """Present a code."""
        usual = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": client_id,
            "redirect_uri": BACK,
            "code_verifier": VERIFIER,
            **params,
        }
        fields = {name: value for name, value in usual.items() if value is not None}
        return await self.post("/token", fields, headers)

    async def tokens(self, client_id: str, **params: Any) -> dict[str, Any]:
        """The first tokens of a new grant."""
        done = await self.redeem(await self.code(client_id, **params), client_id)
        assert done.status == 200, done.body
        return done.json

    async def refresh(
        self, token: str, client_id: str, headers: dict[str, Any] | None = None, **params: Any
    ) -> Exchange:
        """Present a refresh token."""
        fields = {"grant_type": "refresh_token", "refresh_token": token, "client_id": client_id}
        return await self.post("/token", {**fields, **params}, headers)

    async def verified(self, token: str, resource: str = RESOURCE, scheme: str = "bearer") -> Any:
        """Whose an access token is."""
        presented = Presented(scheme=scheme, token=Secret(token))
        return await self.app.verifier.verify(presented, resource)

    async def audited(self) -> list[str]:
        """The audit events, oldest first."""
        rows = await self.app.store.read(lambda records: records.audited())
        return [row.event for row in reversed(rows)]


def redirect_parameters(exchange: Exchange) -> dict[str, str]:
    """The parameters that a browser was sent away with."""
    location = exchange.header("location")
    assert location is not None, (exchange.status, exchange.body)
    return dict(parse_qsl(urlsplit(location).query))
