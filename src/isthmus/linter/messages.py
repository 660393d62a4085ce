"""Rules about messages as such: their form, their shape, their ids, who may say them and when."""

from collections.abc import Iterator
from typing import Any

from isthmus import wire
from isthmus.linter.conversation import Conversation, Said, known, other
from isthmus.linter.demands import Placeholder
from isthmus.linter.rule import Fault, Rule
from isthmus.linter.shapes import Flaw, flaws
from isthmus.revisions import BY_NAME, METHODS, MODERN
from isthmus.wire.jsonrpc import ErrorBody
from isthmus.wire.meta import PROTOCOL_VERSION, SUBSCRIPTION_ID

__all__ = ["MESSAGES"]


def at(said: Said, what: str, path: str = "") -> Fault:
    """A fault of a message."""
    return Fault(f"{said.where} {path}".strip(), what, said.number, said.side)


# Form


def _no_json(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        if said.kind == "broken" and said.message is None:
            yield at(said, said.flaw)


def _no_rpc(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        if said.kind == "broken" and said.message is not None:
            yield at(said, said.flaw)


def _batches(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        if said.side == "server" and _answers_batch(said, conversation):
            continue  # whether it may be served is a rule of its own
        if said.kind == "batch" and said.revision.name != "2025-03-26":
            yield at(said, f"{said.revision.name} has no batches")
        elif said.kind == "batch" and not said.message:
            yield at(said, "the batch is empty")


def _answers_batch(said: Said, conversation: Conversation) -> bool:
    """Whether an array answers another one, which is the one at fault."""
    return said.kind == "batch" and any(
        one.kind == "batch" and one.side == "client" and one.number < said.number
        for one in conversation.said
    )


def _initialize_batched(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        if said.batched and said.kind == "request" and said.method == "initialize":
            yield at(said, "it is part of a batch")


# Ids


def _ids(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        if said.kind == "request":
            id = said.message["id"]
            if isinstance(id, bool) or not isinstance(id, int | str):
                yield at(said, f"its id is {id!r}", "$.id")


def _reused(conversation: Conversation) -> Iterator[Fault]:
    seen: set[tuple[str, str]] = set()
    for said in conversation.said:
        if said.kind != "request":
            continue
        id = (said.side, repr(said.message["id"]))
        if id in seen and said.side in conversation.judged:
            yield at(said, f"the id {said.message['id']!r} was used before")
        seen.add(id)


def _unasked(conversation: Conversation) -> Iterator[Fault]:
    answered: set[int] = set()
    for said in conversation.said:
        if said.kind not in {"result", "error"}:
            continue
        if said.asked is None:
            id = said.message.get("id")
            if said.side in conversation.judged and not (said.kind == "error" and id is None):
                yield at(said, f"nothing was asked under the id {id!r}", "$.id")
        elif id_of(said.asked) in answered:
            if said.side in conversation.judged:
                yield at(said, f"the request {said.message['id']!r} was answered before")
        else:
            answered.add(id_of(said.asked))


def id_of(said: Said) -> int:
    """Which message of the conversation it is."""
    return id(said)


# Shapes


def _flaws(said: Said) -> list[Flaw]:
    """What does not fit, in a message of a method that its revision has."""
    row = METHODS.get(said.method)
    if said.kind == "error":
        return flaws(said.message["error"], ErrorBody, said.revision, "$.error")
    if row is None or _of_extension(said):
        return []
    if said.kind == "result":
        return [] if _of_no_version(said) else _result_flaws(said, row.result)
    if not said.revision.allows(said.side, said.method):
        return []
    found = flaws(said.message.get("params", {}), row.params, said.revision, "$.params")
    if said.kind == "request" and said.side == "client" and said.revision in MODERN:
        meta = said.params.get("_meta", {})
        found += [
            flaw
            for flaw in flaws(meta, wire.RequestMeta, said.revision, "$.params._meta")
            if flaw.kind != "unknown"
        ]
    return found


def _of_no_version(said: Said) -> bool:
    """Whether a result answers a request in a version that nobody has: no shape is right for it."""
    asked = said.asked.params if said.asked is not None else {}
    meta = asked.get("_meta")
    stated = meta.get(PROTOCOL_VERSION) if isinstance(meta, dict) else None
    if said.method == "initialize":
        stated = said.result.get("protocolVersion")
    return isinstance(stated, str) and stated not in BY_NAME and not isinstance(stated, Placeholder)


def _result_flaws(said: Said, shape: Any) -> list[Flaw]:
    asker = other(said.side)
    if shape is None or said.asked is None or not said.revision.allows(asker, said.method):
        return []
    if said.result.get("resultType") == "input_required" and said.revision in MODERN:
        shape = wire.InputRequiredResult
    elif said.result.get("resultType") == "task":
        return []  # of the extension for tasks
    elif "task" in said.asked.params and said.revision.knows(wire.CreateTaskResult):
        shape = wire.CreateTaskResult
    if shape is wire.GetTaskPayloadResult:
        return []
    return flaws(said.message["result"], shape, said.revision, "$.result")


def _of_extension(said: Said) -> bool:
    """Whether a method belongs to an extension, whose shapes are its own."""
    tasks = said.method.startswith(("tasks/", "notifications/tasks"))
    return tasks and said.revision in MODERN


def _shape(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        if said.kind in {"broken", "batch"}:
            continue
        for flaw in _flaws(said):
            if flaw.kind != "unknown":
                yield at(said, flaw.text, flaw.path)


def _surplus(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        if said.kind in {"broken", "batch"}:
            continue
        for flaw in _flaws(said):
            if flaw.kind == "unknown":
                yield at(said, flaw.text, flaw.path)


def _result_type(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        if said.kind != "result" or said.revision not in MODERN or said.side != "server":
            continue
        kind = said.result.get("resultType", "complete")
        row = METHODS.get(said.method)
        if kind == "input_required" and row is not None and not row.asks:
            yield at(said, "only tools/call, prompts/get and resources/read may ask")
        elif kind not in RESULT_TYPES and not isinstance(kind, Placeholder):
            yield at(said, f"resultType is {kind!r}", "$.result.resultType")


RESULT_TYPES = ("complete", "input_required", "task")  # a tuple: what is looked up may be a list

# Who may say what, and when


def _direction(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        if said.kind not in {"request", "notification"} or _of_extension(said):
            continue
        if known(said.method) and not said.revision.allows(said.side, said.method):
            yield at(said, f"a {said.side} does not send it in {said.revision.name}")
        elif said.kind == "request" and said.side == "server" and said.revision in MODERN:
            yield at(said, f"servers send no requests in {said.revision.name}")


def _early(conversation: Conversation) -> Iterator[Fault]:
    """Before the handshake is over, up to 2025-11-25."""
    # A recording may begin in the middle.
    opened = not any(said.method == "initialize" for said in conversation.said)
    for said in conversation.said:
        if said.revision in MODERN or said.kind not in {"request", "notification", "result"}:
            continue
        if said.kind == "result" and said.method == "initialize":
            opened = True
        allowed = EARLY[said.side] if said.kind == "request" else {said.method}
        judged = said.side in conversation.judged and said.kind == "request"
        if not opened and judged and said.method not in allowed:
            yield at(said, "the answer to initialize has not been sent yet")


EARLY = {"client": {"initialize", "ping"}, "server": {"ping"}}

NEEDS = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}

TELLS = {
    "notifications/message": ("logging", None),
    "notifications/tools/list_changed": ("tools", "listChanged"),
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
}


def _client_lacks(conversation: Conversation) -> Iterator[Fault]:
    declared = conversation.capabilities.get("client")
    if declared is None:
        return
    for said in conversation:
        if said.side != "server":
            continue
        asked = [said.method] if said.kind == "request" else _questions(said)
        for method in asked:
            if NEEDS.get(method, "") and NEEDS[method] not in declared:
                yield at(said, f"asks {method}, and the client declared no {NEEDS[method]}")


def _questions(said: Said) -> list[str]:
    requests = said.result.get("inputRequests")
    if not isinstance(requests, dict):
        return []
    return [str(one.get("method")) for one in requests.values() if isinstance(one, dict)]


def _server_lacks(conversation: Conversation) -> Iterator[Fault]:
    declared = conversation.capabilities.get("server")
    if declared is None:
        return
    for said in conversation:
        capability, member = TELLS.get(said.method, ("", None))
        if said.kind != "notification" or said.side != "server" or not capability:
            continue
        has = declared.get(capability)
        if has is None or (member is not None and not (isinstance(has, dict) and has.get(member))):
            yield at(said, f"{capability}{'.' + member if member else ''} was not declared")


def _progress(conversation: Conversation) -> Iterator[Fault]:
    """Tokens that were given, values that grow, and nothing after the answer."""
    asked: dict[tuple[str, str], Said] = {}
    last: dict[tuple[str, str], float] = {}
    for said in conversation.said:
        if said.kind == "request":
            meta = said.params.get("_meta")
            token = meta.get("progressToken") if isinstance(meta, dict) else None
            if token is not None:
                asked[other(said.side), repr(token)] = said
        elif said.kind == "notification" and said.method == "notifications/progress":
            name = (said.side, repr(said.params.get("progressToken")))
            value = said.params.get("progress")
            if said.side not in conversation.judged or not isinstance(value, int | float):
                continue
            if name not in asked:
                yield at(said, "no request has this token", "$.params.progressToken")
            elif value <= last.get(name, float("-inf")):
                yield at(said, f"{value} does not exceed {last[name]}", "$.params.progress")
            last[name] = value


def _progress_late(conversation: Conversation) -> Iterator[Fault]:
    open_tokens: dict[tuple[str, str], bool] = {}
    owners: dict[int, tuple[str, str]] = {}
    for said in conversation.said:
        meta = said.params.get("_meta") if said.kind == "request" else None
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is not None:
            owners[id_of(said)] = name = (other(said.side), repr(token))
            open_tokens[name] = True
        elif said.asked is not None and id_of(said.asked) in owners and "task" not in said.result:
            open_tokens[owners[id_of(said.asked)]] = False
        elif said.kind == "notification" and said.method == "notifications/progress":
            name = (said.side, repr(said.params.get("progressToken")))
            if said.side in conversation.judged and open_tokens.get(name) is False:
                yield at(said, "its request was answered before")


def _cancels_initialize(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        if said.kind == "notification" and said.method == "notifications/cancelled":
            asked = conversation.asked(said.side, said.params.get("requestId"))
            if asked is not None and asked.method == "initialize":
                yield at(said, "it cancels initialize")


def _listen_first(conversation: Conversation) -> Iterator[Fault]:
    """On a stream of changes the acknowledgement comes first, and each message names the stream."""
    acknowledged: set[str] = set()
    for said in conversation:
        if said.kind != "notification" or said.revision not in MODERN or said.side != "server":
            continue
        meta = said.params.get("_meta")
        stream = repr(meta.get(SUBSCRIPTION_ID)) if isinstance(meta, dict) else "None"
        if said.method == "notifications/subscriptions/acknowledged":
            acknowledged.add(stream)
            if stream == "None":
                yield at(said, f"no {SUBSCRIPTION_ID}", "$.params._meta")
        elif said.method in TELLS and TELLS[said.method][1] is not None:
            if stream == "None":
                yield at(said, f"no {SUBSCRIPTION_ID}", "$.params._meta")
            elif stream not in acknowledged:
                yield at(said, "the stream was not acknowledged yet")


MESSAGES: tuple[Rule, ...] = (
    Rule(
        "messages.json",
        "error",
        "2025-11-25 basic#messages",
        "Every message is JSON.",
        "Write nothing but JSON-RPC messages where messages are expected; logs go to stderr.",
        _no_json,
    ),
    Rule(
        "messages.jsonrpc",
        "error",
        "2025-11-25 basic#messages",
        "Every message is a JSON-RPC 2.0 request, notification or answer.",
        'Write "jsonrpc": "2.0", and either a method, a result or an error.',
        _no_rpc,
    ),
    Rule(
        "messages.batch",
        "error",
        "2025-06-18 changelog",
        "Only 2025-03-26 has batches, and they are not empty.",
        "Send each message by itself.",
        _batches,
    ),
    Rule(
        "messages.batch-initialize",
        "error",
        "2025-03-26 basic/lifecycle#initialization",
        "initialize is not part of a batch.",
        "Send initialize by itself, and wait for its answer.",
        _initialize_batched,
        since="2025-03-26",
        until="2025-03-26",
    ),
    Rule(
        "messages.id",
        "error",
        "2025-11-25 basic#requests",
        "A request's id is a string or an integer, and never null.",
        "Count, or make up strings.",
        _ids,
    ),
    Rule(
        "messages.id-reused",
        "error",
        "2025-11-25 basic#requests",
        "A request's id was not used before by the same side in the same session.",
        "Count upwards.",
        _reused,
        until="2025-11-25",
    ),
    Rule(
        "messages.unasked",
        "error",
        "2025-11-25 basic#responses",
        "An answer has the id of a request of the other side, which has one answer.",
        "Echo the request's id, with its type, and answer once.",
        _unasked,
    ),
    Rule(
        "messages.shape",
        "error",
        "2025-11-25 basic#schema",
        "Params, results and errors have the members that the revision's schema requires, of its types.",
        "Mend the member named.",
        _shape,
    ),
    Rule(
        "messages.surplus",
        "note",
        "2025-11-25 basic#schema",
        "Members that a revision does not have are ignored by whoever reads them.",
        "Leave them out, or put what is your own into _meta.",
        _surplus,
    ),
    Rule(
        "messages.result-type",
        "error",
        "2026-07-28 basic#resulttype",
        "resultType is one that the client knows, and asks only where a request may be answered so.",
        'Write "complete" or, for tools/call, prompts/get and resources/read, "input_required".',
        _result_type,
        since="2026-07-28",
    ),
    Rule(
        "messages.direction",
        "error",
        "2025-11-25 schema",
        "Each side sends only the requests and notifications that the revision gives it.",
        "Look at the revision negotiated before sending; since 2026-07-28 servers ask in results.",
        _direction,
    ),
    Rule(
        "messages.early",
        "warning",
        "2025-11-25 basic/lifecycle#initialization",
        "Before the handshake is over, nothing but ping is asked.",
        "Wait for the answer to initialize, and for notifications/initialized.",
        _early,
        until="2025-11-25",
    ),
    Rule(
        "messages.client-lacks",
        "error",
        "2025-11-25 basic/lifecycle#operation",
        "A server asks a client only for what the client declared.",
        "Look at the client's capabilities before asking.",
        _client_lacks,
    ),
    Rule(
        "messages.server-lacks",
        "error",
        "2025-11-25 basic/lifecycle#operation",
        "A server sends only notifications whose capability it declared.",
        "Declare logging, listChanged or subscribe.",
        _server_lacks,
    ),
    Rule(
        "messages.progress",
        "error",
        "2025-11-25 basic/utilities/progress#behavior-requirements",
        "Progress names the token of a request, and grows with each notification.",
        "Send progress for requests that asked for it only, and only when it has grown.",
        _progress,
    ),
    Rule(
        "messages.progress-late",
        "error",
        "2025-11-25 basic/utilities/progress#implementation-notes",
        "There is no progress after the answer.",
        "Stop reporting before answering.",
        _progress_late,
    ),
    Rule(
        "messages.cancels-initialize",
        "error",
        "2025-11-25 basic/utilities/cancellation#behavior-requirements",
        "initialize is not cancelled.",
        "Close the connection instead.",
        _cancels_initialize,
        until="2025-11-25",
    ),
    Rule(
        "messages.listen",
        "error",
        "2026-07-28 basic/patterns/subscriptions",
        "A stream of changes is acknowledged first, and its notifications name it.",
        "Send notifications/subscriptions/acknowledged first, and put the id of the request into _meta.",
        _listen_first,
        since="2026-07-28",
    ),
)
"""The rules, in the order in which they are reported."""
