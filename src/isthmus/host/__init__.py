"""The host: many servers, one user who is in charge of what they see and do.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isthmus.host.attempt import Attempt as Attempt
    from isthmus.host.interaction import Approver as Approver
    from isthmus.host.interaction import Decision as Decision
    from isthmus.host.interaction import Interaction as Interaction

__all__ = ["Approver", "Attempt", "Decision", "Interaction"]

_HOMES = {
    "Attempt": "attempt",
    **dict.fromkeys(("Approver", "Decision", "Interaction"), "interaction"),
}


def __getattr__(name: str) -> Any:
    """Import a public name on its first use, and keep it (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'isthmus.host' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"isthmus.host.{home}"), name)
    return value
