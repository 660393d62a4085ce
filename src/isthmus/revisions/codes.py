"""Error codes by revision, and HTTP statuses by code."""

from isthmus.revisions.table import Era, Revision

__all__ = ["http_status", "resource_not_found_code"]


def resource_not_found_code(revision: Revision) -> int:
    """What ``resources/read`` of an unknown URI is refused with."""
    return -32602 if revision.era is Era.MODERN else -32002


_STATUS = {
    -32700: 400,
    -32600: 400,
    -32602: 400,
    -32601: 404,
    -32020: 400,
    -32021: 400,
    -32022: 400,
}


def http_status(code: int) -> int:
    """The HTTP status an error answer of a modern request travels with."""
    return _STATUS.get(code, 200)
