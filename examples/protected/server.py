"""Bookings that not everybody may make: two scopes, and the authorization server that grants them.

``python examples/protected`` runs it together with a client. By itself:
``python examples/protected/server.py FOLDER``, at http://127.0.0.1:8000/mcp. Users and grants are kept
in the folder; there is one user, ada, whose password is "correct horse battery".
"""

import os
import sys
from pathlib import Path

from isthmus import Server
from isthmus.auth import AuthorizationServer, PasswordUsers, Principal, Secret, SQLiteAuthStore

ORIGIN = os.environ.get("BOOKINGS_ORIGIN", "http://127.0.0.1:8000")
FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
READ, WRITE = "bookings:read", "bookings:write"

users = PasswordUsers(FOLDER / "users.db")
if users.find("ada") is None:
    users.add("ada", Secret("correct horse battery"), "Ada")

authority = AuthorizationServer(
    issuer=ORIGIN,
    resources=[f"{ORIGIN}/mcp"],
    scopes={READ: "See your bookings", WRITE: "Book and cancel places for you"},
    users=users,
    # The key belongs into the environment (ISTHMUS_AUTH_KEY), not into a file that everybody reads.
    store=SQLiteAuthStore(FOLDER / "auth.db", key="bm90LWEtc2VjcmV0LWJ1dC1hbi1leGFtcGxlLWtleS4"),
)
server = Server("bookings", auth=authority.resource_auth(f"{ORIGIN}/mcp", scopes={READ}))
bookings: dict[str, list[str]] = {}


@server.tool(read_only=True)
def list_bookings(who: Principal) -> list[str]:
    """List the caller's bookings."""
    return bookings.get(who.subject, [])


@server.tool(scopes={WRITE})
def book(date: str, who: Principal) -> str:
    """Book a place.

    Args:
        date: ISO date, for example 2026-05-01.
    """
    bookings.setdefault(who.subject, []).append(date)
    return f"booked {date} for {who.subject}"


if __name__ == "__main__":
    server.run("http", port=int(ORIGIN.rpartition(":")[2]))
