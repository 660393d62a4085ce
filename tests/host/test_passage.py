"""One attempt on its way: how dangerous it looks, what is under way, what was hidden in an edit."""

import pytest

from host_policies import READS, call, facts
from isthmus.host.audit.redaction import REDACTED
from isthmus.host.passage import Flying, risk, unhidden
from isthmus.wire import ToolAnnotations

HARMLESS = ToolAnnotations(destructive_hint=False)


@pytest.mark.parametrize(
    ("attempt", "circumstances", "expected"),
    [
        (call(action="server.install"), facts(), "high"),
        (call(action="context.share"), facts(trust="full", annotations=READS), "high"),
        (call(action="resource.read"), facts(), "low"),
        (call(action="resource.read"), facts(chain=("a read private",), egress=True), "high"),
        (call(action="resource.read"), facts(chain=("a read private",)), "low"),
        (call(), facts(), "medium"),
        (call(), facts(annotations=READS), "medium"),
        (call(), facts(trust="annotations", annotations=READS), "low"),
        (call(), facts(trust="annotations", annotations=ToolAnnotations()), "medium"),
        (call(), facts(egress=True), "high"),
        (call(), facts(egress=True, trust="full", annotations=ToolAnnotations()), "high"),
        (call(), facts(egress=True, annotations=HARMLESS), "high"),
        (call(), facts(egress=True, trust="full", annotations=HARMLESS), "medium"),
        (call(action="elicitation.form"), facts(egress=True), "medium"),
    ],
)
def test_what_a_server_claims_makes_a_call_less_dangerous_where_it_is_trusted(
    attempt, circumstances, expected
):
    """Ours: what is not said counts as the worst."""
    assert expected == risk(attempt, circumstances)


@pytest.mark.parametrize(
    ("edited", "whole", "expected"),
    [
        (REDACTED, "secret", "secret"),
        ("another", "secret", "another"),
        ({"key": REDACTED, "n": 2}, {"key": "secret", "n": 1}, {"key": "secret", "n": 2}),
        ({"n": 2}, {"key": "secret", "n": 1}, {"n": 2}),
        ({"new": REDACTED}, {"key": "secret"}, {"new": REDACTED}),
        ([REDACTED, "b", REDACTED], ["secret", "a"], ["secret", "b", REDACTED]),
        ({"in": [{"key": REDACTED}]}, {"in": [{"key": "secret"}]}, {"in": [{"key": "secret"}]}),
        ([REDACTED], {"0": "secret"}, [REDACTED]),
    ],
)
def test_what_was_hidden_stays_as_it_is_where_an_edit_has_it_hidden(edited, whole, expected):
    """Ours: nobody has to see a secret to change what stands beside it."""
    assert expected == unhidden(edited, whole)


def test_what_is_under_way_is_known_by_connection():
    """Ours: who asks something there asks in the course of it; an isolation key is another line."""
    flying = Flying()
    one, two = call(id="1", server="a"), call(id="2", server="a", isolation="k")
    flying.add(one)
    flying.add(two)

    assert ((one,), (two,), ()) == (flying.at("a"), flying.at("a", "k"), flying.at("b"))
    flying.remove(one)
    assert ((), (two,)) == (flying.at("a"), flying.at("a", "k"))


def test_samplings_within_samplings_are_counted():
    """Ours: a call in the course of one is as deep as it; what is over is forgotten."""
    flying = Flying()
    outer = call(id="1", action="sampling.request")
    within = call(id="2", parent="1")
    inner = call(id="3", parent="2", action="sampling.request")
    for one in (outer, within, inner):
        flying.begin(one)

    assert [1, 1, 2, 0] == [flying.depth(id) for id in ("1", "2", "3", "none")]
    flying.end(outer)
    assert [0, 2] == [flying.depth(id) for id in ("1", "3")]
