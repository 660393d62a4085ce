"""Layouts of configuration files: the sections in which programs keep their servers."""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from isthmus.host.config.files import ConfigDocument
from isthmus.host.config.syntax import MemberKey

SERVER_SECTIONS: tuple[tuple[str, ...], ...] = (
    ("mcpServers",),  # Claude, Cursor, Cline, Gemini, Windsurf, and most others
    ("servers",),  # VS Code
    ("mcp", "servers"),  # VS Code's settings.json
    ("mcp_servers",),  # Codex
)

# of programs with a word of their own, which has no such meaning in other files
SECTIONS_OF_PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "zed": ("context_servers",),
    "opencode": ("mcp",),
    "goose": ("extensions",),
}

# by the end of the path; a word means something else in each program
PROGRAM_PATHS: tuple[tuple[str, str], ...] = (
    (r"\.gemini/settings\.json|gemini-extension\.json", "gemini"),
    (r"\.kiro/settings/mcp\.json", "kiro"),
    (r"\.cursor/mcp\.json", "cursor"),
    (r"\.claude\.json|\.mcp\.json|claude_desktop_config\.json", "claude"),
    (r"\.vscode/mcp\.json|Code/User/(?:mcp|settings)\.json", "vscode"),
    (r"cline_mcp_settings\.json", "cline"),
    (r"mcp_settings\.json|\.roo/mcp\.json", "roo"),
    (r"windsurf/mcp_config\.json", "windsurf"),
    (r"\.codex/config\.toml", "codex"),
    (r"\.copilot/mcp-config\.json", "copilot"),
    (r"\.lmstudio/mcp\.json", "lmstudio"),
    (r"opencode\.jsonc?", "opencode"),
    (r"[Zz]ed/settings\.json", "zed"),
    (r"goose/(?:config/)?config\.yaml", "goose"),
    (r"\.continue/.*\.ya?ml", "continue"),
)

# lists of servers that are not to be there
DENIED_LISTS = (
    ("mcp", "excluded"), ("excludeMCPServers",),  # Gemini, today and before
    ("disabledMcpServers",), ("deniedMcpServers",),  # Claude Code
    ("disabledServers",),
)  # fmt: skip

# lists of the only servers that are to be there
ALLOWED_LISTS = (("mcp", "allowed"), ("allowMCPServers",), ("allowedMcpServers",))
MAX_GLOB_CHARS = 256  # names of tools are shorter


class RawServer(Struct, frozen=True):
    """A server as a file has it.

    Attributes:
        name: its name here: blanks are written as ``-``.
        value: what it says.
        keys: the way to it.
        program: the program that the file belongs to; empty where nobody can tell.
        denied: the way to what of the file says that the server is not to be there.
        without: globs of the tools that the file takes away from it.
        fault: a restriction of the file that nobody understands: the way to it, and why.
    """

    name: str
    value: Any
    keys: tuple[MemberKey, ...]
    program: str = ""
    denied: tuple[MemberKey, ...] = ()
    without: tuple[str, ...] = ()
    fault: tuple[tuple[MemberKey, ...], str] | None = None


def find_servers(document: ConfigDocument, folder: str = "") -> Iterator[RawServer]:
    """Find every server of a file, with the restrictions around it.

    Args:
        document: the file.
        folder: the workspace; Claude Code keeps servers of each in one file of the user's.
    """
    around = _Restrictions(document, folder)
    known = find_program(document)
    for program, keys in _list_sections(document, folder):
        part = get_part(document.value, keys)
        program = known or program  # noqa: PLW2901 - the file's name says more than its shape
        if isinstance(part, dict):
            for name, value in part.items():
                if not _is_other(program, keys, name, value):
                    yield around.raw(name, value, (*keys, name), program)
        elif isinstance(part, list):
            for i, value in enumerate(part):
                name = value.get("name") if isinstance(value, dict) else None
                known_as = name if isinstance(name, str) else f"{keys[-1]}-{i}"
                yield around.raw(known_as, value, (*keys, i), program or "continue")


def find_program(document: ConfigDocument) -> str:
    """Find the program that a file belongs to by its path; empty where it does not tell."""
    path = document.path.as_posix()
    return next((name for end, name in PROGRAM_PATHS if re.search(f"(?:^|/)(?:{end})$", path)), "")


