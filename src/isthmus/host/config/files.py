"""Files of a configuration: which ones there are, and one of them read as JSON, TOML or YAML with places."""

import hashlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from isthmus.host.config import syntax
from isthmus.host.model import toml
from isthmus.host.model.entries import Layer
from isthmus.host.model.errors import ConfigError

MAX_FILE_BYTES = 32 * 1024 * 1024  # some programs keep much else in the file that has their servers

# of a file that somebody else may have written, which is read before anybody trusts it
MAX_UNTRUSTED_BYTES = 1024 * 1024
SYNTAXES = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}
TABLE_HEADER = re.compile(r"\s*\[\[?.*\]\]?\s*(?:#.*)?$")
KEY_ASSIGNMENT = re.compile(
    r"""\s*((?:[\w-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[\w-]+|"[^"\n]*"|'[^'\n]*'))*)\s*="""
)

# in the managed and in the user's folder; the first wins
FILE_NAMES = ("mcp.json", "mcp.jsonc", "mcp.toml")
WORKSPACE_FILES = ("mcp.json", ".mcp.json", ".vscode/mcp.json")


class ConfigDocument(Struct):
    """One file of a configuration, as it was read.

    Attributes:
        path: which one.
        text: its text, as it is.
        value: what it says, as plain data.
        digest: SHA-256 of its bytes, in hex.
        node: where things stand, for JSON.
        lines: where things stand, for TOML.
    """

    path: Path
    text: str
    value: dict[str, Any]
    digest: str
    node: syntax.SyntaxNode | None = None
    lines: dict[tuple[str, ...], int] = {}

    def place(self, *keys: syntax.MemberKey) -> str:
        """The place of a part, or of the nearest part around it, as ``file:line:column``."""
        while True:
            found = self._found(keys)
            if found or not keys:
                return ":".join(map(str, (self.path, *found)))
            keys = keys[:-1]

    def twice(self, *keys: syntax.MemberKey) -> dict[str, str]:
        """Names that an object has more than once, and their places."""
        part = self.node and syntax.find_node(self.node, keys)
        doubled = part[1].twice if part else {}
        return {
            name: ":".join(map(str, (self.path, *syntax.locate_offset(self.text, offset))))
            for name, offset in doubled.items()
        }

    def _found(self, keys: tuple[syntax.MemberKey, ...]) -> tuple[int, ...]:
        if self.node is not None:
            part = syntax.find_node(self.node, keys)
            return syntax.locate_offset(self.text, part[0]) if part and keys else ()
        line = self.lines.get(tuple(map(str, keys)))
        return () if line is None else (line,)


def digest_bytes(data: bytes) -> str:
    """SHA-256 of a file's bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def read_bytes(path: Path, largest: int = MAX_FILE_BYTES) -> bytes:
    """Read a file's bytes.

    Raises:
        ConfigError: it is not there, is no file, is too large, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > largest:
        raise ConfigError(f"{path} has more than {largest} bytes: it is no configuration")
    return data


def read_document(path: Path, largest: int = MAX_FILE_BYTES) -> ConfigDocument:
    """Read a file of a configuration: TOML or YAML by its name, else JSON with comments.

    Raises:
        ConfigError: it cannot be read, or is none of them; the message has the line and column.
    """
    return parse_document(path, read_bytes(path, largest))


