"""The audit log: what is written, in which order, and what happens where it cannot be."""

import asyncio
import contextlib
import sqlite3
from contextlib import closing

import pytest
from msgspec import structs

from isthmus.auth.tokens.secret import Secret
from isthmus.core.redaction.values import Redactor
from isthmus.host.audit.log import AuditLog
from isthmus.host.model.errors import AuditUnavailable
from isthmus.host.model.row import AuditRow
from isthmus.host.state.database import HostState
from support.clock import ManualClock
from support.host.audit_rows import (
    intent_row,
    open_audit_log,
    outcome_row,
    query_state,
    read_kinds,
    wait_until,
)


@pytest.mark.covers("hostaudit.intent.committed")
@pytest.mark.parametrize("durability", ["normal", "full"])
async def test_an_intent_is_committed_when_it_returns(tmp_path, durability):
    """Ours: another process sees it."""
    async with open_audit_log(tmp_path, durability=durability) as log:
        await log.intent(intent_row("c1"))
        with closing(sqlite3.connect(tmp_path / "host.db")) as other:
            found = other.execute("SELECT kind, call_id, server, object FROM event").fetchall()

    assert [("intent", "c1", "github", "create_issue")] == found


class RefusingRedactor(Redactor):
    """A redactor that fails at one text."""

    def strip(self, value, pointers=()):
        """Fail where it stands in a value."""
        if "unreadable" in str(value):
            raise ValueError("this cannot be redacted")
        return super().strip(value, pointers)


async def test_of_intents_that_are_written_together_each_hears_how_its_own_row_went(tmp_path):
    """Ours: an intent whose batch was undone by the row of another is none, and nothing is done for it."""
    async with open_audit_log(tmp_path, redactor=RefusingRedactor()) as log:
        rows = [intent_row(f"c{number}") for number in range(4)]
        rows[2] = structs.replace(rows[2], arguments={"a": "unreadable"})
        ended = await asyncio.gather(*map(log.intent, rows), return_exceptions=True)
        lines = await log.tail()

    told = {row.call for row, error in zip(rows, ended, strict=True) if error is None}
    assert told == {line.call for line in lines}
    assert isinstance(ended[2], AuditUnavailable)


@pytest.mark.covers("hostaudit.note.order")
async def test_rows_stand_in_the_order_in_which_they_were_given(tmp_path):
    """Ours: notes, too, which nobody waits for."""
    async with open_audit_log(tmp_path) as log:
        log.note(AuditRow(kind="server", action="server.connect", server="github"))
        await log.intent(intent_row("c1"))
        log.note(outcome_row("c1"))
        await log.write(AuditRow(kind="grant", action="tool.call", grant="g1"))

        assert ["server", "intent", "outcome", "grant"] == await read_kinds(log)


async def test_a_note_is_written_without_anybody_waiting(tmp_path):
    """Ours: within milliseconds."""
    async with open_audit_log(tmp_path) as log:
        log.note(intent_row("c1"))
        await wait_until(lambda: read_kinds(log))

        assert ["intent"] == await read_kinds(log)


async def test_what_happens_to_arguments_afterwards_is_of_no_consequence():
    """Ours: a row is what it was when it was handed over."""
    async with open_audit_log() as log:
        arguments = {"title": "before"}
        row = intent_row("c1", arguments=arguments)
        log.note(row)
        arguments["title"] = "after"
        told = await log.tail(1)

    assert {"title": "before"} == told[0].arguments


async def test_a_line_says_what_the_row_said():
    """Ours: every member comes back, in the units that it had."""
    async with open_audit_log(clock=ManualClock(1_795_000_000.5), node="me") as log:
        await log.write(
            AuditRow(
                kind="outcome", call="c1", parent="c0", run="r", principal="user:ada",
                action="tool.call", server="s", identity="i", object="o", fingerprint="f",
                era="2025-11-25", transport="stdio", origin="local", effect="allow", rule="ru",
                grant="g", approver="tty", assurance="local_ui", wait=1.5, arguments={"a": [1]},
                result={"b": 2}, failed=True, code=-32602, error="Refused", seconds=0.25,
                tokens_in=3, tokens_out=4, cost=5, model="m", labels=("untrusted", "private"),
                policy="p", detail={"why": "so"},
            )
        )  # fmt: skip
        line = (await log.tail())[0]

    assert (1, 1_795_000_000.5, "me", "outcome", "c1", "c0", "r") == (
        line.seq, line.at, line.node, line.kind, line.call, line.parent, line.run,
    )  # fmt: skip
    assert (1.5, {"a": [1]}, True, -32602, "Refused", 0.25) == (
        line.wait, line.arguments, line.failed, line.code, line.error, line.seconds,
    )  # fmt: skip
    assert (3, 4, 5, "m", ("private", "untrusted"), "p", {"why": "so"}) == (
        line.tokens_in, line.tokens_out, line.cost, line.model, line.labels, line.policy,
        line.detail,
    )  # fmt: skip
    assert len('{"b":2}') == line.result_bytes
    assert 64 == len(line.result_hash) == len(line.arguments_hash)