def get_part(value: Any, keys: tuple[MemberKey, ...]) -> Any:
    """Get a part of a file; None where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _list_sections(document: ConfigDocument, folder: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """List the sections of this file, each with the program that its shape tells."""
    whole = document.value
    for keys in SERVER_SECTIONS:
        yield ("codex" if keys == ("mcp_servers",) else ""), keys
    yield "claude", ("projects", folder, "mcpServers")
    for program, keys in SECTIONS_OF_PROGRAMS.items():
        if program != "goose" or document.path.suffix.lower() in {".yaml", ".yml"}:
            yield program, keys
    has_section = any(get_part(whole, keys) is not None for keys in SERVER_SECTIONS)
    if document.path.name == ".mcp.json" and not has_section:
        yield "claude", ()  # plugins and the Copilot CLI leave the member around the servers out


def _is_other(program: str, keys: tuple[str, ...], name: str, value: Any) -> bool:
    """Whether a member beside servers is none."""
    if keys == ("mcp",):  # VS Code has servers and inputs there, Gemini its lists
        return name in {"servers", "inputs"} or not isinstance(value, dict)
    if not keys:
        return not isinstance(value, dict) or not ({"command", "url"} & value.keys())
    return program == "zed" and keys == ("context_servers",) and value is None


class _Restrictions:
    """Restrictions of servers that stand outside of their entries."""

    def __init__(self, document: ConfigDocument, folder: str) -> None:
        self._document = document
        self._fault: tuple[tuple[MemberKey, ...], str] | None = None
        self._denied: dict[str, tuple[MemberKey, ...]] = {}
        self._allowed: list[tuple[tuple[MemberKey, ...], set[str]]] = []
        for base in ((), ("projects", folder)):
            for keys in DENIED_LISTS:
                way = (*base, *keys)
                self._denied |= dict.fromkeys(self._read_names(way) or (), way)
            for keys in ALLOWED_LISTS:
                names = self._read_names((*base, *keys))
                if names is not None:
                    self._allowed.append(((*base, *keys), names))

    def raw(self, name: str, value: Any, keys: tuple[MemberKey, ...], program: str) -> RawServer:
        """Make a server with all that the file says of it."""
        denied = self._denied.get(name, ())
        for way, names in self._allowed:
            if name not in names:
                denied = denied or way
        here = re.sub(r"\s+", "-", name.strip())
        without = self._list_removed_tools(name) if program == "opencode" else ()
        return RawServer(here, value, keys, program, denied, without, self._fault)

    def _read_names(self, way: tuple[MemberKey, ...]) -> set[str] | None:
        """Read a list of servers; None where there is none."""
        part = get_part(self._document.value, way)
        if part is None:
            return None
        said = [one.get("serverName") if isinstance(one, dict) else one for one in _as_list(part)]
        names = {one for one in said if isinstance(one, str)}
        if not isinstance(part, list) or len(names) < len({id(one) for one in part}):
            self._fault = (way, "this restricts which servers there are, and is no list of names")
        return names

    def _list_removed_tools(self, name: str) -> tuple[str, ...]:
        """Make globs of the tools that opencode's lists of tools switch off."""
        found: list[str] = []
        for member, off in (("tools", False), ("permission", "deny")):
            part = get_part(self._document.value, (member,))
            for glob, said in part.items() if isinstance(part, dict) else ():
                if said == off and isinstance(said, type(off)):
                    found += _strip_prefix(glob, f"{name}_")
                    found += _strip_prefix(glob, re.sub(r"[^\w-]", "_", f"{name}_", flags=re.ASCII))
        return tuple(dict.fromkeys(found))


def _as_list(part: Any) -> list[Any]:
    return part if isinstance(part, list) else []


def _strip_prefix(glob: str, prefix: str) -> list[str]:
    """Make globs for one server's tools of a glob for ``server_tool``; rather too many.

    Every beginning of the glob may be what the prefix fits; where that ends with a star, the star
    may go on in the tool's name.
    """
    if len(glob) > MAX_GLOB_CHARS:
        return ["*"]
    glob = glob.replace("[", "[[]")  # which is a letter there
    found: list[str] = []
    for at in range(len(glob) + 1):
        head, rest = glob[:at], glob[at:]
        if fnmatchcase(prefix, head):
            found.append(f"*{rest}" if head.endswith("*") else rest)
    return list(dict.fromkeys(one for one in found if one))


def find_section(document: ConfigDocument) -> tuple[str, ...]:
    """Find the section for a new server: the one that the file has already."""
    for keys in SERVER_SECTIONS:
        if isinstance(get_part(document.value, keys), dict):
            return keys
    return SERVER_SECTIONS[0]


def read_inputs(document: ConfigDocument) -> Mapping[str, Mapping[str, Any]]:
    """Read the ``inputs`` of a file, which it wants from the user, by id."""
    parts = (get_part(document.value, keys) for keys in (("inputs",), ("mcp", "inputs")))
    return {
        said["id"]: said
        for part in parts
        for said in _as_list(part)
        if isinstance(said, dict) and isinstance(said.get("id"), str)
    }
