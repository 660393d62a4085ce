"""Instructions of a view: those of its servers, each under the server's name, for a model to read."""

from collections.abc import Mapping

from isthmus.core.text import clean_text

MAX_SERVER_CHARS = 2_000
MAX_INSTRUCTION_CHARS = 12_000  # of all servers together
MAX_ABSENT_NAMES = 20


def compose_instructions(said: Mapping[str, str], states: Mapping[str, str]) -> str:
    """Compose the instructions of a view.

    Args:
        said: by server, its instructions for its use.
        states: the servers that cannot be used now, and their states.

    Returns:
        Each server's under its name, with no line that looks like another server's heading; empty where
        there is nothing to say.
    """
    pieces = []
    if states:
        names = [f"{name} ({state})" for name, state in sorted(states.items())]
        more = len(names) - MAX_ABSENT_NAMES
        shown = ", ".join(names[:MAX_ABSENT_NAMES]) + (f" and {more} more" if more > 0 else "")
        pieces.append(f"These servers cannot be used now: {shown}.")
    left = MAX_INSTRUCTION_CHARS
    for server, text in sorted(said.items()):
        kept = _cut(clean_text(text).strip(), min(MAX_SERVER_CHARS, left))
        if not kept:
            continue
        left -= len(kept)
        # indented, so that no server speaks under the name of another one
        lines = "\n".join(f"  {line}" for line in kept.splitlines())
        pieces.append(f"The server {server} says:\n{lines}")
    return "\n\n".join(pieces)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most].rstrip()} […]" if most > 0 else ""
