"""The policies that come with isthmus."""

import pytest

from isthmus.host.policy.cases import read_cases, run_cases
from isthmus.host.policy.lint import lint_policy
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.shipped import SHIPPED_POLICIES, read_cases_text, read_policy_text


@pytest.mark.parametrize("name", SHIPPED_POLICIES)
@pytest.mark.covers("hostpolicy.shipped.cases")
def test_a_shipped_policy_does_what_its_cases_say(name):
    """Ours: the cases are what the guide's table is written from."""
    assert [] == [
        str(failure) for failure in run_cases(Policy.named(name), read_cases(read_cases_text(name)))
    ]


@pytest.mark.parametrize("name", SHIPPED_POLICIES)
@pytest.mark.covers("hostpolicy.shipped.cases")
def test_nothing_about_a_shipped_policy_is_doubtful(name):
    """Ours: whoever starts from it starts from something clean, that begins with what it is for."""
    assert [] == lint_policy(Policy.named(name))
    assert read_policy_text(name).startswith("# ")


@pytest.mark.parametrize("name", SHIPPED_POLICIES)
def test_every_rule_of_a_shipped_policy_has_a_case(name):
    """Ours: a rule that nothing tests may say anything."""
    policy, cases = Policy.named(name), read_cases(read_cases_text(name))
    decided = {policy.decide(case.attempt, case.facts).rule for case in cases}

    assert set() == {one.rule.id for one in policy.rules} - decided