async def test_equal_arguments_have_equal_digests():
    """Ours: and nobody guesses them without the state's key."""
    async with open_audit_log() as log, open_audit_log() as other:
        for one in (log, log, other):
            await one.intent(intent_row())
        mine = {line.arguments_hash for line in await log.tail()}
        theirs = {line.arguments_hash for line in await other.tail()}

    assert 1 == len(mine)
    assert mine != theirs


@pytest.mark.parametrize(
    "value",
    [
        {"lone": "\ud800"}, {"big": 2**200}, {"huge": 10**5000}, {1: "number", (2,): "pair"},
        {"nan": float("nan"), "inf": float("inf")}, {"bytes": b"\xff", "set": {1}, "object": object()},
        {"nul": "a\x00b"}, "just a text", [1, 2], 7,
    ],
    ids=range(10),
)  # fmt: skip
async def test_whatever_arguments_are_they_are_written_down(value):
    """Ours: a call with strange arguments is no way around the log."""
    async with open_audit_log() as log:
        await log.intent(intent_row("c1", arguments=value, result=value, detail=value))
        await log.intent(intent_row("c2"))

        assert (await log.verify()).good
        assert ["intent", "intent"] == await read_kinds(log)


def nested(depth):
    """Lists within lists."""
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.covers("hostaudit.row.unreadable")
@pytest.mark.parametrize("bodies", ["hash", "redacted", "full"])
async def test_no_depth_of_a_value_holds_up_the_log(bodies):
    """Ours: what one thread can write another may not be able to read; the row is there all the same."""
    depths = range(880, 1000)
    async with open_audit_log(bodies=bodies) as log:
        for depth in depths:
            log.note(outcome_row(f"d{depth}", result=nested(depth), arguments=nested(depth)))
        await log.intent(intent_row("after"))
        verdict, lines = await log.verify(), await log.tail(len(depths) + 1)

    assert len(depths) + 1 == verdict.rows
    assert verdict.good
    assert [*(f"d{depth}" for depth in depths), "after"] == [line.call for line in lines]


class Untold(dict):
    """Cannot be looked at."""

    def items(self):
        raise ValueError("no")

    __iter__ = items


@pytest.mark.covers("hostaudit.row.unreadable")
@pytest.mark.parametrize(
    "odd",
    [
        {"seconds": 10**400}, {"tokens_in": 1.5}, {"failed": "perhaps"}, {"labels": (1,)},
        {"object": 7}, {"arguments": {10**5000: 1}}, {"detail": Untold(a=1, b=object())},
    ],
    ids=range(7),
)  # fmt: skip
async def test_a_row_that_is_not_as_it_should_be_is_written_as_far_as_it_is(odd):
    """Ours: a mistake in one row must not keep all after it from being written."""
    async with open_audit_log() as log:
        log.note(outcome_row("odd", **odd))
        await log.intent(intent_row("after"))

        assert (await log.verify()).good
        assert ["odd", "after"] == [line.call for line in await log.tail()]


@pytest.mark.covers("hostaudit.row.brief")
async def test_a_long_name_is_cut_where_it_holds_no_secret():
    """Ours: a server that names a page with ten million letters fills no disk, and hides nothing."""
    async with open_audit_log() as log:
        held = Secret("correct horse")
        await log.intent(
            intent_row(object="a " * 1_995 + f"{held.reveal()} " * 1_000_000, run="r" * 9_999)
        )
        (line,) = await log.tail()

    assert [True, True] == [len(text) < 5_000 for text in (line.object, line.run)]
    assert "(14003990 characters)" in line.object
    assert "corre" not in line.object


async def test_long_arguments_are_cut_and_say_so():
    """Ours: rows have a limit, and their digest is that of the whole."""
    async with open_audit_log() as log:
        await log.intent(intent_row(arguments={"text": "word " * 100_000}))
        await log.intent(intent_row(arguments={f"k{n}": n for n in range(100_000)}))
        cut, omitted = await log.tail()

    assert "(500000 characters)" in cut.arguments["text"]
    assert "bytes" in omitted.arguments["omitted"]


async def limited(log, pragma):
    """Every connection is less than it should be."""
    database = log.state.database
    plain = database.connect

    def connect():
        db = plain()
        db.execute(pragma)
        return db

    async def again():
        database.connect = plain
        await database.close()

    await database.close()
    database.connect = connect
    return again


async def full(log):
    return await limited(log, "PRAGMA max_page_count = 1")


async def read_only(log):
    return await limited(log, "PRAGMA query_only = 1")


