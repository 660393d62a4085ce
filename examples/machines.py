"""A job that gets its own tokens: it signs with a key, and no user and no browser is there.

``python examples/machines.py`` runs a server with an embedded authorization server, and the job.
"""

import asyncio
import socket

import uvicorn
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from isthmus import Client, Principal, Server
from isthmus.auth import (
    AuthorizationServer,
    ClientCredentials,
    MemoryAuthStore,
    PrivateKey,
    RegisteredClient,
    RegistrationPolicy,
)


def new_key() -> PrivateKey:
    """A key for the job; a real one is made once, and comes from where secrets are kept."""
    made = generate_private_key(SECP256R1())
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return PrivateKey(made.private_bytes(*form), alg="ES256")


def guarded(origin: str, key: PrivateKey) -> Server:
    """A server that takes tokens, and issues them to one job: the one that has the key."""
    job = RegisteredClient(
        client_id="nightly-report",
        grant_types=("client_credentials",),
        auth_method="private_key_jwt",
        jwks={"keys": [dict(key.jwk)]},
        scopes=("report:read",),
    )
    authority = AuthorizationServer(
        issuer=origin,
        resources=[f"{origin}/mcp"],
        scopes={"report:read": "Read the report"},
        users=None,
        store=MemoryAuthStore(),
        registration=RegistrationPolicy(static=[job]),
    )
    server = Server("reports", auth=authority.resource_auth(f"{origin}/mcp"))

    @server.tool(scopes={"report:read"})
    def report(who: Principal) -> str:
        """Say what there is to say tonight."""
        return f"all quiet, {who.client_id}"

    return server


async def visit(url: str, key: PrivateKey) -> str:
    """The job: no token is passed on, none is kept, and new ones are had before the old ones end."""
    auth = ClientCredentials("nightly-report", key=key, scopes={"report:read"})
    async with Client(url, auth=auth) as client:
        return (await client.call_tool("report")).text


async def main() -> None:
    """Serve, visit, stop."""
    key = new_key()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        app = guarded(origin, key).asgi()
        running = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        serving = asyncio.create_task(running.serve([listening]))
        print(await visit(f"{origin}/mcp", key))
        running.should_exit = True
        await serving


if __name__ == "__main__":
    asyncio.run(main())
