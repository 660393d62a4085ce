"""A server that takes the access tokens of a Keycloak realm: the preset knows how Keycloak spells them.

``isthmus run --http examples/keycloak.py``, with the realm in KEYCLOAK_URL and the server's public URL in MCP_URL.
Clients are told of the realm, and log in there. Entra, Okta, Auth0 and others have presets, too.
"""

import os
from typing import Any

from isthmus import Principal, Server
from isthmus.auth.presets import KEYCLOAK

REALM = os.environ.get("KEYCLOAK_URL", "https://login.example.com/realms/tools")
MCP = os.environ.get("MCP_URL", "https://mcp.example.com/mcp")


def make_server(**options: Any) -> Server:
    """Make the server; ``network=`` fetches the realm's keys in another way, as tests do."""
    auth = KEYCLOAK.resource_auth(MCP, url=REALM, scopes={"files.read"}, **options)
    server = Server("files", version="1.0", auth=auth)

    @server.tool(read_only=True)
    def whoami(who: Principal) -> str:
        """Say who calls, and by which client."""
        return f"{who.subject}, by {who.client_id}"

    return server


server = make_server()
