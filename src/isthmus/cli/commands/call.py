"""``isthmus call``, ``read`` and ``prompt``: use a tool, a resource or a prompt of a server."""

import asyncio
import base64
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from isthmus.cli.arguments import parse_arguments, parse_json_object, split_pairs
from isthmus.cli.declarations import Argument, CommandSet, Invocation, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish
from isthmus.cli.options import (
    AsJson,
    EnvWords,
    EraOption,
    HeaderWords,
    LogLevelOption,
    RevisionOption,
    Timeout,
    TokenEnv,
)
from isthmus.cli.output import print_json, print_note, print_text, render_blocks, render_contents
from isthmus.cli.targets import TARGET_HELP
from isthmus.cli.terminal_client import ConnectOptions, TerminalClient, run_with_target
from isthmus.client.client import Client
from isthmus.client.model.results import ToolResult
from isthmus.errors import UsageError, quote_text
from isthmus.wire import ReadResourceResult, Tool

if TYPE_CHECKING:
    from isthmus.host.remote.attached import AttachedHost

app = CommandSet()

MAX_NAMES = 10  # of tools in a message
MAX_NAME_CHARS = 100  # of each of them


@app.command("call", epilog=TARGET_HELP.format("list"))
def call(
    context: Invocation,
    words: Annotated[list[str] | None, Argument(metavar="TARGET TOOL [KEY=VALUE]")] = None,
    *,
    json_args: Annotated[
        str | None, Option(metavar="JSON", help="Arguments as one JSON object.")
    ] = None,
    as_json: AsJson = False,
    revision: RevisionOption = None,
    timeout: Timeout = None,
    token_env: TokenEnv = None,
    era: EraOption = None,
    header: HeaderWords = None,
    env: EnvWords = None,
    log_level: LogLevelOption = None,
    host: Annotated[
        bool, Option("--host", help="Call through the running host; TOOL is SERVER__TOOL.")
    ] = False,
    state: Annotated[
        str | None, Option(metavar="FOLDER", help="With --host: state folder of that host.")
    ] = None,
) -> None:
    """Call a tool; values are converted according to its schema."""
    if host:
        at_host = HostCall(tuple(words or ()), json_args, state, timeout, as_json)
        finish(lambda: call_at_host(at_host))
    options = ConnectOptions(
        as_json, revision, timeout, token_env, era, tuple(header or ()), tuple(env or ()), log_level
    )
    run_with_target(
        context,
        words or [],
        options,
        lambda client, rest: call_tool(client, rest[0], rest[1:], json_args),
        "TOOL",
    )


@app.command("read", epilog=TARGET_HELP.format("list"))
def read(
    context: Invocation,
    words: Annotated[list[str] | None, Argument(metavar="TARGET URI")] = None,
    *,
    as_json: AsJson = False,
    revision: RevisionOption = None,
    timeout: Timeout = None,
    token_env: TokenEnv = None,
    era: EraOption = None,
    header: HeaderWords = None,
    env: EnvWords = None,
    log_level: LogLevelOption = None,
) -> None:
    """Read a resource."""
    options = ConnectOptions(
        as_json, revision, timeout, token_env, era, tuple(header or ()), tuple(env or ()), log_level
    )
    run_with_target(
        context, words or [], options, lambda client, rest: read_resource(client, rest[0]), "URI"
    )


@app.command("prompt", epilog=TARGET_HELP.format("list"))
def prompt(
    context: Invocation,
    words: Annotated[list[str] | None, Argument(metavar="TARGET NAME [KEY=VALUE]")] = None,
    *,
    as_json: AsJson = False,
    revision: RevisionOption = None,
    timeout: Timeout = None,
    token_env: TokenEnv = None,
    era: EraOption = None,
    header: HeaderWords = None,
    env: EnvWords = None,
    log_level: LogLevelOption = None,
) -> None:
    """Get a prompt, with values for its arguments."""
    options = ConnectOptions(
        as_json, revision, timeout, token_env, era, tuple(header or ()), tuple(env or ()), log_level
    )
    run_with_target(
        context,
        words or [],
        options,
        lambda client, rest: get_prompt(client, rest[0], rest[1:]),
        "NAME",
    )


async def call_tool(
    terminal: TerminalClient, name: str, words: Sequence[str], json_args: str | None
) -> Exit:
    """Call a tool.

    Args:
        terminal: the client.
        name: the tool.
        words: ``key=value`` each.
        json_args: a JSON object of arguments; the words win over it.

    Raises:
        UsageError: there is no such tool, or it does not take these arguments.
    """
    given = split_pairs(words)
    whole = parse_json_object(json_args) if json_args else {}
    async with terminal.client() as client:
        tool = await _find_tool(client, name)
        arguments = whole | parse_arguments(given, tool.input_schema)
        _check_required(tool, arguments)
        terminal.heard.clear()  # what it said when it started is about something else
        try:
            result = await client.call_tool(name, arguments, on_progress=terminal.progress)
        finally:
            terminal.hide_progress()
    return print_result(result, as_json=terminal.options.as_json)


