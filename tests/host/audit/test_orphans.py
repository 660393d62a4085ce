"""Presence of processes: calls that a gone process left open get an outcome that nobody knows."""

import pytest

from isthmus.host.audit.log import AuditLog
from isthmus.host.state.database import HostState
from isthmus.host.state.presence import ProcessPresence
from support.host.audit_rows import intent_row, open_audit_log, outcome_row, query_state


async def left_behind(folder, node):
    """A process that wrote two intents and one outcome, and is gone without a word."""
    log = AuditLog(HostState(folder), node=node)
    await log.intent(intent_row("done"))
    await log.intent(intent_row("open", parent="p1", principal="agent:r1"))
    await log.write(outcome_row("done"))
    log._writer.presence.end()  # as the system does
    await log._state.close()


@pytest.mark.covers("hostaudit.crash.unknown")
async def test_a_call_without_an_outcome_gets_one_that_says_that_nobody_knows(tmp_path):
    """Ours: once, when the next process begins; the intent's members are repeated."""
    await left_behind(tmp_path, "first")
    for expected in (1, 0):
        async with open_audit_log(tmp_path) as log:
            assert expected == await log.open()
            lines = [line for line in await log.tail() if line.call == "open"]

    assert [("intent", ""), ("outcome", "outcome-unknown")] == [
        (one.kind, one.error) for one in lines
    ]
    assert ("p1", "agent:r1", "github", "create_issue", {"node": "first"}) == (
        lines[1].parent, lines[1].principal, lines[1].server, lines[1].object, lines[1].detail,
    )  # fmt: skip
    assert lines[1].failed is None


@pytest.mark.covers("hostaudit.crash.unknown")
async def test_the_first_row_does_it_where_nobody_did(tmp_path):
    """Ours: an embedded host that opens nothing."""
    await left_behind(tmp_path, "first")
    async with open_audit_log(tmp_path) as log:
        await log.intent(intent_row("new"))
        last = [(line.kind, line.call) for line in (await log.tail())[-2:]]

    assert [("outcome", "open"), ("intent", "new")] == last


@pytest.mark.covers("hostaudit.crash.others")
async def test_what_a_process_has_under_way_that_lives_is_left_alone(tmp_path):
    """Ours: two hosts on one state do not declare each other dead."""
    async with open_audit_log(tmp_path) as one, open_audit_log(tmp_path) as other:
        await one.intent(intent_row("c1"))

        assert 0 == await other.open()
        assert [("c1",)] == await query_state(other, "SELECT call_id FROM open_call")


def test_two_processes_have_not_one_name(tmp_path):
    """Ours: the second is told."""
    one, other = ProcessPresence(tmp_path, "me"), ProcessPresence(tmp_path, "me")
    one.begin()
    one.begin()
    with pytest.raises(OSError, match="another process is called me"):
        other.begin()
    one.end()
    other.begin()
    other.end()


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    """Ours: by whoever begins next; who is there stays."""
    one, other = ProcessPresence(tmp_path, "one"), ProcessPresence(tmp_path, "other")
    one.begin()
    (tmp_path / "nodes" / "left").touch()
    other.begin()
    there = len(list((tmp_path / "nodes").iterdir()))

    assert 2 == there
    assert not other.gone("one")
    one.end()
    other.end()


def test_whoever_is_gone_leaves_nothing_behind(tmp_path):
    """Ours: the file goes with them, or when somebody notices."""
    one, other = ProcessPresence(tmp_path, "one"), ProcessPresence(tmp_path, "other")
    one.begin()
    held = [one.gone("one"), other.gone("one"), other.gone("nobody")]
    one.end()

    assert [False, False, True] == held
    assert other.gone("one")
    assert [] == list((tmp_path / "nodes").iterdir())
    assert ProcessPresence(None, "x").gone("y")


@pytest.mark.covers("hostaudit.crash.tasks")
async def test_a_call_that_has_become_a_task_is_taken_over_by_whoever_comes_next(tmp_path):
    """Ours: how it ends can still be found out, so nobody says that nobody knows."""
    await left_behind(tmp_path, "first")
    for node in ("second", "third"):
        async with open_audit_log(tmp_path, node=node) as log:
            await log.state.write(
                lambda db: db.execute(
                    "INSERT OR REPLACE INTO task_handle (identity, task, at_us, attempt) "
                    "VALUES ('x', 't1', 1, ?)",
                    (b'{"id":"open"}',),
                )
            )
            assert 0 == await log.open()
            assert [("open", node)] == await query_state(log, "SELECT call_id, node FROM open_call")

    async with open_audit_log(tmp_path, node="fourth") as log:
        await log.state.write(lambda db: db.execute("DELETE FROM task_handle"))
        assert 1 == await log.open()
