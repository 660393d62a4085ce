"""``isthmus call --host``: one call through the host that runs, which asks its user as for any other."""

import os
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from isthmus.cli.arguments import json_object, pairs, typed
from isthmus.cli.call import show_result
from isthmus.cli.exits import Exit
from isthmus.cli.host_running import place
from isthmus.errors import UsageError
from isthmus.host.attached import Attached
from isthmus.host.catalog.names import namespace
from isthmus.host.errors import Unknown

__all__ = ["HostCall", "call_at_host"]

SEPARATOR = "__"
MAX_SHOWN = 10


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
    given = pairs(words)
    whole = json_object(wanted.json_args) if wanted.json_args else {}
    async with Attached(wanted.state or place(), part="program", name="isthmus-call") as host:
        schema = await _schema(host, name)
        arguments = whole | typed(given, schema)
        result = await host.call(name, arguments, principal="user:local", timeout=wanted.timeout)
    return show_result(result, as_json=wanted.as_json)


async def _schema(host: Attached, name: str) -> Mapping[str, Any]:
    """What a tool takes, as its server says; nothing where the host has no server of that name.

    Raises:
        Unknown: the server has no such tool; the message has those that it has.
    """
    before = name.split(SEPARATOR, 1)[0]
    owner = next((one.name for one in host.servers() if namespace(one.name) == before), "")
    if not owner:
        return {}  # the host says what there is
    tools = {one.name: one.tool for one in await host.tools(owner)}
    if name in tools or not tools:
        return tools[name].input_schema if tools else {}
    shown = ", ".join(sorted(tools)[:MAX_SHOWN])
    raise Unknown(f"{owner} has no tool {name!r}; it has: {shown}")
