"""Every rule can fire: a conversation, or a server, that breaks it and no other."""

import json

import pytest

from isthmus import HttpSse
from isthmus.errors import UsageError
from isthmus.linter.doctor.doctor import examine
from isthmus.linter.doctor.recordings import read_recordings
from isthmus.linter.rules.catalog import CONVERSATION_RULES, RULES, VISIT_RULES, judge, select_rules
from isthmus.revisions import BY_NAME
from isthmus.testing import serving
from isthmus.types import CLIENT_CAPABILITIES, PROTOCOL_VERSION, SUBSCRIPTION_ID
from support.linter.spoiled_servers import (
    HANG_UP,
    SpoiledReply,
    examine_server,
    line_site,
    make_good_server,
    web_site,
)

# --- conversations ----------------------------------------------------------------------------

L, B, M = "2025-11-25", "2025-03-26", "2026-07-28"

ALL = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {},
    "completions": {},
    "logging": {},
}


def session(*lines, revision=L, client=None, server=None):
    """A handshake, then what is said."""
    who = {"name": "x", "version": "1"}
    server = server or ALL
    params = {"protocolVersion": revision, "capabilities": client or {}, "clientInfo": who}
    result = {"protocolVersion": revision, "capabilities": server, "serverInfo": who}
    return [
        ("C", {"id": 0, "method": "initialize", "params": params}),
        ("S", {"id": 0, "result": result}),
        ("C", {"method": "notifications/initialized"}),
        *lines,
    ]


FACTS = {PROTOCOL_VERSION: M, CLIENT_CAPABILITIES: {}}


def ask(method, params=None, id=1):
    return ("C", {"id": id, "method": method, "params": params or {}})


def ask_modern(method, params=None, id=1):
    return ask(method, {**(params or {}), "_meta": FACTS}, id)


def answer(result, id=1):
    return ("S", {"id": id, "result": result})


def complete(result, id=1):
    return answer({"resultType": "complete", **result}, id)


def error(code, message="no", id=1):
    return ("S", {"id": id, "error": {"code": code, "message": message}})


def tools(*items, id=1):
    schema = {"type": "object"}
    listed = [{"name": "a", "description": "A.", "inputSchema": schema, **item} for item in items]
    return answer({"tools": listed}, id)


def page(scope, id, **more):
    result = {"tools": [], "ttlMs": 0, "cacheScope": scope, **more}
    return complete(result, id)


def note(method, params=None):
    return ("S", {"method": method, "params": params or {}})


def progress(value, token=7):
    return note("notifications/progress", {"progressToken": token, "progress": value})


def question(method, **params):
    """A call in whose result the server asks a client that can answer it."""
    can = {PROTOCOL_VERSION: M, CLIENT_CAPABILITIES: {"sampling": {"context": {}}, "roots": {}}}
    asked = {"q": {"method": method, "params": params}}
    return [
        ask("tools/call", {"name": "a", "_meta": can}),
        answer({"resultType": "input_required", "inputRequests": asked}),
    ]


