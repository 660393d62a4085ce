"""An authorization server with a user and a few clients, for tests of what browsers see of it."""

import base64
import hashlib
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from isthmus.auth.authorization_server.core.settings import RegistrationPolicy
from isthmus.auth.authorization_server.server import AuthorizationServer
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from isthmus.auth.authorization_server.users.passwords import PasswordUsers
from isthmus.auth.tokens.secret import Secret
from support.http.asgi_driver import Exchange, fetch

__all__ = [
    "APP",
    "PASSWORD",
    "SCOPES",
    "Visitor",
    "make_authority",
    "make_users",
    "request_url",
    "s256_challenge",
]

PASSWORD = "correct horse battery"
SCOPES = {"files:read": "Read your files", "files:write": "Change and delete your files"}
VERIFIER = "v" * 43
APP = RegisteredClient(
    client_id="app", name="Notes", redirect_uris=("https://notes.example/cb",), auth_method="none"
)


def s256_challenge(verifier: str = VERIFIER) -> str:
    """The S256 challenge of a verifier."""
    raw = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def make_users(folder: Path, *accounts: str) -> PasswordUsers:
    """Users whose hashes cost nothing."""
    users = PasswordUsers(folder / "users.db", memory=64, rounds=1, lanes=1)
    for account in accounts or ("alice",):
        users.add(account, Secret(PASSWORD))
    return users


def make_authority(issuer: str, users: Any, *clients: RegisteredClient, **options: Any) -> Any:
    """An authorization server in memory.

    Args:
        issuer: its URL.
        users: who can log in.
        *clients: besides ``app``.
        **options: of :class:`AuthorizationServer`.
    """
    given = {
        "resources": [f"{issuer}/mcp"],
        "scopes": SCOPES,
        "store": MemoryAuthStore(),
        "registration": RegistrationPolicy(static=[APP, *clients]),
        **options,
    }
    return AuthorizationServer(issuer=issuer, users=users, **given)


def request_url(issuer: str, **parameters: str) -> str:
    """A right authorization request of ``app``, with some parameters changed."""
    asked = {
        "response_type": "code",
        "client_id": "app",
        "redirect_uri": "https://notes.example/cb",
        "scope": "files:read",
        "state": "s1",
        "code_challenge": s256_challenge(),
        "code_challenge_method": "S256",
        **parameters,
    }
    return f"{issuer}/authorize?{urlencode(asked)}"


class Visitor:
    """A browser without a window, one request at a time, with cookies and what browsers send.

    Args:
        authority: the ASGI app.
        issuer: its URL.
        address: where it is.

    Attributes:
        cookies: by name.
    """

    def __init__(self, authority: Any, issuer: str, address: str = "192.0.2.1") -> None:
        self.authority = authority
        self.issuer = issuer
        self.address = address
        self.cookies: dict[str, str] = {}

    async def get(self, url: str, site: str | None = "none", **headers: str) -> Exchange:
        """Open a URL of the server; ``site`` is what ``Sec-Fetch-Site`` says."""
        return await self._send("GET", url, b"", site, headers)

    async def post(
        self, url: str, fields: dict[str, str], site: str | None = "same-origin", **headers: str
    ) -> Exchange:
        """Send a form to a URL of the server."""
        body = urlencode(fields).encode()
        kind = {"content-type": "application/x-www-form-urlencoded", "origin": "null"}
        return await self._send("POST", url, body, site, {**kind, **headers})

    async def follow(self, exchange: Exchange, site: str | None = "none") -> Exchange:
        """Go on to where one was sent, as long as that is the server's."""
        while (where := exchange.header("location")) is not None:
            if where.startswith("http") and not where.startswith(f"{self.issuer}/"):
                break
            exchange = await self.get(where, site)
        return exchange

    async def log_in(self, url: str, password: str = PASSWORD, account: str = "alice") -> Exchange:
        """Open an authorization request and log in; the page after that."""
        page = await self.follow(await self.get(url))
        fields = {**hidden_fields(page), "account": account, "password": password}
        return await self.follow(await self.post(form_action(page), fields))

    async def decide(self, page: Exchange, decision: str = "allow", **more: str) -> Exchange:
        """Answer the question on a consent page."""
        return await self.post(
            form_action(page), {**hidden_fields(page), "decision": decision, **more}
        )

    async def _send(
        self, method: str, url: str, body: bytes, site: str | None, headers: dict[str, str]
    ) -> Exchange:
        parts = urlsplit(url)
        sent = {"host": urlsplit(self.issuer).netloc, **headers}
        if site is not None:
            sent["sec-fetch-site"] = site
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        scope = {"query_string": parts.query.encode(), "client": (self.address, 50000)}
        exchange = await fetch(
            self.authority, method, parts.path, headers=sent, body=body, scope=scope
        )
        for name, value in exchange.headers:
            if name == "set-cookie":
                self._keep(value)
        return exchange

    def _keep(self, cookie: str) -> None:
        name, _, value = cookie.partition(";")[0].partition("=")
        self.cookies[name] = value
        if "max-age=0" in cookie.lower():
            del self.cookies[name]


def hidden_fields(page: Exchange) -> dict[str, str]:
    """The hidden fields of the first form of a page."""
    first = page.body.decode().partition("</form>")[0]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', first))


def form_action(page: Exchange) -> str:
    """The action of the first form of a page."""
    found = re.search(rb'action="([^"]+)"', page.body)
    assert found is not None, page.body
    return found[1].decode()


def client_answer(exchange: Exchange) -> dict[str, str]:
    """The parameters that the client is sent."""
    return dict(parse_qsl(urlsplit(str(exchange.header("location"))).query))
