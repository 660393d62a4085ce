"""Scope models: scopes that stand for others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.auth import ScopeModel
from isthmus.errors import UsageError

NAMES = st.sampled_from("abcdef")
SETS = st.frozensets(NAMES)


@pytest.mark.covers("auth.resource.scope-hierarchy")
@given(st.dictionaries(NAMES, SETS), SETS, NAMES)
def test_whatever_is_implied_in_several_steps_is_granted(implies, granted, wanted):
    """Spec 2026-07-28 basic/authorization#step-up-authorization-flow: the hierarchy, also in a circle."""
    model = ScopeModel(implies=implies)
    expected = set(granted)
    while more := {x for one in expected for x in implies.get(one, ())} - expected:
        expected |= more

    assert expected == model.reached(granted)
    assert (wanted in expected) == model.satisfied(granted, frozenset({wanted}))


def test_no_scopes_imply_none():
    """Ours: no scopes are enough for no scopes."""
    assert ScopeModel().satisfied(frozenset(), frozenset())
    assert not ScopeModel({"a"}).satisfied(frozenset(), frozenset({"a"}))


def test_a_scope_model_knows_all_its_scopes():
    """Ours: challenges repeat nothing else of what was granted."""
    model = ScopeModel({"a"}, implies={"b": {"c", "d"}})

    assert ({"a"}, {"a", "b", "c", "d"}) == (model.base, model.known)


@pytest.mark.parametrize(
    "declare", [lambda: ScopeModel("read"), lambda: ScopeModel(implies={"a b": ()})]
)
def test_what_is_no_scope_is_refused(declare):
    """Ours: when it is declared."""
    with pytest.raises(UsageError):
        declare()