SAMPLED = {"messages": [], "maxTokens": 5}
CALL = ask("tools/call", {"name": "a", "_meta": {"progressToken": 7}})
DONE = answer({"content": []})
LISTEN = ask_modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
CHANGED = "notifications/tools/list_changed"
REF = {"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "b", "value": ""}}


def completing(completion):
    return session(ask("completion/complete", REF), answer({"completion": completion}))


def block(**content):
    return session(ask("tools/call", {"name": "a"}), answer({"content": [content]}))


BROKEN = [
    ("messages.json", [*session(), ("S", b"hello")]),
    ("messages.jsonrpc", [*session(), ("S", {"id": 1})]),
    ("messages.batch", [*session(), ("C", [{"jsonrpc": "2.0", "method": "notifications/x"}])]),
    ("messages.batch", [*session(revision=B), ("C", [])]),
    (
        "messages.batch-initialize",
        [
            (
                "C",
                [
                    {
                        "jsonrpc": "2.0",
                        "id": 0,
                        "method": "initialize",
                        "params": session(revision=B)[0][1]["params"],
                    }
                ],
            ),
            session(revision=B)[1],
        ],
    ),
    ("messages.id", session(("C", {"id": None, "method": "ping"}))),
    ("messages.id", session(("C", {"id": 1.5, "method": "ping"}))),
    ("messages.id-reused", session(ask("ping"), answer({}), ask("ping"))),
    ("messages.unasked", session(answer({}, 9))),
    ("messages.unasked", session(ask("ping"), answer({}), answer({}))),
    ("messages.shape", session(ask("tools/list"), answer({"tools": 1}))),
    ("messages.shape", session(ask("tools/call", {"name": 7}), error(-32602))),
    ("messages.shape", session(ask("ping"), ("S", {"id": 1, "error": {"code": "x"}}))),
    ("messages.shape", [ask("tools/list", {"_meta": {PROTOCOL_VERSION: M}})]),
    ("messages.surplus", session(ask("ping"), answer({"pong": 1}))),
    (
        "messages.result-type",
        [ask_modern("tools/call", {"name": "a"}), answer({"resultType": "later", "content": []})],
    ),
    (
        "messages.result-type",
        [ask_modern("tools/list"), answer({"resultType": "input_required", "requestState": "s"})],
    ),
    ("messages.direction", session(("S", {"id": 1, "method": "tools/list", "params": {}}))),
    ("messages.direction", session(("C", {"method": "notifications/message"}))),
    ("messages.direction", [ask_modern("ping")]),
    ("messages.direction", [ask_modern("acme/x"), ("S", {"id": 2, "method": "acme/y"})]),
    ("messages.early", [ask("tools/list", id=5), *session()]),
    (
        "messages.client-lacks",
        session(
            ("S", {"id": 1, "method": "roots/list"}), ("C", {"id": 1, "result": {"roots": []}})
        ),
    ),
    (
        "messages.client-lacks",
        [
            ask_modern("tools/call", {"name": "a"}),
            answer(
                {"resultType": "input_required", "inputRequests": {"q": {"method": "roots/list"}}}
            ),
        ],
    ),
    ("messages.server-lacks", session(note("notifications/prompts/list_changed"))),
    ("messages.progress", session(CALL, progress(1, "other"), DONE)),
    ("messages.progress", session(CALL, progress(1), progress(1), DONE)),
    ("messages.progress-late", session(CALL, DONE, progress(1))),
    (
        "messages.cancels-initialize",
        [session()[0], ("C", {"method": "notifications/cancelled", "params": {"requestId": 0}})],
    ),
    ("messages.listen", [LISTEN, note(CHANGED, {"_meta": {SUBSCRIPTION_ID: 1}})]),
    ("messages.listen", [LISTEN, note(CHANGED)]),
    ("tools.name", session(ask("tools/list"), tools({"name": "a b"}))),
    ("tools.unique", session(ask("tools/list"), tools({}, {}))),
    ("tools.described", session(ask("tools/list"), tools({"description": " "}))),
    (
        "tools.schema",
        session(
            ask("tools/list"),
            tools({"inputSchema": {"type": "object", "properties": {"x": {"type": "text"}}}}),
        ),
    ),
    (
        "tools.network-ref",
        session(
            ask("tools/list"),
            tools(
                {
                    "inputSchema": {
                        "type": "object",
                        "properties": {"x": {"$ref": "https://example.com/x.json"}},
                    }
                }
            ),
        ),
    ),
    (
        "tools.header",
        [
            ask_modern("tools/list"),
            complete(
                {
                    "ttlMs": 0,
                    "cacheScope": "public",
                    "tools": [
                        {
                            "name": "a",
                            "description": "A.",
                            "inputSchema": {
                                "type": "object",
                                "properties": {"x": {"type": "number", "x-mcp-header": "X"}},
                            },
                        }
                    ],
                }
            ),
        ],
    ),
    (
        "prompts.unique",
        session(
            ask("prompts/list"),
            answer({"prompts": [{"name": "a", "description": "A."}] * 2}),
        ),
    ),
    ("prompts.described", session(ask("prompts/list"), answer({"prompts": [{"name": "a"}]}))),
    (
        "resources.unique",
        session(
            ask("resources/list"),
            answer({"resources": [{"name": "a", "uri": "a://b"}, {"name": "b", "uri": "a://b"}]}),
        ),
    ),
    (
        "resources.template",
        session(
            ask("resources/templates/list"),
            answer({"resourceTemplates": [{"name": "a", "uriTemplate": "a://{b"}]}),
        ),
    ),
    (
        "icons.source",
        session(ask("tools/list"), tools({"icons": [{"src": "file:///etc/passwd"}]})),
    ),
    ("content.base64", block(type="image", mimeType="image/png", data="no base64!")),
    ("completion.most", completing({"values": ["a"] * 101})),
    ("completion.total", completing({"values": ["a", "b"], "total": 1})),
    ("completion.total", completing({"values": ["a"], "total": 2, "hasMore": False})),
    (
        "asking.something",
        [ask_modern("tools/call", {"name": "a"}), answer({"resultType": "input_required"})],
    ),
    (
        "caching.one-scope",
        [
            ask_modern("tools/list"),
            page("public", 1, nextCursor="c"),
            ask_modern("tools/list", {"cursor": "c"}, 2),
            page("private", 2),
        ],
    ),
    ("errors.code-zero", session(ask("ping"), error(0))),
    ("errors.code-reserved", [ask_modern("tools/list"), error(-32050)]),
    ("errors.code-reserved", [ask_modern("resources/read", {"uri": "a://b"}), error(-32002)]),
    (
        "errors.leak",
        session(ask("ping"), error(-32603, 'Traceback (most recent call last):\n  File "x"')),
    ),
    (
        "errors.leak",
        session(
            ask("tools/call", {"name": "a"}),
            answer({"isError": True, "content": [{"type": "text", "text": "panicked at src"}]}),
        ),
    ),
    ("deprecated.roots", question("roots/list")),
    ("deprecated.sampling", question("sampling/createMessage", **SAMPLED)),
    (
        "deprecated.include-context",
        question("sampling/createMessage", includeContext="thisServer", **SAMPLED),
    ),
    (
        "deprecated.logging",
        [
            ask_modern("acme/refund"),
            ("S", {"method": "notifications/message", "params": {"level": "info", "data": "x"}}),
            complete({}),
        ],
    ),
]


def recorded(lines):
    """A conversation as the text of a recording."""
    text = []
    for side, message in lines:
        if isinstance(message, bytes):
            text.append(json.dumps({"from": side, "message": message.decode()}))
            continue
        whole = {"jsonrpc": "2.0", **message} if isinstance(message, dict) else message
        text.append(json.dumps({"from": side, "message": whole}))
    return "\n".join(text)


def broken_by(lines):
    (conversation,) = read_recordings(recorded(lines))
    return {finding.rule for finding in judge(conversation, RULES)}


@pytest.mark.covers("linter.rules.each-can-fire")
@pytest.mark.parametrize(("rule", "lines"), BROKEN)
def test_a_conversation_breaks_one_rule_and_no_other(rule, lines):
    """Ours: a rule that cannot fire is not a rule, and one that fires too often is noise."""
    found = broken_by(lines)

    assert {rule} == {one for one in found if one == rule or not one.startswith("deprecated.")}


GOOD = [
    session(
        CALL,
        progress(1),
        progress(2),
        DONE,
        note("notifications/tools/list_changed"),
        ask("ping", id=2),
    ),
    session(
        ("S", {"id": 1, "method": "roots/list"}),
        ("C", {"id": 1, "result": {"roots": [{"uri": "file:///a"}]}}),
        client={"roots": {}},
    ),
    session(
        ("C", [{"jsonrpc": "2.0", "id": 1, "method": "ping"}]),
        ("S", [{"jsonrpc": "2.0", "id": 1, "result": {}}]),
        revision=B,
    ),
    [
        LISTEN,
        note(
            "notifications/subscriptions/acknowledged",
            {"notifications": {"toolsListChanged": True}, "_meta": {SUBSCRIPTION_ID: 1}},
        ),
        note(CHANGED, {"_meta": {SUBSCRIPTION_ID: 1}}),
    ],
    block(type="image", mimeType="image/png", data="AAEC"),
    completing({"values": ["a"], "total": 2, "hasMore": True}),
    [ask_modern("acme/refund", {"amount": 3}), complete({"receipt": 1})],
    session(ask("acme/refund"), error(1234)),
]


@pytest.mark.parametrize("lines", GOOD)
def test_a_good_conversation_breaks_none(lines):
    """Ours: nobody is accused who did nothing."""
    assert set() == broken_by(lines)


def test_every_rule_about_conversations_has_one_that_breaks_it():
    """Ours: the table above is whole."""
    assert {rule.id for rule in CONVERSATION_RULES} == {rule for rule, _ in BROKEN}


# --- servers, over lines ----------------------------------------------------------------------


def instead(method, change, *, where=lambda request: True):
    """Change the answers to a method: what came as decoded JSON becomes what is said."""

    def spoil(asked, message):
        if message and asked is not None and asked["method"] == method and where(asked):
            return change(message)
        return message

    return spoil


def says(code):
    return lambda m: {"jsonrpc": "2.0", "id": m["id"], "error": {"code": code, "message": "no"}}


def gives(result):
    return lambda m: {"jsonrpc": "2.0", "id": m["id"], "result": result}


def with_result(**more):
    return lambda m: {**m, "result": {**m["result"], **more}} if "result" in m else m


def nobody(request):
    asked = {k: v for k, v in request["params"].items() if k != "_meta"}
    return "isthmus-check" in json.dumps(asked)


def counted(request):
    """A request under an id that was counted, and none of those that are wrong on purpose."""
    return type(request["id"]) is int


def proper(request):
    """Not the request that lacks its jsonrpc member on purpose."""
    return "jsonrpc" in request


def unnamed(message):
    return message.get("id") is None


def loose_error(change):
    """Change errors without an id, or those to a request without a usable one."""

    def spoil(_asked, message):
        return change(message) if message.get("error") and unnamed(message) else message

    return spoil


def answers_note(name):
    def spoil(asked, message):
        if asked is not None and asked["method"] == name and not message:
            return {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "what?"}}
        return message

    return spoil


