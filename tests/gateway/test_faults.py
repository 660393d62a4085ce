"""Faults of servers behind a gateway: the caller has one typed error in bounded time, nobody else is harmed."""

import asyncio
import os
import signal
import time
from contextlib import suppress

import pytest

from isthmus import Client
from isthmus.errors import Refused
from isthmus.gateway import Gateway
from isthmus.host.model.entries import Timeouts
from isthmus.host.model.gateway_options import GatewayLimits, GatewayOptions
from support.gateway.line_server import find_processes, make_command
from support.gateway.small_gateway import make_allowing_host, make_shop
from support.host.audit_rows import wait_until

REVISIONS = pytest.mark.parametrize("revision", ["2026-07-28", "2025-06-18"])

CALL_TIMEOUT_S = 1.0
BOUND_S = 6.0  # of a call that fails, and of those beside it: a loaded machine has its moments


@pytest.fixture
async def gateway(tmp_path):
    """A gateway in front of a server that misbehaves, and of one that does not."""
    host = make_allowing_host()
    times = Timeouts(call=CALL_TIMEOUT_S, total=2 * CALL_TIMEOUT_S, connect=10.0)
    host.add("lines", make_command(tmp_path / "starts"), timeouts=times)
    host.add("shop", make_shop("2026-07-28"))
    options = GatewayOptions(limits=GatewayLimits(calls=None))
    async with Gateway(host, options=options) as found:
        yield found
        for pid in find_processes(tmp_path / "starts"):
            with suppress(ProcessLookupError):  # it ends in time by itself
                os.kill(pid, signal.SIGCONT)


async def call_beside(gateway, stop):
    """Call the other server until told to stop; the slowest call in seconds."""
    slowest = 0.0
    async with Client(gateway.server) as user:
        while not stop.is_set():
            began = time.monotonic()
            assert "3" == (await user.call_tool("shop__add", {"a": 1, "b": 2})).text
            slowest = max(slowest, time.monotonic() - began)
    return slowest


async def fail(user, tool):
    """Call a tool that fails; what the caller is told."""
    try:
        result = await user.call_tool(f"lines__{tool}")
    except Refused as error:
        return error.message
    assert result.is_error
    return result.text


@REVISIONS
@pytest.mark.parametrize("tool", ["die", "stop", "junk", "deaf", "wait"])
async def test_a_server_that_fails_in_a_call_costs_that_call_only(gateway, revision, tool):
    """Ours: killed, stopped, flooding, deaf and silent: one error, and the others are served."""
    stop = asyncio.Event()
    async with Client(gateway.server, revision=revision) as user:
        assert "1" == (await user.call_tool("lines__count")).text
        beside = asyncio.ensure_future(call_beside(gateway, stop))
        began = time.monotonic()
        told = await fail(user, tool)
        took = time.monotonic() - began
        stop.set()
        slowest = await beside
        assert "3" == (await user.call_tool("shop__add", {"a": 1, "b": 2})).text

    assert "lines" in told
    assert took < BOUND_S
    assert slowest < BOUND_S / 2


async def test_a_server_that_was_killed_is_there_again_for_the_next_call(gateway):
    """Ours: what was under way is told of, and what comes later is served."""
    async with Client(gateway.server) as user:
        assert "nobody can tell" in await fail(user, "die")
        assert gateway.host.servers["lines"].status().error
        assert "1" == (await user.call_tool("lines__count")).text


async def test_the_state_of_a_server_that_was_stopped_is_told(gateway):
    """Ours: after a call without an answer it is asked whether it is there, and counts as degraded."""
    async with Client(gateway.server) as user:
        await fail(user, "stop")
        await wait_until(lambda: gateway.host.servers["lines"].state == "degraded")


async def test_calls_of_a_deaf_server_do_not_wait_for_its_pipe(gateway):
    """Ours: arguments that do not fit into the pipe of a server that reads nothing end in time, too."""
    async with Client(gateway.server) as user:
        await fail(user, "deaf")
        began = time.monotonic()
        for _ in range(2):
            with suppress(Refused):
                result = await user.call_tool("lines__count", {"much": "x" * 300_000})
                assert result.is_error
        assert time.monotonic() - began < 2 * BOUND_S
