"""A small town of OAuth on one port of the loopback: an MCP server and its authorization servers.

Everything in it is real: ASGI apps on sockets, and a server of ours behind a gate that looks at
tokens. Every answer can be bent, so that tests can be attackers.

An authorization server of the town that takes the grants of machines.
"""

import asyncio
import contextlib
import json
import secrets
import socket
from collections import Counter
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlencode, urlsplit

import aiohttp
import uvicorn

from isthmus import Server
from support.auth.authority import s256_challenge

PRM = "/.well-known/oauth-protected-resource"


class TownAuthority:
    """An authorization server that says yes to everybody, unless it is told otherwise.

    Attributes:
        issuer: its name.
        asked: the parameters of each authorization request.
        forms: those of each token request, with the ``Authorization`` header under that name.
        registered: the documents of clients.
        metadata: its metadata; change it at will.
        response: changes the parameters of an authorization response.
        refusal: an error that the token endpoint answers, by grant type.
        life: seconds that its access tokens are good for; None says nothing.
        grants: what is granted of what was asked for.
        rotates: whether a refresh token is good only once.
    """

    def __init__(self, origin, path=""):
        self.issuer = f"{origin}{path}"
        self.path = path
        self.asked, self.forms, self.registered = [], [], []
        self.metadata = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        }
        self.response = lambda params: params
        self.refusal = {}
        self.life = 3600
        self.grants = lambda scopes: scopes
        self.rotates = True
        self.codes, self.refreshes, self.tokens = {}, {}, {}

    @property
    def counts(self):
        """The number of token requests, by grant type."""
        return Counter(form["grant_type"] for form in self.forms)

    def authorize(self, params):
        """The URL that the browser is redirected to."""
        self.asked.append(params)
        code = secrets.token_urlsafe(16)
        self.codes[code] = params
        answer = {"code": code, "state": params["state"], "iss": self.issuer}
        return f"{params['redirect_uri']}?{urlencode(self.response(answer))}"

    def register(self, document):
        """A client's registration."""
        self.registered.append(document)
        return 201, {**document, "client_id": f"client-{len(self.registered)}"}

    def token(self, form):
        """A token request's answer."""
        self.forms.append(form)
        kind = form["grant_type"]
        if kind in self.refusal:
            return 400, {"error": self.refusal[kind]}
        if kind == "refresh_token":
            known = self.refreshes.get(form["refresh_token"])
            if known is None:
                return 400, {"error": "invalid_grant"}
            if self.rotates:
                del self.refreshes[form["refresh_token"]]
            return 200, self.issued(known)
        asked = self.codes.pop(form.get("code"), None)
        if asked is None or s256_challenge(form["code_verifier"]) != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        return 200, self.issued(self.grants(frozenset(asked.get("scope", "").split())))

    def issued(self, scopes):
        """New tokens."""
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.tokens[access] = scopes
        self.refreshes[refresh] = scopes
        life = {} if self.life is None else {"expires_in": self.life}
        scope = {"scope": " ".join(sorted(scopes))} if scopes else {}
        return {
            "access_token": access, "token_type": "Bearer", "refresh_token": refresh,
            **life, **scope,
        }  # fmt: skip


