"""Our server with the authorization server inside, for other people's clients to log in to.

``isthmus_auth_server.py PORT``: one user, ``ada``; ``whoami`` takes ``notes:read``, ``write`` takes
``notes:write`` as well, so that a client has to ask for more in the middle of its work.
"""

import sys
import tempfile
from pathlib import Path

from isthmus import Server
from isthmus.auth import AuthorizationServer, MemoryAuthStore, PasswordUsers, Principal, Secret

PORT = int(sys.argv[1])
ISSUER = f"http://127.0.0.1:{PORT}"
RESOURCE = f"{ISSUER}/mcp"

users = PasswordUsers(Path(tempfile.mkdtemp()) / "users.db", memory=1024, rounds=1, lanes=1)
users.add("ada", Secret("correct horse"))
authority = AuthorizationServer(
    issuer=ISSUER,
    resources=[RESOURCE],
    scopes={"notes:read": "Read your notes", "notes:write": "Write notes"},
    users=users,
    store=MemoryAuthStore(),
)
server = Server("ours", auth=authority.resource_auth(RESOURCE, scopes={"notes:read"}))


@server.tool
def whoami(who: Principal) -> str:
    """Who calls."""
    return who.subject


@server.tool(scopes={"notes:write"})
def write() -> str:
    """Write."""
    return "written"


if __name__ == "__main__":
    server.run("http", port=PORT)
