"""Arguments and messages as JSON in the user's own editor; what does not fit is kept."""

import asyncio
import json
import os
import shlex
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from isthmus.core.text import show_invisible

Edit: TypeAlias = Callable[[str], Awaitable[str]]
"""Lets the user change a text, and gives what it became."""


class Draft(Struct, frozen=True):
    """A draft: the text that a user has edited so far, and its faults.

    Attributes:
        text: as they wrote it.
        value: what it means; unset where it means nothing.
        error: why it means nothing.
    """

    text: str
    value: Any | UnsetType = UNSET
    error: str = ""


def to_editor_json(value: Any) -> str:
    """Plain data as JSON for an editor, with what cannot be seen escaped."""
    plain = msgspec.to_builtins(value)
    text = json.dumps(plain, indent=2, ensure_ascii=False)
    # Outside of strings JSON is ASCII, so that whatever is replaced stands within one.
    text = "".join(c if show_invisible(c) == c else json.dumps(c)[1:-1] for c in text)
    if show_invisible(text) != text:  # each can be seen alone, and not so many upon each other
        text = json.dumps(plain, indent=2)
    return text + "\n"


def read_draft(text: str, before: Any) -> Draft:
    """Read an edited text.

    Args:
        text: the JSON.
        before: what it was made of; the new value is of the same kind.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        return Draft(text, error=f"this is no JSON: {error}")
    if isinstance(before, Mapping) is not isinstance(value, dict):
        return Draft(
            text, error=f"this is no {'object' if isinstance(before, Mapping) else 'list'}"
        )
    return Draft(text, value)


def find_editor(environ: Mapping[str, str]) -> list[str]:
    """The user's editor, as it is started."""
    named = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    try:
        return shlex.split(named) or ["vi"]
    except ValueError as error:
        raise OSError(f"VISUAL or EDITOR is {named!r}: {error}") from None


async def edit_in_editor(
    text: str, environ: Mapping[str, str] = os.environ, terminal: int | None = None
) -> str:
    """Let the user's editor change a text; the host goes on meanwhile.

    The text stands in a file that only the user can read, which is gone afterwards.

    Args:
        text: what is to be changed.
        environ: where ``VISUAL`` and ``EDITOR`` are looked up.
        terminal: the descriptor of the terminal, where that is not the standard streams.

    Raises:
        OSError: the editor cannot be started, failed, or left what is no text.
    """
    with tempfile.TemporaryDirectory(prefix="isthmus-") as folder:  # 0700
        file = Path(folder) / "edit.json"
        file.write_text(text, encoding="utf-8")
        argv = find_editor(environ)
        editor = await asyncio.create_subprocess_exec(
            *argv, str(file), stdin=terminal, stdout=terminal, stderr=terminal
        )
        try:
            code = await editor.wait()
        except asyncio.CancelledError:
            editor.kill()
            await editor.wait()
            raise
        if code:
            raise OSError(f"the editor {argv[0]} ended with {code}; nothing was changed")
        try:
            return file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise OSError("what was saved is no text in UTF-8; nothing was changed") from None
