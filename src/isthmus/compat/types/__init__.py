"""Types of the protocol as ``mcp.types`` and ``mcp_types`` have them, made when they are first used."""

from typing import Any

from isthmus.compat.types.models import NAMES
from isthmus.compat.types.table import ALIASES, CONSTANTS, MESSAGES, MODELS

__all__ = [*MODELS, *MESSAGES, *ALIASES, *CONSTANTS]  # noqa: PLE0604 - the keys of the table


def __getattr__(name: str) -> Any:
    try:
        made = NAMES[name]
    except KeyError:
        raise AttributeError(
            f"mcp.types has {name!r}, and isthmus.compat.types has not: see docs/guide/compat.md"
        ) from None
    globals()[name] = made
    return made
