"""Trace context: read where it is well formed, and otherwise not there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from isthmus.core.trace import TraceContext, parse_trace, read_trace

PARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


@pytest.mark.covers("meta.trace.read")
def test_the_three_members_are_read():
    """The spec: traceparent, tracestate and baggage are set aside in _meta."""
    meta = {"traceparent": PARENT, "tracestate": "acme=1", "baggage": "user=ada", "x": 1}

    trace = parse_trace(meta)

    assert TraceContext(PARENT, "acme=1", "user=ada") == trace
    assert "0af7651916cd43dd8448eb211c80319c" == trace.trace_id
    assert "00f067aa0ba902b7" == trace.span_id
    assert trace.sampled
    assert {key: value for key, value in meta.items() if key != "x"} == trace.members()


@pytest.mark.covers("meta.trace.malformed-ignored")
@pytest.mark.parametrize(
    "parent",
    [
        *(None, 5, "", "00", PARENT.upper(), PARENT + "-x", "ff" + PARENT[2:], PARENT[:-1]),
        *("00-" + "0" * 32 + "-00f067aa0ba902b7-01", PARENT[:36] + "0" * 16 + "-01", PARENT + "\n"),
    ],
)
def test_what_is_no_trace_parent_is_no_trace(parent):
    """W3C: whoever receives a malformed one begins a new trace."""
    assert None is parse_trace({"traceparent": parent, "tracestate": "a=1"})


def test_a_later_version_is_read_as_far_as_it_is_known():
    """W3C: a higher version may have more behind what is known."""
    assert PARENT[3:35] == parse_trace({"traceparent": f"01{PARENT[2:]}-more"}).trace_id


@pytest.mark.covers("meta.trace.malformed-ignored")
@pytest.mark.parametrize("state", [5, "", "a\r\nX: y", "é", "x" * 9000])
def test_a_state_that_cannot_be_one_is_left_out(state):
    """W3C: the parent counts all the same; ours: nothing goes into headers that must not."""
    trace = parse_trace({"traceparent": PARENT, "tracestate": state, "baggage": state})

    assert TraceContext(PARENT) == trace


@given(st.dictionaries(st.sampled_from(["traceparent", "tracestate", "baggage"]), st.text()))
def test_nothing_in_meta_makes_it_raise(meta):
    """Ours: it is the other side's."""
    parse_trace(meta)


@pytest.mark.parametrize("params", [None, b"{}", b'{"_meta":5}', b"[]", b'{"_meta":{}}'])
def test_parameters_without_a_trace_have_none(params):
    """Ours: most have none."""
    assert None is read_trace(None if params is None else Raw(params))
