"""The user's own editor, in which arguments and messages are changed."""

import asyncio
import os
import shlex
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

Edit: TypeAlias = Callable[[str], Awaitable[str]]
"""Lets the user change a text, and gives what it became."""


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
            raise OSError("the saved file is not UTF-8 text; nothing was changed") from None
