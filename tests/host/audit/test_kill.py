"""Killed at any moment: what was acknowledged is there, the chain holds, what was open is told."""

import asyncio
import random
import sys

import pytest

from isthmus.host.audit.writer import OUTCOME_UNKNOWN
from support.host.audit_rows import open_audit_log, query_state

ROUNDS = 6

WRITES = """
import asyncio, sys
from isthmus.runtime.sorted_ids import new_id
from isthmus.host.audit.log import AuditLog
from isthmus.host.model.row import AuditRow
from isthmus.host.state.database import HostState

def said(kind, call):
    sys.stdout.write(f"{kind} {call}\\n")
    sys.stdout.flush()

async def calls(log):
    while True:
        call = new_id()
        await log.write(AuditRow(kind="decision", call=call, action="tool.call", effect="allow"))
        said("decision", call)
        await log.intent(AuditRow(kind="intent", call=call, action="tool.call", arguments={"a": 1}))
        said("intent", call)
        log.note(AuditRow(kind="server", call=call, action="server.connect"))
        await log.write(AuditRow(kind="outcome", call=call, action="tool.call", result={"b": 2}))
        said("outcome", call)

async def main():
    log = AuditLog(HostState(sys.argv[1]))
    await asyncio.gather(*(calls(log) for _ in range(5)))

asyncio.run(main())
"""


async def killed(folder, after):
    """A process that writes until it is killed; what it said was written."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITES, str(folder), stdout=asyncio.subprocess.PIPE
    )
    said = [await process.stdout.readline() for _ in range(after)]
    process.kill()
    said += (await process.stdout.read()).splitlines(keepends=True)
    await process.wait()
    return {tuple(line.decode().split()) for line in said if line.endswith(b"\n")}


@pytest.mark.timeout(120)
@pytest.mark.covers("hostaudit.crash.killed", "hostaudit.crash.unknown")
async def test_a_process_that_is_killed_loses_nothing_that_it_was_told_was_written(tmp_path):
    """Ours: time after time on one state; each open call is told once, by the next process."""
    said = set()
    chance = random.Random(5)  # noqa: S311 - for moments, not for secrets
    for _ in range(ROUNDS):
        said |= await killed(tmp_path, chance.randint(1, 120))
    async with open_audit_log(tmp_path) as log:
        log.state.database.patience = 5.0
        await log.open()
        found = await log.verify()
        rows = await query_state(log, "SELECT kind, call_id, error_class FROM event")
        left = await query_state(log, "SELECT * FROM open_call")

    there = {(kind, call) for kind, call, _ in rows}
    intents = [call for kind, call, _ in rows if kind == "intent"]
    outcomes = [call for kind, call, _ in rows if kind == "outcome"]
    unknown = {call for _, call, error in rows if error == OUTCOME_UNKNOWN}
    assert set() == said - there
    assert found.good, found.faults
    assert sorted(intents) == sorted(outcomes)
    assert [] == left
    assert unknown
    assert set() == {call for kind, call in said if kind == "outcome"} & unknown
