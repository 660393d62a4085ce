"""A host in two processes over one SQLite file: one asks, the other decides, and either may be killed."""

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.host.model.interaction import Decision
from support.event_loop import run_until
from support.host import calling_host

PROGRAM = Path(calling_host.__file__)
LEASE_S = 15.0  # in which a process that was killed is known to be dead


@asynccontextmanager
async def start_caller(store):
    """Another process of the host; it is killed at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        store,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert b"open\n" == await process.stdout.readline()
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class Person:
    """A surface at which a person looks."""

    name = "Ann"
    assurance = "local_ui"

    async def offer(self, interaction):
        return await asyncio.get_running_loop().create_future()


async def ask(host, process, what):
    """Have the other process call; the id of its question, once this one shows it."""
    process.stdin.write(f"{what}\n".encode())
    await run_until(host.view.pending, pause=0.005)
    return host.view.pending()[0].id


@pytest.mark.timeout(60)
async def test_what_one_process_asks_another_decides(tmp_path):
    """Ours: a yes, a no, a yes that lasts; and what waits in a process that is killed is withdrawn."""
    store = f"sqlite:///{tmp_path}/store.db"
    async with (
        calling_host.make_host(store, approver=Person()) as host,
        start_caller(store) as process,
    ):
        id = await ask(host, process, "tea")
        assert await host.view.decide(id, Decision(verdict="allow", assurance="local_ui"))
        assert b"bought tea\n" == await process.stdout.readline()
        id = await ask(host, process, "cake")
        await host.view.decide(id, Decision(verdict="deny", by="Ann"))
        assert b"Denied" in await process.stdout.readline()

        id = await ask(host, process, "coffee")
        lasting = Decision(verdict="allow", assurance="local_ui", remember="tool_always")
        assert await host.view.decide(id, lasting)
        assert b"bought coffee\n" == await process.stdout.readline()
        process.stdin.write(b"milk\n")
        assert b"bought milk\n" == await process.stdout.readline()
        await run_until(host.grants.all, pause=0.005)
        assert await host.view.revoke(host.grants.all()[0].id)
        await asyncio.sleep(1.0)  # the promise is about real time
        id = await ask(host, process, "sugar")

        process.kill()
        await run_until(lambda: not host.view.pending(), LEASE_S, pause=0.02)
        assert not await host.view.decide(id, Decision(verdict="allow", assurance="local_ui"))
        assert "ended" in host.broker.said(id).reason
