"""Clients: one object per connection, whatever the server speaks and wherever it is.

Names are imported when they are first used: a command line that only serves reads modules of this
package, too.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isthmus.client.cache import Caching as Caching
    from isthmus.client.client import Client as Client
    from isthmus.client.completing import Completer as Completer
    from isthmus.client.elicitation import concerns as concerns
    from isthmus.client.limits import Limits as Limits
    from isthmus.client.listening import Change as Change
    from isthmus.client.results import ToolResult as ToolResult
    from isthmus.client.tasks import ToolTask as ToolTask
    from isthmus.store.meter import Rate as Rate

__all__ = [
    "Caching",
    "Change",
    "Client",
    "Completer",
    "Limits",
    "Rate",
    "ToolResult",
    "ToolTask",
    "concerns",
]

_HOMES = {
    "Caching": "isthmus.client.cache",
    "Change": "isthmus.client.listening",
    "Client": "isthmus.client.client",
    "Completer": "isthmus.client.completing",
    "Limits": "isthmus.client.limits",
    "Rate": "isthmus.store.meter",
    "ToolResult": "isthmus.client.results",
    "ToolTask": "isthmus.client.tasks",
    "concerns": "isthmus.client.elicitation",
}


def __getattr__(name: str) -> Any:
    """Import a public name on its first use, and keep it (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'isthmus.client' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return sorted(__all__)
