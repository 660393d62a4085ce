"""The bus in an SQLite file: sockets, processes that were killed, gaps, and bounds."""

import asyncio
import socket
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.store import sqlite_bus
from isthmus.store.sqlite_bus import (
    MAX_BUS_BYTES,
    MAX_MESSAGE_AGE_S,
    MAX_UNSEEN_S,
    PUBLISHES_PER_SWEEP,
)
from isthmus.store.sqlite_store import SqliteStore
from support.clock import ManualClock
from support.store.processes import OtherProcess


@pytest.fixture
def clock():
    """The clock of the stores below."""
    return ManualClock(1_700_000_000.0)


@pytest.fixture
def folder():
    """A folder whose name leaves room for sockets, which that of a test's own does not."""
    with tempfile.TemporaryDirectory(prefix="bus-") as made:
        yield Path(made)


@pytest.fixture
async def open_store(folder, clock):
    """Opens stores over one file."""
    opened = []

    async def open_one():
        store = SqliteStore(f"sqlite:///{folder}/s.db", clock=clock)
        await store.open()
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()


def ask(folder, statement):
    """What somebody else sees in the file."""
    with closing(sqlite3.connect(folder / "s.db", isolation_level=None)) as db:
        return db.execute(statement).fetchall()


async def wait_until(holds):
    """Wait for something that tells nobody."""
    while not holds():  # noqa: ASYNC110 - the log tells nobody
        await asyncio.sleep(0.005)


def find_sockets(folder):
    """The sockets of the processes that share the file."""
    return list(folder.glob("s.db-bus/*"))


async def test_a_message_that_nobody_listens_to_is_not_written(folder, open_store):
    """Ours: whoever sends it is told, and the file does not grow."""
    store = await open_store()
    assert not await store.bus.publish("news", b"a")
    unsubscribe = await store.bus.subscribe("news", bool)
    assert await store.bus.publish("news", b"b")
    unsubscribe()
    assert not await store.bus.publish("news", b"c")

    assert [(b"b",)] == ask(folder, "SELECT body FROM message")


async def test_a_process_that_was_killed_leaves_nothing_that_harms(folder, open_store, clock):
    """Ours: its socket and its rows are deleted by the first who writes to it."""
    store = await open_store()
    other = await OtherProcess.start(store.name)
    await other.ask("subscribe", "news")
    assert await store.bus.publish("news", b"a")
    await other.kill()

    assert not await store.bus.publish("news", b"b")
    assert not await store.bus.publish("news", b"c")
    assert [] == ask(folder, "SELECT * FROM endpoint")
    assert [] == ask(folder, "SELECT * FROM listener")
    assert [] == find_sockets(folder)


async def test_who_comes_tidies_up_behind_those_who_were_killed(folder, open_store, clock):
    """Ours: a machine where every process is killed again and again does not fill up."""
    others = [await OtherProcess.start(f"sqlite:///{folder}/s.db") for _ in range(2)]
    for other in others:
        await other.ask("subscribe", "news")
    for other in others:
        await other.kill()
    assert 2 == len(find_sockets(folder))
    clock.now = 0.0  # its time says nothing against them
    store = await open_store()
    await store.bus.subscribe("mine", bool)

    assert 1 == len(find_sockets(folder))
    assert 1 == len(ask(folder, "SELECT * FROM endpoint"))


async def test_a_process_whose_socket_is_lost_is_gone_after_a_minute(folder, open_store, clock):
    """Ours: nobody can ask it, so its time tells; whoever is there says so every ten seconds."""
    store = await open_store()
    other = await OtherProcess.start(store.name)
    await other.ask("subscribe", "news")
    clock.now = ask(folder, "SELECT max(seen) FROM endpoint")[0][0]
    [path] = find_sockets(folder)
    await other.kill()
    path.unlink()
    await store.bus.subscribe("mine", bool)
    assert 2 == len(ask(folder, "SELECT * FROM endpoint"))
    clock.now += MAX_UNSEEN_S
    await wait_until(lambda: 1 == len(ask(folder, "SELECT * FROM endpoint")))

    assert not await store.bus.publish("news", b"a")


async def test_messages_come_also_where_there_are_no_sockets(open_store, monkeypatch):
    """Ours: as on Windows; a process looks by itself then."""
    monkeypatch.delattr(socket, "AF_UNIX")
    one, other, heard = await open_store(), await open_store(), asyncio.Queue()
    await other.bus.subscribe("news", heard.put_nowait)
    assert await one.bus.publish("news", b"a")

    assert b"a" == await heard.get()


async def test_messages_come_also_where_the_folder_is_anothers(folder, open_store, caplog):
    """Ours: a folder that others may enter is not used, and it is said."""
    caplog.set_level("WARNING")
    (folder / "s.db-bus").mkdir()
    (folder / "s.db-bus").chmod(0o777)
    one, other, heard = await open_store(), await open_store(), asyncio.Queue()
    await other.bus.subscribe("news", heard.put_nowait)
    await one.bus.publish("news", b"a")

    assert b"a" == await heard.get()
    assert "messages of other processes come later: no socket" in caplog.text
    assert [] == find_sockets(folder)


