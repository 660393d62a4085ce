"""Taking over the servers that another program is configured with."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from isthmus.host.config.document import Document, read
from isthmus.host.config.foreign import Translation, translate
from isthmus.host.config.forms import Misfit
from isthmus.host.config.load import told
from isthmus.host.config.servers import URLS, check_name, exposures
from isthmus.host.config.shapes import Raw, inputs_of, section_of, servers_of
from isthmus.host.config.variables import PLACE, secretive
from isthmus.host.config.write import ConfigFile
from isthmus.host.errors import ConfigError

__all__ = ["SOURCES", "Taken", "source", "take", "write_taken"]

CLINE = "User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"

ROO = "User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"

SOURCES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "claude": {
        "linux": ("~/.config/Claude/claude_desktop_config.json",),
        "darwin": ("~/Library/Application Support/Claude/claude_desktop_config.json",),
        "win32": ("$APPDATA/Claude/claude_desktop_config.json",),
    },
    "claude-code": {"": ("~/.claude.json",)},
    "cursor": {"": ("~/.cursor/mcp.json",)},
    "vscode": {
        "linux": ("~/.config/Code/User/mcp.json", "~/.config/Code/User/settings.json"),
        "darwin": (
            "~/Library/Application Support/Code/User/mcp.json",
            "~/Library/Application Support/Code/User/settings.json",
        ),
        "win32": ("$APPDATA/Code/User/mcp.json", "$APPDATA/Code/User/settings.json"),
    },
    "cline": {
        "linux": (f"~/.config/Code/{CLINE}",),
        "darwin": (f"~/Library/Application Support/Code/{CLINE}",),
        "win32": (f"$APPDATA/Code/{CLINE}",),
    },
    "gemini": {"": ("~/.gemini/settings.json",)},
    "windsurf": {"": ("~/.codeium/windsurf/mcp_config.json",)},
    "codex": {"": ("~/.codex/config.toml",)},
    "goose": {
        "": ("~/.config/goose/config.yaml",),
        "win32": ("$APPDATA/Block/goose/config/config.yaml",),
    },
    "kiro": {"": ("~/.kiro/settings/mcp.json",)},
    "copilot": {"": ("~/.copilot/mcp-config.json",)},
    "lmstudio": {"": ("~/.lmstudio/mcp.json",)},
    "roo": {
        "linux": (f"~/.config/Code/{ROO}",),
        "darwin": (f"~/Library/Application Support/Code/{ROO}",),
        "win32": (f"$APPDATA/Code/{ROO}",),
    },
    "zed": {
        "": ("~/.config/zed/settings.json",),
        "win32": ("$APPDATA/Zed/settings.json",),
    },
    "opencode": {"": ("~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc")},
    "continue": {"": ("~/.continue/config.yaml",)},
}  # fmt: skip
"""Where programs keep their servers, by the program and the system; the first that is there."""


class Taken(Struct, kw_only=True):
    """What is taken over from one file.

    Attributes:
        path: the file.
        servers: entries as they would stand in ``mcpServers``.
        inputs: what they want from the user.
        refused: why others are not taken over, by name: what they restrict would be lost.
        notes: what was left out or renamed, and what the user should know, a sentence each.
    """

    path: Path
    servers: dict[str, dict[str, Any]] = {}
    inputs: list[dict[str, Any]] = []
    refused: dict[str, str] = {}
    notes: list[str] = []


def source(name: str, environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The file that a program keeps its servers in; a path is itself.

    Raises:
        ConfigError: nobody knows the program, or it has no such file here.
    """
    if name not in SOURCES:
        path = Path(name).expanduser()
        if path.is_file():
            return path
        raise ConfigError(f"{name!r} is no file, and none of {', '.join(SOURCES)}")
    places = SOURCES[name]
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - a text
    looked = [
        Path(re.sub("^~", lambda _: home, one).replace("$APPDATA", environ.get("APPDATA", home)))
        for one in places.get(platform, places.get("", places.get("linux", ())))
    ]
    for path in looked:
        if path.is_file():
            return path
    raise ConfigError(f"{name} has no configuration here: looked for {', '.join(map(str, looked))}")


