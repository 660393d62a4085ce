"""Rules about what a server answers to the questions of a visit, over any transport."""

from collections.abc import Iterator
from typing import Any

from isthmus.linter.rule import Fault, Rule
from isthmus.linter.visit import Visit, refused, unanswered, worked
from isthmus.revisions import BY_NAME, LEGACY, MODERN

__all__ = ["ANSWERS"]


def _survives(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.outcomes.values():
        if outcome.lost is not None:
            yield Fault(outcome.probe, outcome.told)


def _answers(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.outcomes.values():
        if outcome.silent:
            yield Fault(outcome.probe, "no answer in time")


def _noise(visit: Visit) -> Iterator[Fault]:
    for line in visit.noise:
        yield Fault("standard output", repr(line[:100]))


def _version(visit: Visit) -> Iterator[Fault]:
    """The answer to a version nobody has."""
    for outcome in visit.heard("initialize with an unknown version"):
        offered = None if outcome.result is None else outcome.result.get("protocolVersion")
        only_modern = outcome.code == -32022 and isinstance(outcome.data, dict)
        if only_modern or BY_NAME.get(str(offered)) in LEGACY:
            continue
        told = outcome.told if outcome.result is None else f"it offers {offered!r}"
        yield Fault(outcome.probe, told)


def _empty(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.heard("ping", "ping with a string as its id"):
        if outcome.result is None:
            yield Fault(outcome.probe, outcome.told)
        elif outcome.result.keys() - {"_meta"}:
            yield Fault(outcome.probe, f"the result has {sorted(outcome.result)}")


def _named(visit: Visit) -> Iterator[Fault]:
    who = visit.opening.get("serverInfo")
    if visit.revision in MODERN:
        meta = visit.opening.get("_meta")
        who = meta.get(SERVER_INFO) if isinstance(meta, dict) else None
    for member in ("name", "version"):
        if not isinstance(who, dict) or not who.get(member):
            yield Fault("who it says it is", f"it gives no {member}")


SERVER_INFO = "io.modelcontextprotocol/serverInfo"


def _discovered(visit: Visit) -> Iterator[Fault]:
    versions = visit.opening.get("supportedVersions")
    if isinstance(versions, list) and visit.revision.name not in versions:
        yield Fault("server/discover $.result.supportedVersions", f"it lists {versions}")


def _unsupported(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.heard("an unknown version"):
        data = outcome.data if isinstance(outcome.data, dict) else {}
        if outcome.code != -32022:
            yield Fault(outcome.probe, outcome.told)
        elif not isinstance(data.get("supported"), list) or data.get("requested") != "1900-01-01":
            yield Fault(outcome.probe, f"its data is {data}, without supported or requested")


def _same_id(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.outcomes.values():
        asked = outcome.sent.get("id") if isinstance(outcome.sent, dict) else None
        id = outcome.reply.get("id") if isinstance(outcome.reply, dict) else None
        wrong = id != asked or isinstance(id, str) is not isinstance(asked, str)
        if asked is not None and outcome.reply is not None and id is not None and wrong:
            yield Fault(outcome.probe, f"asked under {asked!r}, answered under {id!r}")


def _batch(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.heard("a batch"):
        came = outcome.reply if isinstance(outcome.reply, list) else [outcome.reply]
        ids = {str(one.get("id")) for one in [*came, *outcome.others] if isinstance(one, dict)}
        if not {"isthmus-check-4", "isthmus-check-5"} <= ids:
            yield Fault(outcome.probe, outcome.told)


def _no_batch(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.heard("a batch"):
        if isinstance(outcome.reply, list) or outcome.result is not None:
            yield Fault(outcome.probe, "both of it were answered by results")


# Lists

KINDS = {
    "tools": ("the list of tools", "tools that were not declared"),
    "prompts": ("the list of prompts", "prompts that were not declared"),
    "resources": ("the list of resources", "resources that were not declared"),
}


def _declared_works(visit: Visit) -> Iterator[Fault]:
    for capability, (probe, _) in KINDS.items():
        for outcome in visit.heard(probe) if visit.declares(capability) else ():
            if outcome.result is None:
                yield Fault(probe, outcome.told)
    for probe, capability in (("a completion", "completions"), ("a log level", "logging")):
        for outcome in visit.heard(probe):
            if outcome.code == -32601:
                yield Fault(probe, f"{capability} was declared: {outcome.told}")


def _works_declared(visit: Visit) -> Iterator[Fault]:
    for capability, (_, probe) in KINDS.items():
        for outcome in visit.heard(probe):
            if outcome.result and outcome.result.get(capability):
                count = len(outcome.result[capability])
                yield Fault(f"{capability}/list", f"it has {count}, and declares no {capability}")


def _listed_works(visit: Visit) -> Iterator[Fault]:
    yield from worked("a resource that is listed")(visit)
    for outcome in visit.heard("a prompt that is listed"):
        # it may want something that this client did not declare, and say so
        if outcome.code in {-32601, -32603} or outcome.reply is None:
            yield Fault(outcome.probe, outcome.told)


def _paging(visit: Visit) -> Iterator[Fault]:
    for method, problem in visit.paging.items():
        yield Fault(method, problem)


def _stable(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.heard("the list of tools once more"):
        again = outcome.result.get("tools") if outcome.result else None
        first = visit.items.get("tools", [])
        if isinstance(again, list) and names(again) != names(first)[: len(again)]:
            yield Fault("tools/list", "asked twice, it gave them in different orders")


def names(tools: list[Any]) -> list[Any]:
    """The names of tools, in their order."""
    return [tool.get("name") if isinstance(tool, dict) else tool for tool in tools]


def _cursors(visit: Visit) -> Iterator[Fault]:
    for kind in KINDS:
        yield from refused(f"a bad cursor for {kind}", -32602)(visit)


def _no_contents(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.heard("an unknown resource"):
        if outcome.result is not None:
            count = len(outcome.result.get("contents") or ())
            yield Fault(outcome.probe, f"a result with {count} contents")


def _gone(visit: Visit) -> Iterator[Fault]:
    for name in ("ping", "setLevel", "subscribe"):
        yield from refused(f"{name}, which is gone", -32601)(visit)


def _acknowledged(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.of("a stream of changes"):
        first = outcome.others[0] if outcome.others else {}
        if outcome.code == -32601 and not listens(visit):
            continue
        if first.get("method") != "notifications/subscriptions/acknowledged":
            yield Fault(outcome.probe, outcome.told if not first else f"first came {first}"[:200])


def listens(visit: Visit) -> bool:
    """Whether the server declares anything that a stream of changes would tell of."""
    return any(visit.declares(f"{kind}.listChanged") for kind in KINDS)


def _granted(visit: Visit) -> Iterator[Fault]:
    for outcome in visit.heard("a stream of changes"):
        first = outcome.others[0] if outcome.others else {}
        params = first.get("params") if isinstance(first, dict) else None
        granted = params.get("notifications") if isinstance(params, dict) else None
        surplus = sorted(granted.keys() - ASKED_FOR) if isinstance(granted, dict) else []
        if surplus:
            yield Fault(outcome.probe, f"it grants {surplus}, which nobody asked for")


ASKED_FOR = {"toolsListChanged", "promptsListChanged"}


def _conforms(visit: Visit) -> Iterator[Fault]:
    """What tools gave, held against their output schemas."""
    from isthmus.client.checking import Checker  # slow, and needed where tools are called only

    schemas = {tool.get("name"): tool.get("outputSchema") for tool in visit.items.get("tools", ())}
    for name, outcome in visit.called.items():
        result, schema = outcome.result, schemas.get(name)
        if result is None or not isinstance(schema, dict) or result.get("isError") is True:
            continue
        if "structuredContent" not in result:
            yield Fault(f"calling {name}", "it has an output schema, and no structuredContent")
            continue
        wrong = Checker(schema, f"the output schema of {name}").complaint(
            result["structuredContent"]
        )
        if wrong:
            yield Fault(f"calling {name}", wrong[:200])


def _also_text(visit: Visit) -> Iterator[Fault]:
    for name, outcome in visit.called.items():
        result = outcome.result or {}
        content = result.get("content")
        texts = [b for b in content or () if isinstance(b, dict) and b.get("type") == "text"]
        if "structuredContent" in result and not texts:
            yield Fault(f"calling {name}", "structured content, and no text beside it")


def _calls(visit: Visit) -> Iterator[Fault]:
    for name, outcome in visit.called.items():
        if outcome.reply is None or outcome.code is not None:
            yield Fault(f"calling {name}", outcome.told)


ANSWERS: tuple[Rule, ...] = (
    Rule(
        "connection.survives",
        "error",
        "ours",
        "No message ends the connection or the server.",
        "Catch what goes wrong with one message, and answer it by an error.",
        _survives,
    ),
    Rule(
        "connection.answers",
        "error",
        "2025-11-25 basic#responses",
        "Every request is answered, by a result or an error.",
        "Answer also what fails, with -32603 if nothing else fits.",
        _answers,
    ),
    Rule(
        "stdio.noise",
        "error",
        "2025-11-25 basic/transports#stdio",
        "A server writes nothing to standard output that is not a message.",
        "Print and log to standard error.",
        _noise,
    ),
    Rule(
        "ids.same",
        "error",
        "2025-11-25 basic#responses",
        "An answer has the id of its request, of the same type.",
        "Echo the id as it came.",
        _same_id,
    ),
    Rule(
        "ids.null-refused",
        "warning",
        "2025-11-25 basic#requests",
        "A request whose id is null is refused.",
        "Answer -32600.",
        refused("an id of null", also=400),
    ),
    Rule(
        "ids.fraction-refused",
        "warning",
        "2025-11-25 basic#requests",
        "A request whose id is neither a string nor an integer is refused.",
        "Answer -32600.",
        refused("a fraction as its id", also=400),
    ),
    Rule(
        "errors.no-json",
        "warning",
        "2025-11-25 basic#responses",
        "What is no JSON is answered by -32700.",
        "Answer -32700 without an id, instead of nothing.",
        refused("no JSON", -32700, also=400),
    ),
    Rule(
        "errors.no-jsonrpc",
        "warning",
        "2025-11-25 basic#messages",
        "What is no JSON-RPC 2.0 message is answered by -32600.",
        "Answer -32600 where jsonrpc is missing.",
        refused("no jsonrpc member", -32600, also=400),
    ),
    Rule(
        "errors.unknown-method",
        "error",
        "2025-11-25 basic#responses",
        "An unknown method is answered by -32601.",
        "Answer -32601, Method not found.",
        refused("an unknown method", -32601),
    ),
    Rule(
        "errors.bad-params",
        "warning",
        "2025-11-25 server/tools#error-handling",
        "Params of the wrong type are answered by -32602.",
        "Validate params, and answer -32602.",
        refused("params of the wrong type", -32602),
    ),
    Rule(
        "errors.unknown-tool",
        "warning",
        "2025-11-25 server/tools#error-handling",
        "An unknown tool is a protocol error, -32602, and no result.",
        "Answer -32602: a result with isError is for tools that exist.",
        refused("an unknown tool", -32602),
    ),
    Rule(
        "errors.unknown-prompt",
        "warning",
        "2025-11-25 server/prompts#error-handling",
        "An unknown prompt is answered by -32602.",
        "Answer -32602.",
        refused("an unknown prompt", -32602),
    ),
    Rule(
        "errors.missing-argument",
        "warning",
        "2025-11-25 server/prompts#error-handling",
        "A prompt without a required argument is answered by -32602.",
        "Check the arguments first, and answer -32602.",
        refused("a prompt without its arguments", -32602),
    ),
    Rule(
        "errors.unknown-resource",
        "warning",
        "2025-11-25 server/resources#error-handling",
        "An unknown resource is answered by -32002.",
        "Answer -32002, Resource not found.",
        refused("an unknown resource", -32002),
        until="2025-11-25",
    ),
    Rule(
        "errors.unknown-resource-modern",
        "error",
        "2026-07-28 server/resources#error-handling",
        "An unknown resource is answered by -32602.",
        "Answer -32602, with the uri in data.",
        refused("an unknown resource", -32602),
        since="2026-07-28",
    ),
    Rule(
        "errors.unknown-resource-result",
        "error",
        "2026-07-28 server/resources#error-handling",
        "An unknown resource is an error, and no result with empty contents.",
        "Answer by an error.",
        _no_contents,
    ),
    Rule(
        "errors.unknown-reference",
        "warning",
        "2025-11-25 server/utilities/completion#error-handling",
        "A completion for a prompt that does not exist is answered by -32602.",
        "Answer -32602.",
        refused("a completion of nothing", -32602),
    ),
    Rule(
        "errors.bad-cursor",
        "warning",
        "2025-11-25 server/utilities/pagination#error-handling",
        "A cursor that was never given is answered by -32602.",
        "Seal or look up cursors, and answer -32602 to others.",
        _cursors,
    ),
    Rule(
        "errors.bad-level",
        "warning",
        "2025-11-25 server/utilities/logging#error-handling",
        "A log level that does not exist is answered by -32602.",
        "Answer -32602.",
        refused("a bad log level", -32602),
        until="2025-11-25",
    ),
    Rule(
        "notifications.unanswered",
        "error",
        "2025-11-25 basic#notifications",
        "A notification is not answered, known or unknown.",
        "Ignore notifications that mean nothing to you.",
        unanswered("an unknown notification", "a cancellation of nothing"),
    ),
    Rule(
        "answers.unanswered",
        "error",
        "2025-11-25 basic#responses",
        "An answer to nothing is not answered by a result.",
        "Ignore answers that nobody waits for.",
        unanswered("an answer to nothing"),
        until="2025-11-25",
    ),
    Rule(
        "batches.served",
        "error",
        "2025-03-26 basic#batching",
        "A batch is received, and each request in it answered.",
        "Serve each member, and answer by an array.",
        _batch,
        since="2025-03-26",
        until="2025-03-26",
    ),
    Rule(
        "batches.empty",
        "warning",
        "2025-03-26 basic#batching",
        "An empty batch is answered by -32600.",
        "Answer -32600.",
        refused("an empty batch", -32600, also=400),
        since="2025-03-26",
        until="2025-03-26",
    ),
    Rule(
        "batches.refused",
        "warning",
        "2025-06-18 changelog",
        "A batch is not served in revisions without batches.",
        "Answer -32600.",
        _no_batch,
        since="2025-06-18",
        until="2025-11-25",
    ),
    Rule(
        "lifecycle.unknown-version",
        "error",
        "2025-11-25 basic/lifecycle#version-negotiation",
        "initialize with a version the server does not speak is answered by one that it speaks.",
        "Answer with the latest version you speak, instead of an error or an echo.",
        _version,
        until="2025-11-25",
    ),
    Rule(
        "lifecycle.twice",
        "warning",
        "2025-11-25 basic/lifecycle#initialization",
        "initialize comes once: a second one is refused.",
        "Answer -32600, and go on with the session.",
        refused("initialize again"),
        until="2025-11-25",
    ),
    Rule(
        "lifecycle.ping-early",
        "warning",
        "2025-11-25 basic/lifecycle#initialization",
        "ping is answered also before initialize.",
        "Answer ping in every phase.",
        worked("ping before initialize"),
        until="2025-11-25",
    ),
    Rule(
        "lifecycle.who",
        "warning",
        "2025-11-25 basic/lifecycle#initialization",
        "A server says its name and version.",
        "Fill in serverInfo; since 2026-07-28 in the _meta of results.",
        _named,
    ),
    Rule(
        "ping.empty",
        "error",
        "2025-11-25 basic/utilities/ping#behavior-requirements",
        "ping is answered by an empty result.",
        "Answer {}.",
        _empty,
        until="2025-11-25",
    ),
    Rule(
        "versions.discovered",
        "error",
        "2026-07-28 server/discover",
        "server/discover lists the version it was asked in.",
        "List every version that requests may state.",
        _discovered,
        since="2026-07-28",
    ),
    Rule(
        "versions.unsupported",
        "error",
        "2026-07-28 basic/versioning#protocol-version-negotiation",
        "A version the server does not speak is refused by -32022, with supported and requested.",
        "Answer -32022, and list the versions you speak in data.supported.",
        _unsupported,
        since="2026-07-28",
    ),
    Rule(
        "versions.stated",
        "error",
        "2026-07-28 basic#_meta",
        "A request that does not state its capabilities is refused by -32602.",
        "Check _meta of every request.",
        refused("a request that states nothing", -32602),
        since="2026-07-28",
    ),
    Rule(
        "versions.gone",
        "error",
        "2026-07-28 changelog",
        "Methods that the revision does not have any more are answered by -32601.",
        "Serve each revision its own methods.",
        _gone,
        since="2026-07-28",
    ),
    Rule(
        "capabilities.work",
        "error",
        "2025-11-25 basic/lifecycle#capability-negotiation",
        "What a server declares works.",
        "Serve the method, or leave the capability out.",
        _declared_works,
    ),
    Rule(
        "capabilities.declared",
        "error",
        "2025-11-25 server/tools#capabilities",
        "What a server offers is declared.",
        "Declare the capability: clients do not ask for what is not declared.",
        _works_declared,
    ),
    Rule(
        "capabilities.subscribe",
        "error",
        "2025-11-25 server/resources#subscriptions",
        "A server that declares subscriptions takes them, and takes them back.",
        "Serve resources/subscribe and resources/unsubscribe.",
        worked("a subscription", "the end of a subscription"),
        until="2025-11-25",
    ),
    Rule(
        "capabilities.listed-works",
        "warning",
        "2025-11-25 server/resources#reading-resources",
        "A listed resource can be read, and a listed prompt does not fail without a reason.",
        "Take out of the list what is not there.",
        _listed_works,
    ),
    Rule(
        "pagination.ends",
        "error",
        "2025-11-25 server/utilities/pagination#pagination-model",
        "A list ends: each page has another cursor, and the last one has none.",
        "Leave nextCursor out on the last page.",
        _paging,
    ),
    Rule(
        "pagination.stable",
        "warning",
        "2026-07-28 server/tools#capabilities",
        "A list that did not change is in the same order when it is asked for again.",
        "Sort it, or keep it in the order of registration.",
        _stable,
    ),
    Rule(
        "changes.acknowledged",
        "error",
        "2026-07-28 basic/patterns/subscriptions",
        "A stream of changes begins with its acknowledgement.",
        "Send notifications/subscriptions/acknowledged before anything else.",
        _acknowledged,
        since="2026-07-28",
    ),
    Rule(
        "changes.granted",
        "error",
        "2026-07-28 basic/patterns/subscriptions",
        "A stream of changes grants only what was asked for.",
        "Answer with those of the wanted notifications that you send.",
        _granted,
        since="2026-07-28",
    ),
    Rule(
        "calls.answered",
        "error",
        "2025-11-25 server/tools#calling-tools",
        "A tool that is called gives a result.",
        "A tool that fails answers with isError, so that a model can read why.",
        _calls,
    ),
    Rule(
        "calls.output",
        "error",
        "2025-11-25 server/tools#output-schema",
        "The structured result of a tool conforms to its output schema.",
        "Mend the schema or the result.",
        _conforms,
        since="2025-06-18",
    ),
    Rule(
        "calls.text",
        "warning",
        "2025-11-25 server/tools#structured-content",
        "A structured result is also there as text.",
        "Add a text block with the JSON.",
        _also_text,
        since="2025-06-18",
    ),
)
"""The rules, in the order in which they are reported."""
