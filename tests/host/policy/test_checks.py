"""What a rule must not say where it stands."""

import pytest

from isthmus.host.policy.checks import near, problems
from isthmus.host.policy.rule import HINTS, Rule, When


@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
@pytest.mark.parametrize("name", HINTS)
@pytest.mark.covers("hostpolicy.trust.monotone")
def test_what_allows_rests_on_harmless_hints_and_what_forbids_on_harmful_ones(effect, name):
    """Ours: so that nothing a server leaves out helps it."""
    harmless, harmful = HINTS[name]
    good, bad = (harmless, harmful) if effect == "allow" else (harmful, harmless)

    assert [] == list(
        problems(Rule(id="r", effect=effect, when=When(annotations=((name, good),))), "user")
    )
    assert 1 == len(
        list(problems(Rule(id="r", effect=effect, when=When(annotations=((name, bad),))), "user"))
    )


@pytest.mark.parametrize("effect", ["allow", "ask"])
def test_what_is_stricter_rests_on_harmful_hints(effect):
    """Ours: unless makes stricter, whatever the rule does otherwise."""
    for value, wrong in ((False, 0), (True, 1)):
        rule = Rule(id="r", effect=effect, unless=When(annotations=(("read_only", value),)))
        assert wrong == len(list(problems(rule, "user")))


def test_a_word_that_is_near_is_offered():
    """Ours: otherwise all there are."""
    assert ("did you mean 'server'?", "there are a, b") == (
        near("sever", ("server", "tool")),
        near("xyz", ("a", "b")),
    )
