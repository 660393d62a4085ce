"""Rules about what a server offers: whether it is declared, works, ends, and keeps its promises."""

from collections.abc import Iterator
from typing import Any

from isthmus.linter.rules.rule import LintRule, Violation
from isthmus.linter.rules.visit import ProbeOutcome, ServerVisit, expect_result

LISTED_KINDS = {
    "tools": ("the list of tools", "tools that were not declared"),
    "prompts": ("the list of prompts", "prompts that were not declared"),
    "resources": ("the list of resources", "resources that were not declared"),
}


def _check_declared_works(visit: ServerVisit) -> Iterator[Violation]:
    for capability, (probe, _) in LISTED_KINDS.items():
        for outcome in visit.heard(probe) if visit.declares(capability) else ():
            if outcome.result is None:
                yield Violation(probe, outcome.told)
    for probe, capability in (("a completion", "completions"), ("a log level", "logging")):
        for outcome in visit.heard(probe):
            if outcome.code == -32601:
                yield Violation(probe, f"{capability} was declared: {outcome.told}")


def _check_works_declared(visit: ServerVisit) -> Iterator[Violation]:
    for capability, (_, probe) in LISTED_KINDS.items():
        for outcome in visit.heard(probe):
            if outcome.result and outcome.result.get(capability):
                count = len(outcome.result[capability])
                yield Violation(
                    f"{capability}/list", f"it has {count}, and declares no {capability}"
                )


def _check_listed_works(visit: ServerVisit) -> Iterator[Violation]:
    yield from expect_result("a resource that is listed")(visit)
    for outcome in visit.heard("a prompt that is listed"):
        # it may want something that this client did not declare, and say so
        if outcome.code in {-32601, -32603} or outcome.reply is None:
            yield Violation(outcome.probe, outcome.told)


def _check_paging(visit: ServerVisit) -> Iterator[Violation]:
    for method, problem in visit.paging.items():
        yield Violation(method, problem)


