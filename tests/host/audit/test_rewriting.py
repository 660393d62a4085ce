"""Attacks on a whole log with plain SQL and no key: each way of rewriting it is found out.

Whoever attacks here can write the database, and knows how hashes were computed before they had a
key; the key and what the host does next are not theirs.
"""

import asyncio
import shutil
import sqlite3
import sys
from contextlib import closing

import pytest

from isthmus.host.audit.hash_chain import UNPROVED, sign_checkpoint, verify_chain
from isthmus.host.audit.head_file import HeadFile
from isthmus.host.audit.keys import AuditKeys
from isthmus.host.model.row import AuditRow
from support.clock import ManualClock
from support.host.audit_rows import BASE, open_audit_log, query_state, rechain

KILLED = """
import asyncio, os, sys
from isthmus.host.audit.log import AuditLog
from isthmus.host.model.row import AuditRow
from isthmus.host.state.database import HostState

async def main():
    log = AuditLog(HostState(sys.argv[1]))
    for n in range(8):
        await log.write(AuditRow(kind="decision", call=f"c{n}", action="tool.call", effect="allow"))
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


async def write(folder, rows=6):
    """Write rows, and close the log: a checkpoint stands at its end."""
    async with open_audit_log(folder) as log:
        for n in range(rows):
            log.note(AuditRow(kind="decision", call=f"c{n}", arguments={"n": n}, **BASE))
        await log.flush()


def attack(folder, *statements):
    """Do something to the database with plain SQL."""
    with closing(sqlite3.connect(folder / "host.db", isolation_level=None)) as db:
        for trigger in ("event_stays", "event_stays_as_it_is"):
            db.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        for statement in statements:
            db.execute(statement)


def check(folder, anchor=""):
    """What a check finds that nothing but reads."""
    keys = AuditKeys((folder / "host.key").read_bytes())
    with closing(sqlite3.connect(folder / "host.db", isolation_level=None)) as db:
        return verify_chain(db, keys, HeadFile(folder / "host.head", keys), anchor)


def kinds(found):
    """Which kinds of faults there are."""
    return {fault.what for fault in found.faults}


@pytest.mark.covers("hostaudit.chain.keyed")
async def test_a_row_that_was_edited_with_all_hashes_computed_anew_is_found(tmp_path):
    """Ours: triggers dropped, the chain made anew, checkpoints deleted: the hashes lack the key."""
    await write(tmp_path)
    rechain(tmp_path / "host.db", 1, "UPDATE event SET effect = 'deny' WHERE seq = 3")
    attack(tmp_path, "DELETE FROM checkpoint")
    found = check(tmp_path)

    assert {"changed", "inserted", "checkpoint"} == kinds(found)


@pytest.mark.covers("hostaudit.chain.head")
async def test_a_log_of_which_everything_was_deleted_is_missed(tmp_path):
    """Ours: the head outside the database counts the rows."""
    await write(tmp_path)
    attack(tmp_path, "DELETE FROM event", "DELETE FROM checkpoint")
    found = check(tmp_path)

    assert {"truncated", "checkpoint"} == kinds(found)
    assert "ends at row 0, and was signed up to row 6" in found.faults[0].text


@pytest.mark.covers("hostaudit.chain.head")
async def test_a_tail_that_was_deleted_with_its_checkpoint_is_missed(tmp_path):
    """Ours: an earlier checkpoint is the last one then, and fits."""
    await write(tmp_path, 6)
    await write(tmp_path, 4)
    attack(tmp_path, "DELETE FROM event WHERE seq > 6", "DELETE FROM checkpoint WHERE seq > 6")
    found = check(tmp_path)

    assert {"truncated", "checkpoint"} == kinds(found)


@pytest.mark.covers("hostaudit.chain.head")
@pytest.mark.parametrize("count", [1, 2])
async def test_checkpoints_that_were_deleted_are_missed(tmp_path, count):
    """Ours: the head counts them, too."""
    await write(tmp_path, 6)
    await write(tmp_path, 4)
    attack(tmp_path, f"DELETE FROM checkpoint WHERE seq <= {6 * count}")  # noqa: S608 - ours
    found = check(tmp_path)

    assert {"checkpoint"} == kinds(found)
    assert f"{count} checkpoints were removed" in found.faults[0].text


async def kill_host(folder):
    """A host that is killed with no checkpoint after its rows; eight were acknowledged."""
    words = [sys.executable, "-c", KILLED, str(folder)]
    process = await asyncio.create_subprocess_exec(*words)
    assert -9 == await process.wait()


@pytest.mark.covers("hostaudit.chain.head", "hostaudit.crash.killed")
async def test_what_a_killed_host_acknowledged_is_proved(tmp_path):
    """Ours: the head is written before anybody is told that a row was written."""
    await kill_host(tmp_path)
    found = check(tmp_path)

    assert ("good", 8, 0) == (found.state, found.rows, found.checkpoints)


@pytest.mark.covers("hostaudit.chain.keyed")
async def test_the_open_segment_of_a_killed_host_cannot_be_edited(tmp_path):
    """Ours: no checkpoint stands after it; the key does."""
    await kill_host(tmp_path)
    rechain(tmp_path / "host.db", 5, "UPDATE event SET effect = 'deny' WHERE seq = 5")

    assert {"changed", "inserted"} == kinds(check(tmp_path))


@pytest.mark.covers("hostaudit.chain.head")
async def test_the_open_segment_of_a_killed_host_cannot_be_cut_off(tmp_path):
    """Ours: and no later host writes over what is missed."""
    await kill_host(tmp_path)
    attack(tmp_path, "DELETE FROM event WHERE seq > 5")
    before = check(tmp_path)
    await write(tmp_path, 10)
    after = check(tmp_path)

    assert ("bad", {"truncated"}) == (before.state, kinds(before))
    assert ("bad", {"truncated"}) == (after.state, kinds(after))
    assert "did not fit its head" in after.faults[0].text
    assert after.last > 8


@pytest.mark.covers("hostaudit.chain.keyed")
async def test_a_row_that_was_added_at_the_end_is_found(tmp_path):
    """Ours: its hash lacks the key; what the host writes after it does not cure it."""
    await write(tmp_path)
    attack(tmp_path, "INSERT INTO event SELECT 7, ts_us, node, kind, " + REST)
    rechain(tmp_path / "host.db", 7, "SELECT 1")
    before = check(tmp_path)
    await write(tmp_path, 2)
    after = check(tmp_path)

    assert {"changed"} == kinds(before) == kinds(after)


REST = (
    "call_id, parent_id, run_id, principal, action, server, identity, object, fingerprint, era, "
    "transport, origin, effect, rule_id, grant_id, approver, assurance, wait_ms, args_hash, "
    "args_redacted, result_hash, result_bytes, is_error, error_code, error_class, dur_us, "
    "tokens_in, tokens_out, cost_micro, model, labels, policy, detail, prev, hash "
    "FROM event WHERE seq = 6"
)


@pytest.mark.covers("hostaudit.chain.head")
async def test_a_log_without_its_head_is_unproved_for_ever(tmp_path):
    """Ours: the attacker deletes it with the end of the log; the next host does not make it good."""
    await write(tmp_path, 6)
    await write(tmp_path, 4)
    attack(tmp_path, "DELETE FROM event WHERE seq > 6", "DELETE FROM checkpoint WHERE seq > 6")
    (tmp_path / "host.head").unlink()
    before = check(tmp_path)
    await write(tmp_path, 3)
    after = check(tmp_path)

    assert ("unproved", "unproved") == (before.state, after.state)
    assert "rows may have been removed" in before.unproved[0].text
    assert (1, 6) == (after.unproved[0].first, after.unproved[0].last)


@pytest.mark.covers("hostaudit.chain.head")
async def test_a_log_that_was_made_without_key_and_head_is_never_good(tmp_path):
    """Ours: it looks as if an older version had written it; that proves nothing."""
    await write(tmp_path)
    rechain(tmp_path / "host.db", 1, "UPDATE event SET effect = 'deny' WHERE seq = 3")
    attack(tmp_path, "DELETE FROM checkpoint", "PRAGMA user_version = 1")
    (tmp_path / "host.head").unlink()
    before = check(tmp_path)
    await write(tmp_path, 3)
    after = check(tmp_path)

    assert ("unproved", "unproved") == (before.state, after.state)
    assert "have no key" in before.unproved[0].text


@pytest.mark.covers("hostaudit.chain.head")
@pytest.mark.parametrize("how", ["edited", "emptied", "of another log"])
async def test_a_head_that_was_changed_is_found(tmp_path, how):
    """Ours: it is authenticated with the key; a later host does not write over it unseen."""
    await write(tmp_path / "log")
    await write(tmp_path / "other", 3)
    head = tmp_path / "log" / "host.head"
    whole = head.read_bytes()
    head.write_bytes({
        "edited": whole.replace(b'"seq":6', b'"seq":5'), "emptied": b"",
        "of another log": (tmp_path / "other" / "host.head").read_bytes(),
    }[how])  # fmt: skip
    before = check(tmp_path / "log")
    await write(tmp_path / "log", 3)
    after = check(tmp_path / "log")

    assert {"head"} == kinds(before)
    assert {"truncated"} == kinds(after)


@pytest.mark.covers("hostaudit.chain.head")
async def test_a_checkpoint_that_was_sealed_by_hand_drops_nothing(tmp_path):
    """Ours: neither in a check, nor when retention looks for what is old enough."""
    await write(tmp_path, 6)
    attack(
        tmp_path, "UPDATE checkpoint SET sealed = 1, ts_us = 1", "DELETE FROM event WHERE seq < 4"
    )
    before = check(tmp_path)
    async with open_audit_log(tmp_path, retain=1.0) as log:
        await log.open()
        left = await query_state(log, "SELECT count(*) FROM event WHERE seq <= 6")

    assert {"missing", "checkpoint"} == kinds(before)
    assert [(3,)] == left


@pytest.mark.covers("hostaudit.retention.segments")
async def test_retention_drops_nothing_up_to_a_checkpoint_that_it_did_not_sign(tmp_path):
    """Ours: a forged one would have the host itself drop the rows, and sign for it."""
    await write(tmp_path, 6)
    attack(tmp_path, "INSERT INTO checkpoint SELECT 4, 1, hash, 0, sig FROM checkpoint")
    async with open_audit_log(tmp_path, clock=ManualClock(2e9), retain=1e9) as log:
        for _ in range(3):
            await log.flush()
        left = await query_state(log, "SELECT count(*) FROM event WHERE seq <= 4")

    assert [(4,)] == left


@pytest.mark.covers("hostaudit.chain.head")
async def test_rows_that_were_cut_off_while_the_host_runs_are_missed(tmp_path):
    """Ours: the next row of the host itself tells it, whichever process cut."""
    async with open_audit_log(tmp_path) as log:
        for n in range(6):
            await log.write(AuditRow(kind="decision", call=f"c{n}", **BASE))
        attack(tmp_path, "DELETE FROM event WHERE seq > 3")
        for n in range(6):
            await log.write(AuditRow(kind="decision", call=f"d{n}", **BASE))
        found = await log.verify()

    assert [("truncated", 4)] == [(fault.what, fault.seq) for fault in found.faults]


@pytest.mark.covers("hostaudit.chain.anchor")
async def test_an_older_state_with_its_own_head_is_found_by_an_anchor_only(tmp_path):
    """Ours: as the guide says; nothing on this machine can tell that it is not the present."""
    await write(tmp_path / "state")
    shutil.copytree(tmp_path / "state", tmp_path / "older")
    await write(tmp_path / "state", 3)
    later = check(tmp_path / "state")
    restored = check(tmp_path / "older")
    told = check(tmp_path / "older", f"{later.last}:{later.head}")

    assert "good" == restored.state
    assert {"truncated"} == kinds(told)


def age(folder):
    """Make a log what an older version would have left: no key in hashes, no head, older tables."""
    rechain(folder / "host.db", 1, "SELECT 1")
    keys = AuditKeys((folder / "host.key").read_bytes())
    with closing(sqlite3.connect(folder / "host.db", isolation_level=None)) as db:
        seq, hash = db.execute("SELECT seq, hash FROM event ORDER BY seq DESC").fetchone()
        sign_checkpoint(db, keys, seq, hash, 1)
        db.execute("PRAGMA user_version = 1")
    (folder / "host.head").unlink()


@pytest.mark.covers("hostaudit.chain.older")
async def test_a_log_of_an_older_version_is_kept_and_unproved(tmp_path):
    """Ours: before and after the first host that has a key; what that one writes is proved."""
    await write(tmp_path)
    age(tmp_path)
    before = check(tmp_path)
    await write(tmp_path, 3)
    after = check(tmp_path)
    async with open_audit_log(tmp_path) as log:
        rows = await query_state(log, "SELECT seq, action FROM event WHERE seq > 5 ORDER BY seq")

    assert ("unproved", 6, ()) == (before.state, before.rows, before.faults)
    assert ("unproved", 10, ()) == (after.state, after.rows, after.faults)
    assert [(1, 6)] == [(doubt.first, doubt.last) for doubt in after.unproved]
    assert (7, UNPROVED) == rows[1]


@pytest.mark.covers("hostaudit.chain.older")
async def test_the_old_part_of_a_log_cannot_be_changed_once_there_is_a_key(tmp_path):
    """Ours: the first row with a key holds the hash of the last one without."""
    await write(tmp_path)
    age(tmp_path)
    await write(tmp_path, 3)
    rechain(tmp_path / "host.db", 2, "UPDATE event SET effect = 'deny' WHERE seq = 2", upto=6)
    found = check(tmp_path)

    assert "bad" == found.state
    assert (7, "order") in {(fault.seq, fault.what) for fault in found.faults}


@pytest.mark.covers("hostaudit.chain.head")
async def test_rows_that_no_head_covers_yet_are_unproved(tmp_path):
    """Ours: committed in the last instant of a host that was killed; the next host covers them."""
    await write(tmp_path, 3)
    head = (tmp_path / "host.head").read_bytes()
    await write(tmp_path, 2)
    (tmp_path / "host.head").write_bytes(head)
    before = check(tmp_path)
    await write(tmp_path, 1)
    after = check(tmp_path)

    assert ("unproved", (4, 5)) == (
        before.state, (before.unproved[0].first, before.unproved[0].last),
    )  # fmt: skip
    assert ("good", 6) == (after.state, after.last)
