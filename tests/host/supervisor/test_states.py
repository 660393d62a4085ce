"""The table of a connection's states, and how long it waits before the next attempt."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.host.supervisor.states import (
    LIVE_STATES,
    MAX_CRASHES,
    MAX_WAIT_S,
    REQUESTED_SIGNALS,
    SETTLED_STATES,
    TRANSITIONS,
    RestartBackoff,
    next_state,
)
from support.examples import count_examples

SIGNALS = sorted({signal for ways in TRANSITIONS.values() for signal in ways})
WALKS = st.lists(st.sampled_from(SIGNALS), max_size=60)
TIMES = st.lists(st.floats(0, 100), min_size=1, max_size=60)


def walk(signals, state="idle"):
    """The states that a connection passes through, with the signal that led to each."""
    for signal in signals:
        state = next_state(state, signal) or state
        yield signal, state


def reachable(start, signals):
    """The states that some of these signals lead to."""
    seen, waiting = {start}, [start]
    while waiting:
        for signal, then in TRANSITIONS[waiting.pop()].items():
            if signal in signals and then not in seen:
                seen.add(then)
                waiting.append(then)
    return seen


def test_every_state_has_a_row_and_can_be_reached():
    """Ours: a table with a hole would be a connection that nobody can move."""
    every = {then for ways in TRANSITIONS.values() for then in ways.values()}
    assert every <= set(TRANSITIONS)
    assert set(TRANSITIONS) == reachable("idle", SIGNALS)


@pytest.mark.covers("hostservers.failed.until-asked", "hostservers.disabled.until-enabled")
def test_nothing_leaves_failed_quarantined_and_disabled_but_what_somebody_asks_for():
    """Ours: what crashed too often, or nobody agreed to, is not started again by itself."""
    by_itself = set(SIGNALS) - REQUESTED_SIGNALS
    for state in ("failed", "quarantined", "disabled"):
        assert {state} == reachable(state, by_itself)


@settings(max_examples=count_examples(60))
@given(WALKS)
def test_calls_go_out_only_after_it_was_opened_and_before_it_ended(signals):
    """Ours: a live state is entered by an answer, and left by every end."""
    before = "idle"
    for signal, state in walk(signals):
        if state in LIVE_STATES and before not in LIVE_STATES:
            assert "opened" == signal
        before = state


@pytest.mark.covers("hostservers.start.one-end")
@settings(max_examples=count_examples(60))
@given(WALKS)
def test_each_start_comes_to_exactly_one_state(signals):
    """Ours: from connecting it goes in one step to a state that says what came of it."""
    before = "idle"
    for _signal, state in walk(signals):
        if before == "connecting" and state != "connecting":
            assert state in SETTLED_STATES
        before = state


def test_every_outcome_of_a_start_has_a_signal_of_its_own():
    """Ours: whoever reads the table sees what a start can come to."""
    outcomes = list(TRANSITIONS["connecting"].values())
    assert len(set(outcomes)) == len(outcomes)


@pytest.mark.covers("hostservers.backoff.bounded")
@settings(max_examples=count_examples(60))
@given(TIMES, st.floats(0, 1, exclude_max=True), st.booleans())
def test_a_wait_is_never_longer_than_a_minute_and_grows_at_most_by_doubling(gaps, part, crash):
    """Ours: full jitter of half a second, doubled each time, up to sixty."""
    backoff, now = RestartBackoff(lambda: part), 0.0
    for number, gap in enumerate(gaps):
        now += gap
        wait = backoff.next_wait(now, crash=crash)
        if wait is None:
            break
        assert 0 <= wait <= min(MAX_WAIT_S, 0.5 * 2**number)


@pytest.mark.covers("hostservers.crashloop.open")
@settings(max_examples=count_examples(60))
@given(TIMES)
def test_the_circuit_opens_at_the_fifth_crash_within_a_minute_and_at_no_other(gaps):
    """Ours: five crashes in sixty seconds, counted over any of them."""
    backoff, now, crashes = RestartBackoff(lambda: 0.5), 0.0, []
    for gap in gaps:
        now += gap
        crashes.append(now)
        recent = crashes[-MAX_CRASHES:]
        looped = len(recent) == MAX_CRASHES and now - recent[0] < 60
        assert looped == (backoff.next_wait(now) is None)


def test_a_network_that_is_down_never_counts_as_a_crash_loop():
    """Ours: a laptop that is carried about finds its servers again by itself."""
    backoff = RestartBackoff(lambda: 0.0)
    assert [0.0] * 100 == [backoff.next_wait(0.1 * n, crash=False) for n in range(100)]


@pytest.mark.covers("hostservers.backoff.reset")
def test_waits_begin_small_again_after_a_minute_of_health():
    """Ours: a server that was fine for a minute is not held to what was before."""
    backoff = RestartBackoff(lambda: 1.0)
    waits = [backoff.next_wait(100.0 * n, crash=False) for n in range(3)]
    backoff.note_open(1000.0)
    short = backoff.next_wait(1059.0)
    backoff.note_open(2000.0)
    long = backoff.next_wait(2060.0)
    assert ([0.5, 1.0, 2.0], 4.0, 0.5) == (waits, short, long)


def test_being_asked_for_forgets_the_crashes_before():
    """Ours: whoever asks for another start has mended something."""
    backoff = RestartBackoff(lambda: 1.0)
    for n in range(MAX_CRASHES - 1):
        backoff.next_wait(float(n))
    backoff.reset()
    assert [0.5, 1.0] == [backoff.next_wait(5.0), backoff.next_wait(6.0)]
