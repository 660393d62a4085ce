"""Gates: so many a minute, and so many at once."""

import pytest

from isthmus.client.model.questions import RequestGate
from isthmus.errors import Refuse
from isthmus.revisions.codes import LIMITED_CODE
from isthmus.store.meter import Rate


def passes_gate(gate):
    """Whether something gets through and is gone again."""
    try:
        with gate:
            return True
    except Refuse:
        return False


@pytest.mark.covers("clientlimits.questions.rate")
def test_a_minutes_worth_may_come_at_once_and_then_one_by_one():
    """Ours: a burst is no flood."""
    now = [0.0]
    gate = RequestGate("questions", Rate(60, 60.0), clock=lambda: now[0])

    assert [True] * 60 + [False] == [passes_gate(gate) for _ in range(61)]
    now[0] = 1.0
    assert [True, False] == [passes_gate(gate), passes_gate(gate)]
    now[0] = 100.0
    assert [True] * 60 + [False] == [passes_gate(gate) for _ in range(61)]


@pytest.mark.covers("clientlimits.questions.at-once")
def test_only_so_many_are_inside():
    """Ours: who comes too many is told how many there may be."""
    gate = RequestGate("questions", None, 1)
    words = "Too many questions at once: this client allows 1"
    with gate, pytest.raises(Refuse, match=words) as no:
        gate.__enter__()
    assert LIMITED_CODE == no.value.code
    assert passes_gate(gate)


def test_who_comes_too_often_is_told_how_often_is_right():
    """Ours: the rate is said as it was set."""
    gate = RequestGate("questions", Rate(2, seconds=10))
    assert [True, True] == [passes_gate(gate), passes_gate(gate)]
    with pytest.raises(Refuse, match="Too many questions: this client allows 2 in 10 s"):
        gate.__enter__()


def test_without_a_rate_everything_passes():
    """Ours: None takes a gate away."""
    gate = RequestGate("x", None)
    assert [True] * 1000 == [passes_gate(gate) for _ in range(1000)]


def test_what_failed_inside_is_no_longer_inside():
    """Ours: a place is free again whatever happened in it."""
    gate = RequestGate("x", None, 1)
    for _ in range(3):
        with pytest.raises(KeyError), gate:
            raise KeyError