async def _find_tool(client: Client, name: str) -> Tool:
    """The tool of that name, or a message with the names there are, the nearest first."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    if name in tools:
        return tools[name]
    import difflib

    near = difflib.get_close_matches(name, tools, 3, 0.4)
    shown = [one[:MAX_NAME_CHARS] for one in [*near, *sorted(tools.keys() - near)][:MAX_NAMES]]
    more = f" and {len(tools) - MAX_NAMES} more" if len(tools) > MAX_NAMES else ""
    raise UsageError(f"the server has no tool {name!r}; it has: {', '.join(shown) or 'none'}{more}")


def _check_required(tool: Tool, arguments: dict[str, object]) -> None:
    missing = [key for key in tool.input_schema.get("required", ()) if key not in arguments]
    if missing:
        raise UsageError(f"{tool.name} also needs: {', '.join(f'{key}=…' for key in missing)}")


def print_result(result: ToolResult, *, as_json: bool) -> Exit:
    """Print a tool's result; what it says of its own failure goes to stderr."""
    text = render_blocks(result.content)
    if as_json:
        print_json(result.wire)
    elif result.is_error:
        print_note(f"the tool failed: {quote_text(text)}")
    elif text or result.structured is None:
        print_text(text)
    else:
        print_json(result.structured)
    return Exit.TOOL_FAILED if result.is_error else Exit.OK


async def read_resource(terminal: TerminalClient, uri: str) -> Exit:
    """Read a resource; a single binary one goes to a pipe or file as it is."""
    async with terminal.client() as client:
        result = await client.read_resource(uri)
    if terminal.options.as_json:
        print_json(result)
    elif (data := _find_single_blob(result)) is not None and not sys.stdout.isatty():
        sys.stdout.buffer.write(data)
    else:
        print_text(render_contents(result.contents))
    return Exit.OK


def _find_single_blob(result: ReadResourceResult) -> bytes | None:
    """The bytes of a resource that is one blob, or None."""
    parts = result.contents
    if len(parts) != 1 or not isinstance(parts[0].blob, str):
        return None
    return base64.b64decode(parts[0].blob)


async def get_prompt(terminal: TerminalClient, name: str, words: Sequence[str]) -> Exit:
    """Get a prompt, with values for its arguments."""
    arguments = {key: values[-1] for key, values in split_pairs(words).items()}
    async with terminal.client() as client:
        result = await client.get_prompt(name, arguments)
    if terminal.options.as_json:
        print_json(result)
    else:
        for message in result.messages:
            print_text(f"{message.role}: {render_blocks([message.content])}")
    return Exit.OK


WAITING_NOTE_DELAY_S = 3.0
WAITING_NOTE = (
    "isthmus: no result yet; if the call waits for approval, "
    "allow it with isthmus host --attach or isthmus console"
)


class HostCall(Struct, frozen=True):
    """Options of a call through the running host.

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


async def call_at_host(options: HostCall) -> Exit:
    """Call a tool of the host that runs.

    Raises:
        UsageError: there is no such tool, or it does not take these arguments.
        HostGone: no host runs there.
        HostError: the call may not be made, or its server is not there.
    """
    from isthmus.cli.host_state import find_configured_folder  # other calls need no host
    from isthmus.host.remote.attached import AttachedHost

    if not options.words:
        raise UsageError("which tool? isthmus call --host SERVER__TOOL [KEY=VALUE]")
    name, *words = options.words
    given = split_pairs(words)
    whole = parse_json_object(options.json_args) if options.json_args else {}
    async with AttachedHost(
        options.state or find_configured_folder(), part="program", name="isthmus-call"
    ) as host:
        schema = await _find_schema(host, name)
        arguments = whole | parse_arguments(given, schema)
        note = asyncio.get_running_loop().call_later(WAITING_NOTE_DELAY_S, print_note, WAITING_NOTE)
        try:
            result = await host.call(
                name, arguments, principal="user:local", timeout=options.timeout
            )
        finally:
            note.cancel()
    return print_result(result, as_json=options.as_json)


async def _find_schema(host: "AttachedHost", name: str) -> Mapping[str, Any]:
    """The input schema of a tool; nothing where the host has no server of that name.

    Raises:
        Unknown: the server has no such tool; the message has those that it has.
    """
    from isthmus.host.catalog.names import make_namespace
    from isthmus.host.model.errors import Unknown

    before = name.split("__", 1)[0]
    owner = next((one.name for one in host.servers() if make_namespace(one.name) == before), "")
    if not owner:
        return {}  # the host says what there is
    tools = {one.name: one.tool for one in await host.tools(owner)}
    if name in tools or not tools:
        return tools[name].input_schema if tools else {}
    shown = ", ".join(sorted(tools)[:MAX_NAMES])
    raise Unknown(f"{owner} has no tool {name!r}; it has: {shown}")
