"""Check of a client's entry: the server is started as the client will start it, and lists its tools."""

import os
import sys
from pathlib import Path
from typing import Any

from isthmus.cli.output import print_line, print_note
from isthmus.cli.targets import CliTarget
from isthmus.cli.terminal_client import ConnectOptions, TerminalClient
from isthmus.core.text import format_count
from isthmus.errors import AuthError, IsthmusError
from isthmus.host.config.clients import CLIENTS, NewServer, make_input_id
from isthmus.host.config.forms import BadMember
from isthmus.host.config.layouts import RawServer, find_servers
from isthmus.host.config.servers import ServerReading, read_server
from isthmus.host.config.variables import UnresolvedVariable, VariableScope
from isthmus.host.config.write import ConfigFile
from isthmus.host.model.entries import ServerEntry
from isthmus.transports.command import Command
from isthmus.wire import UNSET

# clients that are started from a shell, and have its PATH and folder
TERMINAL_CLIENTS = frozenset({"claude-code", "codex", "gemini", "goose"})
DESKTOP_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"  # of programs that no shell has started
CHECK_TIMEOUT_S = 30.0
MAX_SHOWN_TOOLS = 12


async def check_entry(
    client: str, server: NewServer, file: ConfigFile, folder: Path | None
) -> None:
    """Start the server of an entry as the client will, and print its tools.

    Args:
        client: the client.
        server: what is installed.
        file: the client's file, with the entry.
        folder: the project that the file belongs to, or None.

    Raises:
        IsthmusError: it does not start, or does not answer.
    """
    title = CLIENTS[client].title
    try:
        entry = _read_back((*CLIENTS[client].section, server.name), server, file)
    except (BadMember, UnresolvedVariable) as error:
        print_note(f"note: not started here to see whether it works: {error}")
        return
    terminal = TerminalClient(
        make_check_target(client, server.name, entry, folder),
        ConnectOptions(timeout=CHECK_TIMEOUT_S),
    )
    try:
        async with terminal.client() as connected:
            can = connected.capabilities.tools is not UNSET
            tools = [tool.name for tool in await connected.list_tools()] if can else []
    except AuthError as error:
        if not entry.url:
            raise
        print_note(f"note: it wants a login, which is {title}'s to do: {error}")
        return
    except IsthmusError:
        terminal.last_words()
        print_note(
            f"isthmus: {server.name} does not work as {title} starts it, and was not written; "
            "--no-check writes it all the same"
        )
        raise
    shown = ", ".join(tools[:MAX_SHOWN_TOOLS]) + (", …" if len(tools) > MAX_SHOWN_TOOLS else "")
    number = format_count(len(tools), "tool")
    print_line(f"{title}: {server.name} works: {number}{f': {shown}' if tools else ''}")


def make_check_target(client: str, name: str, entry: ServerEntry, folder: Path | None) -> CliTarget:
    """The target that is what a client connects to: its environment, and the folder it is in."""
    if entry.url:
        return CliTarget(entry.url, entry.url, entry.headers)
    from_shell = client in TERMINAL_CLIENTS or sys.platform == "win32"
    path = {} if from_shell else {"PATH": DESKTOP_PATH, "VIRTUAL_ENV": ""}
    here = os.getcwd() if from_shell else os.path.abspath(os.sep)  # noqa: PTH100, PTH109 - texts
    cwd = entry.cwd or str(folder or here)
    return CliTarget(name, Command(*entry.command, env={**path, **entry.env}, cwd=cwd))


def _read_back(keys: tuple[str, ...], server: NewServer, file: ConfigFile) -> ServerEntry:
    """Read the entry as isthmus reads that client's file, with variables filled in.

    Raises:
        BadMember, UnresolvedVariable: it cannot be started from here; the message says why.
    """
    raw = next(one for one in find_servers(file.document) if one.keys == keys)
    if raw.denied:
        print_note(f"note: {'.'.join(map(str, raw.denied))} of the file switches {server.name} off")
    scope = VariableScope(environ=os.environ)
    reading = ServerReading(scope=scope, layer="user", source=str(file.path), base=file.path.parent)
    return read_server(_replace_inputs(raw, server), reading)


def _replace_inputs(raw: RawServer, server: NewServer) -> RawServer:
    """An entry whose inputs are variables of the environment here: nobody is asked for them."""
    names = {
        f"${{input:{make_input_id(server.name, one)}}}": f"${{{one}}}"
        for one in (*server.wanted, server.token_env)
    }

    def replace(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: replace(one) for key, one in value.items()}
        if isinstance(value, list):
            return [replace(one) for one in value]
        for spelled, ours in names.items():
            value = value.replace(spelled, ours) if isinstance(value, str) else value
        return value

    return RawServer(raw.name, replace(raw.value), raw.keys, raw.program)
