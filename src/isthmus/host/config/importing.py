"""Import of the servers that another program is configured with."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from isthmus.core.redaction.forms import may_name_secret
from isthmus.host.config.files import read_document
from isthmus.host.config.forms import BadMember
from isthmus.host.config.layouts import RawServer, find_section, find_servers, get_part, read_inputs
from isthmus.host.config.load import describe_fault
from isthmus.host.config.servers import URL_MEMBERS, check_name, list_exposures
from isthmus.host.config.translation import TranslatedEntry, translate_entry
from isthmus.host.config.variables import VARIABLE
from isthmus.host.config.write import ConfigFile
from isthmus.host.model.errors import ConfigError

CLINE_FILE = "User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
ROO_FILE = "User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"

# by the program and the system; the first file that exists
IMPORT_SOURCES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
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
        "linux": (f"~/.config/Code/{CLINE_FILE}",),
        "darwin": (f"~/Library/Application Support/Code/{CLINE_FILE}",),
        "win32": (f"$APPDATA/Code/{CLINE_FILE}",),
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
        "linux": (f"~/.config/Code/{ROO_FILE}",),
        "darwin": (f"~/Library/Application Support/Code/{ROO_FILE}",),
        "win32": (f"$APPDATA/Code/{ROO_FILE}",),
    },
    "zed": {
        "": ("~/.config/zed/settings.json",),
        "win32": ("$APPDATA/Zed/settings.json",),
    },
    "opencode": {"": ("~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc")},
    "continue": {"": ("~/.continue/config.yaml",)},
}  # fmt: skip

# variables that say where a program keeps its files instead, and the file in that folder
MOVED_FOLDERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "claude-code": (("CLAUDE_CONFIG_DIR", ".claude.json"),),
    "codex": (("CODEX_HOME", "config.toml"),),
    "zed": (("XDG_CONFIG_HOME", "zed/settings.json"),),
    "goose": (("XDG_CONFIG_HOME", "goose/config.yaml"),),
    "copilot": (("COPILOT_HOME", "mcp-config.json"),),
}


class ImportedServers(Struct, kw_only=True):
    """The servers imported from one file.

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


def find_source(name: str, environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Find the file that a program keeps its servers in; a path is itself.

    Raises:
        ConfigError: nobody knows the program, or it has no such file here.
    """
    if name not in IMPORT_SOURCES:
        path = Path(name).expanduser()
        if path.is_file():
            return path
        raise ConfigError(f"{name!r} is no file, and none of {', '.join(IMPORT_SOURCES)}")
    looked = list_places(name, environ, platform)
    for path in looked:
        if path.is_file():
            return path
    raise ConfigError(f"{name} has no configuration here: looked for {', '.join(map(str, looked))}")


def list_places(name: str, environ: Mapping[str, str], platform: str = sys.platform) -> list[Path]:
    """List the files in which a program may keep its servers; the first is the one it makes."""
    places = IMPORT_SOURCES[name]
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - a text
    moved = [
        Path(environ[variable]) / file
        for variable, file in MOVED_FOLDERS.get(name, ())
        if environ.get(variable)
    ]
    return moved + [
        Path(re.sub("^~", lambda _: home, one).replace("$APPDATA", environ.get("APPDATA", home)))
        for one in places.get(platform, places.get("", places.get("linux", ())))
    ]


def import_servers(path: Path, folder: str = "") -> ImportedServers:
    """Import the servers of a file.

    Args:
        path: the file.
        folder: the workspace whose servers are taken, where a file has those of several.

    Raises:
        ConfigError: it cannot be read.
    """
    document = read_document(path)
    imported = ImportedServers(path=path, servers={}, inputs=[], refused={}, notes=[])
    for raw in find_servers(document, folder):
        try:
            translation = translate_entry(raw)
        except BadMember as error:
            imported.refused[raw.name] = describe_fault(document, error.keys, str(error))
            continue
        if raw.keys[-1] != raw.name and isinstance(raw.keys[-1], str):
            imported.notes.append(f"{raw.keys[-1]!r} is called {raw.name!r} here")
        name = _choose_name(raw.name, imported)
        imported.notes += (describe_fault(document, keys, said) for keys, said in translation.notes)
        imported.servers[name] = _make_entry(translation, name, path, imported)
    imported.inputs += (dict(said) for said in read_inputs(document).values())
    if not imported.servers and not imported.refused:
        imported.notes.append(f"{path} has no servers")
    return imported


def write_imported(imported: ImportedServers, path: "str | os.PathLike[str]") -> list[str]:
    """Write imported servers into a file of isthmus; names that it has already are left.

    Returns:
        The names of the servers that were written.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    file = ConfigFile(path)
    section = find_section(file.document)
    part = get_part(file.document.value, section) or {}
    written = []
    for name, entry in imported.servers.items():
        if name in part:
            imported.notes.append(f"{path} has a server {name!r} already, which stays as it is")
            continue
        file.set((*section, name), entry)
        written.append(name)
    have = read_inputs(file.document)
    news = [said for said in imported.inputs if said.get("id") not in have]
    if news and written:
        file.set(("inputs",), [*map(dict, have.values()), *news])
    if written:
        file.save()
    return written


def _choose_name(name: str, imported: ImportedServers) -> str:
    """Choose a valid and free name for a server."""
    try:
        check_name(name)
    except ValueError:
        better = re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip(".-")[:64].strip(".-") or "server"
        imported.notes.append(f"{name!r} is called {better!r} here")
        name = better
    while name in imported.servers:
        imported.notes.append(f"there are two servers {name!r}; the second is called {name}-2 here")
        name = f"{name[:62]}-2"
    return name


def _make_entry(
    translation: TranslatedEntry, name: str, path: Path, imported: ImportedServers
) -> dict[str, Any]:
    """Make the entry of a server, with notes on what is left out and what should move."""
    entry = {key: one for key, one in translation.value.items() if key not in URL_MEMBERS}
    url = next((translation.value[key] for key in URL_MEMBERS if translation.value.get(key)), None)
    if url is not None:
        entry["url"] = url
    if "trust" in entry.get("host", {}):
        entry["host"] = {key: said for key, said in entry["host"].items() if key != "trust"}
        imported.notes.append(
            f"{name}: host.trust is left out: it is yours to say in your own file"
        )
    if translation.passed:
        passed = ", ".join(sorted(translation.passed))
        imported.notes.append(f"{name}: {passed} mean nothing here, and are left out")
    for key in ("envFile", "cwd"):
        said = entry.get(key)
        if isinstance(said, str) and said and not said.startswith(("/", "~", "${")):
            entry[key] = os.path.normpath(_find_base(path) / said)
            imported.notes.append(f"{name}: {key} is {entry[key]} here")
    imported.notes += list_exposures(RawServer(name, entry, ()))
    for part in ("env", "headers"):
        for key, said in entry[part].items() if isinstance(entry.get(part), dict) else ():
            if (
                isinstance(said, str)
                and said
                and may_name_secret(key)
                and not VARIABLE.search(said)
            ):
                imported.notes.append(
                    f"{name}: {part}.{key} stands there in clear: isthmus config secret set "
                    f"{name}/{key}, and write ${{secret:{name}/{key}}}"
                )
    return entry


def _find_base(path: Path) -> Path:
    """The folder that a file's relative folders start from: VS Code's workspace, else its own."""
    folder = path.absolute().parent
    return folder.parent if folder.name == ".vscode" else folder
