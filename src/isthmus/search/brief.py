"""Tools in brief: a description in one line, and the names of the arguments."""

from collections.abc import Mapping
from typing import Any

from isthmus.core.text import clean_text

MAX_BRIEF_CHARS = 240


def shorten_description(text: str) -> str:
    """Shorten a text to its beginning, in one line."""
    line = " ".join(clean_text(text[: 4 * MAX_BRIEF_CHARS]).split())
    return line if len(line) <= MAX_BRIEF_CHARS else f"{line[:MAX_BRIEF_CHARS].rstrip()}…"


def list_arguments(schema: Any) -> str:
    """List the names of a tool's arguments, with a ``*`` at required ones."""
    members = schema.get("properties") if isinstance(schema, Mapping) else None
    needed = schema.get("required") if isinstance(schema, Mapping) else None
    if not isinstance(members, Mapping):
        return ""
    stars = set(needed) if isinstance(needed, list | tuple) else set()
    named = [
        f"{shorten_description(str(name))[:60]}{'*' if name in stars else ''}" for name in members
    ]
    return ", ".join(named[:20]) + (", …" if len(named) > 20 else "")
