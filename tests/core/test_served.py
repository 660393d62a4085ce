"""Their calls: answered at most once, never after they were withdrawn."""

import pytest

from isthmus.core.calls import IncomingCalls


@pytest.mark.covers("messages.ids.in-flight")
def test_an_id_in_flight_is_refused():
    """An id MUST NOT match another request still unanswered (spec: requests)."""
    served = IncomingCalls()

    assert served.open(1)
    assert not served.open(1)
    assert served.open("1")


def test_an_answered_id_may_come_again():
    """Only unanswered ids are taken (spec: requests)."""
    served = IncomingCalls()
    served.open(1)

    assert served.close(1)
    assert served.open(1)


@pytest.mark.covers("cancellation.received.unanswered")
def test_a_withdrawn_call_is_never_answered():
    """No response for a cancelled request (spec: cancellation)."""
    served = IncomingCalls()
    served.open(1)

    assert served.withdraw(1)
    assert served.withdrawn(1)
    assert not served.close(1)


@pytest.mark.covers("cancellation.received.reused-id")
def test_a_withdrawn_id_stays_taken_until_its_work_has_stopped():
    """A reused id must not receive an earlier request's answer (our promise)."""
    served = IncomingCalls()
    served.open(1)
    served.withdraw(1)

    assert not served.open(1)
    served.close(1)
    assert served.open(1)


@pytest.mark.covers("cancellation.received.senseless-ignored")
def test_withdrawing_twice_or_a_stranger_is_nothing():
    """Unknown and finished ids SHOULD be ignored (spec: cancellation error handling)."""
    served = IncomingCalls()
    served.open(1)
    served.withdraw(1)

    assert not served.withdraw(1)
    assert not served.withdraw(2)
    assert not served.close(2)
