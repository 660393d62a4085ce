"""What it costs to tell whose an access token is: keys at hand, the token known or new."""

import asyncio
import base64
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from results import ISTHMUS

from isthmus.auth.authorization_server.core.local_verifier import LocalVerifier
from isthmus.auth.authorization_server.core.settings import RegistrationPolicy
from isthmus.auth.authorization_server.server import AuthorizationServer
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from isthmus.auth.resource_server.jwt import JWTVerifier
from isthmus.auth.resource_server.verifier import Presented
from isthmus.auth.tokens.dpop import DpopKey, ReplayCache, check_proof
from isthmus.auth.tokens.jose import PrivateKey, sign_jwt
from isthmus.auth.tokens.secret import Secret

ISSUER, RESOURCE = "https://login.example", "https://mcp.example/mcp"
SIGNED = {ISTHMUS: "RS256", f"{ISTHMUS}, ES256": "ES256", f"{ISTHMUS}, EdDSA": "EdDSA"}
"""What tokens are signed with, by row; most issuers use RS256."""

OWN = f"{ISTHMUS}, of its own issuer (ES256)"
PROOF = f"{ISTHMUS}, a DPoP proof (ES256)"
ALONE = "limit: an ES256 signature"
ROWS = (*SIGNED, OWN, PROOF, ALONE)

BATCH = 20

Work = Callable[[], Awaitable[object]]


def tokens(row: str, seconds: float) -> dict[str, float]:
    """Microseconds of one verification: of a token that came before, and of one that did not."""
    if row == OWN:
        return asyncio.run(own(seconds))
    if row == PROOF:
        return asyncio.run(proofs(seconds))
    if row == ALONE:
        return asyncio.run(alone(seconds / 2))
    return asyncio.run(signed(SIGNED[row], seconds))


async def signed(alg: str, seconds: float) -> dict[str, float]:
    """A JWT of an issuer elsewhere."""
    key = PrivateKey.generate(alg, kid="bench")
    claims = {"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "client_id": "bench"}
    token = sign_jwt({**claims, "scope": "a b", "exp": time.time() + 3600}, key, typ="at+jwt")
    presented = Presented("bearer", Secret(token))

    def verifying(remember: int) -> Callable[[], Awaitable[Work]]:
        verifier = JWTVerifier(ISSUER, jwks=[key.jwk], algorithms=(alg,), remember=remember)

        async def ready() -> Work:
            return lambda: verifier.verify(presented, RESOURCE)

        return ready

    return {
        "warm_us": await least(verifying(remember=100), seconds / 2),
        "new_us": await least(verifying(remember=0), seconds / 2),
    }


async def own(seconds: float) -> dict[str, float]:
    """A token of the authorization server that runs in the same process."""
    program = RegisteredClient(
        client_id="bench", secret=Secret("s" * 43), auth_method="client_secret_basic",
        grant_types=("client_credentials",), scopes=("a",),
    )  # fmt: skip
    authority = AuthorizationServer(
        ISSUER, resources=[RESOURCE], scopes={"a": "A"}, users=None, store=MemoryAuthStore(),
        registration=RegistrationPolicy(static=[program]),
    )  # fmt: skip
    first, *others = [await issued(authority) for _ in range(BATCH + 1)]
    verifier = make_verifier(authority)

    async def known() -> Work:
        await verifier.verify(first, RESOURCE)
        return lambda: verifier.verify(first, RESOURCE)

    async def unknown() -> Work:
        fresh, coming = make_verifier(authority), iter(others)
        await fresh.verify(first, RESOURCE)  # the keys are read
        return lambda: fresh.verify(next(coming), RESOURCE)

    found = {
        "warm_us": await least(known, seconds / 2),
        "new_us": await least(unknown, seconds / 2),
    }
    await authority.close()
    return found


def make_verifier(authority: AuthorizationServer) -> LocalVerifier:
    """A verifier of its tokens that remembers none yet."""
    return LocalVerifier(
        authority.settings,
        authority.store,
        authority.users,
        authority.keyring,
        upstream_stands=authority.services.stands,
        clock=authority.clock,
    )


async def issued(authority: AuthorizationServer) -> Presented:
    """A token that a program asked the token endpoint for."""
    basic = base64.b64encode(b"bench:" + b"s" * 43)
    form = f"grant_type=client_credentials&resource={RESOURCE}".encode()
    said = b""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": form, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal said
        said += message.get("body", b"")

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/token",
        "root_path": "",
        "query_string": b"",
        "headers": [
            (b"host", b"login.example"),
            (b"content-type", b"application/x-www-form-urlencoded"),
            (b"authorization", b"Basic " + basic),
        ],
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 5000),
        "scheme": "https",
    }
    await authority(scope, receive, send)
    return Presented("bearer", Secret(json.loads(said)["access_token"]))


async def proofs(seconds: float) -> dict[str, float]:
    """A proof that a token's key is there, which each request has anew."""
    key = DpopKey.generate()
    about = {"method": "POST", "url": RESOURCE, "token": "t" * 400}

    async def ready() -> Work:
        made = [key.proof("POST", RESOURCE, token=about["token"]) for _ in range(BATCH)]
        coming, replays = iter(made), ReplayCache()

        async def check() -> str:
            return check_proof(next(coming), now=time.time(), replays=replays, **about)

        return check

    return {"new_us": await least(ready, seconds)}


async def alone(seconds: float) -> dict[str, float]:
    """What OpenSSL takes for a signature, before anything is made of a token."""
    key, kind, data = ec.generate_private_key(ec.SECP256R1()), ec.ECDSA(hashes.SHA256()), b"x" * 300
    signature, public = key.sign(data, kind), key.public_key()

    async def check() -> bool:
        public.verify(signature, data, kind)
        return True

    async def ready() -> Work:
        return check

    return {"new_us": await least(ready, seconds)}


async def least(ready: Callable[[], Awaitable[Work]], seconds: float) -> float:
    """Microseconds of CPU of one, in the best of many batches, short ones: noise only adds.

    Args:
        ready: prepares a batch, which is not timed.
        seconds: how long to try.
    """
    found, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        work, begin = await ready(), time.process_time()
        for _ in range(BATCH):
            if await work() is None:
                raise ValueError("a good token was refused")
        found = min(found, time.process_time() - begin)
    return found / BATCH * 1e6
