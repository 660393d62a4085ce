"""Tests of how often a password may be tried."""

import pytest

from isthmus.auth.authorization_server.tries import Allowance, Tries


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_the_sixth_try_waits_until_the_window_is_over(clock):
    """We demand five tries in a quarter of an hour for one account from one address."""
    tries = Tries(clock=clock)
    assert [0] * 5 == [tries.take("alice", "192.0.2.1") for _ in range(5)]
    assert 900 == tries.take("alice", "192.0.2.1")
    clock.now += 899.5
    assert 1 == tries.take("alice", "192.0.2.1")
    clock.now += 0.5
    assert 0 == tries.take("alice", "192.0.2.1")


def test_other_spellings_of_an_account_are_the_same_account(clock):
    """We demand that letters' case buys no tries."""
    tries = Tries(clock=clock)
    for name in ("alice", "ALICE", " Alice ", "aLiCe", "alicE"):
        assert 0 == tries.take(name, "192.0.2.1")
    assert tries.take("AlicE", "192.0.2.1") > 0


def test_other_addresses_and_accounts_are_not_held_up(clock):
    """We demand that one guesser locks nobody else out."""
    tries = Tries(clock=clock)
    for _ in range(6):
        tries.take("alice", "192.0.2.1")
    assert 0 == tries.take("alice", "192.0.2.2")
    assert 0 == tries.take("bob", "192.0.2.1")


def test_one_address_cannot_go_through_many_accounts(clock):
    """We demand a limit for password spraying."""
    tries = Tries(clock=clock)
    waits = [tries.take(f"user{n}", "192.0.2.1") for n in range(51)]
    assert [0] * 50 == waits[:50]
    assert waits[50] > 0


def test_many_addresses_cannot_go_through_one_account(clock):
    """We demand a limit for guessing from many places."""
    tries = Tries(clock=clock)
    waits = [tries.take("alice", f"192.0.2.{n}") for n in range(101)]
    assert [0] * 100 == waits[:100]
    assert waits[100] > 0


def test_a_good_try_gives_its_address_all_tries_at_this_account_and_no_other(clock):
    """We demand that an account of one's own does not buy tries at others."""
    tries = Tries(Allowance(2, 60), Allowance(3, 60), clock=clock)
    assert [0, 0] == [tries.take("mine", "192.0.2.1") for _ in range(2)]
    tries.succeeded("mine", "192.0.2.1")
    assert 0 == tries.take("mine", "192.0.2.1")
    assert 0 == tries.take("alice", "192.0.2.1")
    assert tries.take("alice", "192.0.2.1") > 0


def test_an_office_behind_one_address_logs_in_as_often_as_it_likes(clock):
    """We demand that good tries count for nobody; bad ones among them still do."""
    tries = Tries(clock=clock)
    for n in range(200):
        assert 0 == tries.take(f"user{n}", "192.0.2.1")
        tries.succeeded(f"user{n}", "192.0.2.1")
    for n in range(50):
        assert 0 == tries.take(f"guess{n}", "192.0.2.1")
        tries.take("own", "192.0.2.2")
        tries.succeeded("own", "192.0.2.2")
    assert tries.take("guess50", "192.0.2.1") > 0


def test_what_is_remembered_is_bounded(clock):
    """We demand that made-up names do not fill the memory."""
    tries = Tries(Allowance(1, 60), Allowance(10**9, 60), size=10, clock=clock)
    for n in range(1000):
        tries.take(f"user{n}", "192.0.2.1")
    assert 10 == len(tries._windows[0]._counts)
