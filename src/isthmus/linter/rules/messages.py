"""Rules about messages as such: their form, their shape, their ids, who may say them and when."""

from collections.abc import Iterator
from typing import Any

from isthmus import wire
from isthmus.linter.rules.conversation import (
    ObservedConversation,
    ObservedMessage,
    get_other_side,
    is_known_method,
)
from isthmus.linter.rules.rule import LintRule, Violation
from isthmus.linter.rules.shapes import Flaw, Placeholder, find_flaws
from isthmus.revisions import BY_NAME, METHODS, MODERN
from isthmus.wire.jsonrpc import ErrorBody
from isthmus.wire.meta import PROTOCOL_VERSION, SUBSCRIPTION_ID


def make_violation(said: ObservedMessage, what: str, path: str = "") -> Violation:
    """A fault of a message."""
    return Violation(f"{said.where} {path}".strip(), what, said.number, said.side)


# Form


def _check_json(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        if said.kind == "broken" and said.message is None:
            yield make_violation(said, said.flaw)


def _check_envelope(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        if said.kind == "broken" and said.message is not None:
            yield make_violation(said, said.flaw)


def _check_batches(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        if said.side == "server" and _answers_batch(said, conversation):
            continue  # whether it may be served is a rule of its own
        if said.kind == "batch" and said.revision.name != "2025-03-26":
            yield make_violation(said, f"{said.revision.name} has no batches")
        elif said.kind == "batch" and not said.message:
            yield make_violation(said, "the batch is empty")


def _answers_batch(said: ObservedMessage, conversation: ObservedConversation) -> bool:
    """Whether an array answers another one, which is the one at fault."""
    return said.kind == "batch" and any(
        one.kind == "batch" and one.side == "client" and one.number < said.number
        for one in conversation.said
    )


def _check_initialize_batched(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        if said.batched and said.kind == "request" and said.method == "initialize":
            yield make_violation(said, "it is part of a batch")


# Ids


def _check_ids(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        if said.kind == "request":
            id = said.message["id"]
            if isinstance(id, bool) or not isinstance(id, int | str):
                yield make_violation(said, f"its id is {id!r}", "$.id")


def _check_reused_ids(conversation: ObservedConversation) -> Iterator[Violation]:
    seen: set[tuple[str, str]] = set()
    for said in conversation.said:
        if said.kind != "request":
            continue
        id = (said.side, repr(said.message["id"]))
        if id in seen and said.side in conversation.judged:
            yield make_violation(said, f"the id {said.message['id']!r} was used before")
        seen.add(id)


def _check_unasked_answers(conversation: ObservedConversation) -> Iterator[Violation]:
    answered: set[int] = set()
    for said in conversation.said:
        if said.kind not in {"result", "error"}:
            continue
        if said.asked is None:
            id = said.message.get("id")
            if said.side in conversation.judged and not (said.kind == "error" and id is None):
                yield make_violation(said, f"nothing was asked under the id {id!r}", "$.id")
        elif identify_message(said.asked) in answered:
            if said.side in conversation.judged:
                yield make_violation(
                    said, f"the request {said.message['id']!r} was answered before"
                )
        else:
            answered.add(identify_message(said.asked))


def identify_message(said: ObservedMessage) -> int:
    """A number that no other message of the conversation has."""
    return id(said)


# Shapes


def _find_message_flaws(said: ObservedMessage) -> list[Flaw]:
    """Find what does not fit, in a message of a method that its revision has."""
    row = METHODS.get(said.method)
    if said.kind == "error":
        return find_flaws(said.message["error"], ErrorBody, said.revision, "$.error")
    if row is None or _is_of_extension(said):
        return []
    if said.kind == "result":
        return [] if _is_of_no_version(said) else _find_result_flaws(said, row.result)
    if not said.revision.allows(said.side, said.method):
        return []
    found = find_flaws(said.message.get("params", {}), row.params, said.revision, "$.params")
    if said.kind == "request" and said.side == "client" and said.revision in MODERN:
        meta = said.params.get("_meta", {})
        found += [
            flaw
            for flaw in find_flaws(meta, wire.RequestMeta, said.revision, "$.params._meta")
            if flaw.kind != "unknown"
        ]
    return found


def _is_of_no_version(said: ObservedMessage) -> bool:
    """Whether a result answers a request in a version that nobody has: no shape is right for it."""
    asked = said.asked.params if said.asked is not None else {}
    meta = asked.get("_meta")
    stated = meta.get(PROTOCOL_VERSION) if isinstance(meta, dict) else None
    if said.method == "initialize":
        stated = said.result.get("protocolVersion")
    return isinstance(stated, str) and stated not in BY_NAME and not isinstance(stated, Placeholder)


def _find_result_flaws(said: ObservedMessage, shape: Any) -> list[Flaw]:
    asker = get_other_side(said.side)
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
    return find_flaws(said.message["result"], shape, said.revision, "$.result")


def _is_of_extension(said: ObservedMessage) -> bool:
    """Whether a method belongs to an extension, whose shapes are its own."""
    tasks = said.method.startswith(("tasks/", "notifications/tasks"))
    return tasks and said.revision in MODERN


def _check_shape(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        if said.kind in {"broken", "batch"}:
            continue
        for flaw in _find_message_flaws(said):
            if flaw.kind != "unknown":
                yield make_violation(said, flaw.text, flaw.path)


def _check_surplus(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        if said.kind in {"broken", "batch"}:
            continue
        for flaw in _find_message_flaws(said):
            if flaw.kind == "unknown":
                yield make_violation(said, flaw.text, flaw.path)


def _check_result_type(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        if said.kind != "result" or said.revision not in MODERN or said.side != "server":
            continue
        kind = said.result.get("resultType", "complete")
        row = METHODS.get(said.method)
        if kind == "input_required" and row is not None and not row.asks:
            yield make_violation(said, "only tools/call, prompts/get and resources/read may ask")
        elif kind not in RESULT_TYPES and not isinstance(kind, Placeholder):
            yield make_violation(said, f"resultType is {kind!r}", "$.result.resultType")


RESULT_TYPES = ("complete", "input_required", "task")  # a tuple: what is looked up may be a list

# Who may say what, and when


def _check_direction(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        if said.kind not in {"request", "notification"} or _is_of_extension(said):
            continue
        if is_known_method(said.method) and not said.revision.allows(said.side, said.method):
            yield make_violation(said, f"a {said.side} does not send it in {said.revision.name}")
        elif said.kind == "request" and said.side == "server" and said.revision in MODERN:
            yield make_violation(said, f"servers send no requests in {said.revision.name}")


def _check_early_requests(conversation: ObservedConversation) -> Iterator[Violation]:
    """Before the handshake is over, up to 2025-11-25."""
    # A recording may begin in the middle.
    opened = not any(said.method == "initialize" for said in conversation.said)
    for said in conversation.said:
        if said.revision in MODERN or said.kind not in {"request", "notification", "result"}:
            continue
        if said.kind == "result" and said.method == "initialize":
            opened = True
        allowed = EARLY_METHODS[said.side] if said.kind == "request" else {said.method}
        judged = said.side in conversation.judged and said.kind == "request"
        if not opened and judged and said.method not in allowed:
            yield make_violation(said, "the answer to initialize has not been sent yet")


EARLY_METHODS = {"client": {"initialize", "ping"}, "server": {"ping"}}

CLIENT_CAPABILITY_OF = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}

SERVER_CAPABILITY_OF = {
    "notifications/message": ("logging", None),
    "notifications/tools/list_changed": ("tools", "listChanged"),
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
}


def _check_client_lacks(conversation: ObservedConversation) -> Iterator[Violation]:
    declared = conversation.capabilities.get("client")
    if declared is None:
        return
    for said in conversation:
        if said.side != "server":
            continue
        asked = [said.method] if said.kind == "request" else _list_questions(said)
        for method in asked:
            if (
                CLIENT_CAPABILITY_OF.get(method, "")
                and CLIENT_CAPABILITY_OF[method] not in declared
            ):
                yield make_violation(
                    said,
                    f"asks {method}, and the client declared no {CLIENT_CAPABILITY_OF[method]}",
                )


def _list_questions(said: ObservedMessage) -> list[str]:
    requests = said.result.get("inputRequests")
    if not isinstance(requests, dict):
        return []
    return [str(one.get("method")) for one in requests.values() if isinstance(one, dict)]


def _check_server_lacks(conversation: ObservedConversation) -> Iterator[Violation]:
    declared = conversation.capabilities.get("server")
    if declared is None:
        return
    for said in conversation:
        capability, member = SERVER_CAPABILITY_OF.get(said.method, ("", None))
        if said.kind != "notification" or said.side != "server" or not capability:
            continue
        has = declared.get(capability)
        if has is None or (member is not None and not (isinstance(has, dict) and has.get(member))):
            yield make_violation(
                said, f"{capability}{'.' + member if member else ''} was not declared"
            )


def _check_progress(conversation: ObservedConversation) -> Iterator[Violation]:
    """Tokens that were given, values that grow, and nothing after the answer."""
    asked: dict[tuple[str, str], ObservedMessage] = {}
    last: dict[tuple[str, str], float] = {}
    for said in conversation.said:
        if said.kind == "request":
            meta = said.params.get("_meta")
            token = meta.get("progressToken") if isinstance(meta, dict) else None
            if token is not None:
                asked[get_other_side(said.side), repr(token)] = said
        elif said.kind == "notification" and said.method == "notifications/progress":
            name = (said.side, repr(said.params.get("progressToken")))
            value = said.params.get("progress")
            if said.side not in conversation.judged or not isinstance(value, int | float):
                continue
            if name not in asked:
                yield make_violation(said, "no request has this token", "$.params.progressToken")
            elif value <= last.get(name, float("-inf")):
                yield make_violation(
                    said, f"{value} does not exceed {last[name]}", "$.params.progress"
                )
            last[name] = value


def _check_progress_late(conversation: ObservedConversation) -> Iterator[Violation]:
    open_tokens: dict[tuple[str, str], bool] = {}
    owners: dict[int, tuple[str, str]] = {}
    for said in conversation.said:
        meta = said.params.get("_meta") if said.kind == "request" else None
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is not None:
            owners[identify_message(said)] = name = (get_other_side(said.side), repr(token))
            open_tokens[name] = True
        elif (
            said.asked is not None
            and identify_message(said.asked) in owners
            and "task" not in said.result
        ):
            open_tokens[owners[identify_message(said.asked)]] = False
        elif said.kind == "notification" and said.method == "notifications/progress":
            name = (said.side, repr(said.params.get("progressToken")))
            if said.side in conversation.judged and open_tokens.get(name) is False:
                yield make_violation(said, "its request was answered before")


def _check_cancels_initialize(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        if said.kind == "notification" and said.method == "notifications/cancelled":
            asked = conversation.asked(said.side, said.params.get("requestId"))
            if asked is not None and asked.method == "initialize":
                yield make_violation(said, "it cancels initialize")


def _check_listen_first(conversation: ObservedConversation) -> Iterator[Violation]:
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
                yield make_violation(said, f"no {SUBSCRIPTION_ID}", "$.params._meta")
        elif (
            said.method in SERVER_CAPABILITY_OF and SERVER_CAPABILITY_OF[said.method][1] is not None
        ):
            if stream == "None":
                yield make_violation(said, f"no {SUBSCRIPTION_ID}", "$.params._meta")
            elif stream not in acknowledged:
                yield make_violation(said, "the stream was not acknowledged yet")


MESSAGE_RULES: tuple[LintRule, ...] = (  # the rules, in the order in which they are reported
    LintRule(
        "messages.json",
        "error",
        "2025-11-25 basic#messages",
        "Every message is JSON.",
        "Write nothing but JSON-RPC messages where messages are expected; logs go to stderr.",
        _check_json,
    ),
    LintRule(
        "messages.jsonrpc",
        "error",
        "2025-11-25 basic#messages",
        "Every message is a JSON-RPC 2.0 request, notification or answer.",
        'Write "jsonrpc": "2.0", and either a method, a result or an error.',
        _check_envelope,
    ),
    LintRule(
        "messages.batch",
        "error",
        "2025-06-18 changelog",
        "Only 2025-03-26 has batches, and they are not empty.",
        "Send each message by itself.",
        _check_batches,
    ),
    LintRule(
        "messages.batch-initialize",
        "error",
        "2025-03-26 basic/lifecycle#initialization",
        "initialize is not part of a batch.",
        "Send initialize by itself, and wait for its answer.",
        _check_initialize_batched,
        since="2025-03-26",
        until="2025-03-26",
    ),
    LintRule(
        "messages.id",
        "error",
        "2025-11-25 basic#requests",
        "A request's id is a string or an integer, and never null.",
        "Count, or make up strings.",
        _check_ids,
    ),
    LintRule(
        "messages.id-reused",
        "error",
        "2025-11-25 basic#requests",
        "A request's id was not used before by the same side in the same session.",
        "Count upwards.",
        _check_reused_ids,
        until="2025-11-25",
    ),
    LintRule(
        "messages.unasked",
        "error",
        "2025-11-25 basic#responses",
        "An answer has the id of a request of the other side, which has one answer.",
        "Echo the request's id, with its type, and answer once.",
        _check_unasked_answers,
    ),
    LintRule(
        "messages.shape",
        "error",
        "2025-11-25 basic#schema",
        "Params, results and errors have the members that the revision's schema requires, of its types.",
        "Mend the member named.",
        _check_shape,
    ),
    LintRule(
        "messages.surplus",
        "note",
        "2025-11-25 basic#schema",
        "Members that a revision does not have are ignored by whoever reads them.",
        "Leave them out, or put what is your own into _meta.",
        _check_surplus,
    ),
    LintRule(
        "messages.result-type",
        "error",
        "2026-07-28 basic#resulttype",
        "resultType is one that the client knows, and asks only where a request may be answered so.",
        'Write "complete" or, for tools/call, prompts/get and resources/read, "input_required".',
        _check_result_type,
        since="2026-07-28",
    ),
    LintRule(
        "messages.direction",
        "error",
        "2025-11-25 schema",
        "Each side sends only the requests and notifications that the revision gives it.",
        "Look at the revision negotiated before sending; since 2026-07-28 servers ask in results.",
        _check_direction,
    ),
    LintRule(
        "messages.early",
        "warning",
        "2025-11-25 basic/lifecycle#initialization",
        "Before the handshake is over, nothing but ping is asked.",
        "Wait for the answer to initialize, and for notifications/initialized.",
        _check_early_requests,
        until="2025-11-25",
    ),
    LintRule(
        "messages.client-lacks",
        "error",
        "2025-11-25 basic/lifecycle#operation",
        "A server asks a client only for what the client declared.",
        "Look at the client's capabilities before asking.",
        _check_client_lacks,
    ),
    LintRule(
        "messages.server-lacks",
        "error",
        "2025-11-25 basic/lifecycle#operation",
        "A server sends only notifications whose capability it declared.",
        "Declare logging, listChanged or subscribe.",
        _check_server_lacks,
    ),
    LintRule(
        "messages.progress",
        "error",
        "2025-11-25 basic/utilities/progress#behavior-requirements",
        "Progress names the token of a request, and grows with each notification.",
        "Send progress for requests that asked for it only, and only when it has grown.",
        _check_progress,
    ),
    LintRule(
        "messages.progress-late",
        "error",
        "2025-11-25 basic/utilities/progress#implementation-notes",
        "There is no progress after the answer.",
        "Stop reporting before answering.",
        _check_progress_late,
    ),
    LintRule(
        "messages.cancels-initialize",
        "error",
        "2025-11-25 basic/utilities/cancellation#behavior-requirements",
        "initialize is not cancelled.",
        "Close the connection instead.",
        _check_cancels_initialize,
        until="2025-11-25",
    ),
    LintRule(
        "messages.listen",
        "error",
        "2026-07-28 basic/patterns/subscriptions",
        "A stream of changes is acknowledged first, and its notifications name it.",
        "Send notifications/subscriptions/acknowledged first, and put the id of the request into _meta.",
        _check_listen_first,
        since="2026-07-28",
    ),
)
