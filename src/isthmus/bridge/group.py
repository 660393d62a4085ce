"""Group of servers: the entries of one configuration as one server, each under its name."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from isthmus.client.targets import Target
from isthmus.runtime.channel import Channel
from isthmus.runtime.peer import Peer
from isthmus.server.server import Server
from isthmus.transports.memory import MemoryChannel, MemoryPipe


class GroupChannel(MemoryChannel):
    """A client's end of the conversation with a group, whose servers end with it.

    Args:
        incoming: what the group says.
        outgoing: what is said to it.
        served: the task that serves the group, and closes it at last.
    """

    __slots__ = ("_served",)

    def __init__(
        self, incoming: MemoryPipe, outgoing: MemoryPipe, served: "asyncio.Task[None]"
    ) -> None:
        super().__init__(incoming, outgoing)
        self._served = served

    async def close(self) -> None:
        """End the conversation, and wait until every server has been left."""
        await super().close()
        await asyncio.wait((self._served,))


def make_group_target(servers: Mapping[str, Any], connect_timeout: float) -> Target:
    """A target that is all servers of a configuration: tools and prompts ``NAME_x``.

    Args:
        servers: the entries of ``mcpServers`` by name.
        connect_timeout: seconds that connecting to each may take.

    Raises:
        UsageError: an entry is none, or its name cannot begin a tool's name.
    """
    states: dict[str, str | None] = {}
    group = make_group(servers, connect_timeout, states)

    async def dial() -> Channel:
        there, back = MemoryPipe(), MemoryPipe()
        peer = Peer(MemoryChannel(there, back), group.router, side="server")

        async def serve() -> None:
            try:
                await peer.run()
            finally:
                await group.close()

        return GroupChannel(back, there, asyncio.get_running_loop().create_task(serve()))

    return Target(f"{len(servers)} servers", dial, servers=states)


def make_group(
    servers: Mapping[str, Any], connect_timeout: float, states: dict[str, str | None]
) -> Server:
    """A server with a proxy mounted for each entry.

    Args:
        servers: the entries by name.
        connect_timeout: seconds that connecting to each may take.
        states: kept up to date: why each cannot be reached; None where it can.
    """
    # Everything is as a client of each server alone has it: nothing is cleaned or taken out here.
    group = Server("group", sanitise=None, redact=None)
    for name, entry in servers.items():
        states[name] = "not connected yet"
        one = Server.proxy(
            entry,
            name=name,
            optional=True,
            eager=True,
            on_state=partial(states.__setitem__, name),
            connect_timeout=connect_timeout,
            sanitise=None,
            redact=None,
            debug=True,
        )
        group.mount(one, name)
    return group
