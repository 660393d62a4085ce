"""One attempt on its way: how dangerous it looks, what is under way, what was hidden in an edit."""

import pytest

from isthmus.core.redaction.live_secrets import REDACTED
from isthmus.host.approvals.hidden_values import restore_hidden
from isthmus.host.model.errors import BadArguments
from isthmus.host.model.facts import rate_risk
from isthmus.host.pipeline.attempts_in_flight import AttemptsInFlight
from isthmus.wire import ToolAnnotations
from support.host.policies import READS, make_attempt, make_facts

HARMLESS = ToolAnnotations(destructive_hint=False)


@pytest.mark.parametrize(
    ("attempt", "circumstances", "expected"),
    [
        (make_attempt(action="server.install"), make_facts(), "high"),
        (make_attempt(action="context.share"), make_facts(trust="full", annotations=READS), "high"),
        (make_attempt(action="resource.read"), make_facts(), "low"),
        (
            make_attempt(action="resource.read"),
            make_facts(chain=("a read private",), egress=True),
            "high",
        ),
        (make_attempt(action="resource.read"), make_facts(chain=("a read private",)), "low"),
        (make_attempt(), make_facts(), "medium"),
        (make_attempt(), make_facts(annotations=READS), "medium"),
        (make_attempt(), make_facts(trust="annotations", annotations=READS), "low"),
        (make_attempt(), make_facts(trust="annotations", annotations=ToolAnnotations()), "medium"),
        (make_attempt(), make_facts(egress=True), "high"),
        (
            make_attempt(),
            make_facts(egress=True, trust="full", annotations=ToolAnnotations()),
            "high",
        ),
        (make_attempt(), make_facts(egress=True, annotations=HARMLESS), "high"),
        (make_attempt(), make_facts(egress=True, trust="full", annotations=HARMLESS), "medium"),
        (make_attempt(action="elicitation.form"), make_facts(egress=True), "medium"),
    ],
)
def test_what_a_server_claims_makes_a_call_less_dangerous_where_it_is_trusted(
    attempt, circumstances, expected
):
    """Ours: what is not said counts as the worst."""
    assert expected == rate_risk(attempt, circumstances)


def hide_secrets(value):
    """The value as a person sees it: what is called a key, and what says that it is a secret, is hidden."""
    if isinstance(value, dict):
        return {k: REDACTED if k == "key" else hide_secrets(v) for k, v in value.items()}
    if isinstance(value, list):
        return [hide_secrets(one) for one in value]
    return REDACTED if str(value).startswith("secret") else value


@pytest.mark.parametrize(
    ("edited", "whole", "expected"),
    [
        (REDACTED, "secret", "secret"),
        ("another", "secret", "another"),
        ({"key": REDACTED, "n": 2}, {"key": "secret", "n": 1}, {"key": "secret", "n": 2}),
        ({"n": 2}, {"key": "secret", "n": 1}, {"n": 2}),
        ({"new": REDACTED}, {"key": "secret"}, {"new": REDACTED}),
        ([REDACTED, "b", "c"], ["secret", "a"], ["secret", "b", "c"]),
        (["a", REDACTED], ["secret", "a"], ["a", "secret"]),
        (
            [{"n": 2, "key": REDACTED}],
            [{"n": 1, "key": "x"}, {"n": 2, "key": "y"}],
            [{"n": 2, "key": "y"}],
        ),
        ({"in": [{"key": REDACTED}]}, {"in": [{"key": "secret"}]}, {"in": [{"key": "secret"}]}),
        ([REDACTED], {"0": "secret"}, [REDACTED]),
    ],
)
def test_what_was_hidden_stays_as_it_is_where_an_edit_has_it_hidden(edited, whole, expected):
    """Ours: nobody has to see a secret to change what stands beside it."""
    assert expected == restore_hidden(edited, whole, hide_secrets(whole))


@pytest.mark.parametrize(
    ("edited", "whole"),
    [
        ([REDACTED], ["secret", "secret too"]),
        ([{"n": 3, "key": REDACTED}], [{"n": 1, "key": "x"}, {"n": 2, "key": "y"}]),
        (
            [{"n": 3, "key": REDACTED}, {"n": 1, "key": REDACTED}],
            [{"n": 1, "key": "x"}, {"n": 2, "key": "y"}],
        ),
    ],
)
def test_whose_hidden_value_is_meant_is_not_guessed(edited, whole):
    """Ours: whoever removes the first of two payees does not pay with its card."""
    with pytest.raises(BadArguments, match="whose they are"):
        restore_hidden(edited, whole, hide_secrets(whole))


def test_what_is_under_way_is_known_by_connection():
    """Ours: who asks something there asks in the course of it; an isolation key is another line."""
    flying = AttemptsInFlight()
    one, two = make_attempt(id="1", server="a"), make_attempt(id="2", server="a", isolation="k")
    flying.add(one)
    flying.add(two)

    assert ((one,), (two,), ()) == (flying.at("a"), flying.at("a", "k"), flying.at("b"))
    flying.remove(one)
    assert ((), (two,)) == (flying.at("a"), flying.at("a", "k"))


def test_samplings_within_samplings_are_counted():
    """Ours: a call in the course of one is as deep as it; what is over is forgotten."""
    flying = AttemptsInFlight()
    outer = make_attempt(id="1", action="sampling.request")
    within = make_attempt(id="2", parent="1")
    inner = make_attempt(id="3", parent="2", action="sampling.request")
    for one in (outer, within, inner):
        flying.begin(one)

    assert [1, 1, 2, 0] == [flying.depth(id) for id in ("1", "2", "3", "none")]
    flying.end(outer)
    assert [0, 2] == [flying.depth(id) for id in ("1", "3")]