def _check_stable_order(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.heard("the list of tools once more"):
        again = outcome.result.get("tools") if outcome.result else None
        first = visit.items.get("tools", [])
        if isinstance(again, list) and list_names(again) != list_names(first)[: len(again)]:
            yield Violation("tools/list", "asked twice, it gave them in different orders")


def list_names(tools: list[Any]) -> list[Any]:
    """The names of tools, in their order."""
    return [tool.get("name") if isinstance(tool, dict) else tool for tool in tools]


def _check_acknowledgement(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.of("a stream of changes"):
        first = find_first_message(outcome)
        if not declares_changes(visit) and not first:
            continue  # it has no changes to tell of, and nothing to acknowledge
        if first.get("method") != "notifications/subscriptions/acknowledged":
            yield Violation(
                outcome.probe, outcome.told if not first else f"first came {first}"[:200]
            )


def find_first_message(outcome: ProbeOutcome) -> dict[str, Any]:
    """The first message that came before an answer; empty where it was none."""
    first = outcome.others[0] if outcome.others else None
    return first if isinstance(first, dict) else {}


def declares_changes(visit: ServerVisit) -> bool:
    """Whether the server declares anything that a stream of changes would tell of."""
    return any(visit.declares(f"{kind}.listChanged") for kind in LISTED_KINDS)


def _check_granted_changes(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.heard("a stream of changes"):
        first = find_first_message(outcome)
        params = first.get("params")
        granted = params.get("notifications") if isinstance(params, dict) else None
        surplus = sorted(granted.keys() - ASKED_CHANGES) if isinstance(granted, dict) else []
        if surplus:
            yield Violation(outcome.probe, f"it grants {surplus}, which nobody asked for")


ASKED_CHANGES = {"toolsListChanged", "promptsListChanged"}


def _check_output_schemas(visit: ServerVisit) -> Iterator[Violation]:
    """Hold the results of tools against their output schemas."""
    from isthmus.client.model.schema_validation import (
        SchemaValidator,  # slow, and needed where tools are called only
    )

    listed = visit.items.get("tools", ())
    schemas = {str(tool.get("name")): tool.get("outputSchema") for tool in listed}
    for name, outcome in visit.called.items():
        result, schema = outcome.result, schemas.get(name)
        if result is None or not isinstance(schema, dict) or result.get("isError") is True:
            continue
        if "structuredContent" not in result:
            yield Violation(f"calling {name}", "it has an output schema, and no structuredContent")
            continue
        wrong = SchemaValidator(schema, f"the output schema of {name}").complaint(
            result["structuredContent"]
        )
        if wrong:
            yield Violation(f"calling {name}", wrong[:200])


def _check_text_fallback(visit: ServerVisit) -> Iterator[Violation]:
    for name, outcome in visit.called.items():
        result = outcome.result or {}
        content = result.get("content")
        blocks = content if isinstance(content, list) else []
        texts = [b for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
        if "structuredContent" in result and not texts:
            yield Violation(f"calling {name}", "structured content, and no text beside it")


def _check_calls(visit: ServerVisit) -> Iterator[Violation]:
    for name, outcome in visit.called.items():
        if not outcome.silent and (outcome.reply is None or outcome.code is not None):
            yield Violation(f"calling {name}", outcome.told)


def _check_timeouts(visit: ServerVisit) -> Iterator[Violation]:
    for name, outcome in visit.called.items():
        if outcome.silent:
            yield Violation(f"calling {name}", "no answer in time; it was cancelled")


CAPABILITY_RULES: tuple[LintRule, ...] = (  # the rules, in the order in which they are reported
    LintRule(
        "capabilities.work",
        "error",
        "2025-11-25 basic/lifecycle#capability-negotiation",
        "What a server declares works.",
        "Serve the method, or leave the capability out.",
        _check_declared_works,
    ),
    LintRule(
        "capabilities.declared",
        "error",
        "2025-11-25 server/tools#capabilities",
        "What a server offers is declared.",
        "Declare the capability: clients do not ask for what is not declared.",
        _check_works_declared,
    ),
    LintRule(
        "capabilities.subscribe",
        "error",
        "2025-11-25 server/resources#subscriptions",
        "A server that declares subscriptions takes them, and takes them back.",
        "Serve resources/subscribe and resources/unsubscribe.",
        expect_result("a subscription", "the end of a subscription"),
        until="2025-11-25",
    ),
    LintRule(
        "capabilities.listed-works",
        "warning",
        "2025-11-25 server/resources#reading-resources",
        "A listed resource can be read, and a listed prompt does not fail without a reason.",
        "Take out of the list what is not there.",
        _check_listed_works,
    ),
    LintRule(
        "pagination.ends",
        "error",
        "2025-11-25 server/utilities/pagination#pagination-model",
        "A list ends: each page has another cursor, and the last one has none.",
        "Leave nextCursor out on the last page.",
        _check_paging,
    ),
    LintRule(
        "pagination.stable",
        "warning",
        "2026-07-28 server/tools#capabilities",
        "A list that did not change is in the same order when it is asked for again.",
        "Sort it, or keep it in the order of registration.",
        _check_stable_order,
    ),
    LintRule(
        "changes.acknowledged",
        "error",
        "2026-07-28 basic/patterns/subscriptions",
        "A stream of changes begins with its acknowledgement.",
        "Send notifications/subscriptions/acknowledged before anything else.",
        _check_acknowledgement,
        since="2026-07-28",
    ),
    LintRule(
        "changes.granted",
        "error",
        "2026-07-28 basic/patterns/subscriptions",
        "A stream of changes grants only what was asked for.",
        "Answer with those of the wanted notifications that you send.",
        _check_granted_changes,
        since="2026-07-28",
    ),
    LintRule(
        "calls.answered",
        "error",
        "2025-11-25 server/tools#calling-tools",
        "A tool that is called gives a result.",
        "A tool that fails answers with isError, so that a model can read why.",
        _check_calls,
    ),
    LintRule(
        "calls.slow",
        "note",
        "ours",
        "A tool that is called gives its result within the time that is waited for it.",
        "Wait longer with --timeout: six times as long as for other answers.",
        _check_timeouts,
    ),
    LintRule(
        "calls.output",
        "error",
        "2025-11-25 server/tools#output-schema",
        "The structured result of a tool conforms to its output schema.",
        "Mend the schema or the result.",
        _check_output_schemas,
        since="2025-06-18",
    ),
    LintRule(
        "calls.text",
        "warning",
        "2025-11-25 server/tools#structured-content",
        "A structured result is also there as text.",
        "Add a text block with the JSON.",
        _check_text_fallback,
        since="2025-06-18",
    ),
)
