"""Tools that use somebody else's API in the name of whoever calls: users log in there, and connect more.

``python examples/upstream.py`` at http://127.0.0.1:8000/mcp, with an OpenID provider of yours:
ACME_ISSUER, ACME_CLIENT_ID and ACME_CLIENT_SECRET name it, and how this server is registered there,
with the redirect URI http://127.0.0.1:8000/auth/upstream/acme; for the second provider it ends in
/files. Keys belong into ISTHMUS_AUTH_KEY.
"""

import os

from isthmus import Context, Server
from isthmus.auth import AuthorizationServer, Endpoints, MemoryAuthStore, Provider, UpstreamLogin

ORIGIN = os.environ.get("UPSTREAM_ORIGIN", "http://127.0.0.1:8000")
ACME = os.environ.get("ACME_ISSUER", "https://login.acme.example")
SECRET = os.environ.get("ACME_CLIENT_SECRET", "")
CLIENT = os.environ.get("ACME_CLIENT_ID", "mcp")

# Where users log in: an OpenID provider says by itself where it takes what.
acme = Provider(
    "acme",
    title="Acme",
    issuer=ACME,
    client_id=CLIENT,
    client_secret=SECRET,
    scopes=["openid", "profile"],
    api=[ACME],
    check_interval=300,
)

# What they may connect later: a provider with bare endpoints, as GitHub has them.
files = Provider(
    "files",
    title="Acme Files",
    endpoints=Endpoints(
        authorize=f"{ACME}/authorize", token=f"{ACME}/token", revoke=f"{ACME}/revoke", issuer=ACME
    ),
    client_id=CLIENT,
    client_secret=SECRET,
    scopes=["files"],
    api=[ACME],
)

authority = AuthorizationServer(
    issuer=ORIGIN,
    resources=[f"{ORIGIN}/mcp"],
    scopes={"profile": "See your profile at Acme"},
    users=UpstreamLogin(acme),
    providers=[files],
    store=MemoryAuthStore(),  # SQLiteAuthStore("auth.db") outlives the process
)
server = Server("upstream", auth=authority.resource_auth(f"{ORIGIN}/mcp", scopes={"profile"}))


@server.tool(read_only=True)
async def whoami(ctx: Context) -> str:
    """Say who the caller is at Acme."""
    api = await ctx.upstream("acme")
    return str((await api.json("/user"))["login"])


@server.tool
async def save_note(text: str, ctx: Context) -> str:
    """Save a note among the caller's files at Acme.

    Args:
        text: the note.
    """
    api = await ctx.upstream("files")  # asks the user to connect the account, the first time
    saved = await api.json("/notes", method="POST", data={"text": text})
    return f"saved {saved['sent']['text']!r} for {saved['login']}"


if __name__ == "__main__":
    server.run("http", port=int(ORIGIN.rpartition(":")[2]))
