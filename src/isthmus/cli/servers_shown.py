"""What ``isthmus servers`` shows: the servers of a running host, or of the configuration alone."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from isthmus.cli.exits import Exit
from isthmus.cli.host_running import running
from isthmus.cli.output import note, print_json, print_text
from isthmus.core.plain_text import clean
from isthmus.host.config.entries import HostConfig
from isthmus.host.config.load import load
from isthmus.host.errors import ServerUnavailable, Unknown
from isthmus.host.supervisor.server import where
from isthmus.host.view import ServerStatus

__all__ = ["configured", "show", "show_log"]

WIDTH_IN_PIPE = 10_000

COLOURS = {"ready": "green", "failed": "red", "quarantined": "red", "broken": "red"}


async def show(file: str | None, state: str | None = None, *, as_json: bool) -> Exit:
    """List the servers.

    Args:
        file: the configuration; the user's and the workspace's by default.
        state: the folder of the host's state.
        as_json: print JSON for a program.

    Raises:
        ConfigError: the configuration cannot be read.
    """
    async with running(state, file) as view:
        seen = [] if view is None else view.servers()
        host = view is not None and (state is not None or file is None or of_file(seen, file))
        found = seen if host else configured(load(file))
    if as_json:
        print_json(found)
        return Exit.OK
    if not found:
        note("there are no servers: isthmus servers add NAME -- COMMAND")
        return Exit.OK
    if not host:
        note("no host is running here; this is what is configured")
    # A pipe has no width: nothing is cut there so that it fits into one.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_IN_PIPE)
    with console.capture() as drawn:
        console.print(table(found))
    print("\n".join(text.rstrip() for text in drawn.get().splitlines()))
    return Exit.OK


def of_file(found: Sequence[ServerStatus], file: str) -> bool:
    """Whether a host has servers of this file."""
    path = Path(file).expanduser().absolute()
    return any(one.source and Path(one.source) == path for one in found)


def configured(config: HostConfig) -> list[ServerStatus]:
    """How servers are where no host runs."""
    good = [
        ServerStatus(
            name=entry.name,
            state="not running" if entry.options.enabled else "disabled",
            error="" if entry.trusted else "its folder is not trusted: isthmus config trust",
            where=where(entry),
            trust=entry.options.trust,
            source=entry.source,
        )
        for entry in config.servers.values()
    ]
    broken = [
        ServerStatus(name=name, state="broken", error=why) for name, why in config.broken.items()
    ]
    return good + broken


def table(found: Sequence[ServerStatus]) -> Table:
    """The servers for a person; nothing that a server says can write over anything else."""
    made = Table(box=None, pad_edge=False)
    made.add_column("name", no_wrap=True)
    made.add_column("state", no_wrap=True)
    for title in ("since", "calls", "protocol"):
        made.add_column(title, no_wrap=True)
    made.add_column("where", overflow="fold")
    for one in found:
        state = Text(one.state, COLOURS.get(one.state, ""))
        if one.retry_at is not None:
            state.append(f" {max(0.0, one.retry_at - time.time()):.0f} s")
        since = span(time.time() - one.since) if one.since else ""
        parts = [Text(line(one.where)), Text(line(one.error), "dim")]
        place = Text("\n").join(part for part in parts if part)
        made.add_row(
            Text(line(one.name)), state, since, str(one.in_flight or ""), one.revision, place
        )
    return made


def line(text: str) -> str:
    """Somebody else's text as one line."""
    return " ".join(clean(text).split())


def span(seconds: float) -> str:
    """A time as people say it."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


async def show_log(name: str, state: str | None = None, *, as_json: bool) -> Exit:
    """Show what a server wrote for people.

    Raises:
        ServerUnavailable: no host is running.
        Unknown: there is no such server.
    """
    async with running(state) as view:
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
        print_text(clean(text))
    if not lines:
        note(f"{name} has written nothing")
    return Exit.OK
