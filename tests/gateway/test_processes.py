"""Processes of a gateway: bounded, and none left behind when a session ends."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from isthmus import Client
from isthmus.errors import Refused
from isthmus.gateway import Gateway
from isthmus.host.model.gateway_options import GatewayLimits, GatewayOptions
from isthmus.revisions.codes import LIMITED_CODE
from support.gateway.line_server import find_processes, make_command, read_counts
from support.gateway.small_gateway import make_allowing_host
from support.host.audit_rows import wait_until

LEGACY = "2025-06-18"


def make_line_gateway(log, **limits):
    """A gateway in front of one server in processes of its own."""
    host = make_allowing_host()
    host.add("lines", make_command(log))
    return Gateway(host, options=GatewayOptions(limits=GatewayLimits(**limits)))


@pytest.mark.timeout(180)
async def test_500_sessions_start_no_more_processes_than_the_limit(tmp_path):
    """Ours: each call is served, or refused with the time to come again; docker#318, metamcp#162."""
    log, refused = tmp_path / "starts", []
    gateway = make_line_gateway(log, connections=6, calls=None)

    async def call_once(user):
        try:
            return (await user.call_tool("lines__count")).text
        except Refused as error:
            refused.append((error.code, error.data["retryAfterMs"]))

    async with gateway, AsyncExitStack() as stack:
        users = [
            await stack.enter_async_context(Client(gateway.server, revision=LEGACY))
            for _ in range(500)
        ]
        answers = await asyncio.gather(*map(call_once, users))

    assert {"1", None} >= set(answers)
    assert 500 == len(refused) + answers.count("1")
    assert {(LIMITED_CODE, 1001)} >= set(refused)
    assert max(read_counts(log)) <= 6 + 1  # and the one that all share
    assert [] == find_processes(log)


async def test_the_process_of_a_session_ends_with_it_and_is_waited_for(tmp_path):
    """Ours: no process, and no zombie, is left of a session that is over; docker#483."""
    log = tmp_path / "starts"
    gateway = make_line_gateway(log)
    async with gateway:
        async with Client(gateway.server, revision=LEGACY) as user:
            assert "1" == (await user.call_tool("lines__count")).text
            assert "2" == (await user.call_tool("lines__count")).text
            # a zombie has no command line: one that another test left a moment ago would count
            await wait_until(lambda: len(find_processes(log)) == 2)
        await wait_until(lambda: len(find_processes(log)) == 1)
        async with Client(gateway.server, revision=LEGACY) as user:
            assert "1" == (await user.call_tool("lines__count")).text
    assert [] == find_processes(log)


async def test_an_idle_process_is_ended_and_started_again_for_the_next_call(tmp_path):
    """Ours: a session that is quiet costs nothing, and goes on."""
    log = tmp_path / "starts"
    gateway = make_line_gateway(log, idle=0.05)
    async with gateway, Client(gateway.server, revision=LEGACY) as user:
        assert "1" == (await user.call_tool("lines__count")).text
        await wait_until(lambda: len(find_processes(log)) == 1)
        assert "1" == (await user.call_tool("lines__count")).text
