"""Which files make up the configuration of a user."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from isthmus.host.config.entries import Layer

__all__ = ["WORKSPACE", "config_folder", "files", "managed_folder", "user_file"]

NAMES = ("mcp.json", "mcp.jsonc", "mcp.toml")
"""What the files of the managed and of the user's folder are called; the first wins."""

WORKSPACE = ("mcp.json", ".mcp.json", ".vscode/mcp.json")
"""Where a workspace has them."""


def managed_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The folder of whoever looks after the machine."""
    if platform == "win32":
        return Path(environ.get("PROGRAMDATA") or r"C:\ProgramData") / "isthmus"
    if platform == "darwin":
        return Path("/Library/Application Support/isthmus")
    return Path("/etc/isthmus")


def config_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The folder in which a system wants programs to keep the user's settings."""
    home = Path(os.path.expanduser(environ.get("HOME") or "~"))  # noqa: PTH111 - a text or "~"
    if platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming") / "isthmus"
    if platform == "darwin":
        return home / "Library" / "Application Support" / "isthmus"
    said = Path(environ.get("XDG_CONFIG_HOME", ""))
    return (said if said.is_absolute() else home / ".config") / "isthmus"


def user_file(environ: Mapping[str, str]) -> Path:
    """The user's own file: the one that is there, or the one to be made."""
    folder = config_folder(environ)
    there = (folder / name for name in NAMES if (folder / name).is_file())
    return next(there, folder / NAMES[0])


def files(
    paths: "tuple[Path, ...] | None",
    folder: Path,
    environ: Mapping[str, str],
    managed: Path | None = None,
) -> Iterator[tuple[Layer, Path]]:
    """Every file that is looked for, the one that wins first.

    Args:
        paths: what somebody named on a command line: then neither the user's nor the workspace's.
        folder: the workspace.
        environ: the environment.
        managed: the folder of whoever looks after the machine; the system's by default.
    """
    for name in NAMES:
        yield "managed", (managed or managed_folder(environ)) / name
    if paths is not None:
        for path in paths:
            yield "command_line", path
        return
    for name in NAMES:
        yield "user", config_folder(environ) / name
    for name in WORKSPACE:
        yield "workspace", folder / name
