"""What ``TARGET`` means: a URL, a Python file, a command, or a name in an ``mcp.json``."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.cli.output import note
from isthmus.core.plain_text import visible
from isthmus.errors import UsageError
from isthmus.transports.command import Command

if TYPE_CHECKING:
    from isthmus.host.config.document import Document
    from isthmus.host.config.shapes import Raw

__all__ = ["CONFIGS", "Target", "resolve"]

CONFIGS = ("mcp.json", ".mcp.json", ".vscode/mcp.json")
URLS = ("http://", "https://", "ws://", "wss://", "unix://", "tcp://")


@dataclass(frozen=True)
class Target:
    """Where a server is.

    Attributes:
        label: as a person would name it.
        where: its URL, or the command that starts it.
        headers: to send with every HTTP request.
    """

    label: str
    where: str | Command
    headers: Mapping[str, str] = field(default_factory=dict)


def resolve(text: str, command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> Target:
    """The target a command line names.

    Args:
        text: the word given, or "" where a command was given after ``--``.
        command: that command.
        folder: where ``mcp.json`` is looked for.
        environ: where ``${VAR}`` is looked up. A command typed here gets all of it, as from any
            shell; a server named in a file gets what the file says.

    Raises:
        UsageError: it means nothing here; the message lists what was tried.
    """
    if command:
        typed = Command(*command, env=environ)
        return Target(str(typed), typed)
    if text.startswith(URLS):
        return Target(text, text)
    path, _, name = text.partition(".py:")
    if text.endswith(".py") or name:
        return _file(text, Path(f"{path}.py" if name else text), environ)
    return _named(text, folder, environ)


def _file(text: str, path: Path, environ: Mapping[str, str]) -> Target:
    """A Python file: ours is served by ``isthmus run``, anybody else's is run as a script."""
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    ours = "isthmus" in path.read_text(encoding="utf-8", errors="replace")
    start = ("-m", "isthmus", "run", text) if ours else (text,)
    return Target(text, Command(sys.executable, *start, env=environ))


def _named(name: str, folder: Path, environ: Mapping[str, str]) -> Target:
    from isthmus.host.config.document import read  # most targets stand in no file
    from isthmus.host.config.shapes import servers_of
    from isthmus.host.errors import ConfigError

    known: list[str] = []
    for config in CONFIGS:
        path = folder / config
        if path.is_file():
            try:
                document = read(path)
            except ConfigError as error:
                raise UsageError(str(error)) from None
            servers = {raw.name: raw for raw in reversed([*servers_of(document, str(folder))])}
            known_as = "-".join(name.split())
            if known_as in servers:
                return _entry(document, servers[known_as], folder, environ)
            known += reversed(servers)
    has = f"; the mcp.json here knows: {', '.join(known)}" if known else ""
    raise UsageError(
        f"{name!r} is no URL, no .py file, and no server in {', '.join(CONFIGS)}{has}; "
        "a command goes after -- as in: isthmus list -- uvx mcp-server-time"
    )


def _entry(document: "Document", raw: "Raw", folder: Path, environ: Mapping[str, str]) -> Target:
    """What a server's entry names, read as a host reads it."""
    from isthmus.host.config.forms import Misfit
    from isthmus.host.config.load import told
    from isthmus.host.config.servers import Reading, exposures, server
    from isthmus.host.config.shapes import inputs_of
    from isthmus.host.config.variables import Scope, Unfilled
    from isthmus.host.secrets import UserSecrets

    scope = Scope(
        environ=environ,
        secrets=UserSecrets(environ),
        inputs=inputs_of(document),
        folder=str(folder.absolute()),
    )
    source = str(document.path)
    reading = Reading(scope=scope, layer="workspace", source=source, base=folder)
    try:
        entry = server(raw, reading)
    except (Misfit, Unfilled) as error:
        raise UsageError(told(document, error.keys, str(error))) from None
    for line in exposures(raw):  # nobody was asked whether this file is trusted
        note(f"note: {visible(line, line=True)}")
    if entry.url:
        return Target(raw.name, entry.url, entry.headers)
    return Target(raw.name, Command(*entry.command, env=entry.env, cwd=entry.cwd or None))
