"""Error codes by revision, and HTTP statuses by code."""

from collections.abc import Mapping

from isthmus.revisions.table import Era, Revision

__all__ = ["http_status", "resource_not_found_code"]


def resource_not_found_code(revision: Revision) -> int:
    """What ``resources/read`` of an unknown URI is refused with."""
    # spec 2026-07-28 server/resources#error-handling: a MUST; -32002 must no longer be sent
    return -32602 if revision.era is Era.MODERN else -32002


# spec 2026-07-28 basic/transports/streamable-http and basic#_meta demand all of these but -32700
# and -32600, which stand for requests as broken as the others. For -32602 the demand is about
# params without the required _meta; an unknown tool has the same code and so gets the same status.
_STATUS: Mapping[int, int] = {
    -32700: 400,
    -32600: 400,
    -32601: 404,
    -32602: 400,
    -32020: 400,
    -32021: 400,
    -32022: 400,
}


def http_status(code: int) -> int:
    """The HTTP status an error answer to a modern request travels with, before a stream began.

    200 where the specification demands no other: an error that a feature raised (-32603 and the
    codes of applications among them) is an answer that HTTP delivered. A 5xx would have proxies
    retry the call, or put a page of their own in place of the body.
    """
    return _STATUS.get(code, 200)