def null_served(asked, message):
    if message.get("error") and unnamed(message) and "not be null" in message["error"]["message"]:
        return {"jsonrpc": "2.0", "id": "isthmus", "result": {}}
    return message


def by_words(words, change):
    """Change the errors whose message has these words."""

    def spoil(_asked, message):
        text = message.get("error", {}).get("message", "") if isinstance(message, dict) else ""
        return change(message) if words in text else message

    return spoil


def tells_of_nothing(asked, message):
    completes = asked is not None and asked["method"] == "completion/complete"
    if message and completes and nobody(asked):
        return gives({"completion": {"values": []}})(message)
    return message


def read_stated_revision(request):
    return request["params"].get("protocolVersion")


def refuses(words):
    """An error with these words in place of the answer."""

    def change(message):
        error = {"code": -32600, "message": words}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}

    return change


def old(request):
    return request["params"].get("protocolVersion") == "1900-01-01"


def hangs_up(asked, message):
    return HANG_UP if unknown(asked) and message else message


def unknown(asked):
    return asked is not None and asked["method"] == "isthmus-check/no-such-method"


def forgets(asked, message):
    if message and asked is not None and "isthmus-check/no-such-method" == asked["method"]:
        return None
    return message


def shuffled():
    seen = []

    def change(message):
        listed = message.get("result", {}).get("tools", [])
        seen.append(1)
        return with_result(tools=listed[::-1] if len(seen) > 2 else listed)(message)

    return instead("tools/list", change)


