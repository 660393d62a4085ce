"""Balancers that are set up otherwise than the guide tells: what works then, and how."""

import asyncio

import pytest

from isthmus import Client
from support.nodes.balancer_process import find_balancer, run_balancer
from support.nodes.node_processes import run_nodes
from support.ports import find_free_port

pytestmark = [pytest.mark.balancers, pytest.mark.timeout(120)]

REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
IDLE_S = 2
SILENCE_S = 5.0


@pytest.fixture
def make_url(settings, tmp_path):
    """Starts two nodes and nginx with settings; gives the URL."""
    if find_balancer("nginx") is None:
        pytest.skip("nginx is not installed: python tools/balancers.py installs it")
    ports = [find_free_port(), find_free_port()]
    running = []

    def make(**options):
        balancer = run_balancer("nginx", tmp_path, find_free_port(), ports, **options)
        running.append(balancer)
        return balancer.__enter__()

    with run_nodes(ports, settings):
        yield make
        for balancer in running:
            balancer.__exit__(None, None, None)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_balancer_that_buffers_delays_reports_and_loses_nothing(make_url, revision):
    """Ours: answers come, and reports come with them."""
    reports = []
    async with Client(make_url(buffering=True), revision=revision) as client:
        result = await client.call_tool("count", {"steps": 5}, on_progress=reports.append)

    assert result.text.isdigit()
    assert 5 == reports[-1].progress


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_balancer_that_speaks_http_1_0_gets_json(make_url, revision):
    """RFC 9112 9.3: a connection of HTTP/1.0 ends with its answer; there are no streams on it."""
    async with Client(make_url(version="1.0"), revision=revision) as client:
        answers = [(await client.call_tool("add", {"a": 1, "b": n})).text for n in range(4)]

    assert ["1", "2", "3", "4"] == answers


async def test_a_stream_that_a_balancer_ends_while_it_is_silent_is_resumed(make_url):
    """2025-11-25 basic/transports#resumability-and-redelivery: at either node."""
    reports = []
    async with Client(make_url(idle=IDLE_S), revision="2025-11-25") as client:
        async with asyncio.timeout(60):
            result = await client.call_tool(
                "count", {"steps": 2, "pause": SILENCE_S}, on_progress=reports.append
            )

    assert result.text.isdigit()
    assert [1, 2] == [report.progress for report in reports]