class Town:
    """The ASGI app of all of them.

    Attributes:
        origin: scheme, host and port.
        url: the MCP server.
        authority: the first authorization server; more are made by :meth:`found`.
        resource: the metadata of the MCP server; None has none.
        announces: the challenge names them.
        scope: the scopes that a 401 names.
        needs: the scopes that a call of a tool takes, by its name.
        revoked: tokens that are good no more.
        seen: the method, path and headers of every request.
    """

    def __init__(self, origin, server=None):
        self.origin, self.url = origin, f"{origin}/mcp"
        self.authorities = {}
        self.authority = self.found("")
        self.resource = {"resource": self.url, "authorization_servers": [self.authority.issuer]}
        self.announces = True
        self.scope = "read"
        self.needs = {}
        self.revoked = set()
        self.seen = []
        self.mcp = (server or make_small_server()).asgi(websocket="/mcp")

    def found(self, path):
        """One more authorization server."""
        authority = self.authorities[path] = TownAuthority(self.origin, path)
        return authority

    async def __call__(self, scope, receive, send):
        """Serve a request."""
        headers = {k.decode(): v.decode() for k, v in scope["headers"]}
        if scope["type"] == "websocket":
            return await self.handshake(scope, receive, send, headers)
        path, method = scope["path"], scope["method"]
        self.seen.append((method, path, headers))
        if path in {"/mcp", "/sse", "/messages"}:
            return await self.gate(scope, receive, send, headers)
        query = dict(parse_qsl(scope["query_string"].decode()))
        status, answer, more = self.page(method, path, query, await body_of(receive), headers)
        await respond(send, status, answer, more)
        return None

    def page(self, method, path, query, body, headers):
        """The response at a path of the authorization servers."""
        if path.startswith(PRM):
            rest = path.removeprefix(PRM)
            here = self.resource is not None and rest == self.place
            return (200, self.resource, {}) if here else (404, {}, {})
        for authority in self.authorities.values():
            if path == f"/.well-known/oauth-authorization-server{authority.path}":
                return (
                    (404, {}, {}) if authority.metadata is None else (200, authority.metadata, {})
                )
            if path == f"{authority.path}/authorize":
                return 302, {}, {"location": authority.authorize(query)}
            if path == f"{authority.path}/register":
                return *authority.register(json.loads(body)), {}
            if path == f"{authority.path}/token":
                form = dict(parse_qsl(body.decode()))
                if "authorization" in headers:
                    form["Authorization"] = headers["authorization"]
                return *authority.token(form), {}
        return 404, {}, {}

    place = "/mcp"

    async def handshake(self, scope, receive, send, headers):
        """Let in who has a token, before the WebSocket is open."""
        self.seen.append(("WS", scope["path"], headers))
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if any(token in a.tokens for a in self.authorities.values()):
            return await self.mcp(scope, receive, send)
        await receive()
        start = {"type": "websocket.http.response.start", "status": 401}
        await send({**start, "headers": [(b"www-authenticate", b"Bearer")]})
        await send({"type": "websocket.http.response.body", "body": b""})
        return None

    async def gate(self, scope, receive, send, headers):
        """Let in who has a token that is good for what they ask."""
        body = await body_of(receive)
        token = headers.get("authorization", "").removeprefix("Bearer ")
        granted = next(
            (a.tokens[token] for a in self.authorities.values() if token in a.tokens), None
        )
        metadata = f'resource_metadata="{self.origin}{PRM}{self.place}"' if self.announces else ""
        if granted is None or token in self.revoked:
            scopes = f'scope="{self.scope}"' if self.scope else ""
            params = ", ".join(p for p in (metadata, scopes) if p)
            return await respond(send, 401, {}, {"www-authenticate": f"Bearer {params}".strip()})
        params = json.loads(body).get("params", {}) if body else {}
        needed = self.needs.get(params.get("name") if isinstance(params, dict) else None, set())
        if not needed <= granted:
            named = " ".join(sorted(needed))
            value = f'Bearer error="insufficient_scope", scope="{named}"'
            return await respond(send, 403, {}, {"www-authenticate": value})
        return await self.mcp(scope, replay_body(body, receive), send)


class TownBrowser:
    """A user who goes where they are sent, and follows every redirect.

    Attributes:
        visited: each URL.
        hold: is waited for before going anywhere, if there is one.
        opened: set with the first URL.
    """

    def __init__(self, hold=None):
        self.visited = []
        self.hold = hold
        self.opened = asyncio.Event()
        self.answers = []

    async def __call__(self, url):
        """Go there."""
        self.visited.append(url)
        self.opened.set()
        if self.hold is not None:
            await self.hold.wait()
        async with aiohttp.ClientSession() as session:
            async with session.get(url, allow_redirects=False) as page:
                location = page.headers["Location"]
            async with session.get(location) as page:
                self.answers.append((page.status, await page.text()))

    def params(self, number=-1):
        """The authorization requests, as their URLs have them."""
        return dict(parse_qsl(urlsplit(self.visited[number]).query))


def make_small_server():
    """An MCP server with a few tools."""
    server = Server("town")

    @server.tool
    async def hello() -> str:
        return "hello"

    @server.tool
    async def write() -> str:
        return "written"

    return server


@contextlib.asynccontextmanager
async def open_town(server=None):
    """A town until the block is left."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        here = Town(f"http://127.0.0.1:{listening.getsockname()[1]}", server)
        config = uvicorn.Config(
            here, log_config=None, log_level="info", access_log=False, lifespan="off"
        )
        running = uvicorn.Server(config)
        running.install_signal_handlers = lambda: None
        task = asyncio.create_task(running._serve([listening]))
        try:
            yield here
        finally:
            running.should_exit = True
            await task


async def body_of(receive):
    """The whole body of a request."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


def replay_body(body, receive):
    """A body that was read already, to be read again."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def again():
        return messages.pop() if messages else await receive()

    return again


async def respond(send, status, answer, headers):
    """A whole response."""
    named = [(k.encode(), v.encode()) for k, v in headers.items()]
    start = {"type": "http.response.start", "status": status}
    await send({**start, "headers": [(b"content-type", b"application/json"), *named]})
    await send({"type": "http.response.body", "body": json.dumps(answer).encode()})


def take_machine_grants(authority):
    """Have an authorization server take every grant of machines."""

    def token(form):
        authority.forms.append(form)
        kind = form["grant_type"]
        if kind in authority.refusal:
            return 400, {"error": authority.refusal[kind]}
        answer = authority.issued(authority.grants(frozenset(form.get("scope", "").split())))
        del answer["refresh_token"]
        return 200, answer

    authority.token = token


@asynccontextmanager
async def open_machine_town():
    """A town whose authorization server gives machines what they ask for."""
    async with open_town() as here:
        take_machine_grants(here.authority)
        yield here
