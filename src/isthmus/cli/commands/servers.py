"""``isthmus servers``: servers of the running host and of the configuration, listed and changed."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from isthmus.cli.declarations import Argument, CommandSet, Invocation, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish
from isthmus.cli.host_state import find_running_host
from isthmus.cli.options import AsJson
from isthmus.cli.output import print_json, print_note, print_text
from isthmus.cli.targets import URL_SCHEMES
from isthmus.core.text import clean_text
from isthmus.errors import UsageError
from isthmus.host.config.files import find_user_file
from isthmus.host.config.load import load_config
from isthmus.host.config.write import add_server, remove_server, set_option
from isthmus.host.model.entries import HostConfig
from isthmus.host.model.errors import ServerUnavailable, Unknown
from isthmus.host.model.view import ServerStatus
from isthmus.host.supervisor.hosted_server import describe_place

if TYPE_CHECKING:
    from isthmus.host.model.view import ServerDo

app = CommandSet(
    name="servers",
    help="List, start, stop, add and remove the servers of the host.",
    invoke_without_command=True,
)

Name: TypeAlias = Annotated[str, Argument(metavar="NAME", show_default=False)]
File: TypeAlias = Annotated[
    str | None,
    Option(
        "--config",
        "--file",
        metavar="FILE",
        help="Configuration; the user's and ./mcp.json by default.",
    ),
]
State: TypeAlias = Annotated[
    str | None,
    Option(metavar="FOLDER", help="State folder of the host; the user's by default."),
]
Pairs: TypeAlias = list[str] | None


@app.callback()
def servers(
    context: Invocation, *, as_json: AsJson = False, file: File = None, state: State = None
) -> None:
    """List, start, stop, add and remove the servers of the host."""
    if context.subcommand is None:
        finish(lambda: print_servers(file, state, as_json=as_json))


@app.command("list")
def list_(*, as_json: AsJson = False, file: File = None, state: State = None) -> None:
    """List all servers, with their state in a running host."""
    finish(lambda: print_servers(file, state, as_json=as_json))


def _declare(what: str, help: str) -> None:
    """Declare a command that has the running host do something with a server."""

    @app.command(what, help=help)
    def do(name: Name, *, file: File = None, state: State = None) -> None:
        finish(lambda: do_with_server(name, what, file, state))


_declare("start", "Start a server in the running host, also after failures.")
_declare("stop", "Stop a server in the running host after its calls have ended.")
_declare("restart", "Restart a server in the running host.")
_declare("enable", "Enable a server in the configuration.")
_declare("disable", "Disable a server in the configuration, and stop it.")


@app.command()
def logs(name: Name, *, as_json: AsJson = False, state: State = None) -> None:
    """Show the log and standard error of a server in the running host."""
    finish(lambda: print_log(name, state, as_json=as_json))


@app.command(
    epilog="A command follows after --, as in: isthmus servers add time -- uvx mcp-server-time"
)
def add(
    context: Invocation,
    name: Name,
    url: Annotated[str, Argument(metavar="URL", show_default=False)] = "",
    *,
    env: Annotated[
        Pairs, Option(metavar="NAME=VALUE", help="Environment variable of the server; repeatable.")
    ] = None,
    header: Annotated[
        Pairs, Option(metavar="NAME=VALUE", help="Header of requests to the server; repeatable.")
    ] = None,
    file: File = None,
) -> None:
    """Add a server to the configuration, without starting it."""
    finish(
        lambda: add_to_config(
            name, make_server_entry(url, context.command, env or (), header or ()), file
        )
    )


@app.command()
def remove(name: Name, *, file: File = None) -> None:
    """Remove a server from the configuration; a running host stops it."""
    finish(lambda: remove_from_config(name, file))


PIPE_COLUMNS = 10_000

STATE_COLOURS = {"ready": "green", "failed": "red", "quarantined": "red", "broken": "red"}


async def print_servers(file: str | None, state: str | None = None, *, as_json: bool) -> Exit:
    """List the servers.

    Args:
        file: the configuration; the user's and the workspace's by default.
        state: the folder of the host's state.
        as_json: print JSON for a program.

    Raises:
        ConfigError: the configuration cannot be read.
    """
    async with find_running_host(state, file) as view:
        seen = [] if view is None else view.servers()
        host = view is not None and (state is not None or file is None or is_from_file(seen, file))
        found = seen if host else describe_configured(load_config(file))
    if as_json:
        print_json(found)
        return Exit.OK
    if not found:
        print_note("there are no servers: isthmus servers add NAME -- COMMAND")
        return Exit.OK
    if not host:
        print_note("no host is running here; this is what is configured")
    # A pipe has no width: nothing is cut there so that it fits into one.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_COLUMNS)
    with console.capture() as drawn:
        console.print(make_table(found))
    print("\n".join(text.rstrip() for text in drawn.get().splitlines()))
    return Exit.OK


def is_from_file(found: Sequence[ServerStatus], file: str) -> bool:
    """Whether a host has servers of this file."""
    path = Path(file).expanduser().absolute()
    return any(one.source and Path(one.source) == path for one in found)


def describe_configured(config: HostConfig) -> list[ServerStatus]:
    """The configured servers as rows, where no host runs."""
    good = [
        ServerStatus(
            name=entry.name,
            state="not running" if entry.options.enabled else "disabled",
            error="" if entry.trusted else "its folder is not trusted: isthmus config trust",
            where=describe_place(entry),
            trust=entry.options.trust,
            source=entry.source,
        )
        for entry in config.servers.values()
    ]
    broken = [
        ServerStatus(name=name, state="broken", error=why) for name, why in config.broken.items()
    ]
    return good + broken


def make_table(found: Sequence[ServerStatus]) -> Table:
    """The servers for a person; nothing that a server says can write over anything else."""
    made = Table(box=None, pad_edge=False)
    made.add_column("name", no_wrap=True)
    made.add_column("state", no_wrap=True)
    for title in ("since", "calls", "protocol"):
        made.add_column(title, no_wrap=True)
    made.add_column("where", overflow="fold")
    for one in found:
        state = Text(one.state, STATE_COLOURS.get(one.state, ""))
        if one.retry_at is not None:
            state.append(f" {max(0.0, one.retry_at - time.time()):.0f} s")
        since = format_span(time.time() - one.since) if one.since else ""
        parts = [Text(format_one_line(one.where)), Text(format_one_line(one.error), "dim")]
        place = Text("\n").join(part for part in parts if part)
        made.add_row(
            Text(format_one_line(one.name)),
            state,
            since,
            str(one.in_flight or ""),
            one.revision,
            place,
        )
    return made


def format_one_line(text: str) -> str:
    """A text of others as one line."""
    return " ".join(clean_text(text).split())


def format_span(seconds: float) -> str:
    """A time as people say it."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