async def locked(log):
    other = sqlite3.connect(log.state.database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def again():
        other.close()

    return again


async def gone(log):
    path = log.state.folder / "host.db"
    away = path.rename(path.with_name("away"))

    async def again():
        away.rename(path)

    return again


async def spoiled(log):
    path = log.state.folder / "host.db"
    await log.state.close()
    whole = path.read_bytes()
    path.write_bytes(b"nothing that you know " * 1000)

    async def again():
        path.write_bytes(whole)

    return again


@pytest.mark.covers("hostaudit.unavailable.refused", "hostaudit.unavailable.recovers")
@pytest.mark.parametrize("trouble", [full, read_only, locked, gone, spoiled])
async def test_nothing_is_done_while_the_log_cannot_be_written(tmp_path, trouble):
    """Ours: each intent is refused, notes wait, and all is well when the store is."""
    async with open_audit_log(tmp_path) as log:
        await log.intent(intent_row("before"))
        await log.flush()
        again = await trouble(log)
        for n in range(3):
            log.note(outcome_row(f"noted{n}", arguments={"x": "word " * 8000}))
            with pytest.raises(AuditUnavailable, match="nothing is done"):
                await log.intent(intent_row(f"refused{n}", arguments={"x": "word " * 8000}))
        assert log.trouble
        await again()
        await log.intent(intent_row("after"))
        calls = [row[0] for row in await query_state(log, "SELECT call_id FROM event ORDER BY seq")]
        found = await log.verify()

    assert ["before", "noted0", "noted1", "noted2", "after"] == calls
    assert "" == log.trouble
    assert found.good


async def test_notes_that_wait_are_written_by_themselves_when_the_store_is_back(
    tmp_path, monkeypatch
):
    """Ours: nobody has to call anything."""
    monkeypatch.setattr("isthmus.host.audit.log.RETRY_S", 0.01)
    async with open_audit_log(tmp_path) as log:
        await log.intent(intent_row("c1"))
        again = await locked(log)
        log.note(outcome_row("c1"))
        await wait_until(lambda: log.trouble)
        await again()
        await wait_until(lambda: has_outcome(log))

        assert ["intent", "outcome"] == await read_kinds(log)


async def has_outcome(log):
    return "outcome" in await read_kinds(log)


async def test_notes_that_are_too_many_are_counted(tmp_path, monkeypatch):
    """Ours: memory is bounded, and the log says how many rows it lacks."""
    monkeypatch.setattr("isthmus.host.audit.row_queue.MAX_QUEUED_ROWS", 10)
    async with open_audit_log(tmp_path) as log:
        await log.intent(intent_row("c1"))
        again = await locked(log)
        for n in range(25):
            log.note(outcome_row(f"n{n}"))
        with pytest.raises(AuditUnavailable):
            await log.flush()
        for n in range(5):
            log.note(outcome_row(f"m{n}"))
        await again()
        await log.flush()
        lines = await log.tail()

    lost = next(line for line in lines if line.action == "audit.lost")
    assert 30 == lost.detail["rows"] + sum(line.kind == "outcome" for line in lines)


async def test_rows_that_were_lost_are_told_though_the_first_telling_was_undone(
    tmp_path, monkeypatch
):
    """Ours: what a transaction said is lost is said again where that transaction was rolled back."""
    monkeypatch.setattr("isthmus.host.audit.row_queue.MAX_QUEUED_ROWS", 10)
    monkeypatch.setattr("isthmus.host.audit.row_queue.MAX_BATCH_ROWS", 2)
    spoil = "CREATE TRIGGER spoil BEFORE INSERT ON event WHEN NEW.call_id = 'n24' BEGIN SELECT RAISE(ABORT, 'no'); END"
    async with open_audit_log(tmp_path) as log:
        await log.intent(intent_row("c1"))
        again = await locked(log)
        for n in range(25):
            log.note(outcome_row(f"n{n}"))
        with pytest.raises(AuditUnavailable):
            await log.flush()
        await again()
        with contextlib.closing(sqlite3.connect(log.state.database.path)) as other:
            other.execute(spoil)
            with pytest.raises(AuditUnavailable):
                await log.flush()
            other.execute("DROP TRIGGER spoil")
        await log.flush()
        lines = await log.tail()

    lost = [line for line in lines if line.action == "audit.lost"]
    assert 25 == sum(line.detail["rows"] for line in lost) + sum(
        line.kind == "outcome" for line in lines
    )


async def test_an_intent_that_nobody_waits_for_any_more_leaves_the_log_whole(tmp_path):
    """Ours: it is written or it is not, and nothing after it is lost."""
    async with open_audit_log(tmp_path) as log:
        await log.intent(intent_row("c1"))
        task = asyncio.ensure_future(log.intent(intent_row("c2")))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await log.intent(intent_row("c3"))
        calls = [row[0] for row in await query_state(log, "SELECT call_id FROM event ORDER BY seq")]

    assert calls in (["c1", "c3"], ["c1", "c2", "c3"])


async def test_a_log_may_be_closed_without_having_been_used(tmp_path):
    """Ours: and twice; nothing is made for it."""
    state = HostState(tmp_path)
    log = AuditLog(state)
    await log.close()
    await log.close()

    assert [] == list(tmp_path.iterdir())


@pytest.mark.covers("hostaudit.redaction.live")
async def test_a_secret_that_is_gone_when_the_row_is_written_is_still_taken_out(tmp_path):
    """Ours: what counts is what was secret when the row was handed over."""
    async with open_audit_log(tmp_path) as log:
        held = Secret("correct horse")
        log.note(intent_row("c1", arguments={"say": "the correct horse"}))
        del held
        told = await log.tail()

    assert {"say": "the [redacted]"} == told[0].arguments
