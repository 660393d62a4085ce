"""Report of ``isthmus dev`` on what a server offers: at the start, and what changed after a reload."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.cli.commands.run import split_server_path
from isthmus.core.text import show_invisible
from isthmus.errors import IsthmusError
from isthmus.linter.rules.catalog import judge
from isthmus.linter.rules.conversation import ObservedConversation, Side
from isthmus.linter.rules.offers import LISTS, OFFER_RULES
from isthmus.linter.rules.rule import fold_findings
from isthmus.revisions import REVISIONS
from isthmus.testing.surface import (
    Surface,
    compare_surfaces,
    describe_changes,
    encode_surface,
    read_surface,
)

if TYPE_CHECKING:
    from isthmus.server.server import Server

SURFACE_FILE, NOTES_FILE = "surface.json", "notes.json"
MAX_CHANGES = 40  # that are told after one reload
KEYS = {"tools": "name", "resources": "uri", "resourceTemplates": "uriTemplate", "prompts": "name"}
KINDS = {"tools": "tool", "resources": "resource", "resourceTemplates": "resource template", "prompts": "prompt"}  # fmt: skip
OFFER_RULE_IDS = frozenset(rule.id for rule in OFFER_RULES)


async def report_surface(server: "Server", folder: Path) -> list[str]:
    """Lines on what a server offers, compared with what the one before it did.

    Args:
        server: is asked in memory, by a client of its own.
        folder: where the surface is kept for the next one.
    """
    from isthmus.client.client import Client

    try:
        async with Client(server, name="isthmus-dev") as client:
            surface = await read_surface(client)
    except IsthmusError as error:
        return [f"what it offers cannot be listed: {show_invisible(str(error))}"]
    lines = [*_tell_changes(_read_json(folder / SURFACE_FILE), surface)]
    notes = list(find_notes(surface))
    if notes != (_read_json(folder / NOTES_FILE) or []):
        lines += notes or ["nothing more that the linter notes"]
    (folder / SURFACE_FILE).write_text(encode_surface(surface), "utf-8")
    (folder / NOTES_FILE).write_text(json.dumps(notes), "utf-8")
    return lines


def is_first(folder: Path) -> bool:
    """Whether no server of this run has told what it offers."""
    return not (folder / SURFACE_FILE).exists()


def _read_json(path: Path) -> Any:
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text("utf-8"))
    return None


def _tell_changes(before: Surface | None, surface: Surface) -> Iterator[str]:
    if before is None:
        yield f"it offers {count_items(surface)}"
        return
    changes = compare_surfaces(before, surface)
    if not changes:
        yield f"reloaded: {count_items(surface)}, as before"
        return
    yield f"reloaded: {count_items(surface)}; changed:"
    shown = describe_changes(changes).splitlines()
    yield from map(show_invisible, [*shown[:-1][:MAX_CHANGES], shown[-1]])


def count_items(surface: Surface) -> str:
    """The numbers of tools, resources and prompts, in words."""
    parts = []
    for kind, word in KINDS.items():
        count = len(surface.get(kind, {}))
        if count:
            parts.append(f"{count} {word}{'s' * (count != 1)}")
    return ", ".join(parts) or "nothing"


def find_notes(surface: Surface) -> Iterator[str]:
    """Lines on what the linter finds in lists, by the rules that need nothing else; calls nothing."""
    sides: tuple[Side, ...] = ("server",)
    conversation = ObservedConversation(REVISIONS[-1], sides)
    for id, (method, kind) in enumerate(LISTS.items()):
        items = [{KEYS[kind]: key, **item} for key, item in surface.get(kind, {}).items()]
        conversation.add("client", {"jsonrpc": "2.0", "id": id, "method": method, "params": {}})
        conversation.add("server", {"jsonrpc": "2.0", "id": id, "result": {kind: items}})
    for folded in fold_findings([*judge(conversation, OFFER_RULE_IDS)]):
        one, often = folded.example, f" ({folded.times} times)" if folded.times > 1 else ""
        line = f"{folded.severity} {one.rule}{often}: {one.where}: {one.said}. {one.mend}"
        yield show_invisible(line, line=True)


class ConnectHints(msgspec.Struct, frozen=True):
    """Ways to connect to a server that is being written.

    Attributes:
        name: of the server.
        url: where it listens; None over stdio.
        command: what starts it over stdio.
        tool: the name of a tool of it, or None.
        required: the arguments that the tool must have.
    """

    name: str
    url: str | None
    command: tuple[str, ...] = ()
    tool: str | None = None
    required: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """A line for each way."""
        if self.url is None:
            entry: dict[str, Any] = {"command": self.command[0], "args": [*self.command[1:]]}
        else:
            call = " ".join([self.tool or "TOOL", *(f"{name}=…" for name in self.required)])
            yield f"  call it     isthmus call {self.url} {call}"
            yield f"  install it  isthmus install {self.url} --into claude-code"
            entry = {"type": "http", "url": self.url}
        whole = json.dumps({"mcpServers": {self.name: entry}}, ensure_ascii=False)
        yield f"  mcp.json    {whole}"


def make_hints(server: "Server", url: str | None, file: str, folder: Path) -> list[str]:
    """Lines on how to connect to a server; its surface is known by now."""
    tools = (_read_json(folder / SURFACE_FILE) or {}).get("tools", {})
    tool = next(iter(tools), None)
    required = tools[tool].get("inputSchema", {}).get("required", []) if tool else []
    path, name = split_server_path(file)
    whole = f"{Path(path).resolve()}:{name}" if name else str(Path(path).resolve())
    command = (sys.executable, "-P", "-m", "isthmus", "dev", whole, "--stdio")
    hints = ConnectHints(server.info.name, url, command, tool, tuple(map(str, required)))
    return [show_invisible(line, line=True) for line in hints.lines()]
