"""What ``TARGET`` means: a URL, a Python file, a command, or a name in an ``mcp.json``."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isthmus.client.variables import filled
from isthmus.errors import UsageError
from isthmus.transports.command import Command

__all__ = ["CONFIGS", "Target", "resolve"]

CONFIGS = ("mcp.json", ".mcp.json", ".vscode/mcp.json")
URLS = ("http://", "https://", "ws://", "wss://", "unix://", "tcp://")
_SECTIONS = ("mcpServers", "servers")


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
    known: list[str] = []
    for config in CONFIGS:
        path = folder / config
        if path.is_file():
            entries = _entries(path)
            if name in entries:
                return _entry(name, entries[name], path, environ)
            known += entries
    has = f"; the mcp.json here knows: {', '.join(known)}" if known else ""
    raise UsageError(
        f"{name!r} is no URL, no .py file, and no server in {', '.join(CONFIGS)}{has}; "
        "a command goes after -- as in: isthmus list -- uvx mcp-server-time"
    )


def _entries(path: Path) -> dict[str, Any]:
    """Every server of one file."""
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    found: dict[str, Any] = {}
    for section in _SECTIONS:
        part = whole.get(section, {}) if isinstance(whole, dict) else {}
        found |= part if isinstance(part, dict) else {}
    return found


def _entry(name: str, entry: Any, path: Path, environ: Mapping[str, str]) -> Target:
    where = f"{path}: {name}"
    if not isinstance(entry, dict) or not ("url" in entry or "command" in entry):
        raise UsageError(f'{where}: needs "command" or "url"')
    entry = filled(entry, where, environ)
    if "url" in entry:
        return Target(name, entry["url"], entry.get("headers", {}))
    words = (entry["command"], *map(str, entry.get("args", ())))
    return Target(name, Command(*words, env=entry.get("env"), cwd=entry.get("cwd")))
