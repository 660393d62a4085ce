"""Our calls: each ends once, and time is a number."""

import pytest

from isthmus.core.calls import OutgoingCalls


@pytest.mark.covers("messages.ids.never-reused")
def test_ids_are_never_reused():
    """An id names one call for the life of the session (spec: unique ids)."""
    calls = OutgoingCalls()
    ids = [calls.open("ping").id for _ in range(3)]
    calls.settle(ids[0])
    ids.append(calls.open("ping").id)

    assert 4 == len(set(ids))


def test_a_call_is_settled_once():
    """Whoever settles first gets the record, everybody later gets None (our promise)."""
    calls = OutgoingCalls()
    call = calls.open("ping")

    assert call is calls.settle(call.id)
    assert None is calls.settle(call.id)


def test_silence_expires_a_call_at_its_timeout():
    """The deadline is the start plus the timeout (spec: timeouts SHOULD be established)."""
    calls = OutgoingCalls()
    call = calls.open("tools/call", now=10.0, timeout=5.0)

    assert [] == calls.expire(14.9)
    assert [call] == calls.expire(15.0)
    assert None is calls.settle(call.id)


def test_progress_moves_the_deadline_but_never_past_the_limit():
    """Progress MAY reset the clock; a maximum SHOULD always hold (spec: lifecycle timeouts)."""
    calls = OutgoingCalls()
    call = calls.open("tools/call", now=0.0, timeout=5.0, max_timeout=8.0)
    calls.progress(call.id, now=4.0)

    assert 8.0 == calls.next_deadline()
    assert [call] == calls.expire(8.0)


def test_progress_for_an_unknown_token_is_nothing():
    """A stranger's token changes nothing (our promise)."""
    assert None is OutgoingCalls().progress("no such token", now=1.0)


def test_a_call_without_timeout_has_only_its_limit():
    """No timeout and no limit means it waits for ever; a limit alone bounds it (our promise)."""
    calls = OutgoingCalls()
    calls.open("ping")
    assert None is calls.next_deadline()

    calls.open("ping", now=1.0, max_timeout=2.0)
    assert 3.0 == calls.next_deadline()


def test_the_only_call_in_flight_is_known():
    """An error without an id can be attributed only while exactly one call is open."""
    calls = OutgoingCalls()
    assert None is calls.only()
    first = calls.open("ping").id
    assert first == calls.only()
    calls.open("ping")
    assert None is calls.only()


def test_clear_ends_everything():
    """When the channel is over, nothing stays open (our promise)."""
    calls = OutgoingCalls()
    calls.open("ping")
    calls.open("ping")

    assert 2 == len(calls.clear())
    assert 0 == len(calls)
