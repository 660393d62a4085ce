"""A server of fastmcp with a login, over HTTP at the port that is given; its tool says who calls."""

import sys

from fastmcp import FastMCP
from fastmcp.server.auth import RemoteAuthProvider, StaticTokenVerifier
from fastmcp.server.dependencies import get_access_token

TOKENS = {
    "good": {"client_id": "ada", "scopes": ["read", "write"], "sub": "user-1"},
    "late": {"client_id": "ada", "scopes": ["read"], "expires_at": 1},
    "some": {"client_id": "ada", "scopes": ["read"]},
    "weak": {"client_id": "ada", "scopes": []},
}

kind, port = sys.argv[1:]
verifier = StaticTokenVerifier(TOKENS, required_scopes=["read"])
auth = verifier
if kind == "remote":
    auth = RemoteAuthProvider(
        verifier, ["https://login.example/a"], f"http://127.0.0.1:{port}", resource_name="Shop"
    )
    auth.required_scopes = ["read", "write"]

mcp = FastMCP("logins", auth=auth)


@mcp.tool
def who() -> list:
    """Say who calls."""
    token = get_access_token()
    return [token.token, token.client_id, sorted(token.scopes), token.claims.get("sub")]


mcp.run("http", port=int(port), show_banner=False)
