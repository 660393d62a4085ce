"""A host that is killed in the middle of a call: what the next one knows of it."""

import asyncio
import signal
import sys

import pytest

from isthmus.host.audit.log import AuditLog
from isthmus.host.state.database import HostState

PROGRAM = """
import asyncio, os, signal, sys
from isthmus import Server
from isthmus.host import Host

server = Server("shop")

@server.tool
async def buy() -> str:
    "Buy."
    print("sent", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"

async def main():
    host = Host(approver=lambda asked: True, state=sys.argv[1])
    host.add("shop", server)
    async with host:
        await host.call("shop__buy")

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.covers("hostkernel.audit.killed")
async def test_a_host_that_is_killed_in_a_call_leaves_one_of_which_nobody_knows_how_it_ended(
    tmp_path,
):
    """Ours: the intent and the decision were durable before the server heard anything."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert (b"sent\n", -signal.SIGKILL) == (said, process.returncode)

    state = HostState(tmp_path)
    log = AuditLog(state)
    assert 1 == await log.open()
    rows = [row for row in await log.tail() if row.action == "tool.call"]
    await log.close()
    await state.close()

    assert ["decision", "intent", "outcome"] == [row.kind for row in rows]
    assert "outcome-unknown" == rows[-1].error
    assert 1 == len({row.call for row in rows})
