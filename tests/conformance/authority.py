"""The embedded authorization server as the official suite visits it, with one client and one user.

``python authority.py PORT CALLBACK_PORT`` serves it on 127.0.0.1 until it is stopped. Its first line of
output is JSON: its issuer, the client that the suite is, and the user who logs in; made for this run.
"""

import asyncio
import json
import socket
import sys
import tempfile
from pathlib import Path

import uvicorn

from isthmus.auth.authorization_server.core.settings import RegistrationPolicy
from isthmus.auth.authorization_server.server import AuthorizationServer
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.auth.authorization_server.storage.store import SQLiteAuthStore
from isthmus.auth.authorization_server.users.passwords import PasswordUsers
from isthmus.auth.tokens.secret import Secret

CLIENT, USER = "conformance", "ada"


def made(folder: Path, issuer: str, callback: str, password: Secret) -> AuthorizationServer:
    """The authorization server, with its files in a folder."""
    users = PasswordUsers(folder / "users.db")
    users.add(USER, password)
    client = RegisteredClient(
        client_id=CLIENT,
        name="Conformance suite",
        redirect_uris=(callback,),
    )
    return AuthorizationServer(
        issuer,
        resources=[f"{issuer}/mcp"],
        scopes={"read": "Read", "write": "Write"},
        users=users,
        store=SQLiteAuthStore(folder / "auth.db", key=Secret.random()),
        registration=RegistrationPolicy(static=[client]),
    )


async def main(port: int, callback_port: int) -> None:
    """Serve until stopped."""
    issuer, callback = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{callback_port}/callback"
    password = Secret.random()
    with tempfile.TemporaryDirectory() as folder:
        authority = made(Path(folder), issuer, callback, password)
        # Public: where a server takes clients without a secret, the suite is one, whatever it was given.
        said = {"issuer": issuer, "client_id": CLIENT, "client_secret": "none"}
        # What connects from now on waits until it is served.
        with socket.create_server(("127.0.0.1", port)) as listening:
            print(json.dumps({**said, "name": USER, "password": password.reveal()}), flush=True)
            config = uvicorn.Config(authority, log_level="warning")
            await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
