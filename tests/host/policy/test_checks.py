"""Checks of rules: each must not say some things in its layer."""

import pytest

from isthmus.host.policy.rule import (
    HINT_VALUES,
    PolicyRule,
    RuleCondition,
    find_problems,
    suggest_word,
)


@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
@pytest.mark.parametrize("name", HINT_VALUES)
@pytest.mark.covers("hostpolicy.trust.monotone")
def test_what_allows_rests_on_harmless_hints_and_what_forbids_on_harmful_ones(effect, name):
    """Ours: so that nothing a server leaves out helps it."""
    harmless, harmful = HINT_VALUES[name]
    good, bad = (harmless, harmful) if effect == "allow" else (harmful, harmless)

    assert [] == list(
        find_problems(
            PolicyRule(id="r", effect=effect, when=RuleCondition(annotations=((name, good),))),
            "user",
        )
    )
    assert 1 == len(
        list(
            find_problems(
                PolicyRule(id="r", effect=effect, when=RuleCondition(annotations=((name, bad),))),
                "user",
            )
        )
    )


@pytest.mark.parametrize("effect", ["allow", "ask"])
def test_what_is_stricter_rests_on_harmful_hints(effect):
    """Ours: unless makes stricter, whatever the rule does otherwise."""
    for value, wrong in ((False, 0), (True, 1)):
        rule = PolicyRule(
            id="r", effect=effect, unless=RuleCondition(annotations=(("read_only", value),))
        )
        assert wrong == len(list(find_problems(rule, "user")))


def test_a_word_that_is_near_is_offered():
    """Ours: otherwise all there are."""
    assert ("did you mean 'server'?", "there are a, b") == (
        suggest_word("sever", ("server", "tool")),
        suggest_word("xyz", ("a", "b")),
    )