async def print_log(name: str, state: str | None = None, *, as_json: bool) -> Exit:
    """Show what a server wrote for people.

    Raises:
        ServerUnavailable: no host is running.
        Unknown: there is no such server.
    """
    async with find_running_host(state) as view:
        if view is None:
            raise ServerUnavailable(
                f"no host is running here, so {name} has written nothing: isthmus host",
                server=name,
                state="not running",
            )
        names = [one.name for one in view.servers()]
        if name not in names:
            raise Unknown(f"there is no server {name!r}; there are: {', '.join(names) or 'none'}")
        lines = list(await view.log_tail(name))
    if as_json:
        print_json(lines)
        return Exit.OK
    for text in lines:
        print_text(clean_text(text))
    if not lines:
        print_note(f"{name} has written nothing")
    return Exit.OK


DONE_TEXTS = {
    "start": "runs",
    "stop": "is stopped",
    "restart": "runs again",
    "enable": "may be started",
    "disable": "is switched off",
}
# these last: they are written into the configuration
ENABLED_BY_ACTION = {"enable": True, "disable": False}


async def do_with_server(name: str, what: str, file: str | None, state: str | None = None) -> Exit:
    """Have something done with a server.

    Args:
        name: the server's.
        what: start, stop, restart, enable or disable.
        file: the configuration.
        state: the folder of the host's state.

    Raises:
        Unknown: there is none of this name.
        ServerUnavailable: no host is running, or the server did not start.
        ConfigError: the configuration cannot be written.
    """
    async with find_running_host(state, file) as view:
        if what in ENABLED_BY_ACTION:
            set_option(find_source(name, file), name, "enabled", ENABLED_BY_ACTION[what])
        elif view is None:
            raise ServerUnavailable(
                f"no host is running here that could {what} {name}: isthmus host",
                server=name,
                state="not running",
            )
        if view is not None:
            await view.server_do(name, cast("ServerDo", what), by="command line")
    print_note(f"{name} {DONE_TEXTS[what]}")
    return Exit.OK


def find_source(name: str, file: str | None) -> str:
    """The file that a server stands in.

    Raises:
        Unknown: it stands in none.
    """
    if file is not None:
        return file
    config = load_config()
    entry = config.servers.get(name)
    if entry is None:
        known = ", ".join(config.servers) or "none"
        why = config.broken.get(name)
        raise Unknown(why or f"there is no server {name!r}; there are: {known}")
    return entry.source


def add_to_config(name: str, entry: dict[str, Any], file: str | None) -> Exit:
    """Write a server into the configuration.

    Raises:
        ConfigError: there is one of this name already, or it cannot be written.
    """
    path = find_user_file(os.environ) if file is None else Path(file)
    add_server(path, name, entry)
    print_note(f"{name} stands in {path}; the user is asked before it is first started")
    return Exit.OK


def make_server_entry(
    url: str, command: Sequence[str], env: Sequence[str], headers: Sequence[str]
) -> dict[str, Any]:
    """A server's entry, as it stands in ``mcpServers``.

    Raises:
        UsageError: it is neither a command nor a URL, or both, or has what goes with the other.
    """
    if bool(url) == bool(command):
        raise UsageError(
            "a server is a URL, or a command after --: isthmus servers add time -- uvx "
            "mcp-server-time"
        )
    if url and not url.startswith(URL_SCHEMES):
        raise UsageError(f"{url!r} is no URL; a command follows after --: -- {url}")
    if env and url:
        raise UsageError("--env goes with a command; a URL has --header")
    if headers and command:
        raise UsageError("--header goes with a URL; a command has --env")
    entry: dict[str, Any] = {"url": url}
    more = {"headers": parse_pairs(headers)} if headers else {}
    if not url:
        entry = {"command": command[0], "args": list(command[1:])}
        more = {"env": parse_pairs(env)} if env else {}
    return {**entry, **more}


def parse_pairs(words: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` words.

    Raises:
        UsageError: one has no name or no sign.
    """
    found = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not name or not sign:
            raise UsageError(f"{word!r} is not NAME=VALUE")
        found[name] = value
    return found


def remove_from_config(name: str, file: str | None) -> Exit:
    """Take a server out of the configuration.

    Raises:
        Unknown: it stands in no file.
        ConfigError: the file cannot be written.
    """
    path = find_source(name, file)
    if not remove_server(path, name):
        raise Unknown(f"{path} has no server {name!r}")
    print_note(f"{name} is taken out of {path}")
    return Exit.OK