async def test_a_file_with_a_long_name_has_its_sockets_elsewhere(
    tmp_path, folder, clock, monkeypatch
):
    """Ours: a Unix socket's path ends after about a hundred bytes, and files' do not."""
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    long = tmp_path / ("long" * 30)
    long.mkdir()
    heard = asyncio.Queue()
    store = SqliteStore(f"sqlite:///{long}/s.db", clock=clock)
    await store.bus.subscribe("news", heard.put_nowait)
    [made] = folder.iterdir()
    sockets, mode = len(list(made.iterdir())), made.stat().st_mode
    await store.bus.publish("news", b"a")
    assert b"a" == await heard.get()
    await store.close()

    assert 1 == sockets
    assert 0o700 == mode & 0o777
    assert not made.exists()


async def test_old_messages_are_swept(folder, open_store, clock):
    """Ours: the file has the messages of seconds, not of days."""
    store = await open_store()
    await store.bus.subscribe("news", bool)
    await store.bus.publish("news", b"old")
    clock.now += MAX_MESSAGE_AGE_S
    for _ in range(PUBLISHES_PER_SWEEP):
        await store.bus.publish("news", b"new")

    assert [] == ask(folder, "SELECT id FROM message WHERE body = 'old'")


async def test_a_process_that_was_stopped_too_long_hears_of_a_gap(folder, open_store):
    """Ours: what it missed it can find out from what is stored."""
    store = await open_store()
    other = await OtherProcess.start(store.name)
    await other.ask("subscribe", "news")
    other.stop()
    large = b"x" * (MAX_BUS_BYTES // 5)
    for _ in range(7):
        await store.bus.publish("news", large)
    [(size,)] = ask(folder, "SELECT sum(length(body)) FROM message")
    other.resume()
    await other.ask("wait_gap")
    await store.bus.publish("other", b"")
    last = await other.ask("wait_heard", "news", 1)
    await other.kill()

    assert [large] == last
    assert size <= MAX_BUS_BYTES + len(large)


async def test_a_process_that_was_taken_for_gone_comes_back(folder, open_store, clock):
    """Ours: it listens again, and hears that there was a gap."""
    one, other = await open_store(), await open_store()
    heard, gaps = asyncio.Queue(), asyncio.Queue()
    await one.bus.subscribe("news", heard.put_nowait)
    one.bus.on_gap(lambda: gaps.put_nowait(1))
    for path in find_sockets(folder):
        path.unlink()
    clock.now += MAX_UNSEEN_S
    await other.bus.subscribe("other", bool)
    assert [] == ask(folder, "SELECT * FROM listener WHERE channel = CAST('news' AS BLOB)")

    assert 1 == await gaps.get()
    assert await other.bus.publish("news", b"a")
    assert b"a" == await heard.get()


async def test_a_process_with_a_socket_is_there_whatever_the_time(folder, open_store, clock):
    """Ours: a clock that is set forward makes nobody seem to be gone."""
    one, other, heard = await open_store(), await open_store(), asyncio.Queue()
    await one.bus.subscribe("news", heard.put_nowait)
    clock.now += 10 * MAX_UNSEEN_S
    await other.bus.subscribe("other", bool)

    assert await other.bus.publish("news", b"a")
    assert b"a" == await heard.get()


def test_a_store_is_used_in_one_loop_after_another(folder):
    """Ours: a server may be run twice, also where the first loop ended without a word."""
    store = SqliteStore(f"sqlite:///{folder}/s.db")

    async def use(message, *, close):
        heard = asyncio.Queue()
        await store.open()
        await store.bus.subscribe("news", heard.put_nowait)
        await store.bus.publish("news", message)
        assert message == await heard.get()
        if close:
            await store.close()

    asyncio.run(use(b"a", close=False))
    asyncio.run(use(b"b", close=True))
    asyncio.run(use(b"c", close=True))

    assert [] == ask(folder, "SELECT * FROM endpoint")
    assert [folder / "s.db"] == list(folder.iterdir())


async def test_a_database_that_cannot_be_read_is_read_again(open_store, folder, caplog):
    """Ours: what was published meanwhile is heard, once it can be."""
    one, other, heard = await open_store(), await open_store(), asyncio.Queue()
    await one.bus.subscribe("news", heard.put_nowait)
    (folder / "s.db").rename(folder / "away.db")
    one.bus._woken.set()
    await wait_until(lambda: "messages of other processes cannot be read" in caplog.text)
    (folder / "away.db").rename(folder / "s.db")
    await other.bus.publish("news", b"a")

    assert b"a" == await heard.get()


def test_times_are_in_order():
    """Ours: who looks once in a while is not taken for gone, nor misses what is kept."""
    assert sqlite_bus.WOKEN_POLL_INTERVAL_S * 5 < sqlite_bus.SEEN_INTERVAL_S + 1
    assert sqlite_bus.SEEN_INTERVAL_S * 5 < MAX_UNSEEN_S
    assert sqlite_bus.WOKEN_POLL_INTERVAL_S * 10 < MAX_MESSAGE_AGE_S