def not_listening(asked, message):
    if message.get("method") == "notifications/subscriptions/acknowledged":
        return None
    return message


def grants_more(asked, message):
    if message.get("method") == "notifications/subscriptions/acknowledged":
        granted = {**message["params"]["notifications"], "resourcesListChanged": True}
        return {**message, "params": {**message["params"], "notifications": granted}}
    return message


def undeclared(capability):
    """A server that forgets to declare something."""

    def change(message):
        has = message.get("result", {}).get("capabilities", {})
        return with_result(capabilities={k: v for k, v in has.items() if k != capability})(message)

    return instead("initialize", change)


def no_server_info(message):
    meta = {k: v for k, v in message["result"]["_meta"].items() if "serverInfo" not in k}
    return with_result(_meta=meta)(message)


def second():
    seen = []

    def spoil(asked, message):
        if message and asked is not None and asked["method"] == "initialize":
            seen.append(1)
            if "error" in message:
                return gives(
                    {
                        "protocolVersion": L,
                        "capabilities": {},
                        "serverInfo": {"name": "x", "version": "1"},
                    }
                )(message)
        return message

    return spoil


def whole(request):
    return request["params"].get("name") == "whole"


def now(request):
    return request["params"].get("name") == "now"


LINES = [
    ("connection.survives", L, hangs_up, set()),
    ("connection.answers", L, forgets, set()),
    ("ids.null-refused", L, null_served, {"messages.unasked"}),
    ("ids.fraction-refused", L, by_words("float", gives({})), {"messages.unasked"}),
    ("errors.no-json", L, by_words("Parse error", says(-32000)), set()),
    ("errors.no-jsonrpc", L, by_words('must be "2.0"', says(-32000)), set()),
    ("errors.unknown-method", L, instead("isthmus-check/no-such-method", says(-32603)), set()),
    (
        "errors.bad-params",
        L,
        instead("tools/call", says(-32603), where=lambda r: r["params"]["name"] == 7),
        set(),
    ),
    (
        "errors.unknown-tool",
        L,
        instead(
            "tools/call",
            gives({"isError": True, "content": [{"type": "text", "text": "unknown tool"}]}),
            where=nobody,
        ),
        set(),
    ),
    ("errors.unknown-prompt", L, instead("prompts/get", says(-32603), where=nobody), set()),
    (
        "errors.missing-argument",
        L,
        instead("prompts/get", says(-32603), where=lambda r: r["params"]["name"] == "praise"),
        set(),
    ),
    ("errors.unknown-resource", L, instead("resources/read", says(-32603), where=nobody), set()),
    (
        "errors.unknown-resource-modern",
        M,
        instead("resources/read", says(-32603), where=nobody),
        set(),
    ),
    (
        "errors.unknown-resource-result",
        L,
        instead("resources/read", gives({"contents": []}), where=nobody),
        {"errors.unknown-resource"},
    ),
    ("errors.unknown-reference", L, tells_of_nothing, set()),
    ("errors.bad-cursor", L, instead("prompts/list", gives({"prompts": []}), where=nobody), set()),
    (
        "errors.bad-level",
        L,
        instead("logging/setLevel", gives({}), where=lambda r: r["params"]["level"] == "isthmus"),
        set(),
    ),
    ("notifications.unanswered", L, answers_note("notifications/isthmus-check"), set()),
    (
        "lifecycle.unknown-version",
        L,
        instead("initialize", with_result(protocolVersion="1900-01-01"), where=old),
        set(),
    ),
    ("lifecycle.unknown-version", L, instead("initialize", says(-32602), where=old), set()),
    ("lifecycle.twice", L, second(), set()),
    (
        "lifecycle.who",
        L,
        instead("initialize", with_result(serverInfo={"name": "x", "version": ""})),
        set(),
    ),
    ("lifecycle.who", M, instead("server/discover", no_server_info), set()),
    ("ping.empty", L, instead("ping", gives({"pong": True}), where=proper), {"messages.surplus"}),
    (
        "versions.discovered",
        M,
        instead("server/discover", with_result(supportedVersions=["2027-01-01"])),
        set(),
    ),
    (
        "versions.handshake",
        L,
        instead(
            "initialize",
            with_result(protocolVersion=M),
            where=lambda r: read_stated_revision(r) == M,
        ),
        set(),
    ),
    (
        "versions.no-handshake",
        M,
        instead("tools/list", refuses("Server not initialized")),
        None,
    ),
    (
        "versions.unsupported",
        M,
        instead("tools/list", says(-32602), where=lambda r: "1900-01-01" in str(r)),
        set(),
    ),
    (
        "versions.unsupported",
        M,
        instead("tools/list", says(-32022), where=lambda r: "1900-01-01" in str(r)),
        set(),
    ),
    (
        "versions.stated",
        M,
        by_words("clientCapabilities on every", says(-32603)),
        set(),
    ),
    ("versions.gone", M, instead("ping", gives({"resultType": "complete"}), where=proper), set()),
    (
        "capabilities.work",
        L,
        instead("completion/complete", says(-32601), where=lambda r: not nobody(r)),
        set(),
    ),
    ("capabilities.declared", L, undeclared("prompts"), set()),
    ("capabilities.subscribe", L, instead("resources/subscribe", says(-32601)), set()),
    (
        "capabilities.listed-works",
        L,
        instead("resources/read", says(-32002), where=lambda r: not nobody(r)),
        set(),
    ),
    (
        "pagination.ends",
        L,
        instead("tools/list", gives({"tools": [], "nextCursor": "again"}), where=counted),
        {"errors.bad-cursor"},
    ),
    ("pagination.stable", L, shuffled(), set()),
    ("changes.acknowledged", M, not_listening, {"connection.answers"}),
    ("changes.granted", M, grants_more, set()),
    ("calls.answered", L, instead("tools/call", says(-32603), where=now), set()),
    (
        "calls.output",
        L,
        instead(
            "tools/call",
            gives(
                {
                    "content": [{"type": "text", "text": "7"}],
                    "structuredContent": {"total": "seven"},
                }
            ),
            where=whole,
        ),
        set(),
    ),
    ("calls.output", L, instead("tools/call", gives({"content": []}), where=whole), set()),
    (
        "calls.text",
        L,
        instead(
            "tools/call", gives({"content": [], "structuredContent": {"total": 7}}), where=whole
        ),
        set(),
    ),
]


