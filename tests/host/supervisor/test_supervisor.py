"""The supervisor: servers are started when they are used, and their ends are told apart."""

import asyncio

import pytest
from isthmus import Client, Server
from isthmus.host.config.entries import HostConfig, ServerEntry, ServerOptions
from isthmus.host.errors import OutcomeUnknown, ServerUnavailable, Unknown
from isthmus.host.supervisor.supervisor import Supervisor
from isthmus.testing.clock import VirtualLoop


def shop(name="shop"):
    server = Server(name)

    @server.tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    return server


def config(*names, **options):
    return HostConfig(
        servers={name: ServerEntry(name=name, options=ServerOptions(**options)) for name in names}
    )


def virtual(main):
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


async def test_a_lazy_server_is_started_by_its_first_use_and_by_no_other():
    """Ours: nothing runs that nobody uses, and all uses share one connection."""
    made = []

    def client_for(entry, _isolation):
        made.append(entry.name)
        return Client(shop())

    async with Supervisor(config("a", "b"), client_for) as supervisor:
        assert "idle" == supervisor.servers["a"].state
        async with supervisor.use("a") as client, supervisor.use("a") as same:
            assert client is same
            assert "3" == (await client.call_tool("add", {"a": 1, "b": 2})).text
        assert "ready" == supervisor.servers["a"].state
    assert ["a"] == made
