"""The store in an SQLite file: its URL, its file, and what it does where the file is in trouble."""

import asyncio
import sqlite3
import stat
from contextlib import closing

import pytest

from isthmus.errors import UsageError
from isthmus.store.log import Forgotten, LogLimits
from isthmus.store.meter import Rate
from isthmus.store.sqlite_store import (
    MAX_SWEPT_ROWS,
    STREAM_RECORD_AGE_S,
    WRITES_PER_SWEEP,
    SqliteStore,
)
from isthmus.store.store import StoreUnavailable, open_store
from support.clock import ManualClock


@pytest.fixture
def clock():
    """The clock of the stores below."""
    return ManualClock(1_700_000_000.0)


@pytest.fixture
async def store(tmp_path, clock):
    """A store in a new file."""
    made = SqliteStore(f"sqlite:///{tmp_path}/s.db", clock=clock)
    await made.open()
    yield made
    await made.close()


def count_rows(tmp_path, table):
    """How many rows a table has, seen by somebody else."""
    with closing(sqlite3.connect(tmp_path / "s.db")) as db:
        return db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608


async def test_a_relative_path_is_relative(tmp_path, monkeypatch):
    """Ours: sqlite:///a.db is in the working folder, sqlite:////a.db in the root."""
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///a.db")
    await store.open()
    await store.close()

    assert (tmp_path / "a.db").exists()
    assert "sqlite:///a.db" == store.name


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite://a.db", "sqlite:///a.db?x=1"]
)
def test_a_url_without_a_file_is_refused(url):
    """Ours: processes share a file, and nothing else."""
    with pytest.raises(UsageError, match="names no file that processes can share"):
        open_store(url)


async def test_the_file_is_its_owners_alone(tmp_path, store):
    """Ours: it may hold secrets, and what people said."""
    await store.bus.subscribe("news", bool)
    await store.kv.put("a", b"1")

    for path in tmp_path.iterdir():
        assert 0 == stat.S_IMODE(path.stat().st_mode) & 0o077, path


async def test_a_folder_that_is_not_there_is_told(tmp_path):
    """Ours: opening says what is wrong, before anything is served."""
    with pytest.raises(UsageError, match="cannot be used as the store of a server"):
        await SqliteStore(f"sqlite:///{tmp_path}/none/s.db").open()


async def test_a_file_of_something_else_is_left_alone(tmp_path):
    """Ours: nobody's data is written over."""
    with closing(sqlite3.connect(tmp_path / "s.db")) as db:
        db.execute("CREATE TABLE precious (x)")

    with pytest.raises(UsageError, match="is a database of something else"):
        await SqliteStore(f"sqlite:///{tmp_path}/s.db").open()


async def test_a_file_that_is_locked_is_no_store_for_now(tmp_path, store):
    """Ours: whoever cannot write is told within seconds, and can later."""
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        store._database.patience = 0.05
        for work in (
            store.kv.put("a", b"1"),
            store.log.write("s", 1, [b"a"]),
            store.bus.publish("news", b"a"),
            store.meter("calls", Rate(1, 1)).take("a"),
        ):
            with pytest.raises(StoreUnavailable, match="is locked by another process"):
                await work
        assert await store.kv.get("a") is None
        db.execute("ROLLBACK")

    assert await store.kv.put("a", b"1")


async def test_a_file_that_is_gone_is_no_store_and_is_not_made_again(tmp_path, store):
    """Ours: nothing starts from nothing while others rely on what was there."""
    await store.kv.put("a", b"1")
    (tmp_path / "s.db").unlink()

    with pytest.raises(StoreUnavailable):
        await store.kv.put("a", b"2")
    with pytest.raises(StoreUnavailable):
        await store.kv.get("a")
    assert not (tmp_path / "s.db").exists()


async def test_what_is_full_is_no_store_for_now(tmp_path, store):
    """Ours: a full disk loses nothing that was acknowledged."""
    await store.kv.put("a", b"1")
    await store._database.read(lambda db: db.execute("PRAGMA max_page_count = 40"))

    with pytest.raises(StoreUnavailable):
        await store.kv.put("b", b"x" * 1_000_000)
    assert b"1" == (await store.kv.get("a")).value
    assert await store.kv.get("b") is None


async def test_entries_that_are_over_are_swept(tmp_path, store, clock):
    """Ours: the file does not grow with what was, however much comes to its end at once."""
    for number in range(3 * WRITES_PER_SWEEP):
        await store.kv.put(f"old/{number}", b"x", ttl=1.0)
    clock.now += 2.0
    for number in range(WRITES_PER_SWEEP):
        await store.kv.put(f"new/{number}", b"x")

    assert 3 * WRITES_PER_SWEEP < MAX_SWEPT_ROWS
    assert WRITES_PER_SWEEP == count_rows(tmp_path, "kv")


async def test_all_streams_together_are_bounded_and_the_idlest_gives_way(tmp_path, clock):
    """Ours: many streams cost no more than that."""
    url, limits = f"sqlite:///{tmp_path}/s.db", LogLimits(size=30)
    store = SqliteStore(url, clock=clock, log_limits=limits)
    for place in (1, 2):
        for stream in "abc" if place == 1 else "a":
            await store.log.write(stream, place, [b"x" * 10])
            clock.now += 1

    assert 2 == len(await store.log.read("a", 0, 10))
    with pytest.raises(Forgotten):
        await store.log.read("b", 0, 10)
    assert [] == await store.log.read("b", 1, 10)
    assert 1 == len(await store.log.read("c", 0, 10))
    await store.log.forget("a")
    await store.log.write("b", 2, [b"x" * 20])
    assert 1 == len(await store.log.read("c", 0, 10))
    await store.close()


async def test_streams_that_nobody_adds_to_are_emptied_and_then_forgotten(tmp_path, store, clock):
    """Ours: what processes left behind that ended goes with time."""
    await store.log.write("idle", 1, [b"x", b"y"])
    clock.now += 3601
    for place in range(1, WRITES_PER_SWEEP + 1):
        await store.log.write("other", place, [b"x"])
    assert WRITES_PER_SWEEP == count_rows(tmp_path, "entry")
    assert 2 == count_rows(tmp_path, "stream")

    clock.now += STREAM_RECORD_AGE_S
    for place in range(WRITES_PER_SWEEP + 1, 2 * WRITES_PER_SWEEP + 1):
        await store.log.write("other", place, [b"x"])
    assert 1 == count_rows(tmp_path, "stream")


async def test_keys_of_meters_that_are_as_good_as_new_are_swept(tmp_path, store, clock):
    """Ours: made-up keys cannot fill the disk."""
    meter = store.meter("calls", Rate(1, 1))
    for number in range(WRITES_PER_SWEEP):
        await meter.take(f"{number}")
    clock.now += 2
    await meter.take("new")

    assert 1 == count_rows(tmp_path, "meter")


async def test_stores_of_many_threads_and_loops_share_a_file(tmp_path):
    """Ours: each process has a loop of its own, and so may threads."""
    url = f"sqlite:///{tmp_path}/s.db"

    def work(number):
        async def run():
            store = SqliteStore(url)
            await store.open()
            for n in range(20):
                await store.kv.put(f"{number}/{n}", b"x")
            await store.close()

        asyncio.run(run())

    await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(4)))

    assert 80 == count_rows(tmp_path, "kv")


async def test_closing_leaves_one_file(tmp_path, store):
    """Ours: nothing lies about after a proper end but the file."""
    await store.bus.subscribe("news", bool)
    await store.kv.put("a", b"1")
    await store.close()

    assert [tmp_path / "s.db"] == list(tmp_path.iterdir())
