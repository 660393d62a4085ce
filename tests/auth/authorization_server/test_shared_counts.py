"""Counts of an authorization server: those of all processes that have its file."""

import pytest

from isthmus.auth import SQLiteAuthStore
from isthmus.auth.authorization_server.users.login_limits import (
    Allowance,
    LoginTries,
    StoredLoginTries,
    count_registration,
)

ALLOWANCE = Allowance(3, 3600.0)


@pytest.fixture
async def stores(tmp_path):
    """One file, as two processes have it."""
    made = [SQLiteAuthStore(tmp_path / "auth.db", key="k" * 43) for _ in range(2)]
    yield made
    for store in made:
        await store.close()


async def register(store, address="192.0.2.7"):
    """The seconds until another registration of an address may go on."""
    return await store.write(lambda records: count_registration(records, ALLOWANCE, address))


async def test_registrations_are_counted_for_all_processes(stores):
    """Ours: four processes do not let one address register four times as many clients."""
    first, second = stores
    waits = [await register(store) for store in (first, second, first)]
    refused = await register(second)
    other = await register(second, "198.51.100.1")

    assert [0, 0, 0] == waits
    assert 3500 < refused <= 3600
    assert 0 == other


async def test_a_jti_is_good_once_for_all_processes(stores):
    """RFC 7523 3 (7): the jti of assertions; RFC 9449 11.1: the jti of proofs."""
    first, second = stores
    used = [
        await store.write(lambda records: records.first_use("assertion https://a", "1", 2e9))
        for store in (first, second, first)
    ]

    assert [True, False, False] == used


async def test_login_tries_are_counted_for_all_processes(stores):
    """Ours: a second process gives nobody more tries."""
    rules = LoginTries(both=Allowance(2, 900.0))
    first, second = (StoredLoginTries(store, rules) for store in stores)
    waits = [await tries.take("ann", "192.0.2.7") for tries in (first, second, first, second)]

    assert [0, 0] == waits[:2]
    assert all(wait > 0 for wait in waits[2:])
