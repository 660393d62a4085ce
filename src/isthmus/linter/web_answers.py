"""Rules about HTTP: statuses, headers, sessions, and whom a server lets in."""

import re
from collections.abc import Iterator
from html import unescape

from isthmus.linter.offers import TELLTALE
from isthmus.linter.rule import Check, Fault, Rule
from isthmus.linter.visit import Outcome, Visit, http_status
from isthmus.revisions import MODERN

__all__ = ["WEB"]

EVENTS, JSON = "text/event-stream", "application/json"


def media(outcome: Outcome) -> str:
    """The media type of a response."""
    return outcome.headers.get("content-type", "").partition(";")[0].strip().lower()


def _types(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.outcomes.values():
        if (
            outcome.status == 200
            and outcome.reply is not None
            and media(outcome) not in {EVENTS, JSON}
        ):
            yield Fault(outcome.probe, f"Content-Type is {media(outcome) or 'missing'}")


def _accepted(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.heard("an unknown notification", "a cancellation of nothing"):
        if 200 <= outcome.status < 300 and (outcome.status != 202 or outcome.body):
            yield Fault(outcome.probe, f"HTTP {outcome.status}, {len(outcome.body)} bytes of body")


def _leaks(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.outcomes.values():
        if outcome.status >= 400 and outcome.body:
            text = unescape(BREAK.sub("\n", outcome.body.decode(errors="replace")))
            telling = TELLTALE.search(text)
            if telling:
                yield Fault(outcome.probe, f"{outcome.told} shows {telling[0].strip()!r}")


BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)


def _origin(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.heard("a foreign Origin"):
        if outcome.status != 403:
            yield Fault(outcome.probe, outcome.told)


def _host(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.heard("a foreign Host"):
        if not 400 <= outcome.status < 500:
            yield Fault(outcome.probe, outcome.told)


def _get(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.heard("GET"):
        stream = outcome.status == 200 and media(outcome) == EVENTS
        allowed = {405} if visit.revision in MODERN or stream else {405, 400, 404}
        if not (stream and visit.revision not in MODERN) and outcome.status not in allowed:
            yield Fault(outcome.probe, f"{outcome.told}, {media(outcome) or 'no content type'}")


def _session_id(visit: Visit) -> Iterator[Fault]:
    if visit.session is not None and not all("!" <= c <= "~" for c in visit.session):
        yield Fault("Mcp-Session-Id", repr(visit.session[:60]))


def _no_session(visit: Visit) -> Iterator[Fault]:
    yield from _where_sessions(visit, "a request of no session", 400)


def _unknown_session(visit: Visit) -> Iterator[Fault]:
    yield from _where_sessions(visit, "a request of an unknown session", 404, 400)


def _ended_session(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.heard("DELETE"):
        if 200 <= outcome.status < 300:
            yield from _where_sessions(visit, "a request of an ended session", 404)


def _where_sessions(visit: Visit, probe: str, *statuses: int) -> Iterator[Fault]:
    if visit.session is not None:
        yield from http_status(probe, *statuses)(visit)


def _delete(visit: Visit) -> Iterator[Fault]:
    if visit.session is not None:
        for outcome in visit.heard("DELETE"):
            if not (200 <= outcome.status < 300 or outcome.status == 405):
                yield Fault("DELETE", outcome.told)


def _mismatch(*probes: str) -> Check:
    def check(visit: Visit) -> Iterator[Fault]:
        for outcome in visit.heard(*probes):
            if outcome.status != 400 or outcome.code != -32020:
                yield Fault(outcome.probe, outcome.told)

    return check


def _statuses(visit: Visit) -> Iterator[Fault]:
    for probe, status in STATUSES.items():
        for outcome in visit.heard(probe):
            if outcome.code is not None and outcome.status != status:
                yield Fault(probe, outcome.told)


STATUSES = {
    "an unknown method": 404,
    "an unknown version": 400,
    "a request that states nothing": 400,
}

WEB: tuple[Rule, ...] = (
    Rule(
        "http.type",
        "error",
        "2025-11-25 basic/transports#sending-messages-to-the-server",
        "A request is answered as application/json or text/event-stream.",
        "Set the Content-Type.",
        _types,
        since="2025-03-26",
    ),
    Rule(
        "http.accepted",
        "error",
        "2025-11-25 basic/transports#sending-messages-to-the-server",
        "A notification that is accepted is answered by 202 without a body.",
        "Answer 202, and nothing else.",
        _accepted,
        since="2025-03-26",
    ),
    Rule(
        "http.leak",
        "warning",
        "ours",
        "The page of an HTTP error shows no stack trace and no paths of the server's own files.",
        "Answer by a sentence; frameworks show traces in development only, if they are told that this is none.",
        _leaks,
    ),
    Rule(
        "http.origin",
        "error",
        "2025-11-25 basic/transports#security-warning",
        "A foreign Origin is refused with 403: a page must not reach the server by DNS rebinding.",
        "Check Origin against the origins you serve.",
        _origin,
        since="2025-03-26",
    ),
    Rule(
        "http.host",
        "warning",
        "ours",
        "A server on this machine refuses a foreign Host: a page must not reach it by DNS rebinding.",
        "Check Host against the names you serve.",
        _host,
        since="2025-03-26",
    ),
    Rule(
        "http.get",
        "error",
        "2025-11-25 basic/transports#listening-for-messages-from-the-server",
        "GET gives an event stream, or 405; since 2026-07-28 only 405.",
        "Answer 405 where there is no stream.",
        _get,
        since="2025-03-26",
    ),
    Rule(
        "http.verbs",
        "warning",
        "ours",
        "A method of HTTP that means nothing here is answered by 405.",
        "Answer 405.",
        http_status("PUT", 405, 404, 501),
        since="2025-03-26",
    ),
    Rule(
        "http.body-type",
        "warning",
        "ours",
        "A body that does not say it is JSON is refused, since a page elsewhere may send it unasked.",
        "Answer 415 where Content-Type is not application/json.",
        http_status("a body that is no JSON by its type", 415, 400, 406),
        since="2025-03-26",
    ),
    Rule(
        "http.no-json",
        "warning",
        "2025-11-25 basic/transports#sending-messages-to-the-server",
        "A body that is no JSON is refused with an HTTP error.",
        "Answer 400.",
        http_status("no JSON", 400),
        since="2025-03-26",
    ),
    Rule(
        "http.version",
        "error",
        "2025-11-25 basic/transports#protocol-version-header",
        "An unknown MCP-Protocol-Version is refused with 400.",
        "Check the header, and answer 400.",
        http_status("an unknown version in the header", 400),
        since="2025-06-18",
        until="2025-11-25",
    ),
    Rule(
        "http.version-missing",
        "warning",
        "2025-11-25 basic/transports#protocol-version-header",
        "A request without MCP-Protocol-Version is served as the session's version.",
        "Take the version that was negotiated, or 2025-03-26.",
        http_status("no version in the header", 200),
        since="2025-06-18",
        until="2025-11-25",
    ),
    Rule(
        "http.session-id",
        "error",
        "2025-11-25 basic/transports#session-management",
        "A session id is made of visible ASCII characters.",
        "Use a random hexadecimal string.",
        _session_id,
        since="2025-03-26",
        until="2025-11-25",
    ),
    Rule(
        "http.session-missing",
        "warning",
        "2025-11-25 basic/transports#session-management",
        "A server with sessions refuses requests without one with 400.",
        "Answer 400.",
        _no_session,
        since="2025-03-26",
        until="2025-11-25",
    ),
    Rule(
        "http.session-unknown",
        "error",
        "2025-11-25 basic/transports#session-management",
        "A session that does not exist is refused with 404.",
        "Answer 404, so that the client begins anew.",
        _unknown_session,
        since="2025-03-26",
        until="2025-11-25",
    ),
    Rule(
        "http.session-ended",
        "error",
        "2025-11-25 basic/transports#session-management",
        "A session that was ended is refused with 404.",
        "Forget the session, and answer 404.",
        _ended_session,
        since="2025-03-26",
        until="2025-11-25",
    ),
    Rule(
        "http.delete",
        "warning",
        "2025-11-25 basic/transports#session-management",
        "DELETE ends a session, or is answered by 405.",
        "Answer 2xx or 405.",
        _delete,
        since="2025-03-26",
        until="2025-11-25",
    ),
    Rule(
        "http.version-mismatch",
        "error",
        "2026-07-28 basic/transports/streamable-http#server-validation",
        "A version in the header that is not that of the body is refused with 400 and -32020.",
        "Compare MCP-Protocol-Version with _meta.",
        _mismatch("another version in the header"),
        since="2026-07-28",
    ),
    Rule(
        "http.method-mismatch",
        "error",
        "2026-07-28 basic/transports/streamable-http#server-validation",
        "Mcp-Method that is missing or not the body's method is refused with 400 and -32020.",
        "Compare Mcp-Method with the method.",
        _mismatch("no Mcp-Method", "another Mcp-Method"),
        since="2026-07-28",
    ),
    Rule(
        "http.name-mismatch",
        "error",
        "2026-07-28 basic/transports/streamable-http#server-validation",
        "Mcp-Name that is missing or not the body's name is refused with 400 and -32020.",
        "Compare Mcp-Name with params.name or params.uri.",
        _mismatch("no Mcp-Name", "another Mcp-Name"),
        since="2026-07-28",
    ),
    Rule(
        "http.statuses",
        "error",
        "2026-07-28 basic/transports/streamable-http#protocol-version-header",
        "An unknown method is refused with 404; an unknown version and missing facts with 400.",
        "Set the status by the error's code.",
        _statuses,
        since="2026-07-28",
    ),
)
"""The rules, in the order in which they are reported; for visits over HTTP."""
