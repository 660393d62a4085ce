"""What ``isthmus servers`` does: in the running host, and in the configuration."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from isthmus.cli.exits import Exit
from isthmus.cli.host_running import running
from isthmus.cli.output import note
from isthmus.cli.targets import URLS
from isthmus.errors import UsageError
from isthmus.host.config.load import load
from isthmus.host.config.places import config_folder
from isthmus.host.config.write import add_server, remove_server, set_option
from isthmus.host.errors import ServerUnavailable, Unknown

if TYPE_CHECKING:
    from isthmus.host.view import ServerDo

__all__ = ["added", "have_done", "removed", "written"]

DONE = {
    "start": "runs",
    "stop": "is stopped",
    "restart": "runs again",
    "enable": "may be started",
    "disable": "is switched off",
}
WRITTEN = {"enable": True, "disable": False}
"""What lasts, and is therefore written into the configuration."""


async def have_done(name: str, what: str, file: str | None, state: str | None = None) -> Exit:
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
    async with running(state, file) as view:
        if what in WRITTEN:
            set_option(source(name, file), name, "enabled", WRITTEN[what])
        elif view is None:
            raise ServerUnavailable(
                f"no host is running here that could {what} {name}: isthmus host",
                server=name,
                state="not running",
            )
        if view is not None:
            await view.server_do(name, cast("ServerDo", what))
    note(f"{name} {DONE[what]}")
    return Exit.OK


def source(name: str, file: str | None) -> str:
    """The file that a server stands in.

    Raises:
        Unknown: it stands in none.
    """
    if file is not None:
        return file
    config = load()
    entry = config.servers.get(name)
    if entry is None:
        known = ", ".join(config.servers) or "none"
        why = config.broken.get(name)
        raise Unknown(why or f"there is no server {name!r}; there are: {known}")
    return entry.source


def users_file() -> Path:
    """The user's own configuration: the one that is there, or the one to be made."""
    folder = config_folder(os.environ)
    for name in ("mcp.json", "mcp.jsonc", "mcp.toml"):
        if (folder / name).is_file():
            return folder / name
    return folder / "mcp.json"


def added(name: str, entry: dict[str, Any], file: str | None) -> Exit:
    """Write a server into the configuration.

    Raises:
        ConfigError: there is one of this name already, or it cannot be written.
    """
    path = users_file() if file is None else Path(file)
    add_server(path, name, entry)
    note(f"{name} stands in {path}; the user is asked before it is first started")
    return Exit.OK


def written(
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
    if url and not url.startswith(URLS):
        raise UsageError(f"{url!r} is no URL; a command follows after --: -- {url}")
    if env and url:
        raise UsageError("--env goes with a command; a URL has --header")
    if headers and command:
        raise UsageError("--header goes with a URL; a command has --env")
    entry: dict[str, Any] = {"url": url}
    more = {"headers": pairs(headers)} if headers else {}
    if not url:
        entry = {"command": command[0], "args": list(command[1:])}
        more = {"env": pairs(env)} if env else {}
    return {**entry, **more}


def pairs(words: Sequence[str]) -> dict[str, str]:
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


def removed(name: str, file: str | None) -> Exit:
    """Take a server out of the configuration.

    Raises:
        Unknown: it stands in no file.
        ConfigError: the file cannot be written.
    """
    path = source(name, file)
    if not remove_server(path, name):
        raise Unknown(f"{path} has no server {name!r}")
    note(f"{name} is taken out of {path}")
    return Exit.OK
