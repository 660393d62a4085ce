"""What it costs to tell whose an access token is: keys at hand, the token known or new."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from contenders import ISTHMUS

from isthmus.auth.jose import PrivateKey, sign
from isthmus.auth.resource_server.jwt import JWTVerifier
from isthmus.auth.resource_server.verifier import Presented
from isthmus.auth.secret import Secret

ISSUER, RESOURCE = "https://login.example", "https://mcp.example/mcp"
ROWS = {ISTHMUS: "RS256", f"{ISTHMUS}, ES256": "ES256", f"{ISTHMUS}, EdDSA": "EdDSA"}
"""What tokens are signed with, by row; most issuers use RS256."""

BATCH = 20


def tokens(row: str, seconds: float) -> dict[str, float]:
    """Microseconds of one verification: of a token that came before, and of one that did not."""
    key = PrivateKey.generate(ROWS[row], kid="bench")
    claims = {"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "client_id": "bench"}
    token = sign({**claims, "scope": "a b", "exp": time.time() + 3600}, key, typ="at+jwt")
    presented = Presented("bearer", Secret(token))

    def verifying(remember: int) -> Callable[[], Awaitable[object]]:
        options = {"jwks": [key.jwk], "algorithms": (ROWS[row],), "remember": remember}
        verifier = JWTVerifier(ISSUER, **options)
        return lambda: verifier.verify(presented, RESOURCE)

    async def both() -> dict[str, float]:
        return {
            "warm_us": await least(verifying(remember=100), seconds / 2),
            "new_us": await least(verifying(remember=0), seconds / 2),
        }

    return asyncio.run(both())


async def least(work: Callable[[], Awaitable[object]], seconds: float) -> float:
    """Microseconds of one, in the best of many batches, short ones: noise only adds."""
    found, end = float("inf"), time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        for _ in range(BATCH):
            if await work() is None:
                raise ValueError("a good token was refused")
        found = min(found, time.perf_counter() - begin)
    return found / BATCH * 1e6
