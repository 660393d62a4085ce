"""Switching a new file to a write-ahead log."""

import sqlite3
from contextlib import closing

import pytest

from isthmus.store.sqlite import enable_wal


@pytest.fixture
def two(tmp_path):
    """Two connections to a new file; the first reads it just now, the second waits for nobody."""
    path = tmp_path / "notes.db"
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as first,
        closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as second,
    ):
        first.execute("CREATE TABLE note (text TEXT)")
        first.execute("BEGIN")
        first.execute("SELECT * FROM note").fetchall()
        yield first, second


def test_another_that_switches_it_just_now_is_waited_for(two):
    """Ours: two hosts that begin at once on a new state both begin."""
    first, second = two
    tries = []

    def trying(statement):
        tries.append(statement)
        if len(tries) == 3:
            first.execute("ROLLBACK")

    second.set_trace_callback(trying)
    enable_wal(second, 60.0)

    assert ["PRAGMA journal_mode = WAL"] * 3 == tries
    assert ("wal",) == second.execute("PRAGMA journal_mode").fetchone()


def test_who_keeps_it_is_not_waited_for_without_end(two):
    """Ours: then it is an error, as anywhere else."""
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        enable_wal(two[1], 0.0)
