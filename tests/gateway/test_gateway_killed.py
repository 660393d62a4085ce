"""Gateways that are killed while a person approves a call: it is dispatched once at most, and nothing is lost."""

import asyncio
import contextlib
import os
import signal
import socket
import sys

import pytest

from isthmus import Client, Server
from support.event_loop import run_until
from support.gateway import killed_gateway
from support.gateway.killed_gateway import SayingNothing, SayingYes, make_state_gateway
from support.http.uvicorn_server import serve_uvicorn
from support.ports import find_free_port

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]
REVISIONS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


class SteadyShop:
    """A server over HTTP that outlives the gateway, and may have it killed in the middle of a call.

    Attributes:
        bought: what was bought so far.
        victim: the process that is killed when something is bought; None for none.
    """

    def __init__(self):
        self.bought = []
        self.victim = None
        self.server = Server("shop", revisions=["2025-11-25"])

        @self.server.tool
        def buy(what: str) -> str:
            self.bought.append(what)
            if self.victim is not None:
                os.kill(self.victim, signal.SIGKILL)
            return what


@contextlib.asynccontextmanager
async def serve_shop():
    """Serve the shop; it, and its URL."""
    shop = SteadyShop()
    async with serve_uvicorn(shop.server.asgi(), "auto") as port:
        yield shop, f"http://127.0.0.1:{port}/mcp"


@contextlib.asynccontextmanager
async def run_gateway(state, url, point):
    """Run a gateway in a process of its own; the process, and its URL."""
    port = find_free_port()
    words = [killed_gateway.__file__, str(state), url, str(port), point]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield process, f"http://127.0.0.1:{port}/mcp"
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@contextlib.asynccontextmanager
async def call_through(url, revision):
    """Have a client call through a gateway that is going to be killed."""
    port = int(url.split(":")[2].partition("/")[0])
    await run_until(lambda: is_listening(port), seconds=60, pause=0.05)

    async def call():
        async with Client(url, revision=revision) as user:
            await user.call_tool("shop__buy", {"what": "tea"})

    calling = asyncio.ensure_future(call())
    try:
        yield
    finally:
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)


def is_listening(port):
    """Whether somebody takes connections at a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def list_states(gateway):
    """The states of all approvals."""
    return [row.state for row in gateway.host.core.approvals.list()]


@REVISIONS
async def test_a_gateway_killed_between_approval_and_dispatch_has_the_call_attach(
    tmp_path, revision
):
    """Ours: the same call is dispatched by the next gateway, without a question, and once."""
    async with serve_shop() as (shop, url):
        async with (
            run_gateway(tmp_path, url, "dispatch") as (process, address),
            call_through(address, revision),
        ):
            assert -signal.SIGKILL == await process.wait()
        assert [] == shop.bought
        surface = SayingYes()
        gateway = make_state_gateway(tmp_path, url, surface)
        async with gateway, Client(gateway.server, revision=revision) as user:
            assert ["decided"] == await list_states(gateway)
            assert "tea" == (await user.call_tool("shop__buy", {"what": "tea"})).text
        assert (["tea"], 0) == (shop.bought, surface.asked)


async def test_a_gateway_killed_between_dispatch_and_outcome_does_not_dispatch_twice(tmp_path):
    """Ours: row and audit log say that nobody knows; the next same call is another one, and asked about."""
    async with serve_shop() as (shop, url):
        async with run_gateway(tmp_path, url, "outcome") as (process, address):
            shop.victim = process.pid
            async with call_through(address, "2026-07-28"):
                assert -signal.SIGKILL == await process.wait()
        shop.victim = None
        assert ["tea"] == shop.bought
        surface = SayingYes()
        gateway = make_state_gateway(tmp_path, url, surface)
        async with gateway, Client(gateway.server) as user:
            assert ["unknown"] == await list_states(gateway)
            assert (["tea"], 0) == (shop.bought, surface.asked)
            await user.call_tool("shop__buy", {"what": "tea"})
            rows = await gateway.host.view.audit_tail(100)
        assert (["tea", "tea"], 1) == (shop.bought, surface.asked)
        assert 1 == sum(row.error == "outcome-unknown" for row in rows)


async def test_what_waits_for_a_person_is_there_when_the_next_gateway_starts(tmp_path):
    """Ours: the question is put again under its name, and nothing was dispatched for nobody."""
    async with serve_shop() as (shop, url):
        async with (
            run_gateway(tmp_path, url, "pending") as (process, address),
            call_through(address, "2025-11-25"),
        ):
            await run_until((tmp_path / "asked").exists, seconds=60, pause=0.05)
            process.kill()
            await process.wait()
        surface = SayingNothing(tmp_path / "again")
        gateway = make_state_gateway(tmp_path, url, surface)
        async with gateway:
            await run_until(gateway.host.view.pending)
            assert ["pending"] == await list_states(gateway)
        assert [] == shop.bought
