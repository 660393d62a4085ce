"""Nodes that are killed, replaced or stopped behind a balancer while clients are at work."""

import asyncio
import time

import pytest

from isthmus import Client
from isthmus.errors import IsthmusError
from support.nodes.balancer_process import run_balancer
from support.nodes.node_processes import run_nodes
from support.ports import find_free_port

pytestmark = [pytest.mark.balancers, pytest.mark.timeout(180)]

REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
ERROR_WITHIN_S = 8.0  # from SIGKILL of a node to the error of whoever called it
NEXT_CALL_WITHIN_S = 1.0
CLIENTS = 4
CALLS_AT_ONCE = 2
READY_FOR_S = 1.0  # five health checks
MIN_CALLS = 200  # while all nodes were replaced twice


@pytest.fixture
def deployment(balancer, settings, tmp_path):
    """The URL of a balancer before two nodes that a test may end, and the nodes."""
    ports = [find_free_port(), find_free_port()]
    with (
        run_nodes(ports, settings, ["--drain", "10", "--drain-lead", "0.6"]) as nodes,
        run_balancer(balancer, tmp_path, find_free_port(), ports) as url,
    ):
        yield url, nodes


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_call_of_a_killed_node_ends_and_the_next_one_is_served(deployment, revision):
    """Ours: nothing hangs when a node dies, and nobody has to connect anew."""
    url, nodes = deployment
    async with Client(url, revision=revision) as client:
        began = asyncio.Event()
        call = asyncio.create_task(
            client.call_tool(
                "count", {"steps": 600, "pause": 0.1}, on_progress=lambda *_: began.set()
            )
        )
        await began.wait()
        victim = await _find_busy(client, nodes)
        await asyncio.to_thread(victim.kill)
        killed = time.monotonic()
        next_call = asyncio.create_task(_call_until_served(client))
        with pytest.raises(IsthmusError):
            await call
        error_after = time.monotonic() - killed
        served_after = await next_call - killed

    assert error_after <= ERROR_WITHIN_S
    assert served_after <= NEXT_CALL_WITHIN_S


async def _find_busy(client, nodes):
    """The node that works on the long call: the one that says so."""
    pids = {node.pid: node for node in nodes}
    while True:
        answer = (await client.call_tool("find_counting")).text
        if answer != "0":
            return pids[int(answer)]


async def _call_until_served(client):
    """The moment at which a call was served."""
    while True:
        try:
            await client.call_tool("add", {"a": 1, "b": 2})
        except IsthmusError:
            continue
        return time.monotonic()


async def test_no_call_fails_while_nodes_are_replaced(deployment):
    """Ours: each node is drained, ended and started again while clients of all eras call.

    As an orchestrator does, it goes on to the next node when the balancer sends calls to the new one.
    """
    url, nodes = deployment
    stop, failures, served = asyncio.Event(), [], 0

    async def keep_calling(client, number):
        nonlocal served
        while not stop.is_set():
            try:
                result = await client.call_tool("add", {"a": number, "b": 1})
                assert str(number + 1) == result.text
                served += 1
            except Exception as error:  # noqa: BLE001 - each is counted
                failures.append(repr(error))

    async def visit(revision):
        async with Client(url, revision=revision) as client:
            await asyncio.gather(*(keep_calling(client, n) for n in range(CALLS_AT_ONCE)))

    visits = [asyncio.create_task(visit(revision)) for revision in REVISIONS]
    for node in nodes * 2:
        await asyncio.to_thread(node.terminate)
        await asyncio.to_thread(node.start)
        await _wait_until_called(url, node)
    stop.set()
    await asyncio.gather(*visits)

    assert [] == failures
    assert served > MIN_CALLS


async def _wait_until_called(url, node):
    """Wait until the balancer sends calls to a node, and has done so for some of its health checks.

    Orchestrators have a setting for that, such as ``minReadySeconds``.
    """
    async with Client(url, revision="2026-07-28") as client:
        since = None
        while since is None or time.monotonic() - since < READY_FOR_S:
            answered = str(node.pid) == (await client.call_tool("whoami")).text
            since = time.monotonic() if answered and since is None else since
