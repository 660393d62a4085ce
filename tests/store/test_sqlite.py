"""A SQLite file: one thread, commits that are shared, and errors that say what is the matter."""

import asyncio
import os
import sqlite3
import stat
from contextlib import closing

import pytest

from isthmus.store.sqlite import (
    MAX_BATCH_WORKS,
    Database,
    DatabaseSchema,
    StoreLocked,
    StoreUnavailable,
    StoreUnusable,
)

NOTES = DatabaseSchema(
    application=7,
    version=1,
    tables=("CREATE TABLE note (text TEXT NOT NULL UNIQUE) STRICT",),
    purpose="notes",
)


def noting(text):
    return lambda db: db.execute("INSERT INTO note VALUES (?)", (text,)).rowcount


def texts(db):
    return [row[0] for row in db.execute("SELECT text FROM note ORDER BY rowid")]


@pytest.fixture
async def notes(tmp_path):
    db = Database(tmp_path / "notes.db", schema=NOTES, patience=0.05)
    yield db
    await db.close()


@pytest.mark.parametrize("memory", [True, False])
async def test_what_was_written_is_read(tmp_path, memory):
    """Ours: works are done in their order, in a file as in memory."""
    db = Database(":memory:" if memory else tmp_path / "notes.db", schema=NOTES)
    assert 1 == await db.write(noting("a"))
    db.post(noting("b"))
    await db.write(noting("c"))

    assert ["a", "b", "c"] == await db.read(texts)
    await db.close()


@pytest.mark.covers("hostaudit.store.together")
async def test_what_waits_is_committed_together(notes):
    """Ours: a commit is paid for once, by all who wait for one."""
    await notes.write(noting("first"))
    commits = []
    await notes.read(
        lambda db: db.set_trace_callback(lambda text: text == "COMMIT" and commits.append(text))
    )
    await asyncio.gather(*(notes.write(noting(f"{n}")) for n in range(100)))

    assert 101 == len(await notes.read(texts))
    assert len(commits) < 20


@pytest.mark.covers("hostaudit.store.together")
async def test_the_failure_of_one_undoes_that_one_only(notes):
    """Ours: whoever shares a transaction does not share the blame."""

    def twice(db):
        noting("half")(db)
        noting("a")(db)

    await notes.write(noting("a"))
    done = await asyncio.gather(
        notes.write(noting("b")), notes.write(twice), notes.write(noting("c")),
        return_exceptions=True,
    )  # fmt: skip

    assert [1, sqlite3.IntegrityError, 1] == [done[0], type(done[1]), done[2]]
    assert ["a", "b", "c"] == await notes.read(texts)


async def test_reading_changes_nothing(notes):
    """Ours: what is written by mistake is gone."""
    await notes.read(noting("by mistake"))

    assert [] == await notes.read(texts)


async def test_posted_work_that_fails_is_told_to_whoever_hears(notes, caplog):
    """Ours: by default that is the log."""
    heard = []
    await notes.write(noting("a"))
    notes.post(noting("a"), heard.append)
    notes.post(noting("b"), heard.append)
    notes.post(noting("a"))
    await notes.close()

    assert {type(None), sqlite3.IntegrityError} == {*map(type, heard)}
    assert "is lost" in caplog.text


@pytest.mark.parametrize("memory", [True, False])
async def test_posted_work_is_done_without_anybody_waiting(notes, memory):
    """Ours: within milliseconds; in memory as soon as the loop has time."""
    db = Database(":memory:", schema=NOTES) if memory else notes
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    db.post(noting("a"), lambda _: loop.call_soon_threadsafe(done.set))
    await done.wait()

    assert ["a"] == await db.read(texts)


async def test_work_that_is_posted_just_after_other_work_is_done_without_anybody_waiting(notes):
    """Ours: the thread is not woken for it, and looks by itself; after that it has to be woken again."""
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for text in ("a", "b", "c"):
        await notes.write(noting(f"{text} first"))
        notes.post(noting(text), lambda _: loop.call_soon_threadsafe(done.set))
        await done.wait()
        done.clear()

    assert ["a first", "a", "b first", "b", "c first", "c"] == await notes.read(texts)


def test_posted_work_needs_no_loop_in_memory():
    """Ours: it is done at once; what fails is told there, too."""
    db = Database(":memory:", schema=NOTES)
    heard = []
    db.post(noting("a"), heard.append)
    db.post(noting("a"), heard.append)

    assert [type(None), sqlite3.IntegrityError] == [type(one) for one in heard]
    assert ["a"] == asyncio.run(db.read(texts))


async def test_more_than_goes_into_one_transaction_is_done(notes):
    """Ours: in several."""
    for n in range(3 * MAX_BATCH_WORKS):
        notes.post(noting(f"{n}"))
    await notes.close()

    assert 3 * MAX_BATCH_WORKS == len(await notes.read(texts))


