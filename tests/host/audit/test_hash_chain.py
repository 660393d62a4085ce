"""The chain: whoever changes, removes, inserts or moves a row is found out, and where."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from isthmus.host.audit.row_columns import COLUMNS
from isthmus.host.audit.writer import SEGMENT_ROWS
from isthmus.host.model.row import AuditRow
from support.clock import ManualClock
from support.host.audit_rows import (
    AUDIT_TIME_S,
    BASE,
    intent_row,
    open_audit_log,
    outcome_row,
    query_state,
    rechain,
)


async def filled(log, rows=6):
    for n in range(rows):
        log.note(AuditRow(kind="decision", call=f"c{n}", arguments={"n": n}, **BASE))
    await log.flush()


async def meddled(log, *statements):
    """What a check finds after somebody wrote to the file."""
    path = log.state.database.path
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("DROP TRIGGER event_stays")
        other.execute("DROP TRIGGER event_stays_as_it_is")
        for statement in statements:
            other.execute(statement)
    return await log.verify()


@pytest.mark.covers("hostaudit.chain.append-only")
@pytest.mark.parametrize(
    "statement",
    ["UPDATE event SET server = 'x'", "DELETE FROM event", "DELETE FROM event WHERE seq = 3"],
)
async def test_the_table_only_grows(tmp_path, statement):
    """Ours: by a trigger, whoever writes."""
    async with open_audit_log(tmp_path) as log:
        await filled(log)
        with pytest.raises(sqlite3.IntegrityError, match="audit log"):
            await log.state.write(lambda db: db.execute(statement))

        assert (await log.verify()).good


MEDDLING = {
    "a value": (["UPDATE event SET effect = 'deny' WHERE seq = 3"], 3, "changed"),
    "arguments": (["UPDATE event SET args_redacted = '{}' WHERE seq = 1"], 1, "changed"),
    "a time": (["UPDATE event SET ts_us = ts_us + 1 WHERE seq = 6"], 6, "changed"),
    "a null": (["UPDATE event SET model = '' WHERE seq = 2"], 2, "changed"),
    "a hash": (["UPDATE event SET hash = zeroblob(32) WHERE seq = 2"], 2, "changed"),
    "one removed": (["DELETE FROM event WHERE seq = 3"], 3, "missing"),
    "the first removed": (["DELETE FROM event WHERE seq = 1"], 1, "missing"),
    "several removed": (["DELETE FROM event WHERE seq IN (2, 3, 4)"], 2, "missing"),
    "two exchanged": (
        [
            "UPDATE event SET seq = -3 WHERE seq = 3", "UPDATE event SET seq = 3 WHERE seq = 4",
            "UPDATE event SET seq = 4 WHERE seq = -3",
        ], 3, "order",
    ),
    "closed up": (
        ["DELETE FROM event WHERE seq = 3", "UPDATE event SET seq = seq - 1 WHERE seq > 3"], 3, "order",
    ),
}  # fmt: skip


@pytest.mark.covers("hostaudit.chain.tampering")
@pytest.mark.parametrize("how", MEDDLING)
async def test_meddling_is_found_and_where(tmp_path, how):
    """Ours: at the first row that is not as it was written."""
    statements, seq, what = MEDDLING[how]
    async with open_audit_log(tmp_path) as log:
        await filled(log)
        found = await meddled(log, *statements)

    assert not found.good
    assert seq == found.faults[0].seq
    assert what in {fault.what for fault in found.faults if fault.seq == seq}


@pytest.mark.covers("hostaudit.checkpoint.signed", "hostaudit.chain.tampering")
async def test_a_chain_that_was_made_anew_does_not_fit_what_was_signed(tmp_path):
    """Ours: whoever has the file and not the key can compute no hash of a row."""
    async with open_audit_log(tmp_path) as log:
        await filled(log)
    async with open_audit_log(tmp_path) as log:
        await filled(log, 2)
        rechain(log.state.database.path, 3, "UPDATE event SET effect = 'deny' WHERE seq = 3")
        found = await log.verify()

    faults = [(fault.seq, fault.what) for fault in found.faults]
    assert [(3, "changed"), (4, "changed"), (5, "changed")] == faults[:3]
    assert (6, "inserted") in faults


@pytest.mark.covers("hostaudit.chain.tampering")
async def test_a_row_put_in_between_is_found(tmp_path):
    """Ours: also where the hashes were made to fit, as soon as something after it was signed."""
    async with open_audit_log(tmp_path) as log:
        await filled(log)
    async with open_audit_log(tmp_path) as log:
        names = ", ".join(name for name in COLUMNS if name != "seq")
        path = log.state.database.path
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("DROP TRIGGER event_stays_as_it_is")
            db.execute("UPDATE event SET seq = -seq - 1 WHERE seq > 3")
            db.execute("UPDATE event SET seq = -seq WHERE seq < 0")
            db.execute(
                f"INSERT INTO event (seq, {names}, prev, hash) "  # noqa: S608 - columns
                f"SELECT 4, {names}, prev, hash FROM event WHERE seq = 3"
            )
            db.execute(
                "CREATE TRIGGER event_stays_as_it_is BEFORE UPDATE ON event BEGIN SELECT 1; END"
            )
        rechain(path, 4, "SELECT 1")
        found = await log.verify()

    assert "inserted" in {fault.what for fault in found.faults}


@pytest.mark.covers("hostaudit.chain.truncated")
async def test_rows_cut_off_at_the_end_are_missed(tmp_path):
    """Ours: by the checkpoint that was signed after them; one that was changed to fit does not hold."""
    async with open_audit_log(tmp_path) as log:
        await filled(log)
        await log.state.write(log._writer.end)
        cut = await meddled(log, "DELETE FROM event WHERE seq > 4")
        changed = await meddled_again(log, "UPDATE checkpoint SET seq = 4")

    assert [(6, "truncated")] == [(fault.seq, fault.what) for fault in cut.faults]
    assert "rows after 4 were removed" in cut.faults[0].text
    assert (4, "checkpoint") in {(fault.seq, fault.what) for fault in changed.faults}


async def meddled_again(log, statement):
    with closing(sqlite3.connect(log.state.database.path, isolation_level=None)) as other:
        other.execute(statement)
    return await log.verify()


@pytest.mark.covers("hostaudit.chain.anchor")
async def test_an_anchor_kept_elsewhere_finds_what_no_checkpoint_tells(tmp_path):
    """Ours: it is printed by every check; an older log may be put back with its head, but not it."""
    async with open_audit_log(tmp_path) as log:
        await filled(log)
        before = await log.verify()
        anchor = f"{before.last}:{before.head}"
        good = await log.verify(anchor)
        head = (tmp_path / "host.head").read_bytes()
        await filled(log, 2)
        await log.verify()
        later = await log.verify()
        (tmp_path / "host.head").write_bytes(head)
        cut = await meddled(log, "DELETE FROM event WHERE seq > 6")
        told = await log.verify(f"{later.last}:{later.head}")
        with pytest.raises(Exception, match="invalid literal"):
            await log.verify("what?")

    assert good.good
    assert cut.good
    assert [(8, "truncated")] == [(fault.seq, fault.what) for fault in told.faults]


@pytest.mark.covers("hostaudit.chain.processes")
async def test_several_processes_append_to_one_chain(tmp_path):
    """Ours: every row follows the one before it, whoever wrote that."""
    async with open_audit_log(tmp_path) as one, open_audit_log(tmp_path) as other:
        one.state.database.patience = other.state.database.patience = 5.0
        await asyncio.gather(*(log.intent(intent_row()) for log in [one, other] * 20))
        for log in [one, other] * 20:
            log.note(intent_row())
            await asyncio.sleep(0)
        await asyncio.gather(one.flush(), other.flush())
        found = await one.verify()
        nodes = await query_state(one, "SELECT count(DISTINCT node) FROM event")

    assert (80, (), [(2,)]) == (found.rows, found.faults, nodes)


@pytest.mark.covers("hostaudit.checkpoint.signed")
async def test_it_is_signed_now_and_then_and_at_the_end(tmp_path, monkeypatch):
    """Ours: after so many rows, after an hour, and when the log is closed."""
    assert SEGMENT_ROWS <= 1000
    monkeypatch.setattr("isthmus.host.audit.writer.SEGMENT_ROWS", 10)
    clock = ManualClock(AUDIT_TIME_S)
    async with open_audit_log(tmp_path, clock=clock) as log:
        await filled(log, 25)
        clock.now += 7200
        await filled(log, 1)
        await filled(log, 1)
        before = [
            row[0] for row in await query_state(log, "SELECT seq FROM checkpoint ORDER BY seq")
        ]
    async with open_audit_log(tmp_path) as log:
        found = await log.verify()

    assert [10, 20, 26] == before
    assert 4 == found.checkpoints


async def test_another_key_signs_nothing_of_ours(tmp_path):
    """Ours: a log that was brought from elsewhere, or whose key was exchanged."""
    async with open_audit_log(tmp_path) as log:
        await filled(log)
    (tmp_path / "host.key").write_bytes(bytes(32))
    async with open_audit_log(tmp_path) as log:
        found = await log.verify()

    assert {"changed", "checkpoint", "truncated"} == {fault.what for fault in found.faults}


async def test_an_empty_log_is_good():
    """Ours: nothing was changed in it."""
    async with open_audit_log() as log:
        found = await log.verify()

    assert (0, 0, 0) == (found.rows, found.first, found.last)
    assert found.good


async def test_no_more_faults_are_told_than_anybody_reads(tmp_path):
    """Ours: a hundred."""
    async with open_audit_log(tmp_path) as log:
        await filled(log, 300)
        found = await meddled(log, "UPDATE event SET effect = 'deny'")

    assert 100 == len(found.faults)


async def test_an_outcome_closes_its_call(tmp_path):
    """Ours: nobody is told later that nobody knows."""
    async with open_audit_log(tmp_path) as log:
        await log.intent(intent_row("c1"))
        await log.intent(intent_row("c2"))
        log.note(outcome_row("c1"))
        await log.flush()
        left = await query_state(log, "SELECT call_id FROM open_call")

    assert [("c2",)] == left
