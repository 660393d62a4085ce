"""Error codes by revision, and HTTP statuses by code."""

from collections.abc import Mapping

from isthmus.revisions.table import Era, Feature, Revision

LIMITED_CODE = -31429  # the code of "too much", from either side; it ends like HTTP's
# spec 2026-07-28 basic#error-codes: new codes SHOULD lie outside the range JSON-RPC reserves

# The code where the store that processes share cannot be reached; it ends like HTTP's status
UNAVAILABLE_CODE = -31503

# The code where nobody has authenticated, or no longer; it ends like HTTP's status
UNAUTHENTICATED_CODE = -31401

# The code where who has authenticated was not granted what it takes; it ends like HTTP's status
FORBIDDEN_CODE = -31403


def resource_not_found_code(revision: Revision) -> int:
    """The code that ``resources/read`` of an unknown URI is refused with.

    Args:
        revision: the revision of the request.
    """
    # spec 2026-07-28 server/resources#error-handling: a MUST; -32002 must no longer be sent
    return -32602 if revision.era is Era.MODERN else -32002


def url_required_code(revision: Revision) -> int | None:
    """The code a call is refused with until the user has visited a page; None where it asks instead."""
    # spec 2026-07-28 basic#error-codes: -32042 MUST no longer be sent
    return -32042 if revision.has(Feature.URL_REQUIRED_ERROR) else None


# spec 2026-07-28 basic#error-codes: codes of earlier revisions that MUST NOT be sent any more, and
# what says the same
_RETIRED_CODES: Mapping[int, int] = {-32002: -32602, -32042: -32603}


def permitted_code(revision: Revision, code: int) -> int:
    """The code of an error as a revision has it, whoever chose it: an author, or a server behind us.

    0 is no code of anything, in no revision.
    """
    if revision.era is Era.MODERN:
        code = _RETIRED_CODES.get(code, code)
    return code or -32603


# spec 2026-07-28 basic/transports/streamable-http: 404 for an unknown method, 400 for headers and
# versions at fault.
# spec 2026-07-28 basic#_meta: 400 for params without the required facts (-32602) and for a missing
# capability. An unknown tool is -32602 as well, and a status by code cannot tell them apart.
# What is no JSON, or no JSON-RPC, is as broken: 400.
_STATUS_BY_CODE: Mapping[int, int] = {
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

    Args:
        code: the JSON-RPC error code.
    """
    return _STATUS_BY_CODE.get(code, 200)
