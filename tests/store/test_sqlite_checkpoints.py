"""Checkpoints: what was committed comes into the file itself, beside the work."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from isthmus.store.sqlite import CHECKPOINT_COMMITS, WalCheckpoints


@pytest.fixture
def writer(tmp_path):
    """A connection whose commits stay in the log."""
    with closing(sqlite3.connect(tmp_path / "notes.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("CREATE TABLE note (text TEXT)")
        yield db


def tables(path):
    """What stands in the file alone, without its log."""
    alone = shutil.copy(path, path.with_name("alone.db"))
    with closing(sqlite3.connect(alone)) as db:
        return [row[0] for row in db.execute("SELECT name FROM sqlite_master")]


@pytest.mark.covers("hostaudit.store.checkpoints")
@pytest.mark.parametrize(
    ("commits", "expected"), [(CHECKPOINT_COMMITS - 1, []), (CHECKPOINT_COMMITS, ["note"])]
)
@pytest.mark.usefixtures("writer")
def test_what_was_committed_comes_into_the_file_now_and_then(tmp_path, commits, expected):
    """Ours: while its writer goes on."""
    checkpoints = WalCheckpoints(str(tmp_path / "notes.db"))
    for _ in range(commits):
        checkpoints.count_commit()
    checkpoints.end()

    assert expected == tables(tmp_path / "notes.db")


@pytest.mark.covers("hostaudit.store.checkpoints")
def test_who_writes_meanwhile_is_not_kept_waiting_and_does_it_itself_later(tmp_path, writer):
    """Ours: a checkpoint waits for nobody, and fails without a word."""
    checkpoints = WalCheckpoints(str(tmp_path / "notes.db"))
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO note VALUES ('a')")
    for _ in range(CHECKPOINT_COMMITS):
        checkpoints.count_commit()
    checkpoints.end()
    writer.execute("COMMIT")

    assert [("a",)] == writer.execute("SELECT text FROM note").fetchall()


@pytest.mark.covers("hostaudit.store.checkpoints")
def test_a_file_that_is_gone_is_not_made_again(tmp_path):
    """Ours: what stood in it would be missed by nobody."""
    checkpoints = WalCheckpoints(str(tmp_path / "gone.db"))
    for _ in range(CHECKPOINT_COMMITS):
        checkpoints.count_commit()
    checkpoints.end()
    checkpoints.end()

    assert [] == list(tmp_path.iterdir())
