"""Output of commands: results on stdout, all else on stderr, cleaned for the terminal.

A server's text may hold escape sequences that move the cursor, or marks that turn reading
direction round to make one word look like another. Whatever a person is to read is cleaned of
them first.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from isthmus.core.text import clean_text, show_invisible
from isthmus.wire.content import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)


def print_text(text: str) -> None:
    """A result for a person: cleaned where stdout is a terminal, as it is in a pipe or a file."""
    print(clean_text(text) if sys.stdout.isatty() else text)


def print_line(text: str) -> None:
    """Print one line with names that others chose: unusual characters are made visible.

    It is so in a pipe, too, which often ends at a terminal: ``isthmus auth list | less -R``.
    """
    print(show_invisible(text, line=True))


def print_lines(text: str) -> None:
    """As :func:`print_line`, where the line ends are ours."""
    print(show_invisible(text))


def print_json(value: Any) -> None:
    """A result for a program: one JSON value on stdout, indented, in ASCII on a terminal."""
    plain = msgspec.to_builtins(value)
    print(json.dumps(plain, indent=2, ensure_ascii=sys.stdout.isatty()))


def print_note(text: str) -> None:
    """A line for the person at the terminal, on stderr."""
    print(clean_text(text), file=sys.stderr, flush=True)


def format_size(count: int) -> str:
    """A number of bytes as people say it."""
    if count < 1024:
        return f"{count} B"
    kib = count / 1024
    return f"{kib:.1f} KiB" if kib < 1024 else f"{kib / 1024:.1f} MiB"


def render_blocks(content: Iterable[ContentBlock]) -> str:
    """Blocks of content as text, with a line in place of what cannot be shown."""
    return "\n".join(_render_block(block) for block in content)


def _render_block(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ResourceLink():
            return f"[resource {block.uri}]"
        case EmbeddedResource():
            return render_contents([block.resource])
        case ImageContent() | AudioContent():
            return f"[{block.mime_type}, {format_size(len(block.data) * 3 // 4)}]"
        case _:
            return f"[content of type {block.get('type')!r}]"


def render_contents(parts: Iterable[ResourceContents]) -> str:
    """A resource's contents as text."""
    return "\n".join(
        part.text
        if isinstance(part.text, str)
        else f"[{part.mime_type or 'bytes'}, {format_size(len(part.blob or '') * 3 // 4)} of {part.uri}]"
        for part in parts
    )
