"""Rules about what a server answers to the questions of a visit, over any transport."""

import re
from collections.abc import Iterator

from isthmus.linter.rules.rule import LintRule, Violation
from isthmus.linter.rules.visit import (
    ProbeOutcome,
    ServerVisit,
    expect_error,
    expect_result,
    expect_silence,
)
from isthmus.revisions import BY_NAME, LATEST, LEGACY, MODERN


def _check_survival(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.outcomes.values():
        if outcome.lost is not None:
            yield Violation(outcome.probe, outcome.told)


def _check_answers(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.outcomes.values():
        if outcome.silent:
            yield Violation(outcome.probe, "no answer in time")


def _check_noise(visit: ServerVisit) -> Iterator[Violation]:
    for line in visit.noise:
        yield Violation("standard output", repr(line[:100]))


def _check_unknown_version(visit: ServerVisit) -> Iterator[Violation]:
    """The answer to a version nobody has."""
    for outcome in visit.heard("initialize with an unknown version"):
        offered = None if outcome.result is None else outcome.result.get("protocolVersion")
        only_modern = outcome.code == -32022 and isinstance(outcome.data, dict)
        if only_modern or BY_NAME.get(str(offered)) in LEGACY:
            continue
        told = outcome.told if outcome.result is None else f"it offers {offered!r}"
        yield Violation(outcome.probe, told)


def _check_handshakes(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.heard("initialize in 2026-07-28"):
        if outcome.result is not None and outcome.result.get("protocolVersion") == LATEST.name:
            yield Violation(outcome.probe, f"it agrees to speak {LATEST.name}")


def _check_wants_handshake(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.outcomes.values():
        if outcome.result is None and WANTS_HANDSHAKE.search(_read_refusal(outcome)):
            yield Violation(outcome.probe, outcome.told)


WANTS_HANDSHAKE = re.compile(  # how servers say that a request comes too early
    r"(?i)\binitiali[sz]\w*\W+(?:\w+\W+){0,2}(?:first|required)"
    r"|\b(?:not|un|before|without|missing|no|must|first)\W?(?:\w+\W+){0,3}initiali[sz]"
)


def _read_refusal(outcome: ProbeOutcome) -> str:
    """The words of a refusal."""
    error = outcome.reply.get("error") if isinstance(outcome.reply, dict) else None
    told = str(error.get("message", "")) if isinstance(error, dict) else ""
    return told or outcome.body.decode(errors="replace")


def _check_ping(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.heard("ping", "ping with a string as its id"):
        if outcome.result is None:
            yield Violation(outcome.probe, outcome.told)
        elif outcome.result.keys() - {"_meta"}:
            yield Violation(outcome.probe, f"the result has {sorted(outcome.result)}")


def _check_server_info(visit: ServerVisit) -> Iterator[Violation]:
    who = visit.opening.get("serverInfo")
    if visit.revision in MODERN:
        meta = visit.opening.get("_meta")
        who = meta.get(SERVER_INFO_KEY) if isinstance(meta, dict) else None
    for member in ("name", "version"):
        if not isinstance(who, dict) or not who.get(member):
            yield Violation("who it says it is", f"it gives no {member}")


SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"


def _check_discover(visit: ServerVisit) -> Iterator[Violation]:
    versions = visit.opening.get("supportedVersions")
    if isinstance(versions, list) and visit.revision.name not in versions:
        yield Violation("server/discover $.result.supportedVersions", f"it lists {versions}")


def _check_unsupported_version(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.heard("an unknown version"):
        data = outcome.data if isinstance(outcome.data, dict) else {}
        if outcome.code != -32022:
            yield Violation(outcome.probe, outcome.told)
        elif not isinstance(data.get("supported"), list) or data.get("requested") != "1900-01-01":
            yield Violation(outcome.probe, f"its data is {data}, without supported or requested")


def _check_same_id(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.outcomes.values():
        asked = outcome.sent.get("id") if isinstance(outcome.sent, dict) else None
        id = outcome.reply.get("id") if isinstance(outcome.reply, dict) else None
        wrong = id != asked or isinstance(id, str) is not isinstance(asked, str)
        if asked is not None and outcome.reply is not None and id is not None and wrong:
            yield Violation(outcome.probe, f"asked under {asked!r}, answered under {id!r}")


def _check_batch(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.heard("a batch"):
        came = outcome.reply if isinstance(outcome.reply, list) else [outcome.reply]
        ids = {str(one.get("id")) for one in [*came, *outcome.others] if isinstance(one, dict)}
        if not {"isthmus-check-4", "isthmus-check-5"} <= ids:
            yield Violation(outcome.probe, outcome.told)


def _check_no_batch(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.heard("a batch"):
        if isinstance(outcome.reply, list) or outcome.result is not None:
            yield Violation(outcome.probe, "both of it were answered by results")


# Names that do not exist


def _check_cursors(visit: ServerVisit) -> Iterator[Violation]:
    for kind in ("tools", "prompts", "resources"):
        yield from expect_error(f"a bad cursor for {kind}", -32602)(visit)


def _check_no_contents(visit: ServerVisit) -> Iterator[Violation]:
    for outcome in visit.heard("an unknown resource"):
        if outcome.result is not None:
            contents = outcome.result.get("contents")
            count = len(contents) if isinstance(contents, list) else "no"
            yield Violation(outcome.probe, f"a result with {count} contents")


def _check_retired_methods(visit: ServerVisit) -> Iterator[Violation]:
    for name in ("ping", "setLevel", "subscribe"):
        yield from expect_error(f"{name}, which is gone", -32601)(visit)


ANSWER_RULES: tuple[LintRule, ...] = (  # the rules, in the order in which they are reported
    LintRule(
        "connection.survives",
        "error",
        "ours",
        "No message ends the connection or the server.",
        "Catch what goes wrong with one message, and answer it by an error.",
        _check_survival,
    ),
    LintRule(
        "connection.answers",
        "error",
        "2025-11-25 basic#responses",
        "Every request is answered, by a result or an error.",
        "Answer also what fails, with -32603 if nothing else fits.",
        _check_answers,
    ),
    LintRule(
        "stdio.noise",
        "error",
        "2025-11-25 basic/transports#stdio",
        "A server writes nothing to standard output that is not a message.",
        "Print and log to standard error.",
        _check_noise,
    ),
    LintRule(
        "ids.same",
        "error",
        "2025-11-25 basic#responses",
        "An answer has the id of its request, of the same type.",
        "Echo the id as it came.",
        _check_same_id,
    ),
    LintRule(
        "ids.null-refused",
        "warning",
        "2025-11-25 basic#requests",
        "A request whose id is null is refused.",
        "Answer -32600.",
        expect_error("an id of null", also=400),
    ),
    LintRule(
        "ids.fraction-refused",
        "warning",
        "2025-11-25 basic#requests",
        "A request whose id is neither a string nor an integer is refused.",
        "Answer -32600.",
        expect_error("a fraction as its id", also=400),
    ),
    LintRule(
        "errors.no-json",
        "warning",
        "2025-11-25 basic#responses",
        "What is no JSON is answered by -32700.",
        "Answer -32700 without an id, instead of nothing.",
        expect_error("no JSON", -32700, also=400),
    ),
    LintRule(
        "errors.no-jsonrpc",
        "warning",
        "2025-11-25 basic#messages",
        "What is no JSON-RPC 2.0 message is answered by -32600.",
        "Answer -32600 where jsonrpc is missing.",
        expect_error("no jsonrpc member", -32600, also=400),
    ),
    LintRule(
        "errors.unknown-method",
        "error",
        "2025-11-25 basic#responses",
        "An unknown method is answered by -32601.",
        "Answer -32601, Method not found.",
        expect_error("an unknown method", -32601),
    ),
    LintRule(
        "errors.bad-params",
        "warning",
        "2025-11-25 server/tools#error-handling",
        "Params of the wrong type are answered by -32602.",
        "Validate params, and answer -32602.",
        expect_error("params of the wrong type", -32602),
    ),
    LintRule(
        "errors.unknown-tool",
        "warning",
        "2025-11-25 server/tools#error-handling",
        "An unknown tool is a protocol error, -32602, and no result.",
        "Answer -32602: a result with isError is for tools that exist.",
        expect_error("an unknown tool", -32602),
    ),
    LintRule(
        "errors.unknown-prompt",
        "warning",
        "2025-11-25 server/prompts#error-handling",
        "An unknown prompt is answered by -32602.",
        "Answer -32602.",
        expect_error("an unknown prompt", -32602),
    ),
    LintRule(
        "errors.missing-argument",
        "warning",
        "2025-11-25 server/prompts#error-handling",
        "A prompt without a required argument is answered by -32602.",
        "Check the arguments first, and answer -32602.",
        expect_error("a prompt without its arguments", -32602),
    ),
    LintRule(
        "errors.unknown-resource",
        "warning",
        "2025-11-25 server/resources#error-handling",
        "An unknown resource is answered by -32002.",
        "Answer -32002, Resource not found.",
        expect_error("an unknown resource", -32002),
        until="2025-11-25",
    ),
    LintRule(
        "errors.unknown-resource-modern",
        "error",
        "2026-07-28 server/resources#error-handling",
        "An unknown resource is answered by -32602.",
        "Answer -32602, with the uri in data.",
        expect_error("an unknown resource", -32602),
        since="2026-07-28",
    ),
    LintRule(
        "errors.unknown-resource-result",
        "error",
        "2026-07-28 server/resources#error-handling",
        "An unknown resource is an error, and no result with empty contents.",
        "Answer by an error.",
        _check_no_contents,
    ),
    LintRule(
        "errors.unknown-reference",
        "warning",
        "2025-11-25 server/utilities/completion#error-handling",
        "A completion for a prompt that does not exist is answered by -32602.",
        "Answer -32602.",
        expect_error("a completion of nothing", -32602),
    ),
    LintRule(
        "errors.bad-cursor",
        "warning",
        "2025-11-25 server/utilities/pagination#error-handling",
        "A cursor that was never given is answered by -32602.",
        "Seal or look up cursors, and answer -32602 to others.",
        _check_cursors,
    ),
    LintRule(
        "errors.bad-level",
        "warning",
        "2025-11-25 server/utilities/logging#error-handling",
        "A log level that does not exist is answered by -32602.",
        "Answer -32602.",
        expect_error("a bad log level", -32602),
        until="2025-11-25",
    ),
    LintRule(
        "notifications.unanswered",
        "error",
        "2025-11-25 basic#notifications",
        "A notification is not answered, known or unknown.",
        "Ignore notifications that mean nothing to you.",
        expect_silence("an unknown notification", "a cancellation of nothing"),
    ),
    LintRule(
        "answers.unanswered",
        "error",
        "2025-11-25 basic#responses",
        "An answer to nothing is not answered by a result.",
        "Ignore answers that nobody waits for.",
        expect_silence("an answer to nothing"),
        until="2025-11-25",
    ),
    LintRule(
        "batches.served",
        "warning",
        "2025-03-26 basic#batching",
        "A batch is received, and each request in it answered.",
        "Serve each member, and answer by an array.",
        _check_batch,
        since="2025-03-26",
        until="2025-03-26",
    ),
    LintRule(
        "batches.empty",
        "warning",
        "2025-03-26 basic#batching",
        "An empty batch is answered by -32600.",
        "Answer -32600.",
        expect_error("an empty batch", -32600, also=400),
        since="2025-03-26",
        until="2025-03-26",
    ),
    LintRule(
        "batches.refused",
        "warning",
        "2025-06-18 changelog",
        "A batch is not served in revisions without batches.",
        "Answer -32600.",
        _check_no_batch,
        since="2025-06-18",
        until="2025-11-25",
    ),
    LintRule(
        "lifecycle.unknown-version",
        "error",
        "2025-11-25 basic/lifecycle#version-negotiation",
        "initialize with a version the server does not speak is answered by one that it speaks.",
        "Answer with the latest version you speak, instead of an error or an echo.",
        _check_unknown_version,
        until="2025-11-25",
    ),
    LintRule(
        "lifecycle.twice",
        "warning",
        "2025-11-25 basic/lifecycle#initialization",
        "initialize comes once: a second one is refused.",
        "Answer -32600, and go on with the session.",
        expect_error("initialize again"),
        until="2025-11-25",
    ),
    LintRule(
        "lifecycle.ping-early",
        "warning",
        "2025-11-25 basic/lifecycle#initialization",
        "ping is answered also before initialize.",
        "Answer ping in every phase.",
        expect_result("ping before initialize"),
        until="2025-11-25",
    ),
    LintRule(
        "lifecycle.who",
        "warning",
        "2025-11-25 basic/lifecycle#initialization",
        "A server says its name and version.",
        "Fill in serverInfo; since 2026-07-28 in the _meta of results.",
        _check_server_info,
    ),
    LintRule(
        "ping.empty",
        "error",
        "2025-11-25 basic/utilities/ping#behavior-requirements",
        "ping is answered by an empty result.",
        "Answer {}.",
        _check_ping,
        until="2025-11-25",
    ),
    LintRule(
        "versions.discovered",
        "error",
        "2026-07-28 server/discover",
        "server/discover lists the version it was asked in.",
        "List every version that requests may state.",
        _check_discover,
        since="2026-07-28",
    ),
    LintRule(
        "versions.handshake",
        "error",
        "2026-07-28 basic/versioning",
        "initialize never agrees on 2026-07-28, which has no handshake.",
        "Answer initialize with the latest version up to 2025-11-25 that you speak, or -32601.",
        _check_handshakes,
        until="2025-11-25",
    ),
    LintRule(
        "versions.no-handshake",
        "error",
        "2026-07-28 basic/versioning",
        "A request that states 2026-07-28 is served without initialize.",
        "Take version and capabilities from _meta of each request; sessions are of earlier revisions.",
        _check_wants_handshake,
        since="2026-07-28",
    ),
    LintRule(
        "versions.unsupported",
        "error",
        "2026-07-28 basic/versioning#protocol-version-negotiation",
        "A version the server does not speak is refused by -32022, with supported and requested.",
        "Answer -32022, and list the versions you speak in data.supported.",
        _check_unsupported_version,
        since="2026-07-28",
    ),
    LintRule(
        "versions.stated",
        "error",
        "2026-07-28 basic#_meta",
        "A request that does not state its capabilities is refused by -32602.",
        "Check _meta of every request.",
        expect_error("a request that states nothing", -32602),
        since="2026-07-28",
    ),
    LintRule(
        "versions.gone",
        "error",
        "2026-07-28 changelog",
        "Methods that the revision does not have any more are answered by -32601.",
        "Serve each revision its own methods.",
        _check_retired_methods,
        since="2026-07-28",
    ),
)
