"""Rules about deprecated features: notes that say until when each stays, and what replaces it.

Using one breaks nothing, and fails no check. The facts are those of :mod:`isthmus.revisions.deprecations`.
"""

from collections.abc import Iterator
from typing import Any

from isthmus.linter.rules.conversation import ObservedConversation, ObservedMessage
from isthmus.linter.rules.rule import LintRule, RuleCheck, Violation
from isthmus.linter.rules.visit import ServerVisit
from isthmus.revisions.deprecations import DEPRECATIONS


def _list_questions(said: ObservedMessage) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The question of a server in a message: the place, the method and its params."""
    if said.side == "server" and said.kind == "request":
        yield "", said.method, said.params
    asked = said.result.get("inputRequests") if said.kind == "result" else None
    for key, question in asked.items() if isinstance(asked, dict) else ():
        if isinstance(question, dict):
            params = question.get("params")
            place = f"$.result.inputRequests.{key}"
            yield place, str(question.get("method")), params if isinstance(params, dict) else {}


def expect_no_question(method: str) -> RuleCheck:
    """The check that a server does not ask this, in a request or in a result."""

    def check(conversation: ObservedConversation) -> Iterator[Violation]:
        for said in conversation:
            for place, asked, _ in _list_questions(said):
                if asked == method:
                    where = f"{said.where} {place}".strip()
                    yield Violation(where, f"it asks {method}", said.number, said.side)

    return check


def _check_included_context(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        for place, asked, params in _list_questions(said):
            wanted = params.get("includeContext")
            if asked == "sampling/createMessage" and wanted in {"thisServer", "allServers"}:
                where = f"{said.where} {place}".strip()
                yield Violation(where, f"includeContext is {wanted!r}", said.number, said.side)


def _check_log_messages(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        if said.side == "server" and said.method == "notifications/message":
            yield Violation(said.where, "it sends a log message", said.number, said.side)


def _check_http_sse(visit: ServerVisit) -> Iterator[Violation]:
    if visit.over == "http+sse":
        yield Violation("the transport", "it answers over HTTP+SSE only")


def _make_rule(id: str, check: RuleCheck, text: str) -> LintRule:
    row = DEPRECATIONS[id]
    return LintRule(
        f"deprecated.{id}",
        "note",
        row.clause,
        f"{text} {row.notice}",
        f"{row.instead[0].upper()}{row.instead[1:]}.",
        check,
        since="2024-11-05" if id == "http-sse" else row.since,
    )


DEPRECATED_USE_RULES: tuple[LintRule, ...] = (
    _make_rule("roots", expect_no_question("roots/list"), "A server does not ask for roots."),
    _make_rule(
        "sampling",
        expect_no_question("sampling/createMessage"),
        "A server does not have the client's model write.",
    ),
    _make_rule(
        "include-context",
        _check_included_context,
        "A server does not ask for the context of other servers.",
    ),
    _make_rule("logging", _check_log_messages, "A server sends no log messages to the client."),
)

DEPRECATED_VISIT_RULES: tuple[LintRule, ...] = (
    _make_rule("http-sse", _check_http_sse, "A server over HTTP speaks Streamable HTTP."),
)