@pytest.mark.covers("linter.rules.each-can-fire")
@pytest.mark.parametrize(("rule", "revision", "spoil", "also"), LINES)
async def test_a_server_breaks_one_rule_and_those_that_follow(rule, revision, spoil, also):
    """Ours: what a rule finds, it finds on the wire."""
    report = await examine_server(line_site(spoil), revision)

    found = {finding.rule for finding in report.findings}

    assert rule in found
    assert also is None or {rule, *also} == found


async def test_noise_on_standard_output_is_found():
    """MUST NOT write anything that is no message (spec 2025-11-25 basic/transports#stdio)."""
    report = await examine_server(line_site(noise=[b"Welcome!"]), L)

    assert [("stdio.noise", "'Welcome!'")] == [(f.rule, f.said) for f in report.findings]


async def test_ping_before_initialize_is_asked():
    """It may be sent before the handshake (spec 2025-11-25 basic/lifecycle#initialization)."""
    handshakes = []

    def spoil(asked, message):
        method = asked["method"] if message and asked is not None else ""
        if method == "initialize":
            handshakes.append(asked)
        # The second one is the last question of the first connection.
        return says(-32603)(message) if method == "ping" and len(handshakes) > 1 else message

    report = await examine_server(line_site(spoil), L)

    assert {"lifecycle.ping-early"} == {finding.rule for finding in report.findings}


