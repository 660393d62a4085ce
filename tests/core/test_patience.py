"""How long to wait before a stream is asked for again, as arithmetic."""

from isthmus.transports.http.client.streams import MAX_WAIT_S, ReconnectBackoff


def waits(patience, step, count, retry=None, chance=1.0):
    """What is waited before each of so many attempts in a row that go the same way."""
    found = []
    for _ in range(count):
        step(patience)
        found.append(patience.wait(retry, chance))
    return found


def test_what_the_server_asks_for_is_waited_exactly():
    """Spec 2025-11-25 basic/transports: the client MUST respect the retry field."""
    assert [0.5] * 3 == waits(
        ReconnectBackoff(5, 100), lambda p: p.ended(brought=True), 3, retry=500
    )


def test_polling_in_vain_is_as_frequent_as_the_server_wants_for_a_while():
    """Spec 2025-11-25 basic/transports: a server MAY close the connection at any time."""
    found = waits(ReconnectBackoff(5, 100), lambda p: p.ended(brought=False), 8, retry=500)

    assert [0.5] * 5 + [1.0, 2.0, 4.0] == found


def test_failures_double_the_wait_up_to_a_bound():
    """Ours: who is not there is not hammered."""
    found = waits(ReconnectBackoff(20, 100), lambda p: p.failed(), 8)

    assert [1.0, 2.0, 4.0, 8.0, 16.0, MAX_WAIT_S, MAX_WAIT_S, MAX_WAIT_S] == found


def test_chance_spreads_the_attempts_of_many_clients():
    """Ours: half of the wait is certain, the rest is drawn."""
    patience = ReconnectBackoff(20, 100)
    for _ in range(3):
        patience.failed()

    assert (2.0, 3.0, 4.0) == tuple(patience.wait(None, chance) for chance in (0.0, 0.5, 1.0))


def test_what_the_server_asks_for_is_never_undercut():
    """Spec 2025-11-25 basic/transports: not even by a failure."""
    patience = ReconnectBackoff(20, 100)
    patience.failed()

    assert 60.0 == patience.wait(60_000, 0.0)


def test_it_is_over_after_too_many_failures_in_a_row():
    """Ours: resuming is bounded."""
    patience = ReconnectBackoff(2, 100)
    for _ in range(2):
        patience.failed()
    assert not patience.over
    assert 2 == patience.attempts
    patience.ended(brought=True)
    assert 0 == patience.attempts
    for _ in range(3):
        patience.failed()
    assert patience.over


def test_it_is_over_after_too_many_streams_that_bring_nothing():
    """Ours: polling is bounded, too."""
    patience = ReconnectBackoff(2, 3)
    for _ in range(3):
        patience.ended(brought=False)
    assert not patience.over
    patience.ended(brought=False)

    assert patience.over
