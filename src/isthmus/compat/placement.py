"""Placement: where ``isthmus run --compat`` has the package's server listen, whatever it asks for itself."""

import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from isthmus.server.server import Server

# The transports of the other libraries by the names of ours.
TRANSPORTS = {"stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "http"}


class Placement(NamedTuple):
    """The transport and the address of a command line.

    Attributes:
        transport: as ``Server.run`` names it.
        options: of ``Server.run``.
        store: the URL of what processes share, or None.
    """

    transport: str
    options: Mapping[str, Any]
    store: str | None = None


class CommandLine:
    """The command line that this process was started by.

    Attributes:
        placement: where it has the server listen; None where the package itself says it.
        served: the package has served.
        connected: the package has opened a session as a client.
    """

    placement: Placement | None = None
    served = False
    connected = False


COMMAND_LINE = CommandLine()


def choose_placement(server: Server[Any], transport: str, options: Mapping[str, Any]) -> Placement:
    """Where to listen: as the command line says, else as the package does.

    Raises:
        ValueError: there is no such transport.
    """
    COMMAND_LINE.served = True
    placement = COMMAND_LINE.placement
    if (transport if placement is None else placement.transport) == "stdio":
        restore_stdout()
    if placement is None:
        if transport not in TRANSPORTS:
            raise ValueError(f"Unknown transport: {transport}")
        return Placement(TRANSPORTS[transport], options if transport != "stdio" else {})
    if placement.store is not None:
        server.configure(store=placement.store)
    return placement


def restore_stdout() -> None:
    """Make ``sys.stdout`` descriptor 1 again, where a program has put standard error there.

    Programs do so against native code that prints; isthmus itself keeps the descriptor from prints.
    """
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, OSError):
        return  # it is no file, as in tests
    if descriptor > sys.stderr.fileno():
        os.dup2(descriptor, 1)


def run_placed(server: Server[Any], transport: str, options: Mapping[str, Any]) -> None:
    """Serve until it ends."""
    place = choose_placement(server, transport, options)
    serve: Any = server.run  # which of its forms is meant, only the command line knows
    serve(place.transport, **place.options)


async def run_placed_async(server: Server[Any], transport: str, options: Mapping[str, Any]) -> None:
    """As :func:`run_placed`, in the loop that runs."""
    place = choose_placement(server, transport, options)
    await server.run_async(place.transport, **place.options)