def unbatched(asked, message):
    """A server that knows no batches."""
    if isinstance(message, list):
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no batches"}}
    return message


async def test_a_server_of_2025_03_26_serves_batches():
    """MUST support receiving batches (spec 2025-03-26 basic#batching)."""
    report = await examine_server(line_site(unbatched), B)

    assert {"batches.served"} == {finding.rule for finding in report.findings}


async def test_an_empty_batch_is_an_error():
    """JSON-RPC 2.0, as 2025-03-26 has it."""
    report = await examine_server(line_site(by_words("at least one", says(-32603))), B)

    assert {"batches.empty"} == {finding.rule for finding in report.findings}


async def test_a_batch_in_a_revision_without_batches_is_refused():
    """Batching was removed (spec 2025-06-18 changelog)."""
    both = [
        {"jsonrpc": "2.0", "id": id, "result": {}} for id in ("isthmus-check-4", "isthmus-check-5")
    ]
    report = await examine_server(line_site(by_words("batch", lambda m: both)), L)

    assert "batches.refused" in {finding.rule for finding in report.findings}


async def test_an_answer_to_nothing_is_not_answered():
    """Nobody answers answers (JSON-RPC 2.0)."""

    def spoil(asked, message):
        if asked is not None and not message and asked["method"] == "notifications/isthmus-check":
            return None
        return message

    class Chatty(type(line_site())):
        pass

    site = line_site(spoil)
    dial = site._dial

    async def chatty():
        channel = await dial()
        send = channel.send

        async def sent(out):
            if b"isthmus-check-3" in out.data:
                channel._ready.append(b'{"jsonrpc":"2.0","id":"isthmus-check-3","result":{}}')
            await send(out)

        channel.send = sent
        return channel

    report = await examine_server(Chatty(chatty), L)

    assert {"answers.unanswered", "messages.unasked"} == {f.rule for f in report.findings}


# --- servers, over HTTP -----------------------------------------------------------------------


def when(name, change):
    """Change the replies to requests that ``name`` picks out."""

    def spoil(request, reply):
        return change(reply) if name(request) else reply

    return spoil


def status(code):
    return lambda reply: SpoiledReply(code, reply.headers, reply.body)


def header(name, value):
    return lambda request: request.headers.get(name) == value


def lacks(name):
    return lambda request: name not in request.headers and request.verb == "POST"


def verb(name):
    return lambda request: request.verb == name


def asks(method):
    return lambda request: request.method == method


