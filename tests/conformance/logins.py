"""How the client that the official suite tests logs in: as a user without a browser, or as a machine.

The suite's authorization servers say yes at once, so that the browser's part is one request whose
redirect is not followed.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import machines

from isthmus.auth.client.discovery import Compat, Discovery
from isthmus.auth.client.grants.oauth import OAuth
from isthmus.auth.client.redirect import ByHand
from isthmus.auth.client.registration import StaticClient
from isthmus.auth.client.store.records import MemoryTokenStore
from isthmus.auth.net.network import Network, desktop
from isthmus.auth.net.urls import origin_of
from isthmus.auth.tokens.secret import Secret
from isthmus.transports.http.client.requests import Authorization

REDIRECT = "http://localhost:3000/callback"
DOCUMENT = "https://conformance-test.local/client-metadata.json"

Login = Callable[[str, dict[str, Any]], Awaitable[Authorization]]


async def visit(url: str) -> str:
    """Go where a browser would go, and say where one would be sent to."""
    async with aiohttp.ClientSession() as session, session.get(url, allow_redirects=False) as page:
        return page.headers["Location"]


async def user(_url: str, _context: dict[str, Any], **options: Any) -> Authorization:
    """A user who agrees to everything."""
    return OAuth(
        "isthmus-conformance",
        client_metadata_url=DOCUMENT,
        redirect=ByHand(REDIRECT, visit),
        store=MemoryTokenStore(),
        **options,
    )


async def preregistered(url: str, context: dict[str, Any]) -> Authorization:
    """The same, with a client that the authorization server knows: who that is, is found out."""
    network = Network(desktop(url))
    place = await Discovery(url, network).find()
    await network.close()
    client = StaticClient(context["client_id"], secret=Secret(context["client_secret"]))
    return await user(url, context, clients={place.server.issuer: client})


async def below_origin(url: str, context: dict[str, Any]) -> Authorization:
    """The same, and the server's metadata may name its whole origin, as this scenario has it."""
    return await user(url, context, compat=Compat(parent_resources=frozenset({origin_of(url)})))


async def bound(url: str, context: dict[str, Any]) -> Authorization:
    """The same, with tokens that are of no use without a key."""
    return await user(url, context, dpop="require")


USERS = (
    *("2025-03-26-oauth-endpoint-fallback", "2025-03-26-oauth-metadata-backcompat"),
    *("authorization-server-migration", "basic-cimd", "resource-mismatch"),
    *("iss-normalized", "iss-not-advertised", "iss-supported", "iss-supported-missing"),
    *("iss-unexpected", "iss-wrong-issuer", "metadata-default", "metadata-issuer-mismatch"),
    *("metadata-var1", "metadata-var3"),
    *("offline-access-not-supported", "offline-access-scope"),
    *("scope-from-scopes-supported", "scope-from-www-authenticate", "scope-omitted-when-undefined"),
    *("scope-retry-limit", "scope-step-up"),
    *("token-endpoint-auth-basic", "token-endpoint-auth-none", "token-endpoint-auth-post"),
)

LOGINS: dict[str, Login] = {
    **dict.fromkeys(USERS, user),
    "metadata-var2": below_origin,
    "pre-registration": preregistered,
    "dpop": bound,
    "dpop-nonce": bound,
    **machines.MACHINES,
}
"""Who logs in, by scenario."""


async def authorization(name: str, url: str, context: dict[str, Any]) -> Authorization:
    """What a scenario has its client log in with."""
    return await LOGINS[name](url, context)
