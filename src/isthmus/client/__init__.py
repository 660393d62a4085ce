"""MCP clients: one object per connection, whatever the server speaks and wherever it is.

Names are imported when they are first used: a command line that only serves reads modules of this
package, too.
"""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.client.cache import Caching as Caching
    from isthmus.client.client import Client as Client
    from isthmus.client.completion import Completer as Completer
    from isthmus.client.features.elicitation import concerns as concerns
    from isthmus.client.model.limits import Limits as Limits
    from isthmus.client.model.results import ToolResult as ToolResult
    from isthmus.client.model.retries import Retries as Retries
    from isthmus.client.subscriptions import Change as Change
    from isthmus.client.tasks import ToolTask as ToolTask
    from isthmus.store.meter import Rate as Rate

__all__ = [
    "Caching",
    "Change",
    "Client",
    "Completer",
    "Limits",
    "Rate",
    "Retries",
    "ToolResult",
    "ToolTask",
    "concerns",
]

_HOMES = {
    "Caching": "isthmus.client.cache",
    "Change": "isthmus.client.subscriptions",
    "Client": "isthmus.client.client",
    "Completer": "isthmus.client.completion",
    "Limits": "isthmus.client.model.limits",
    "Rate": "isthmus.store.meter",
    "Retries": "isthmus.client.model.retries",
    "ToolResult": "isthmus.client.model.results",
    "ToolTask": "isthmus.client.tasks",
    "concerns": "isthmus.client.features.elicitation",
}

__getattr__ = lazy_getattr(__name__, _HOMES)


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return sorted(__all__)
