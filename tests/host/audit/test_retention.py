"""Retention of the audit log: bodies go by their time, rows in whole segments."""

import pytest

from isthmus.host.audit.keys import AuditKeys, CannotOpen
from isthmus.host.audit.queries import AuditFilters, read_lines
from isthmus.host.audit.writer import read_body
from support.clock import ManualClock
from support.host.audit_rows import (
    AUDIT_TIME_S,
    intent_row,
    open_audit_log,
    outcome_row,
    query_state,
)

DAY = 86400.0


@pytest.fixture(autouse=True)
def _short_segments(monkeypatch):
    monkeypatch.setattr("isthmus.host.audit.writer.SEGMENT_ROWS", 10)
    monkeypatch.setattr("isthmus.host.audit.writer.SWEEP_BATCH_ROWS", 7)


async def aged(log, clock, days=4, rows=12):
    """So many rows each day, the calls of all of them done."""
    for day in range(days):
        for n in range(rows // 2):
            log.note(intent_row(f"d{day}n{n}", arguments={"word": f"day{day}"}))
            log.note(outcome_row(f"d{day}n{n}"))
        await log.flush()
        clock.now += DAY


@pytest.mark.covers("hostaudit.retention.segments")
async def test_old_segments_are_dropped_and_the_rest_still_verifies(tmp_path):
    """Ours: a segment goes when its last row is too old; the chain begins at a signature."""
    clock = ManualClock(AUDIT_TIME_S)
    async with open_audit_log(tmp_path, clock=clock, retain=2.5 * DAY) as log:
        await aged(log, clock)
        for _ in range(10):
            await log.flush()
        found = await log.verify()
        first = (await query_state(log, "SELECT min(seq) FROM event"))[0][0]

    assert found.good, found.faults
    assert (20, 21) == (found.dropped, first)
    assert 48 == found.last


@pytest.mark.covers("hostaudit.retention.segments")
async def test_a_log_in_memory_keeps_its_last_segments(monkeypatch):
    """Ours: a host without a state folder does not grow with its calls, and what is left verifies."""
    monkeypatch.setattr("isthmus.host.audit.writer.MAX_MEMORY_ROWS", 30)
    clock = ManualClock(AUDIT_TIME_S)
    async with open_audit_log(clock=clock) as log:
        counts = []
        for n in range(100):
            log.note(intent_row(f"call{n}"))
            log.note(outcome_row(f"call{n}"))
            await log.flush()
            clock.now += 1
            counts += (await query_state(log, "SELECT count(*) FROM event"))[0]
        found = await log.verify()
        indexed = await log.state.read(lambda db: list(read_lines(db, AuditFilters(text="call0"))))

    assert found.good, found.faults
    assert (200, True) == (found.last, 30 <= counts[-1] <= max(counts) <= 30 + 2 * 10 + 7)
    assert [] == indexed


@pytest.mark.covers("hostaudit.retention.segments")
async def test_nothing_is_dropped_unless_somebody_said_so(tmp_path):
    """Ours: by default rows stay for ever."""
    clock = ManualClock(AUDIT_TIME_S)
    async with open_audit_log(tmp_path, clock=clock) as log:
        await aged(log, clock)
        found = await log.verify()

    assert (0, 48) == (found.dropped, found.rows)


@pytest.mark.covers("hostaudit.retention.segments")
async def test_a_drop_that_was_interrupted_leaves_a_chain_that_holds(tmp_path):
    """Ours: rows up to the signature may be there or not; what is searched for is found as before."""
    clock = ManualClock(AUDIT_TIME_S)
    async with open_audit_log(tmp_path, clock=clock, retain=1.5 * DAY) as log:
        await aged(log, clock, days=3)
        states = []
        for _ in range(12):
            await log.flush()
            states.append((await log.verify()).good)
        found = await log.state.read(lambda db: list(read_lines(db, AuditFilters(text="day2"))))
        gone = await log.state.read(lambda db: list(read_lines(db, AuditFilters(text="day0"))))

    assert {True} == {*states}
    assert 6 == len(found)
    assert len(gone) < 6


@pytest.mark.covers("hostaudit.retention.segments")
async def test_rows_that_were_dropped_by_hand_are_missed(tmp_path):
    """Ours: only what a signature covers may go."""
    clock = ManualClock(AUDIT_TIME_S)
    async with open_audit_log(tmp_path, clock=clock, retain=2.5 * DAY) as log:
        await aged(log, clock)
        for _ in range(10):
            await log.flush()

        def drop(db):
            db.execute("DROP TRIGGER event_stays")
            db.execute("DELETE FROM event WHERE seq <= 25")

        await log.state.write(drop)
        found = await log.verify()

    assert ("missing", 21) == (found.faults[0].what, found.faults[0].seq)


@pytest.mark.covers("hostaudit.bodies.encrypted")
@pytest.mark.parametrize(("bodies", "kept"), [("hash", None), ("redacted", "[redacted]"), ("full", "sk-live-1234567890")])  # fmt: skip
async def test_bodies_are_kept_as_the_settings_say(tmp_path, bodies, kept):
    """Ours: never by default; encrypted, so that the file shows nothing of them."""
    result = {"text": "sk-live-1234567890", "n": 1}
    async with open_audit_log(tmp_path, bodies=bodies) as log:
        log.note(outcome_row("c1", result=result))
        log.note(outcome_row("c2", result=result))
        await log.flush()
        line = (await log.tail())[-1]
        keys = AuditKeys(log.state.key())
        hash = bytes.fromhex(line.result_hash)
        found = await log.state.read(lambda db: read_body(db, keys, hash))
        count = (await query_state(log, "SELECT count(*) FROM body"))[0][0]
    whole = b"".join(one.read_bytes() for one in tmp_path.rglob("*") if one.is_file())

    assert kept == (found and found["text"])
    assert count == (0 if kept is None else 1)
    assert b"sk-live" not in whole


@pytest.mark.covers("hostaudit.bodies.expire")
async def test_bodies_go_when_their_time_is_over(tmp_path):
    """Ours: their rows stay, with the digest."""
    clock = ManualClock(AUDIT_TIME_S)
    async with open_audit_log(tmp_path, clock=clock, bodies="full", bodies_life=DAY) as log:
        log.note(outcome_row("c1", result={"text": "x"}))
        await log.flush()
        clock.now += 1.1 * DAY
        log.note(intent_row("c2", arguments=None))
        await log.flush()
        await log.flush()
        count = await query_state(log, "SELECT count(*) FROM body")
        found = await log.verify()

    assert [(0,)] == count
    assert found.good


async def test_a_body_that_was_changed_or_moved_does_not_open(tmp_path):
    """Ours: what it shows is what was passed on, or nothing."""
    async with open_audit_log(tmp_path, bodies="full") as log:
        log.note(outcome_row("c1", result={"text": "x"}))
        await log.flush()
        hash = bytes.fromhex((await log.tail())[-1].result_hash)
        keys = AuditKeys(log.state.key())
        await log.state.write(lambda db: db.execute("UPDATE body SET data = zeroblob(40)"))
        with pytest.raises(CannotOpen, match=r"host\.key"):
            await log.state.read(lambda db: read_body(db, keys, hash))
