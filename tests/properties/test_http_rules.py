"""Every request gets a verdict, whatever is in it; what is served as modern is consistent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from isthmus.core.caller import read_envelope
from isthmus.core.http.params import decode_value
from isthmus.core.http.rules import (
    LegacyRequest,
    ModernRequest,
    Refusal,
    RequestHead,
    judge,
    judge_by_rungs,
    judge_head,
    read_head,
)
from isthmus.revisions import LEGACY, MODERN, REVISIONS
from isthmus.transports.http.origin_guard import SiteNames, judge_source
from isthmus.wire.jsonrpc import Unreadable, encode, parse
from isthmus.wire.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION

words = st.sampled_from(
    [*(r.name for r in REVISIONS), "v999", "tools/call", "ping", "initialize", "add", "a b", "", "é",
     "=?base64?YWRk?=", "application/json", "*/*", "text/html", "localhost:1", "http://localhost"]
)  # fmt: skip
values = st.none() | words | st.text(st.characters(max_codepoint=255), max_size=20)
odd = st.none() | st.integers() | words | st.lists(words, max_size=2) | st.just({})
GONE = "gone"


def vary_mapping(good, alternatives, most=1):
    """A mapping as it should be but for a few members, which are anything or gone."""
    return st.dictionaries(
        st.sampled_from(sorted(good)), alternatives | st.just(GONE), max_size=most
    ).map(lambda other: {k: v for k, v in {**good, **other}.items() if v != GONE})


SERVED = {"version": MODERN[-1].name, "mcp_method": "tools/call", "mcp_name": "add"}
REST = dict.fromkeys(set(RequestHead.__struct_fields__) - set(SERVED))
heads = vary_mapping({**SERVED, **REST}, values, most=4).map(lambda fields: RequestHead(**fields))
metas = vary_mapping(
    {PROTOCOL_VERSION: MODERN[-1].name, CLIENT_CAPABILITIES: {}, CLIENT_INFO: None}, odd
).map(lambda meta: {k: v for k, v in meta.items() if v is not None})
PARAMS = {
    "name": "add",
    "_meta": {PROTOCOL_VERSION: MODERN[-1].name, CLIENT_CAPABILITIES: {"elicitation": {}}},
}
params = metas.flatmap(lambda meta: vary_mapping({"name": "add", "_meta": meta}, odd))
frames = params.flatmap(
    lambda given: vary_mapping({"id": 1, "method": "tools/call", "params": given}, odd)
).map(lambda frame: {"jsonrpc": "2.0", **frame})
supported = st.sampled_from([REVISIONS, LEGACY, MODERN, LEGACY[1:2], ()])
headers = st.lists(
    st.tuples(
        st.sampled_from([b"mcp-name", b"accept", b"host", b"mcp-protocol-version", b"x"]),
        st.binary(max_size=30),
    ),
    max_size=6,
)


def judge_post(head, body, revisions):
    """The verdict on a POST, or None where its body is no message."""
    frame = parse(body)
    if isinstance(frame, Unreadable):
        return frame, None, None
    raw = getattr(frame, "params", UNSET)
    envelope = read_envelope(None if raw is UNSET else raw)
    return frame, envelope, judge(head, frame, envelope, revisions)


@given(heads, st.one_of(frames, st.lists(frames, max_size=2)), supported)
def test_every_post_gets_a_verdict(head, body, revisions):
    """A refusal has an HTTP error and a code; a session is only for legacy revisions."""
    _, _, verdict = judge_post(head, encode(body), revisions)
    if isinstance(verdict, Refusal):
        assert verdict.status in {400, 404}
        assert verdict.code in {-32600, -32601, -32602, -32020, -32022}
        assert encode(verdict.error())
    if isinstance(verdict, LegacyRequest):
        assert set(revisions) & set(LEGACY)
        assert head.session_id == verdict.session_id


@pytest.mark.covers("routing.headers.compared")
@given(heads, frames, supported)
def test_a_modern_call_that_is_served_says_the_same_in_head_and_body(head, body, revisions):
    """Spec 2026-07-28 basic/transports/streamable-http#server-validation."""
    frame, envelope, verdict = judge_post(head, encode(body), revisions)
    if isinstance(verdict, ModernRequest) and frame.id is not UNSET:
        assert verdict.caller.revision in revisions
        assert head.version == verdict.caller.revision.name == envelope.meta.protocol_version
        assert head.mcp_method == frame.method
        if frame.method == "tools/call" and isinstance(envelope.name, str):
            assert decode_value(head.mcp_name) == envelope.name


SPELLINGS = ["add", "a.b-c", " add", "a b", "é", "a\tb", "add\x7f", "=?x", "=?base64?YWRk?=", ""]


def say_twice(method, name, id):
    """A head and a body that say the same, however strange it is."""
    head = RequestHead(**{**SERVED, "mcp_method": method, "mcp_name": name})
    body = {"jsonrpc": "2.0", "id": id, "method": method, "params": {**PARAMS, "name": name}}
    return head, body if id else {key: value for key, value in body.items() if key != "id"}


said_twice = st.builds(
    say_twice,
    st.sampled_from(["tools/call", "ping", "initialize"]),
    st.sampled_from(SPELLINGS) | st.text(max_size=8),
    st.sampled_from([0, 1]),
)


@given(said_twice | st.tuples(heads, frames), supported)
def test_what_is_decided_at_a_glance_is_decided_as_by_the_rungs(request, revisions):
    """Ours: saying the same twice has a short way, and the same verdict in the end."""
    head, body = request
    frame, envelope, verdict = judge_post(head, encode(body), revisions)

    assert verdict is None or verdict == judge_by_rungs(head, frame, envelope, revisions)


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_name_in_head_and_body_is_judged_as_by_the_rungs(name):
    """Ours: what stands for another name in a header, or for none, is not taken for itself."""
    head, body = say_twice("tools/call", name, 1)
    frame, envelope, verdict = judge_post(head, encode(body), REVISIONS)

    assert verdict == judge_by_rungs(head, frame, envelope, REVISIONS)


@given(st.sampled_from(["POST", "GET", "DELETE", "PUT", ""]), heads, headers, supported)
def test_every_head_gets_a_verdict(method, head, pairs, revisions):
    """Whatever bytes are in it."""
    site = SiteNames(frozenset({"localhost"}))
    for some in (head, read_head(pairs)):
        verdict = judge_head(method, some, revisions)
        assert verdict is None or isinstance(verdict, LegacyRequest | Refusal)
        refusal = judge_source(some, site)
        assert refusal is None or refusal.status == 403
