"""Tests of how often a password may be tried."""

import sqlite3

import pytest

from isthmus.auth.authorization_server.storage.records import delete_expired
from isthmus.auth.authorization_server.storage.store import (
    AUTH_SCHEMA,
    MemoryAuthStore,
    SQLiteAuthStore,
)
from isthmus.auth.authorization_server.users.login_limits import (
    Allowance,
    LoginTries,
    StoredLoginTries,
)
from support.clock import ManualClock

KEY = "k" * 43


@pytest.fixture
def clock():
    return ManualClock()


def test_the_sixth_try_waits_until_the_window_is_over(clock):
    """We demand five tries in a quarter of an hour for one account from one address."""
    tries = LoginTries(clock=clock)
    assert [0] * 5 == [tries.take("alice", "192.0.2.1") for _ in range(5)]
    assert 900 == tries.take("alice", "192.0.2.1")
    clock.now += 899.5
    assert 1 == tries.take("alice", "192.0.2.1")
    clock.now += 0.5
    assert 0 == tries.take("alice", "192.0.2.1")


def test_other_spellings_of_an_account_are_the_same_account(clock):
    """We demand that letters' case buys no tries."""
    tries = LoginTries(clock=clock)
    for name in ("alice", "ALICE", " Alice ", "aLiCe", "alicE"):
        assert 0 == tries.take(name, "192.0.2.1")
    assert tries.take("AlicE", "192.0.2.1") > 0


def test_other_addresses_and_accounts_are_not_held_up(clock):
    """We demand that one guesser locks nobody else out."""
    tries = LoginTries(clock=clock)
    for _ in range(6):
        tries.take("alice", "192.0.2.1")
    assert 0 == tries.take("alice", "192.0.2.2")
    assert 0 == tries.take("bob", "192.0.2.1")


def test_one_address_cannot_go_through_many_accounts(clock):
    """We demand a limit for password spraying."""
    tries = LoginTries(clock=clock)
    waits = [tries.take(f"user{n}", "192.0.2.1") for n in range(51)]
    assert [0] * 50 == waits[:50]
    assert waits[50] > 0


def test_many_addresses_cannot_go_through_one_account(clock):
    """We demand a limit for guessing from many places."""
    tries = LoginTries(clock=clock)
    waits = [tries.take("alice", f"192.0.2.{n}") for n in range(101)]
    assert [0] * 100 == waits[:100]
    assert waits[100] > 0


def test_a_good_try_gives_its_address_all_tries_at_this_account_and_no_other(clock):
    """We demand that an account of one's own does not buy tries at others."""
    tries = LoginTries(Allowance(2, 60), Allowance(3, 60), clock=clock)
    assert [0, 0] == [tries.take("mine", "192.0.2.1") for _ in range(2)]
    tries.succeeded("mine", "192.0.2.1")
    assert 0 == tries.take("mine", "192.0.2.1")
    assert 0 == tries.take("alice", "192.0.2.1")
    assert tries.take("alice", "192.0.2.1") > 0


def test_an_office_behind_one_address_logs_in_as_often_as_it_likes(clock):
    """We demand that good tries count for nobody; bad ones among them still do."""
    tries = LoginTries(clock=clock)
    for n in range(200):
        assert 0 == tries.take(f"user{n}", "192.0.2.1")
        tries.succeeded(f"user{n}", "192.0.2.1")
    for n in range(50):
        assert 0 == tries.take(f"guess{n}", "192.0.2.1")
        tries.take("own", "192.0.2.2")
        tries.succeeded("own", "192.0.2.2")
    assert tries.take("guess50", "192.0.2.1") > 0


def test_remembered_tries_are_bounded(clock):
    """We demand that made-up names do not fill the memory."""
    tries = LoginTries(Allowance(1, 60), Allowance(10**9, 60), size=10, clock=clock)
    for n in range(1000):
        tries.take(f"user{n}", "192.0.2.1")
    assert 10 == len(tries._windows[0]._counts._counts)


# --- in a store -------------------------------------------------------------------------------


@pytest.mark.covers("auth.threat.t36-brute-force")
async def test_a_restart_and_a_second_process_give_no_further_tries(tmp_path, clock):
    """We demand that tries are counted where all processes of a file see them."""
    stores = [SQLiteAuthStore(tmp_path / "auth.db", key=KEY, clock=clock) for _ in range(2)]
    one, other = map(StoredLoginTries, stores)
    assert [0] * 5 == [
        await tries.take("alice", "192.0.2.1") for tries in (one, other, one, other, one)
    ]
    assert 900 == await other.take("alice", "192.0.2.1")
    for store in stores:
        await store.close()
    again = SQLiteAuthStore(tmp_path / "auth.db", key=KEY, clock=clock)
    assert 900 == await StoredLoginTries(again).take("ALICE", "192.0.2.1")
    clock.now += 900
    assert 0 == await StoredLoginTries(again).take("alice", "192.0.2.1")
    await again.close()


async def test_a_good_try_in_a_store_gives_tries_back(clock):
    """We demand the same rules in a store as in memory."""
    rules = LoginTries(Allowance(2, 60), Allowance(3, 60))
    tries = StoredLoginTries(MemoryAuthStore(clock=clock), rules)
    assert [0, 0] == [await tries.take("mine", "192.0.2.1") for _ in range(2)]
    await tries.succeeded("mine", "192.0.2.1")
    assert 0 == await tries.take("mine", "192.0.2.1")
    assert 0 == await tries.take("alice", "192.0.2.1")
    assert await tries.take("alice", "192.0.2.1") > 0


async def test_a_typed_account_is_not_stored_in_clear(tmp_path, clock):
    """We demand that a password typed into the wrong field is kept nowhere."""
    store = SQLiteAuthStore(tmp_path / "auth.db", key=KEY, clock=clock)
    await StoredLoginTries(store).take("correct-horse-battery", "192.0.2.1")
    await store.close()
    assert [] == [path for path in tmp_path.iterdir() if b"correct-horse" in path.read_bytes()]


async def test_stored_tries_are_bounded_and_deleted_when_over(clock):
    """We demand that made-up names do not fill the file."""
    store = MemoryAuthStore(clock=clock)
    tries = StoredLoginTries(store, LoginTries(Allowance(1, 60), Allowance(10**9, 60), size=10))
    for n in range(50):
        await tries.take(f"user{n}", "192.0.2.1")
    count = "SELECT count(*) FROM login_try WHERE kind = 'account and address'"
    assert (10,) == await store.read(lambda records: records.db.execute(count).fetchone())
    clock.now += 3601
    await store.write(delete_expired)
    assert (0,) == await store.read(lambda records: records.db.execute(count).fetchone())


async def test_a_clock_that_is_set_back_does_not_prolong_a_lockout(clock):
    """We demand that a window lasts no longer than it is long."""
    tries = StoredLoginTries(MemoryAuthStore(clock=clock))
    for _ in range(5):
        await tries.take("alice", "192.0.2.1")
    clock.now -= 500
    assert 900 == await tries.take("alice", "192.0.2.1")


async def test_a_file_of_the_version_before_gets_its_table(tmp_path, clock):
    """We demand that an update needs no new file."""
    path = tmp_path / "auth.db"
    with sqlite3.connect(path) as db:
        for statement in AUTH_SCHEMA.tables:
            if "login_try" not in statement:
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {AUTH_SCHEMA.application}")
        db.execute("PRAGMA user_version = 1")
    store = SQLiteAuthStore(path, key=KEY, clock=clock)
    assert 0 == await StoredLoginTries(store).take("alice", "192.0.2.1")
    await store.close()
