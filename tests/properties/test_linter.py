"""The linter reads what other people's programs say, so nothing they say may make it raise."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from isthmus.errors import UsageError
from isthmus.linter.doctor.probes import PROBES
from isthmus.linter.doctor.recordings import read_recordings
from isthmus.linter.rules.catalog import RULES, judge, judge_visit
from isthmus.linter.rules.conversation import ObservedConversation
from isthmus.linter.rules.visit import ProbeOutcome, ServerVisit
from isthmus.revisions import METHODS, REVISIONS

leaves = st.sampled_from(
    [None, True, False, 0, -1, 7, 1.5, 2**70, "", "a", "<x>", "...", "é\x00", "complete", "image"]
)
names = st.sampled_from(
    [
        "tools",
        "prompts",
        "resources",
        "resourceTemplates",
        "name",
        "inputSchema",
        "outputSchema",
        "$schema",
        "$ref",
        "type",
        "properties",
        "_meta",
        "content",
        "data",
        "cursor",
        "icons",
        "src",
        "completion",
        "values",
        "total",
        "hasMore",
        "resultType",
        "uri",
        "inputRequests",
        "capabilities",
        "protocolVersion",
        "progressToken",
        "progress",
        "...",
        "uriTemplate",
        "requestedSchema",
        "mode",
        "structuredContent",
        "isError",
        "arguments",
        "contents",
        "resource",
        "x-mcp-header",
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientCapabilities",
        "blob",
        "messages",
        "text",
        "description",
        "cacheScope",
        "requestId",
        "code",
        "message",
        "error",
    ]
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
parts = st.fixed_dictionaries(
    {"jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", 2])},
    optional={
        "id": st.sampled_from([1, 2, "a", None, 1.5]),
        "method": st.sampled_from([*METHODS, "acme/x", 7]),
        "params": values,
        "result": values,
        "error": values
        | st.fixed_dictionaries({"code": leaves, "message": leaves}, optional={"data": values}),
    },
)
messages = parts | st.lists(parts, max_size=2) | values | st.binary(max_size=9)
objects = st.dictionaries(names, values, max_size=4)
exchanges = st.builds(
    lambda method, params, result: [
        ("client", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
        ("server", {"jsonrpc": "2.0", "id": 1, "result": result}),
    ],
    st.sampled_from([*METHODS]),
    values | objects,
    values | objects | st.dictionaries(names, st.lists(objects, max_size=2), max_size=3),
)
conversations = st.lists(exchanges, max_size=4).map(
    lambda e: [m for pair in e for m in pair]
) | st.lists(st.tuples(st.sampled_from(["client", "server"]), messages), max_size=8)


@given(conversations, st.sampled_from([None, *REVISIONS]))
def test_no_conversation_makes_the_rules_raise(said, revision):
    """Ours: whatever was said, there is a report of it."""
    conversation = ObservedConversation(revision)
    for side, message in said:
        conversation.add(side, message)

    assert all(finding.rule in RULES for finding in judge(conversation, RULES))


@given(st.text(max_size=200) | conversations.map(lambda said: json.dumps(said, default=str)))
def test_no_recording_makes_the_reader_raise(text):
    """Ours: what cannot be read is told, and what can is judged."""
    try:
        found = read_recordings(text)
    except UsageError:
        return
    for conversation in found:
        list(judge(conversation, RULES))


LISTED = ["the list of tools", "the list of prompts", "the list of resources"]
outcomes = st.builds(
    ProbeOutcome,
    st.just(""),
    sent=st.sampled_from([{"id": 1}, b"", None]),
    reply=values | objects | st.fixed_dictionaries({"result": objects, "id": leaves}),
    others=st.lists(values | objects, max_size=2),
    status=st.sampled_from([0, 200, 202, 400, 404]),
    headers=st.sampled_from([{}, {"content-type": "text/html"}]),
    lost=st.sampled_from([None, None, "gone"]),
    silent=st.booleans(),
)


@given(
    st.sampled_from(REVISIONS),
    st.sampled_from(["lines", "http"]),
    st.dictionaries(
        st.sampled_from([*(probe.name for probe in PROBES), *LISTED]), outcomes, max_size=12
    ),
    objects,
    st.dictionaries(st.sampled_from(["tools", "prompts"]), st.lists(objects, max_size=2)),
)
@example(
    REVISIONS[2], "lines", {"ping": ProbeOutcome("", None, {"result": {"content": True}})}, {}, {}
)  # a result whose content is no list
def test_no_server_makes_the_rules_raise(revision, over, came, opening, items):
    """Ours: whatever a server answers, there is a report of it."""
    visit = ServerVisit(revision, over, [], came, opening, items, session="a b", called=came)

    assert all(finding.rule in RULES for finding in judge_visit(visit, RULES))


@given(
    st.sampled_from(REVISIONS),
    st.dictionaries(st.sampled_from(["tools", "prompts"]), st.lists(objects, max_size=2)),
)
def test_no_list_makes_a_question_raise(revision, items):
    """Ours: what to ask about is taken from lists as they came."""
    visit = ServerVisit(revision, "lines", [], items=items)

    for probe in PROBES:
        if callable(probe.params):
            probe.params(visit)
