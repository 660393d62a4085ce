"""Obligations of several rules, merged."""

import pytest

from isthmus.host.model.trace import Obligations, merge_obligations
from support.host.policies import make_attempt, make_facts, make_policy

ONE = Obligations(
    assurance="local_ui",
    timeout=30.0,
    max_calls=3,
    redact=("/a",),
    remember=("once", "session"),
    review="before",
)
TWO = Obligations(assurance="second_person", timeout=10.0, max_calls=1, redact=("/b", "/a"), remember=("once", "until"), review="after")  # fmt: skip


@pytest.mark.covers("hostpolicy.obligations.strictest")
def test_the_strictest_of_what_rules_that_ask_demand_counts():
    """Ours: and of how many calls what the deciding rule says, since its calls are counted."""
    assert Obligations(
        assurance="second_person",
        timeout=10.0,
        max_calls=3,
        redact=("/a", "/b"),
        remember=("once",),
        review="both",
    ) == merge_obligations([("ask", ONE), ("ask", TWO)], "ask")


@pytest.mark.covers("hostpolicy.obligations.strictest")
def test_what_must_not_be_shown_counts_from_every_rule():
    """Ours: whatever those rules would have had."""
    assert ("/a", "/b") == merge_obligations([("allow", ONE), ("ask", TWO)], "allow").redact
    assert "local_ui" == merge_obligations([("allow", ONE), ("ask", TWO)], "allow").assurance
    assert ONE is merge_obligations([("ask", ONE), ("allow", Obligations())], "ask")


def test_a_rule_that_is_overruled_still_hides_what_it_hides():
    """Ours: in a decision as a whole."""
    found = make_policy(
        '[[rule]]\nid = "yes"\neffect = "allow"\nwhen = { tool = "read" }\n'
        '[[rule]]\nid = "all"\neffect = "ask"\nobligations = { redact = ["/token"] }\n'
    )

    assert ("allow", ("/token",)) == (
        found.decide(make_attempt(), make_facts()).effect, found.decide(make_attempt(), make_facts()).obligations.redact,
    )  # fmt: skip
