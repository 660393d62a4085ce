"""Ownership of connections: whose account a connection shows, as its isolation key says.

The user of the host needs no name in a key. Everybody else has connections of their own wherever a server
is shown an account, and their principal is the first word of the key, whatever a gateway adds to it.
"""

from isthmus.host.model.entries import ServerEntry

LOCAL_PRINCIPAL = "user:local"
PEOPLE = ("user:", "client:")  # with accounts of their own; agents act for the user of the host

KINDS_WITH_TOKENS = frozenset({"http", "sse", "ws"})

PERSONAL_KINDS = frozenset({"user-oauth", "pasted-key", "token-exchange", "id-jag"})
# kinds that say whose token it is: no connection that several share can show one
NAMED_KINDS = frozenset({"pasted-key", "token-exchange", "id-jag"})

IMPLICIT_KIND = (
    ""  # nothing is configured: the login of the user of the host is shown, if there is one
)


def has_own_accounts(principal: str) -> bool:
    """Whether a principal is somebody else than the user of the host and what acts for them."""
    return principal.startswith(PEOPLE) and principal != LOCAL_PRINCIPAL


def name_connection(principal: str, key: str = "") -> str:
    """The isolation key of a connection that shows an account of somebody.

    Args:
        principal: whose account.
        key: which of their connections; one that has their name already is left as it is.
    """
    if not key or key == principal or key.startswith(f"{principal} "):
        return key or principal
    return f"{principal} {key}"


def read_owner(isolation: str) -> str:
    """The principal whose account a connection shows, by its isolation key."""
    first = isolation.partition(" ")[0]
    return first if has_own_accounts(first) else LOCAL_PRINCIPAL


def find_kind(entry: ServerEntry) -> str | None:
    """The kind of a server's credentials; None where it gets none of ours, empty where nothing is said."""
    if entry.kind not in KINDS_WITH_TOKENS or any(
        name.lower() == "authorization" for name in entry.headers
    ):
        return None
    return str(entry.options.auth.get("kind", IMPLICIT_KIND))
