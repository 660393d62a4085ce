"""Where the programs that there are keep their servers within a file."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from isthmus.host.config.document import Document
from isthmus.host.config.jsonc import Key

__all__ = ["SECTIONS", "Raw", "inputs_of", "section_of", "servers_of"]

SECTIONS: tuple[tuple[str, ...], ...] = (
    ("mcpServers",),  # Claude, Cursor, Cline, Gemini, Windsurf, and most others
    ("servers",),  # VS Code
    ("mcp", "servers"),  # VS Code's settings.json
    ("mcp_servers",),  # Codex
)
"""The ways to an object of servers, by name."""


class Raw(Struct, frozen=True):
    """A server as a file has it.

    Attributes:
        name: what it is called there.
        value: what it says.
        keys: the way to it.
    """

    name: str
    value: Any
    keys: tuple[Key, ...]


def servers_of(document: Document, folder: str = "") -> Iterator[Raw]:
    """Every server of a file.

    Args:
        document: the file.
        folder: the workspace; Claude Code keeps servers of each in one file of the user's.
    """
    for keys in (*SECTIONS, ("projects", folder, "mcpServers")):
        part: Any = document.value
        for key in keys:
            part = part.get(key) if isinstance(part, dict) else None
        if isinstance(part, dict):
            for name, value in part.items():
                yield Raw(name, value, (*keys, name))


def section_of(document: Document) -> tuple[str, ...]:
    """The way to where a server is to be added: the section that the file has already."""
    for keys in SECTIONS:
        part: Any = document.value
        for key in keys:
            part = part.get(key) if isinstance(part, dict) else None
        if isinstance(part, dict):
            return keys
    return SECTIONS[0]


def inputs_of(document: Document) -> Mapping[str, Mapping[str, Any]]:
    """What a file says of the values that it wants from the user, by id."""
    part = document.value.get("inputs")
    return {
        said["id"]: said
        for said in (part if isinstance(part, list) else ())
        if isinstance(said, dict) and isinstance(said.get("id"), str)
    }
