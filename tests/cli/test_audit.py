"""``isthmus audit``: rows, sums and verdicts for people and for programs."""

import asyncio
import json
import sqlite3
from contextlib import closing
from itertools import pairwise

import pytest

from isthmus.cli.arguments import parse_time
from isthmus.cli.main import main
from isthmus.errors import UsageError
from isthmus.host.model.row import AuditRow
from support.clock import ManualClock
from support.host.audit_rows import intent_row, open_audit_log, outcome_row

pytestmark = pytest.mark.covers("hostaudit.command.says")


@pytest.fixture
def state(tmp_path):
    """The state of a host that made two calls."""

    async def fill():
        async with open_audit_log(tmp_path, clock=ManualClock(1_795_000_000.0), node="n") as log:
            await log.intent(intent_row("c1", arguments={"title": "Fix the parser"}))
            log.note(
                AuditRow(kind="decision", call="c1", action="tool.call", approver="tty", wait=2.0)
            )
            log.note(outcome_row("c1", tokens_in=10, tokens_out=5, cost=2500))
            await log.intent(intent_row("c2", server="files", object="read"))
            log.note(outcome_row("c2", server="files", object="read", failed=True, error="Refused"))

    asyncio.run(fill())
    return tmp_path


@pytest.fixture
def audit(state, capsys):
    """Runs a command on it: its exit code, and what it printed."""

    def run(*words, folder=state):
        with pytest.raises(SystemExit) as left:
            main(["audit", *words, "--state", str(folder)])
        said = capsys.readouterr()
        return left.value.code, said.out, said.err

    return run


def spoil(state, statement="UPDATE event SET effect = 'deny' WHERE seq = 2"):
    with closing(sqlite3.connect(state / "host.db", isolation_level=None)) as db:
        db.execute("DROP TRIGGER event_stays_as_it_is")
        db.execute(statement)


def test_a_good_log_is_told_with_an_anchor(audit):
    """Ours: which a later check takes."""
    code, out, _ = audit("verify")
    anchor = out.split("anchor ")[1].strip()
    again, told, _ = audit("verify", "--anchor", anchor, "--json")

    assert (0, 0) == (code, again)
    assert "5 rows (1 to 5)" in out
    assert json.loads(told)["good"]
    assert 64 == len(json.loads(told)["public_key"])


def test_a_log_that_was_meddled_with_exits_with_1(audit, state):
    """Ours: and says where."""
    spoil(state)
    code, out, _ = audit("verify")

    assert 1 == code
    assert "row 2: changed: row 2 is not as it was written" in out


@pytest.mark.parametrize("anchor", ["what", "1:xyz", ":"])
def test_an_anchor_that_is_none_is_told(audit, anchor):
    """Ours: how one looks."""
    code, _, err = audit("verify", "--anchor", anchor)

    assert 2 == code
    assert "SEQ:HASH" in err


def test_the_end_is_printed_a_row_a_line(audit):
    """Ours: for people, and for programs."""
    _, out, _ = audit("tail", "-n", "2")
    _, lines, _ = audit("tail", "-n", "2", "--json")

    assert ["files/read", "files/read"] == [
        word for line in out.splitlines() for word in line.split() if "/" in word
    ]
    assert [4, 5] == [json.loads(line)["seq"] for line in lines.splitlines()]


def test_rows_are_searched_by_words_and_options(audit):
    """Ours: nothing found is no failure, and told."""
    found = [json.loads(line) for line in audit("search", "parser", "--json")[1].splitlines()]
    failed = audit("search", "--failed", "--server", "files", "--since", "2020-01-01")[1]
    none = audit("search", "elephant")

    assert [("c1", "Fix the parser")] == [(one["call"], one["arguments"]["title"]) for one in found]
    assert "Refused" in failed
    assert (0, "", "isthmus: no row fits\n"[9:]) == none


def test_rows_are_exported_with_their_hashes(audit, tmp_path):
    """Ours: to a file that was not there, for its owner only, or to standard output."""
    file = tmp_path / "out.jsonl"
    code, _, err = audit("export", str(file), "--jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    again = audit("export", str(file))
    out = audit("export", "--server", "files")[1]

    assert (0, "5 rows\n") == (code, err)
    assert all(one["prev"] == before["hash"] for before, one in pairwise(rows))
    assert 0o600 == file.stat().st_mode & 0o777
    assert 2 == again[0]
    assert 2 == len(out.splitlines())


def test_sums_are_printed(audit):
    """Ours: calls, failures, waits, tokens, cost."""
    out = audit("stats")[1]
    told = json.loads(audit("stats", "--json")[1])

    assert "github/create_issue  10 + 5 tokens, $0.0025" in out
    assert [("files", 1), ("github", 0)] == [(one["server"], one["failed"]) for one in told]


def test_an_empty_log_is_named_as_empty(audit, tmp_path):
    """Ours: nothing is made there."""
    code, _, err = audit("tail", folder=tmp_path / "nowhere")

    assert 2 == code
    assert "nothing was done there yet" in err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.covers("hostaudit.chain.head")
def test_an_unproved_log_has_an_exit_code_of_its_own(audit, state):
    """Ours: neither good, which scripts would believe, nor a fault."""
    (state / "host.head").unlink()
    code, out, _ = audit("verify")
    again, told, _ = audit("verify", "--json")

    assert (6, 6) == (code, again)
    assert "unproved: there is no host.head beside the database" in out
    assert "nothing was changed" not in out
    assert (False, "unproved") == (json.loads(told)["good"], json.loads(told)["state"])


@pytest.mark.covers("hostaudit.chain.head")
def test_a_log_that_is_gone_is_missed_by_its_head(audit, state):
    """Ours: a folder without database and head is one where nothing was done."""
    (state / "host.db").unlink()
    code, _, err = audit("verify")

    assert 1 == code
    assert "has the head of an audit log, and the log is gone" in err


def test_the_key_is_needed_to_check_and_is_not_made_anew(audit, state):
    """Ours: a new one would call every signature wrong."""
    (state / "host.key").unlink()
    code, _, err = audit("verify")

    assert 2 == code
    assert "host.key" in err
    assert not (state / "host.key").exists()


def test_moments_are_read_as_people_write_them():
    """Ours: as a date, with a time, or back from now."""
    assert 1000 - 2 * 3600 == parse_time("2h", 1000)
    assert 1_795_262_400.0 == parse_time("2026-11-21T12:00:00+00:00", 0)
    assert parse_time("2026-11-21", 0) is not None
    assert parse_time("", 0) is None
    with pytest.raises(UsageError, match="is no time"):
        parse_time("soon", 0)
