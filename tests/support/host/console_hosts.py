"""Hosts for tests of what a console sees, in this process and from another."""

import asyncio
from contextlib import asynccontextmanager

from msgspec import Struct

from isthmus import Context, Server
from isthmus.core.answers import Accepted
from isthmus.host.host import Host
from isthmus.host.policy.policy import Policy, PolicyLayer
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.remote.attached import AttachedHost
from isthmus.host.remote.control import Control

CANARY = "correct-horse-battery-staple-9431"

ALLOW_ALL = '[[rule]]\nid = "all"\neffect = "allow"\nwhen = { action = "*" }\n'


class Seat(Struct):
    """Where to sit."""

    row: int


def make_calculator():
    """A server that adds, fails, hangs, and is told a secret."""
    server = Server("calculator")

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool
    async def fail() -> str:
        """Fail."""
        raise ValueError("no")

    @server.tool
    async def hang() -> str:
        """Wait until somebody stops it."""
        await asyncio.Event().wait()
        return "never"

    @server.tool
    async def login(password: str) -> str:
        """Log in."""
        return f"password={password}"

    @server.tool
    async def book(ctx: Context) -> str:
        """Ask where to sit."""
        seat = await ctx.elicit("Which seat?", Seat)
        return f"row {seat.value.row}" if isinstance(seat, Accepted) else "none"

    return server


def make_console_host(state, rules=ALLOW_ALL, **options):
    """A host with a calculator, whose policy allows everything."""
    layers: list[PolicyLayer] = read_layers(rules, "user")
    host = Host(state=state, policy=Policy(layers))
    host.add("calc", make_calculator(), **options)
    return host


@asynccontextmanager
async def view_host(host, way, state):
    """The host, seen from here, or as from another process."""
    if way == "local":
        yield host.view
        return
    async with Control(host.view, state), AttachedHost(state) as view:
        yield view


async def wait_for_call(view, kind, tool="hang"):
    """The newest recorded call of a tool, once it has a step of this kind."""
    for _ in range(10_000):
        for one in await view.traffic():
            if one.object == tool and kind in [step.kind for step in one.steps]:
                return one
        await asyncio.sleep(0.001)
    raise AssertionError(f"no call has got as far as {kind}")
