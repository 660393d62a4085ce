"""Rows and logs for the tests of the audit log."""

import asyncio
import hashlib
import json
import sqlite3
from contextlib import asynccontextmanager, closing

from isthmus.host.audit.log import AuditLog
from isthmus.host.audit.row_columns import COLUMNS
from isthmus.host.model.row import AuditRow
from isthmus.host.state.database import HostState
from isthmus.runtime.sorted_ids import new_id
from support.clock import ManualClock

AUDIT_TIME_S = 1_795_000_000.0  # when the rows of a log under test are written

BASE = {
    "run": "r1",
    "principal": "user:ada",
    "action": "tool.call",
    "server": "github",
    "object": "create_issue",
    "effect": "allow",
    "rule": "writes",
}


def intent_row(call="", **more):
    """A row that says that something is about to be done."""
    said = {"arguments": {"title": "It fails"}, **BASE, **more}
    return AuditRow(kind="intent", call=call or new_id(), **said)


def outcome_row(call, **more):
    """It was done."""
    said = {"result": {"ok": 1}, "failed": False, "seconds": 0.01, **BASE, **more}
    return AuditRow(kind="outcome", call=call, **said)


@asynccontextmanager
async def open_audit_log(folder=None, **options):
    """A log in a state; both are closed at the end."""
    state = HostState(folder, clock=options.pop("clock", ManualClock(AUDIT_TIME_S)))
    state.database.patience = 0.05
    log = AuditLog(state, **options)
    log.state = state
    try:
        yield log
    finally:
        await log.close()
        await state.close()


async def query_state(log, statement, *values):
    """The rows of a statement, straight from the file."""
    return await log.state.read(lambda db: db.execute(statement, values).fetchall())


async def read_kinds(log):
    """The kinds of all rows."""
    return [row[0] for row in await query_state(log, "SELECT kind FROM event ORDER BY seq")]


async def wait_until(holds):
    """Wait for what another thread brings about."""
    async with asyncio.timeout(30):
        while True:
            found = holds()
            if await found if asyncio.iscoroutine(found) else found:
                return
            await asyncio.sleep(0.002)


def rechain(path, seq, statement, upto=2**60):
    """Do something to a row, and compute its hash and those after it anew, as anybody can."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("DROP TRIGGER IF EXISTS event_stays")
        db.execute("DROP TRIGGER IF EXISTS event_stays_as_it_is")
        db.execute(statement)
        before = db.execute("SELECT hash FROM event WHERE seq = ?", (seq - 1,)).fetchone()
        prev = before[0] if before else bytes(32)
        names = ", ".join(COLUMNS)
        where = "seq BETWEEN ? AND ? ORDER BY seq"
        rows = db.execute(f"SELECT {names} FROM event WHERE {where}", (seq, upto))  # noqa: S608 - columns
        for values in rows.fetchall():
            plain = [one.hex() if isinstance(one, bytes) else one for one in values]
            text = json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()
            hash = hashlib.blake2b(prev + text, digest_size=32).digest()
            db.execute("UPDATE event SET prev = ?, hash = ? WHERE seq = ?", (prev, hash, values[0]))
            prev = hash
