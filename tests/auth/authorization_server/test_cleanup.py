"""Housekeeping: what is over goes, a little at a time, and nothing else does."""

import time

from isthmus.auth.authorization_server.storage.records import CLEANUP_BATCH_ROWS, delete_expired
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from support.auth.small_authority import SmallAuthority
from support.clock import ManualClock

TABLES = ("pending", "jti", "ticket", "login_session", "client", "code", "grant_")


async def counts(store):
    def count(records):
        return {
            table: records.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - names from above
            for table in TABLES
        }

    return await store.read(count)


async def test_expired_rows_are_deleted_and_others_kept():
    """Ours: after a month of silence nothing is left, before that everything that is needed."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        tokens = await small.tokens(client_id)
        await small.code(client_id)
        await small.app.store.write(delete_expired)
        before = await counts(small.app.store)
        small.clock.now += 3600
        await small.app.store.write(delete_expired)
        later = await counts(small.app.store)
        refreshed = await small.refresh(tokens["refresh_token"], client_id)
        small.clock.now += 60 * 86_400
        await small.app.store.write(delete_expired)
        end = await counts(small.app.store)

        assert (2, 2) == (before["grant_"], before["code"])
        assert 1 == later["grant_"], "nobody came for the second"
        assert 200 == refreshed.status
        assert {**dict.fromkeys(TABLES, 0), "client": 1} == end


async def test_one_round_is_bounded():
    """Ours: a flood of leftovers does not hold up the requests of others."""
    clock = ManualClock(float(int(time.time())))
    store = MemoryAuthStore(clock=clock)

    def fill(records):
        for at in range(CLEANUP_BATCH_ROWS + 10):
            records.first_use("x", str(at), records.now)

    await store.write(fill)
    clock.now += 100
    gone = [
        await store.write(delete_expired),
        await store.write(delete_expired),
        await store.write(delete_expired),
    ]
    await store.close()

    assert [CLEANUP_BATCH_ROWS, 10, 0] == gone


async def test_it_happens_by_itself():
    """Ours: with the requests that come, every few minutes."""
    async with SmallAuthority() as small:
        await small.public()
        small.clock.now += 2 * 86_400
        await small.public()

        assert 1 == (await counts(small.app.store))["client"]
