"""Rules about HTTP: statuses, headers, sessions, and whom a server lets in."""

import re
from collections.abc import Iterator
from html import unescape

from isthmus.linter.rules.offers import STACK_TRACE
from isthmus.linter.rules.rule import LintRule, RuleCheck, Violation
from isthmus.linter.rules.visit import ProbeOutcome, ServerVisit, expect_http_status
from isthmus.revisions import MODERN

EVENT_STREAM_TYPE, JSON_TYPE = "text/event-stream", "application/json"


def read_media_type(outcome: ProbeOutcome) -> str:
    """The media type of a response."""
    return outcome.headers.get("content-type", "").partition(";")[0].strip().lower()


def _check_content_types(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.outcomes.values():
        if (
            outcome.status == 200
            and outcome.reply is not None
            and read_media_type(outcome) not in {EVENT_STREAM_TYPE, JSON_TYPE}
        ):
            yield Violation(
                outcome.probe, f"Content-Type is {read_media_type(outcome) or 'missing'}"
            )


def _check_accepted(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.heard("an unknown notification", "a cancellation of nothing"):
        if 200 <= outcome.status < 300 and (outcome.status != 202 or outcome.body):
            yield Violation(
                outcome.probe, f"HTTP {outcome.status}, {len(outcome.body)} bytes of body"
            )


def _check_leaks(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.outcomes.values():
        if outcome.status >= 400 and outcome.body:
            text = unescape(LINE_BREAK.sub("\n", outcome.body.decode(errors="replace")))
            telling = STACK_TRACE.search(text)
            if telling:
                yield Violation(outcome.probe, f"{outcome.told} shows {telling[0].strip()!r}")


LINE_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)


def _check_origin_header(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.heard("a foreign Origin"):
        if outcome.status != 403:
            yield Violation(outcome.probe, outcome.told)


def _check_host_header(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.heard("a foreign Host"):
        if not 400 <= outcome.status < 500:
            yield Violation(outcome.probe, outcome.told)


def _check_get(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.heard("GET"):
        stream = outcome.status == 200 and read_media_type(outcome) == EVENT_STREAM_TYPE
        allowed = {405} if visit.revision in MODERN or stream else {405, 400, 404}
        if not (stream and visit.revision not in MODERN) and outcome.status not in allowed:
            yield Violation(
                outcome.probe, f"{outcome.told}, {read_media_type(outcome) or 'no content type'}"
            )


def _check_session_id(visit: ServerVisit) -> Iterator[Violation]:
    if visit.session is not None and not all("!" <= c <= "~" for c in visit.session):
        yield Violation("Mcp-Session-Id", repr(visit.session[:60]))


def _check_no_session(visit: ServerVisit) -> Iterator[Violation]:
    yield from _expect_session_status(visit, "a request of no session", 400)


def _check_unknown_session(visit: ServerVisit) -> Iterator[Violation]:
    yield from _expect_session_status(visit, "a request of an unknown session", 404, 400)


def _check_ended_session(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.heard("DELETE"):
        if 200 <= outcome.status < 300:
            yield from _expect_session_status(visit, "a request of an ended session", 404)


def _expect_session_status(visit: ServerVisit, probe: str, *statuses: int) -> Iterator[Violation]:
    if visit.session is not None:
        yield from expect_http_status(probe, *statuses)(visit)


def _check_delete(visit: ServerVisit) -> Iterator[Violation]:
    if visit.session is not None:
        for outcome in visit.heard("DELETE"):
            if not (200 <= outcome.status < 300 or outcome.status == 405):
                yield Violation("DELETE", outcome.told)


def _expect_mismatch(*probes: str) -> RuleCheck:
    def check(visit: ServerVisit) -> Iterator[Violation]:
        for outcome in visit.heard(*probes):
            if outcome.status != 400 or outcome.code != -32020:
                yield Violation(outcome.probe, outcome.told)

    return check


def _check_statuses(visit: ServerVisit) -> Iterator[Violation]:
    for probe, status in STATUS_BY_PROBE.items():
        for outcome in visit.heard(probe):
            if outcome.code is not None and outcome.status != status:
                yield Violation(probe, outcome.told)


STATUS_BY_PROBE = {
    "an unknown method": 404,
    "an unknown version": 400,
    "a request that states nothing": 400,
}

# The rules, in the order in which they are reported; for visits over HTTP.
HTTP_RULES: tuple[LintRule, ...] = (
    LintRule(
        "http.type",
        "error",
        "2025-11-25 basic/transports#sending-messages-to-the-server",
        "A request is answered as application/json or text/event-stream.",
        "Set the Content-Type.",
        _check_content_types,
        since="2025-03-26",
    ),
    LintRule(
        "http.accepted",
        "error",
        "2025-11-25 basic/transports#sending-messages-to-the-server",
        "A notification that is accepted is answered by 202 without a body.",
        "Answer 202, and nothing else.",
        _check_accepted,
        since="2025-03-26",
    ),
    LintRule(
        "http.leak",
        "warning",
        "ours",
        "The page of an HTTP error shows no stack trace and no paths of the server's own files.",
        "Answer by a sentence; frameworks show traces in development only, if they are told that this is none.",
        _check_leaks,
    ),
    LintRule(
        "http.origin",
        "error",
        "2025-11-25 basic/transports#security-warning",
        "A foreign Origin is refused with 403: a page must not reach the server by DNS rebinding.",
        "Check Origin against the origins you serve.",
        _check_origin_header,
        since="2025-03-26",
    ),
    LintRule(
        "http.host",
        "warning",
        "ours",
        "A server on this machine refuses a foreign Host: a page must not reach it by DNS rebinding.",
        "Check Host against the names you serve.",
        _check_host_header,
        since="2025-03-26",
    ),
    LintRule(
        "http.get",
        "error",
        "2025-11-25 basic/transports#listening-for-messages-from-the-server",
        "GET gives an event stream, or 405; since 2026-07-28 only 405.",
        "Answer 405 where there is no stream.",
        _check_get,
        since="2025-03-26",
    ),
    LintRule(
        "http.verbs",
        "warning",
        "ours",
        "A method of HTTP that means nothing here is answered by 405.",
        "Answer 405.",
        expect_http_status("PUT", 405, 404, 501),
        since="2025-03-26",
    ),
    LintRule(
        "http.body-type",
        "warning",
        "ours",
        "A body that does not say it is JSON is refused, since a page elsewhere may send it unasked.",
        "Answer 415 where Content-Type is not application/json.",
        expect_http_status("a body that is no JSON by its type", 415, 400, 406),
        since="2025-03-26",
    ),
    LintRule(
        "http.no-json",
        "warning",
        "2025-11-25 basic/transports#sending-messages-to-the-server",
        "A body that is no JSON is refused with an HTTP error.",
        "Answer 400.",
        expect_http_status("no JSON", 400),
        since="2025-03-26",
    ),
    LintRule(
        "http.version",
        "error",
        "2025-11-25 basic/transports#protocol-version-header",
        "An unknown MCP-Protocol-Version is refused with 400.",
        "Check the header, and answer 400.",
        expect_http_status("an unknown version in the header", 400),
        since="2025-06-18",
        until="2025-11-25",
    ),
    LintRule(
        "http.version-missing",
        "warning",
        "2025-11-25 basic/transports#protocol-version-header",
        "A request without MCP-Protocol-Version is served as the session's version.",
        "Take the version that was negotiated, or 2025-03-26.",
        expect_http_status("no version in the header", 200),
        since="2025-06-18",
        until="2025-11-25",
    ),
    LintRule(
        "http.session-id",
        "error",
        "2025-11-25 basic/transports#session-management",
        "A session id is made of visible ASCII characters.",
        "Use a random hexadecimal string.",
        _check_session_id,
        since="2025-03-26",
        until="2025-11-25",
    ),
    LintRule(
        "http.session-missing",
        "warning",
        "2025-11-25 basic/transports#session-management",
        "A server with sessions refuses requests without one with 400.",
        "Answer 400.",
        _check_no_session,
        since="2025-03-26",
        until="2025-11-25",
    ),
    LintRule(
        "http.session-unknown",
        "error",
        "2025-11-25 basic/transports#session-management",
        "A session that does not exist is refused with 404.",
        "Answer 404, so that the client begins anew.",
        _check_unknown_session,
        since="2025-03-26",
        until="2025-11-25",
    ),
    LintRule(
        "http.session-ended",
        "error",
        "2025-11-25 basic/transports#session-management",
        "A session that was ended is refused with 404.",
        "Forget the session, and answer 404.",
        _check_ended_session,
        since="2025-03-26",
        until="2025-11-25",
    ),
    LintRule(
        "http.delete",
        "warning",
        "2025-11-25 basic/transports#session-management",
        "DELETE ends a session, or is answered by 405.",
        "Answer 2xx or 405.",
        _check_delete,
        since="2025-03-26",
        until="2025-11-25",
    ),
    LintRule(
        "http.version-mismatch",
        "error",
        "2026-07-28 basic/transports/streamable-http#server-validation",
        "A version in the header that is not that of the body is refused with 400 and -32020.",
        "Compare MCP-Protocol-Version with _meta.",
        _expect_mismatch("another version in the header"),
        since="2026-07-28",
    ),
    LintRule(
        "http.method-mismatch",
        "error",
        "2026-07-28 basic/transports/streamable-http#server-validation",
        "Mcp-Method that is missing or not the body's method is refused with 400 and -32020.",
        "Compare Mcp-Method with the method.",
        _expect_mismatch("no Mcp-Method", "another Mcp-Method"),
        since="2026-07-28",
    ),
    LintRule(
        "http.name-mismatch",
        "error",
        "2026-07-28 basic/transports/streamable-http#server-validation",
        "Mcp-Name that is missing or not the body's name is refused with 400 and -32020.",
        "Compare Mcp-Name with params.name or params.uri.",
        _expect_mismatch("no Mcp-Name", "another Mcp-Name"),
        since="2026-07-28",
    ),
    LintRule(
        "http.statuses",
        "error",
        "2026-07-28 basic/transports/streamable-http#protocol-version-header",
        "An unknown method is refused with 404; an unknown version and missing facts with 400.",
        "Set the status by the error's code.",
        _check_statuses,
        since="2026-07-28",
    ),
)