async def test_work_that_nobody_waits_for_any_more_is_not_done(notes):
    """Ours: where it was not begun."""
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(db):
        asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()

    first = asyncio.ensure_future(notes.write(slow))
    second = asyncio.ensure_future(notes.write(noting("never")))
    await asyncio.sleep(0)
    second.cancel()
    gate.set()
    await first

    assert [] == await notes.read(texts)


@pytest.mark.covers("hostaudit.store.owner-only")
async def test_only_its_owner_can_read_the_file(notes, tmp_path):
    """Ours: the file, and those that SQLite keeps beside it; also one that was made by somebody else."""
    path = tmp_path / "notes.db"
    path.touch(mode=0o644)
    await notes.write(noting("a"))

    assert {0o600} == {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()}


async def test_another_process_that_holds_the_file_is_waited_for_a_while(notes, tmp_path):
    """Ours: then it is an error that passes."""
    await notes.write(noting("a"))
    with closing(sqlite3.connect(tmp_path / "notes.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked, match="locked by another process"):
            await notes.write(noting("b"))

    await notes.write(noting("c"))
    assert ["a", "c"] == await notes.read(texts)


async def test_a_full_disk_is_an_error_that_passes(notes):
    """Ours: what shared the transaction with it failed with it."""
    await notes.write(noting("a"))
    await notes.read(lambda db: db.execute("PRAGMA max_page_count = 4"))
    with pytest.raises(StoreUnavailable, match="full"):
        await notes.write(noting("b" * 100_000))

    assert 1 == await notes.write(noting("c"))
    assert ["a", "c"] == await notes.read(texts)


@pytest.mark.covers("hostaudit.store.gone")
async def test_a_file_that_was_taken_away_is_not_made_anew(notes, tmp_path):
    """Ours: what stood in it would be missed by nobody; once it is back, all is well."""
    path = tmp_path / "notes.db"
    await notes.write(noting("a"))
    path.rename(tmp_path / "away")
    with pytest.raises(StoreUnusable):
        await notes.write(noting("b"))
    assert not path.exists()
    (tmp_path / "away").rename(path)

    await notes.write(noting("c"))
    assert ["a", "c"] == await notes.read(texts)


async def test_a_file_that_is_no_database_is_refused_until_it_is_one(notes, tmp_path):
    """Ours: and left as it is."""
    path = tmp_path / "notes.db"
    path.write_bytes(b"what is this? " * 1000)
    for _ in range(2):
        with pytest.raises(StoreUnusable, match="is not a database"):
            await notes.write(noting("a"))
    os.truncate(path, 0)

    assert 1 == await notes.write(noting("a"))


async def test_a_database_of_something_else_is_refused(notes, tmp_path):
    """Ours: and so is one of another version; both errors say what to do."""
    with closing(sqlite3.connect(tmp_path / "notes.db")) as db:
        db.execute("CREATE TABLE cats (name)")
    with pytest.raises(StoreUnusable, match="name another file"):
        await notes.write(noting("a"))
    with closing(sqlite3.connect(tmp_path / "notes.db")) as db:
        db.execute("PRAGMA application_id = 7")
        db.execute("PRAGMA user_version = 2")
    with pytest.raises(StoreUnusable, match="newer isthmus"):
        await notes.write(noting("a"))


async def test_what_a_commit_outlives_can_be_changed(notes):
    """Ours: while the file is open."""

    def level(db):
        return db.execute("PRAGMA synchronous").fetchone()[0]

    before = await notes.read(level)
    notes.durability = "normal"

    assert [2, 1] == [before, await notes.read(level)]


async def test_it_can_be_used_again_after_it_was_closed(notes):
    """Ours: closing twice does no harm either."""
    await notes.write(noting("a"))
    await notes.close()
    await notes.close()

    assert ["a"] == await notes.read(texts)


async def test_a_file_of_an_older_version_is_upgraded_where_there_is_a_way(tmp_path):
    """Ours: with what stands in it; a version without a way is refused as before."""
    old = DatabaseSchema(application=7, version=1, tables=("CREATE TABLE a (x)",), purpose="a test")
    new = DatabaseSchema(
        application=7,
        version=3,
        tables=("CREATE TABLE a (x)",),
        purpose="a test",
        upgrades={1: ("ALTER TABLE a ADD COLUMN y DEFAULT 2",), 2: ()},
    )
    for schema, statement in ((old, "INSERT INTO a VALUES (1)"), (new, "SELECT 1")):
        db = Database(tmp_path / "a.db", schema=schema)
        await db.write(lambda sql, statement=statement: sql.execute(statement))
        await db.close()
    db = Database(tmp_path / "a.db", schema=new)
    rows = await db.read(lambda sql: sql.execute("SELECT x, y FROM a").fetchall())
    await db.close()
    db = Database(tmp_path / "a.db", schema=old)
    with pytest.raises(StoreUnusable, match="newer isthmus"):
        await db.read(lambda sql: None)
    await db.close()

    assert [(1, 2)] == rows