def serve_refusable(result=None):
    """What should have been refused is served."""
    body = {"jsonrpc": "2.0", "id": None, "result": result or {}}

    def change(reply):
        message = {**body, "id": (reply.message or {}).get("id")}
        return SpoiledReply(200, {"content-type": "application/json"}, json.dumps(message).encode())

    return change


def ping_served(request, reply):
    return reply


def serve_ping(picks):
    """Requests that are picked out are answered as a good ping is."""

    def spoil(request, reply):
        if not picks(request):
            return reply
        id = (request.message or {}).get("id")
        body = json.dumps({"jsonrpc": "2.0", "id": id, "result": {}}).encode()
        return SpoiledReply(200, {"content-type": "application/json"}, body)

    return spoil


def end_session():
    seen = []

    def picks(request):
        if request.verb == "DELETE":
            seen.append(1)
        return bool(seen) and request.method == "ping"

    return serve_ping(picks)


def mismatch(picks):
    """Requests that are picked out are refused for something else."""

    def spoil(request, reply):
        if not picks(request) or reply.message is None or request.message is None:
            return reply
        id = request.message.get("id")
        return reply.saying(
            {"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no"}}
        )

    return spoil


def bad_session(request, reply):
    if "mcp-session-id" in reply.headers:
        return SpoiledReply(reply.status, {**reply.headers, "mcp-session-id": "a b"}, reply.body)
    if request.headers.get("mcp-session-id") == "a b":
        return reply
    return reply


def other_id(reply):
    return reply.saying({**reply.message, "id": "isthmus-other"})


def no_message(request):
    return request.verb == "POST" and request.message is None


def has_string_id(request):
    return request.method == "ping" and request.message.get("id") == "isthmus-check"


NODE = b"<pre>Error: no<br> &nbsp; &nbsp;at parse (/srv/app/node/index.js:10:5)</pre>"


def page(code, body):
    """A page of a framework's own."""
    return lambda _reply: SpoiledReply(code, {"content-type": "text/html"}, body)


HTTP = [
    ("ids.same", L, when(has_string_id, other_id), {"messages.unasked"}),
    ("http.type", L, when(asks("tools/list"), lambda r: SpoiledReply(r.status, {}, r.body)), None),
    (
        "http.accepted",
        L,
        when(asks("notifications/isthmus-check"), lambda r: SpoiledReply(200, r.headers, b"")),
        set(),
    ),
    ("http.leak", L, when(no_message, page(400, NODE)), set()),
    ("http.origin", L, serve_ping(header("origin", "http://evil.example")), set()),
    ("http.host", L, serve_ping(header("host", "evil.example")), set()),
    ("http.get", L, when(verb("GET"), status(500)), set()),
    ("http.get", M, when(verb("GET"), status(200)), set()),
    ("http.verbs", L, when(verb("PUT"), status(200)), set()),
    ("http.body-type", L, serve_ping(header("content-type", "text/plain")), set()),
    ("http.no-json", L, when(no_message, status(200)), set()),
    ("http.version", L, serve_ping(header("mcp-protocol-version", "1900-01-01")), set()),
    (
        "http.version-missing",
        L,
        when(lambda r: r.method == "ping" and "mcp-protocol-version" not in r.headers, status(400)),
        None,
    ),
    (
        "http.session-missing",
        L,
        serve_ping(lambda r: r.method == "ping" and "mcp-session-id" not in r.headers),
        set(),
    ),
    (
        "http.session-unknown",
        L,
        serve_ping(header("mcp-session-id", "isthmus-check-no-such-session")),
        set(),
    ),
    ("http.session-ended", L, end_session(), set()),
    ("http.delete", L, when(verb("DELETE"), status(500)), set()),
    (
        "http.version-mismatch",
        M,
        mismatch(lambda r: r.headers.get("mcp-protocol-version") == L),
        set(),
    ),
    ("http.method-mismatch", M, mismatch(lacks("mcp-method")), None),
    ("http.name-mismatch", M, mismatch(header("mcp-name", "isthmus-check-another-name")), set()),
    ("http.statuses", M, when(asks("isthmus-check/no-such-method"), status(400)), set()),
]


