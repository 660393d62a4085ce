"""Reading the log: by filters, by words, as attempts to decide anew, and as sums."""

import pytest

from isthmus.errors import UsageError
from isthmus.host.audit.queries import (
    AuditFilters,
    make_search_query,
    open_log,
    read_attempts,
    read_lines,
    read_sums,
)
from isthmus.host.model.row import AuditRow
from isthmus.store.sqlite import StoreUnusable
from support.clock import ManualClock
from support.host.audit_rows import AUDIT_TIME_S, intent_row, open_audit_log, outcome_row


async def query_lines(log, filters, **options):
    return await log.state.read(lambda db: list(read_lines(db, filters, **options)))


async def some(log, clock):
    """Three calls: one was done, one failed, one was denied."""
    await log.intent(intent_row("c1", arguments={"title": "Fix the parser"}))
    log.note(AuditRow(kind="decision", call="c1", action="tool.call", approver="tty", wait=2.0))
    log.note(outcome_row("c1", tokens_in=10, tokens_out=5, cost=7))
    clock.now += 3600
    await log.intent(
        intent_row("c2", server="files", object="read", run="r2", arguments={"path": "/etc"})
    )
    log.note(outcome_row("c2", server="files", object="read", run="r2", failed=True, seconds=0.5))
    log.note(
        outcome_row(
            "c3",
            arguments={"title": "No"},
            effect="deny",
            failed=True,
            error="Denied",
            seconds=None,
        )
    )
    await log.flush()


@pytest.mark.covers("hostaudit.reading.filters")
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"server": "files"}, [4, 5]),
        ({"object": "create_issue", "kind": "outcome"}, [3, 6]),
        ({"call": "c1"}, [1, 2, 3]),
        ({"run": "r2"}, [4, 5]),
        ({"effect": "deny"}, [6]),
        ({"failed": True}, [5, 6]),
        ({"since": 1_795_000_001}, [4, 5, 6]),
        ({"until": 1_795_000_001}, [1, 2, 3]),
        ({"after": 4}, [5, 6]),
        ({"text": "parser"}, [1]),
        ({"text": "fix pars"}, [1]),
        ({"text": "create"}, [1, 3, 6]),
        ({"text": "no such thing"}, []),
        ({"principal": "user:ada", "text": "etc"}, [4]),
    ],
)
async def test_rows_are_found_by_what_they_are_about(filters, expected):
    """Ours: every filter narrows, words are looked for in objects, arguments and details."""
    clock = ManualClock(AUDIT_TIME_S)
    async with open_audit_log(clock=clock) as log:
        await some(log, clock)

        assert expected == [line.seq for line in await query_lines(log, AuditFilters(**filters))]


async def test_the_newest_are_given_in_their_order():
    """Ours: as many as are wanted."""
    clock = ManualClock(AUDIT_TIME_S)
    async with open_audit_log(clock=clock) as log:
        await some(log, clock)

        assert [5, 6] == [line.seq for line in await query_lines(log, AuditFilters(), newest=2)]


def test_what_has_no_word_in_it_cannot_be_searched_for():
    """Ours: and nothing that is searched for is taken as the index's own language."""
    with pytest.raises(UsageError, match="no word"):
        make_search_query("*-)")
    assert '"a" "OR" "b"*' == make_search_query('a" OR b*')


@pytest.mark.covers("hostaudit.reading.attempts")
async def test_every_attempt_of_the_past_can_be_decided_anew():
    """Ours: once each, with what redaction left of its arguments, and what was decided then."""
    clock = ManualClock(AUDIT_TIME_S)
    async with open_audit_log(clock=clock) as log:
        await some(log, clock)
        await log.write(AuditRow(kind="server", action="server.connect", server="files"))
        found = await log.state.read(lambda db: list(read_attempts(db)))
        files = await log.state.read(
            lambda db: list(read_attempts(db, AuditFilters(server="files", kind="x")))
        )

    assert [("c1", "allow"), ("c2", "allow"), ("c3", "deny")] == [
        (one.attempt.id, one.line.effect) for one in found
    ]
    first = found[0].attempt
    assert ("tool.call", "user:ada", "github", "create_issue", {"title": "Fix the parser"}) == (
        first.action, first.principal, first.server, first.object, first.arguments,
    )  # fmt: skip
    assert ["c2"] == [one.attempt.id for one in files]


@pytest.mark.covers("hostaudit.reading.streams")
async def test_a_long_log_is_not_read_at_once(tmp_path, monkeypatch):
    """Ours: whoever replays a year of it holds a thousand rows at a time."""
    monkeypatch.setattr("isthmus.host.audit.queries.READ_BATCH_ROWS", 3)
    async with open_audit_log(tmp_path) as log:
        for n in range(50):
            log.note(intent_row(f"c{n}"))
        await log.flush()
        with open_log(tmp_path) as db:
            steps = []
            db.set_progress_handler(lambda: steps.append(1), 100)
            reading = read_attempts(db)
            first = next(reading)
            few = len(steps)
            rest = list(reading)

    assert "c0" == first.attempt.id
    assert 49 == len(rest)
    assert few < len(steps) / 3


@pytest.mark.covers("hostaudit.reading.stats")
async def test_sums_count_calls_failures_waits_tokens_and_cost():
    """Ours: by server, tool and effect, the most used first."""
    clock = ManualClock(AUDIT_TIME_S)
    async with open_audit_log(clock=clock) as log:
        await some(log, clock)
        found = await log.state.read(read_sums)

    told = {(one.server, one.object, one.effect): one for one in found}
    done = told["github", "create_issue", "allow"]
    assert (1, 0, 2.0, 10, 5, 7) == (
        done.calls, done.failed, done.waited, done.tokens_in, done.tokens_out, done.cost,
    )  # fmt: skip
    assert (1, 0.5) == (
        told["files", "read", "allow"].failed,
        told["files", "read", "allow"].slowest,
    )
    assert 1 == told["github", "create_issue", "deny"].calls


def test_a_folder_without_a_log_is_told(tmp_path):
    """Ours: in words; nothing is made there."""
    with pytest.raises(StoreUnusable, match="nothing was done there yet"), open_log(tmp_path):
        pass
    (tmp_path / "host.db").write_bytes(b"x" * 5000)
    with pytest.raises(StoreUnusable, match="cannot be read"), open_log(tmp_path):
        pass
