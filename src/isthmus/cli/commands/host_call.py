"""``isthmus call --host``: one call through the host that runs, which asks its user as for any other."""

import os
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from isthmus.cli.arguments import parse_arguments, parse_json_object, split_pairs
from isthmus.cli.commands.call import print_result
from isthmus.cli.exits import Exit
from isthmus.cli.host_state import find_configured_folder
from isthmus.errors import UsageError
from isthmus.host.catalog.names import make_namespace
from isthmus.host.model.errors import Unknown
from isthmus.host.remote.attached import AttachedHost

__all__ = ["HostCall", "call_at_host"]

NAMESPACE_SEPARATOR = "__"
MAX_SHOWN_NAMES = 10


class HostCall(Struct, frozen=True):
    """What the command line says.

    Attributes:
        words: the tool, then ``key=value`` each.
        json_args: a JSON object of arguments; the words win over it.
        state: the folder of the host's state; None for the user's host.
        timeout: seconds for the call; None for the server's own limit.
        as_json: print JSON for a program.
    """

    words: tuple[str, ...] = ()
    json_args: str | None = None
    state: str | os.PathLike[str] | None = None
    timeout: float | None = None
    as_json: bool = False


async def call_at_host(wanted: HostCall) -> Exit:
    """Call a tool of the host that runs.

    Raises:
        UsageError: there is no such tool, or it does not take these arguments.
        HostGone: no host runs there.
        HostError: the call may not be made, or its server is not there.
    """
    if not wanted.words:
        raise UsageError("which tool? isthmus call --host SERVER__TOOL [KEY=VALUE]")
    name, *words = wanted.words
    given = split_pairs(words)
    whole = parse_json_object(wanted.json_args) if wanted.json_args else {}
    async with AttachedHost(
        wanted.state or find_configured_folder(), part="program", name="isthmus-call"
    ) as host:
        schema = await _find_schema(host, name)
        arguments = whole | parse_arguments(given, schema)
        result = await host.call(name, arguments, principal="user:local", timeout=wanted.timeout)
    return print_result(result, as_json=wanted.as_json)


async def _find_schema(host: AttachedHost, name: str) -> Mapping[str, Any]:
    """What a tool takes, as its server says; nothing where the host has no server of that name.

    Raises:
        Unknown: the server has no such tool; the message has those that it has.
    """
    before = name.split(NAMESPACE_SEPARATOR, 1)[0]
    owner = next((one.name for one in host.servers() if make_namespace(one.name) == before), "")
    if not owner:
        return {}  # the host says what there is
    tools = {one.name: one.tool for one in await host.tools(owner)}
    if name in tools or not tools:
        return tools[name].input_schema if tools else {}
    shown = ", ".join(sorted(tools)[:MAX_SHOWN_NAMES])
    raise Unknown(f"{owner} has no tool {name!r}; it has: {shown}")
