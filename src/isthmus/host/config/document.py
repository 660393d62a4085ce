"""One file of a configuration: what it says, and where each part of it stands."""

import hashlib
import re
from pathlib import Path
from typing import Any

from msgspec import Struct

from isthmus.host import toml
from isthmus.host.config import jsonc
from isthmus.host.errors import ConfigError

__all__ = ["Document", "digest_of", "read", "read_text"]

LARGEST = 32 * 1024 * 1024
"""Bytes of a file; some programs keep much else in the one that has their servers."""

LARGEST_OF_OTHERS = 1024 * 1024
"""The same of a file that somebody else may have written, which is read before anybody trusts it."""

SYNTAXES = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}

HEADER = re.compile(r"\s*\[\[?.*\]\]?\s*(?:#.*)?$")
ASSIGNED = re.compile(
    r"""\s*((?:[\w-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[\w-]+|"[^"\n]*"|'[^'\n]*'))*)\s*="""
)


class Document(Struct):
    """One file as it was read.

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
    node: jsonc.Node | None = None
    lines: dict[tuple[str, ...], int] = {}

    def place(self, *keys: jsonc.Key) -> str:
        """Where a part stands, as ``file:line:column``; where the nearest part around it does."""
        while True:
            found = self._found(keys)
            if found or not keys:
                return ":".join(map(str, (self.path, *found)))
            keys = keys[:-1]

    def twice(self, *keys: jsonc.Key) -> dict[str, str]:
        """The names that an object has more than once, and where."""
        part = self.node and jsonc.at(self.node, keys)
        doubled = part[1].twice if part else {}
        return {
            name: ":".join(map(str, (self.path, *jsonc.place(self.text, offset))))
            for name, offset in doubled.items()
        }

    def _found(self, keys: tuple[jsonc.Key, ...]) -> tuple[int, ...]:
        if self.node is not None:
            part = jsonc.at(self.node, keys)
            return jsonc.place(self.text, part[0]) if part and keys else ()
        line = self.lines.get(tuple(map(str, keys)))
        return () if line is None else (line,)


def digest_of(data: bytes) -> str:
    """What tells two states of a file apart."""
    return hashlib.sha256(data).hexdigest()


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """A file's bytes.

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


def read(path: Path, largest: int = LARGEST) -> Document:
    """A file of a configuration: TOML or YAML where its name ends so, else JSON with comments.

    Args:
        path: which one.
        largest: bytes that it may have.

    Raises:
        ConfigError: it cannot be read, or is none of them; the message has the line and column.
    """
    return read_text(path, read_bytes(path, largest))


def read_text(path: Path, data: bytes) -> Document:
    """What the bytes of a file say.

    Raises:
        ConfigError: as :func:`read`.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: this is no text in UTF-8: save it as UTF-8") from None
    syntax = SYNTAXES.get(path.suffix.lower(), "json")
    return READERS[syntax](path, text, digest_of(data))


def _json(path: Path, text: str, digest: str) -> Document:
    try:
        node = jsonc.parse(text)
    except jsonc.BadSyntax as error:
        raise ConfigError(
            f"{path}:{error.line}:{error.column}: {path.name} is not JSON: {error}"
        ) from None
    if not isinstance(node.value, dict):
        raise ConfigError(f'{path}: the whole should be an object, as in {{"mcpServers": {{}}}}')
    return Document(path, text, node.value, digest, node=node)


def _yaml(path: Path, text: str, digest: str) -> Document:
    from isthmus.host.config.yaml_text import parse_yaml  # hardly any configuration is YAML

    if len(text) > LARGEST_OF_OTHERS:
        raise ConfigError(f"{path} has more than {LARGEST_OF_OTHERS} characters of YAML")
    try:
        node = parse_yaml(text)
    except jsonc.BadSyntax as error:
        raise ConfigError(
            f"{path}:{error.line}:{error.column}: {path.name} is not YAML: {error}"
        ) from None
    if not isinstance(node.value, dict):
        raise ConfigError(f"{path}: the whole should be a mapping, as in mcpServers: {{}}")
    return Document(path, text, node.value, digest, node=node)


def _toml(path: Path, text: str, digest: str) -> Document:
    try:
        value = toml.parse(text)
    except toml.BadToml as error:
        where = f":{error.line}:{error.column}" if error.line else ""
        raise ConfigError(f"{path}{where}: {path.name} is not TOML: {error.said}") from None
    return Document(path, text, value, digest, lines=_lines(text))


READERS = {"json": _json, "toml": _toml, "yaml": _yaml}
"""How the text of a file is read, by its syntax."""


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """The line of each table and key, as far as lines alone tell."""
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if HEADER.match(line):
            table = _path(line)
            found.setdefault(table, number)
        elif key := ASSIGNED.match(line):
            found.setdefault((*table, *_path(f"{key[1]} = 0")), number)
    return found


def _path(line: str) -> tuple[str, ...]:
    """The names that one line of TOML opens, outermost first."""
    try:
        part: Any = toml.parse(line)
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