def parse_document(path: Path, data: bytes) -> ConfigDocument:
    """Parse the bytes of a file.

    Raises:
        ConfigError: as :func:`read_document`.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: this is no text in UTF-8: save it as UTF-8") from None
    syntax = SYNTAXES.get(path.suffix.lower(), "json")
    return READERS[syntax](path, text, digest_bytes(data))


def _parse_json(path: Path, text: str, digest: str) -> ConfigDocument:
    try:
        node = syntax.parse_jsonc(text)
    except syntax.BadSyntax as error:
        raise ConfigError(
            f"{path}:{error.line}:{error.column}: {path.name} is not JSON: {error}"
        ) from None
    if not isinstance(node.value, dict):
        raise ConfigError(f'{path}: the top level must be an object, as in {{"mcpServers": {{}}}}')
    return ConfigDocument(path, text, node.value, digest, node=node)


def _parse_yaml(path: Path, text: str, digest: str) -> ConfigDocument:
    from isthmus.host.config.syntax import parse_yaml  # hardly any configuration is YAML

    if len(text) > MAX_UNTRUSTED_BYTES:
        raise ConfigError(f"{path} has more than {MAX_UNTRUSTED_BYTES} characters of YAML")
    try:
        node = parse_yaml(text)
    except syntax.BadSyntax as error:
        raise ConfigError(
            f"{path}:{error.line}:{error.column}: {path.name} is not YAML: {error}"
        ) from None
    if not isinstance(node.value, dict):
        raise ConfigError(f"{path}: the top level must be a mapping, as in mcpServers: {{}}")
    return ConfigDocument(path, text, node.value, digest, node=node)


def _parse_toml(path: Path, text: str, digest: str) -> ConfigDocument:
    try:
        value = toml.parse_toml(text)
    except toml.BadToml as error:
        where = f":{error.line}:{error.column}" if error.line else ""
        raise ConfigError(f"{path}{where}: {path.name} is not TOML: {error.said}") from None
    return ConfigDocument(path, text, value, digest, lines=_find_lines(text))


READERS = {"json": _parse_json, "toml": _parse_toml, "yaml": _parse_yaml}


def _find_lines(text: str) -> dict[tuple[str, ...], int]:
    """Find the line of each table and key, as far as lines alone tell."""
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if TABLE_HEADER.match(line):
            table = parse_names(line)
            found.setdefault(table, number)
        elif key := KEY_ASSIGNMENT.match(line):
            found.setdefault((*table, *parse_names(f"{key[1]} = 0")), number)
    return found


def parse_names(line: str) -> tuple[str, ...]:
    """Parse the names that one line of TOML opens, outermost first."""
    try:
        part: Any = toml.parse_toml(line)
    except toml.BadToml:
        return ()  # it only looked like one, within a text of several lines
    keys: list[str] = []
    while isinstance(part, (dict, list)) and part:
        if isinstance(part, list):
            part = part[0]
            continue
        name, part = next(iter(part.items()))
        keys.append(name)
    return tuple(keys)


def get_managed_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The folder of the machine's administrator."""
    if platform == "win32":
        return Path(environ.get("PROGRAMDATA") or r"C:\ProgramData") / "isthmus"
    if platform == "darwin":
        return Path("/Library/Application Support/isthmus")
    return Path("/etc/isthmus")


def get_config_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The folder in which the system wants the user's settings."""
    home = Path(os.path.expanduser(environ.get("HOME") or "~"))  # noqa: PTH111 - a text or "~"
    if platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming") / "isthmus"
    if platform == "darwin":
        return home / "Library" / "Application Support" / "isthmus"
    said = Path(environ.get("XDG_CONFIG_HOME", ""))
    return (said if said.is_absolute() else home / ".config") / "isthmus"


def find_user_file(environ: Mapping[str, str]) -> Path:
    """Find the user's own file: the existing one, or the one to be made."""
    folder = get_config_folder(environ)
    there = (folder / name for name in FILE_NAMES if (folder / name).is_file())
    return next(there, folder / FILE_NAMES[0])


def list_files(
    paths: "tuple[Path, ...] | None",
    folder: Path,
    environ: Mapping[str, str],
    managed: Path | None = None,
) -> Iterator[tuple[Layer, Path]]:
    """List every file that is looked for, the one that wins first.

    Args:
        paths: what somebody named on a command line: then neither the user's nor the workspace's.
        folder: the workspace.
        environ: the environment.
        managed: the folder of whoever looks after the machine; the system's by default.
    """
    for name in FILE_NAMES:
        yield "managed", (managed or get_managed_folder(environ)) / name
    if paths is not None:
        for path in paths:
            yield "command_line", path
        return
    for name in FILE_NAMES:
        yield "user", get_config_folder(environ) / name
    for name in WORKSPACE_FILES:
        yield "workspace", folder / name