@pytest.mark.covers("linter.rules.each-can-fire")
@pytest.mark.parametrize(("rule", "revision", "spoil", "also"), HTTP)
async def test_a_server_breaks_a_rule_of_http(rule, revision, spoil, also):
    """Ours: what a rule finds, it finds in statuses and headers."""
    async with web_site(spoil) as site:
        report = await examine_server(site, revision)
    found = {finding.rule for finding in report.findings}

    assert rule in found
    assert also is None or {rule, *also} == found


async def test_a_session_id_of_other_characters_is_found():
    """MUST only contain visible ASCII (spec 2025-11-25 basic/transports#session-management)."""
    async with web_site(bad_session) as site:
        report = await examine_server(site, L)

    assert "http.session-id" in {finding.rule for finding in report.findings}


async def test_a_server_over_http_sse_alone_is_told_of_its_end():
    """Spec 2026-07-28 deprecated: Streamable HTTP replaces it; a note fails nothing."""
    async with serving(make_good_server(), sse="/sse") as url:
        old = await examine(HttpSse(url.replace("/mcp", "/sse")), revisions=[BY_NAME["2024-11-05"]])
        new = await examine(url, revisions=[BY_NAME["2025-11-25"]], timeout=1)
    (note,) = [one for one in old.findings if one.rule == "deprecated.http-sse"]

    assert ("note", "2024-11-05") == (note.severity, note.revision)
    assert "from 2026-09-03 on" in note.text
    assert "Streamable HTTP." == note.mend
    assert [] == [one for one in new.findings if one.rule == "deprecated.http-sse"]


ELSEWHERE = {
    "stdio.noise",
    "lifecycle.ping-early",
    "batches.served",
    "batches.empty",
    "batches.refused",
    "answers.unanswered",
    "http.session-id",
    "calls.slow",
    "deprecated.http-sse",
}


def test_every_rule_about_servers_has_one_that_breaks_it():
    """Ours: the tables above are whole, with the tests between them."""
    assert {rule.id for rule in VISIT_RULES} == {row[0] for row in (*LINES, *HTTP)} | ELSEWHERE


# --- the rules themselves ---------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_says_what_where_and_how_to_mend(rule):
    """Ours: a finding is of use to somebody who has not read the specification."""
    assert rule.text.endswith(".")
    assert rule.mend.endswith(".")
    assert rule.clause == "ours" or rule.clause.split()[0] in BY_NAME
    assert rule.since in BY_NAME
    assert rule.until in BY_NAME


def test_rules_are_chosen_by_name_and_by_area():
    """Ours: --only and --skip."""
    assert {"ping.empty"} == select_rules(["ping"], [])
    assert "tools.name" not in select_rules([], ["tools"])
    assert {"tools.unique"} < select_rules(["tools"], ["tools.name"])
    with pytest.raises(UsageError, match="no rule"):
        select_rules(["nothing"], [])


async def test_rules_that_are_left_out_find_nothing():
    """Ours: what was skipped is not judged."""
    site = line_site(instead("ping", says(-32603), where=proper), make_good_server())
    report = await examine_server(site, L, rules=select_rules([], ["ping", "lifecycle.ping-early"]))

    assert [] == report.findings


TRACES = {
    "python": 'Traceback (most recent call last):\n  File "/srv/a.py", line 3, in f',
    "node": "Error: x\n    at async Server.run (/srv/a.js:10:5)",
    "node, bare": "Error: x\n    at file:///srv/a.js:10:5",
    "java": "java.lang.Error\n\tat com.example.A.b(A.java:12)",
    "dotnet": "System.Exception: x\n   at Example.A.B(String c) in /srv/A.cs:line 5",
    "ruby": "/srv/app.rb:12:in `f'",
    "go": "panic: x\n\ngoroutine 1 [running]:",
    "rust": "thread 'main' panicked at src/main.rs:2:5",
    "php": "PHP Fatal error: x\nStack trace:\n#0 /srv/a.php(3): f()",
}


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
@pytest.mark.parametrize("where", ["message", "data", "deep"])
def test_a_stack_trace_is_known_wherever_it_stands(trace, where):
    """Ours: in an error's message, or in its data at any depth."""
    data = {"data": trace, "deep": {"error": {"stack": [trace]}}}.get(where)
    said = {"code": -32603, "message": trace if where == "message" else "no", "data": data}
    lines = [ask("ping"), ("S", {"id": 1, "error": said})]
    (conversation,) = read_recordings(recorded(session(*lines)))
    found = judge(conversation, {"errors.leak"})

    assert ["errors.leak"] == [one.rule for one in found]
