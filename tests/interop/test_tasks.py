"""Tasks of 2025-11-25 with the one other implementation of both sides of them: PyPI mcp 1.x."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from isthmus import Accepted, Client, Command
from isthmus.errors import TaskCancelled

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

HERE = Path(__file__).parent / "counterparts"
KITCHEN = Path(__file__).parents[2] / "examples" / "tasks.py"


async def test_our_client_awaits_a_task_of_theirs(python_of):
    """Ours: one that asks, one that is no task, one that is cancelled."""
    server = Command(str(python_of("mcp1")), HERE / "mcp1_tasks_server.py")
    async with Client(server, elicit=lambda _: Accepted({"name": "Ada"})) as client:
        awaited = await client.call_tool("greet")
        plain = await client.call_tool("plain")
        task = await client.start_tool("greet")
        fetched = await client.task(task.id).result()
        other = await client.start_tool("greet")
        await other.cancel()
        with pytest.raises(TaskCancelled):
            await other.result(timeout=10)
        listed = {state.id: state.status for state in await client.list_tasks()}

    assert ("hello Ada", "at once", "hello Ada") == (awaited.text, plain.text, fetched.text)
    assert ("completed", "cancelled") == (listed[task.id], listed[other.id])


async def test_their_client_follows_a_task_of_ours(python_of):
    """Ours: what they poll, answer, list and cancel is what they expect."""
    process = await asyncio.create_subprocess_exec(
        str(python_of("mcp1")), "-W", "ignore", str(HERE / "mcp1_tasks_client.py"),
        sys.executable, "-m", "isthmus", "run", str(KITCHEN),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, complaint = await process.communicate()

    assert 0 == process.returncode, complaint.decode()[-2000:]
    assert {
        "statuses": ["input_required", "completed"],
        "text": "a steak of 4 minutes",
        "listed": True,
        "cancelled": "cancelled",
    } == json.loads(said)
