"""What it costs not to be let in: whoever may not must not cost more than twice who may."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import repeat
from typing import Any

import wires
from results import ISTHMUS

from isthmus import Server
from isthmus.auth import JWTVerifier, PrivateKey, ResourceAuth
from isthmus.auth.tokens.dpop import DpopKey
from isthmus.auth.tokens.jose import sign_jwt

ISSUER, RESOURCE = "https://login.example", "http://localhost:8000/mcp"
SERVED, ANEW = f"{ISTHMUS}, served", f"{ISTHMUS}, served with a new token"
PROVEN = f"{ISTHMUS}, served with a DPoP proof"
ROWS = (
    SERVED,
    ANEW,
    PROVEN,
    ISTHMUS,
    f"{ISTHMUS}, forged token",
    f"{ISTHMUS}, scope missing",
    f"{ISTHMUS}, without auth=",
)
"""Who asks; the plain name is who brings no token."""

BATCH = 200

Ask = Callable[[], Awaitable[int]]


def refusals(row: str, seconds: float) -> dict[str, float]:
    """Microseconds of CPU for one tools/call over the ASGI app, in the best of many batches."""
    key, held = PrivateKey.generate("ES256", kid="bench"), DpopKey.generate()
    token = signed(key, held if row == PROVEN else None)
    forged = f"{token[:-8]}AAAAAAAA"
    scheme = "DPoP" if row == PROVEN else "Bearer"
    headers = {
        ISTHMUS: {},
        f"{ISTHMUS}, forged token": {"authorization": f"Bearer {forged}"},
        f"{ISTHMUS}, without auth=": {},
    }.get(row, {"authorization": f"{scheme} {token}"})
    tool = "erase" if row.endswith("missing") else "add"
    app = served(key, guarded="without" not in row, remember=0 if row == ANEW else 100)
    expected = 401 if row == ISTHMUS or "forged" in row else 403 if tool == "erase" else 200

    async def least() -> float:
        found, end = float("inf"), time.perf_counter() + seconds
        while time.perf_counter() < end:
            more: Iterator[dict[str, str]] = repeat({})
            if row == PROVEN:  # whose making is the client's work
                more = iter(
                    [{"dpop": held.proof("POST", RESOURCE, token=token)} for _ in range(BATCH)]
                )
            ask = asking(app, tool, headers, more)
            begin = time.process_time()
            for _ in range(BATCH):
                status = await ask()
            found = min(found, time.process_time() - begin)
            if status != expected:
                raise ValueError(f"{row}: {status}, not {expected}")
        return found / BATCH * 1e6

    return {"refusal_us": asyncio.run(least())}


def signed(key: PrivateKey, held: DpopKey | None) -> str:
    """A token for one of two scopes, bound to a key if one is given."""
    claims = {"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "client_id": "bench", "scope": "use"}
    bound = {} if held is None else {"cnf": {"jkt": held.jkt}}
    return sign_jwt({**claims, **bound, "exp": time.time() + 3600}, key, typ="at+jwt")


def served(key: PrivateKey, *, guarded: bool, remember: int) -> Callable[..., Any]:
    """A server with two tools."""
    verifier = JWTVerifier(ISSUER, jwks=[key.jwk], algorithms=("ES256",), remember=remember)
    auth = ResourceAuth(RESOURCE, [ISSUER], verifier, scopes={"use"}, dpop="allow")
    server = Server("bench", version="1", auth=auth if guarded else None)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool(scopes={"erase"})
    async def erase(a: int, b: int) -> int:
        return a - b

    return server.asgi()


def asking(
    app: Callable[..., Any], tool: str, headers: dict[str, str], more: Iterator[dict[str, str]]
) -> Ask:
    """What makes one modern call, in process, and gives its status.

    Args:
        app: serves it.
        tool: which is called.
        headers: besides the usual ones.
        more: what each call has besides those.
    """
    body = json.loads(wires.write_template("modern") % (7, 7))
    body["params"]["name"] = tool
    data = json.dumps(body).encode()
    named = {**wires.make_headers("modern"), "mcp-name": tool, "host": "localhost:8000", **headers}
    raw = [*{name.lower().encode(): value.encode() for name, value in named.items()}.items()]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": raw,
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 5000),
    }
    found = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": data, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal found
        found = message.get("status", found)

    async def once() -> int:
        own = [(name.encode(), value.encode()) for name, value in next(more).items()]
        await app({**scope, "headers": raw + own} if own else scope, receive, send)
        return found

    return once
