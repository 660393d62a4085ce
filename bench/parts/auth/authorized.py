"""What authorization costs a client: around each request, and in a whole call over HTTP."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from processes import find_free_port
from results import ISTHMUS

from isthmus import Client, Server
from isthmus.auth import JWTVerifier, PrivateKey, ResourceAuth
from isthmus.auth.client.requests import SharedSessions
from isthmus.auth.client.store.records import Tokens
from isthmus.auth.client.token_request import DpopProofs
from isthmus.auth.tokens.dpop import DpopKey
from isthmus.auth.tokens.jose import sign_jwt
from isthmus.auth.tokens.secret import Secret
from isthmus.transports.http.serve import serve

ISSUER = "https://login.example"
OPEN, BOUND = f"{ISTHMUS}, without auth=", f"{ISTHMUS}, a DPoP proof with each"
ROWS = (OPEN, ISTHMUS, BOUND)
BATCH = 100

Work = Callable[[], Awaitable[object]]


class Held:
    """Tokens that are at hand."""

    def __init__(self, tokens: Tokens) -> None:
        sessions = SharedSessions(self._make_grant)
        self.over, self.context = sessions.over, sessions.context
        self.tokens = tokens

    def _make_grant(self, _url: str, proofs: DpopProofs) -> Any:
        proofs.load(self.tokens)
        return self

    async def load(self) -> Tokens:
        """The tokens."""
        return self.tokens

    asks_user = False

    async def close(self) -> None:
        """Nothing is open."""


class Nothing:
    """Requests that are answered without being sent."""

    status = 200
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody writes to it

    async def send(self, *_: object) -> "Nothing":
        """The answer."""
        return self

    async def close(self) -> None:
        """Nothing is open."""


def clients(row: str, seconds: float) -> dict[str, float]:
    """Microseconds of CPU: what is added to a request, and a call with its server, in one process."""
    return asyncio.run(both(row, seconds))


async def both(row: str, seconds: float) -> dict[str, float]:
    """The two figures."""
    url = f"http://127.0.0.1:{find_free_port()}/mcp"
    key, held = PrivateKey.generate("ES256", kid="bench"), DpopKey.generate()
    auth = None if row == OPEN else Held(tokens(url, key, held if row == BOUND else None))
    bare = Nothing()
    requests = bare if auth is None else auth.over(url, bare)
    head = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    wrapped = await least(lambda: requests.send("POST", url, head, b"{}"), seconds / 2)
    called = await served(url, key, auth, seconds)
    return {"wrap_us": wrapped, "call_us": called}


def tokens(url: str, key: PrivateKey, held: DpopKey | None) -> Tokens:
    """Good ones, bound to a key if one is given."""
    now, claims = time.time(), {"iss": ISSUER, "aud": url, "sub": "ada", "client_id": "bench"}
    bound = {} if held is None else {"cnf": {"jkt": held.jkt}}
    text = sign_jwt({**claims, **bound, "scope": "use", "exp": now + 3600}, key, typ="at+jwt")
    return Tokens(
        access=Secret(text),
        issuer=ISSUER,
        client_id="bench",
        resource=url,
        issued_at=now,
        expires_at=now + 3600,
        token_endpoint=f"{ISSUER}/token",
        kind="Bearer" if held is None else "DPoP",
        proof_key=None if held is None else held.secret_jwk(),
    )


async def served(url: str, key: PrivateKey, auth: Held | None, seconds: float) -> float:
    """One call, by client and server together."""
    verifier = JWTVerifier(ISSUER, jwks=[key.jwk], algorithms=("ES256",))
    guard = ResourceAuth(url, [ISSUER], verifier, scopes={"use"}, dpop="allow")
    server = Server("bench", version="1", auth=None if auth is None else guard)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    listening = asyncio.Event()
    port = int(url.removesuffix("/mcp").rpartition(":")[2])
    running = asyncio.create_task(
        serve(server.asgi(), port=port, on_bound=lambda _: listening.set())
    )
    await listening.wait()
    try:
        async with Client(url, auth=auth) as client:
            return await least(lambda: client.call_tool("add", {"a": 1, "b": 2}), seconds)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def least(work: Work, seconds: float) -> float:
    """Microseconds of CPU of one, in the best of many batches: noise only adds."""
    found, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.process_time()
        for _ in range(BATCH):
            await work()
        found = min(found, time.process_time() - begin)
    return found / BATCH * 1e6