def take(path: Path, folder: str = "") -> Taken:
    """The servers of a file, as ours.

    Args:
        path: the file.
        folder: the workspace whose servers are taken, where a file has those of several.

    Raises:
        ConfigError: it cannot be read.
    """
    document = read(path)
    taken = Taken(path=path, servers={}, inputs=[], refused={}, notes=[])
    for raw in servers_of(document, folder):
        try:
            translation = translate(raw)
        except Misfit as error:
            taken.refused[raw.name] = told(document, error.keys, str(error))
            continue
        if raw.keys[-1] != raw.name and isinstance(raw.keys[-1], str):
            taken.notes.append(f"{raw.keys[-1]!r} is called {raw.name!r} here")
        name = _named(raw.name, taken)
        taken.notes += (told(document, keys, said) for keys, said in translation.notes)
        taken.servers[name] = _entry(translation, name, path, taken)
    taken.inputs += (dict(said) for said in inputs_of(document).values())
    if not taken.servers and not taken.refused:
        taken.notes.append(f"{path} has no servers")
    return taken


def write_taken(taken: Taken, path: "str | os.PathLike[str]") -> list[str]:
    """Write what was taken over into a file of ours; the names that were there already are left.

    Returns:
        The names of the servers that were written.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    file = ConfigFile(path)
    section = section_of(file.document)
    part = _part(file.document, section)
    written = []
    for name, entry in taken.servers.items():
        if name in part:
            taken.notes.append(f"{path} has a server {name!r} already, which stays as it is")
            continue
        file.set((*section, name), entry)
        written.append(name)
    have = inputs_of(file.document)
    news = [said for said in taken.inputs if said.get("id") not in have]
    if news and written:
        file.set(("inputs",), [*map(dict, have.values()), *news])
    if written:
        file.save()
    return written


def _part(document: Document, section: tuple[str, ...]) -> dict[str, Any]:
    part: Any = document.value
    for key in section:
        part = part.get(key, {}) if isinstance(part, dict) else {}
    return part if isinstance(part, dict) else {}


def _named(name: str, taken: Taken) -> str:
    """A name that a server can have here."""
    try:
        check_name(name)
    except ValueError:
        better = re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip(".-")[:64].strip(".-") or "server"
        taken.notes.append(f"{name!r} is called {better!r} here")
        name = better
    while name in taken.servers:
        taken.notes.append(f"there are two servers {name!r}; the second is called {name}-2 here")
        name = f"{name[:62]}-2"
    return name


def _entry(translation: Translation, name: str, path: Path, taken: Taken) -> dict[str, Any]:
    """An entry as it is written here, with notes on what is left out and what should move."""
    entry = {key: one for key, one in translation.value.items() if key not in URLS}
    url = next((translation.value[key] for key in URLS if translation.value.get(key)), None)
    if url is not None:
        entry["url"] = url
    if "trust" in entry.get("host", {}):
        entry["host"] = {key: said for key, said in entry["host"].items() if key != "trust"}
        taken.notes.append(f"{name}: host.trust is left out: it is yours to say in your own file")
    if translation.passed:
        passed = ", ".join(sorted(translation.passed))
        taken.notes.append(f"{name}: {passed} mean nothing here, and are left out")
    for key in ("envFile", "cwd"):
        said = entry.get(key)
        if isinstance(said, str) and said and not said.startswith(("/", "~", "${")):
            entry[key] = os.path.normpath(_base(path) / said)
            taken.notes.append(f"{name}: {key} is {entry[key]} here")
    taken.notes += exposures(Raw(name, entry, ()))
    for part in ("env", "headers"):
        for key, said in entry[part].items() if isinstance(entry.get(part), dict) else ():
            if isinstance(said, str) and said and secretive(key) and not PLACE.search(said):
                taken.notes.append(
                    f"{name}: {part}.{key} stands there in clear: isthmus config secret set "
                    f"{name}/{key}, and write ${{secret:{name}/{key}}}"
                )
    return entry


def _base(path: Path) -> Path:
    """What relative folders of a file are relative to: the workspace for VS Code's, else its folder."""
    folder = path.absolute().parent
    return folder.parent if folder.name == ".vscode" else folder
