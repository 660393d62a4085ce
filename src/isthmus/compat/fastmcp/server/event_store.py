"""Event store under the name of ``fastmcp.server.event_store``: isthmus keeps streams by itself."""

from typing import Any


class EventStore:
    """Store of events, which has no effect: streams are kept and resumed without it.

    Args:
        **_: settings of fastmcp.
    """

    def __init__(self, **_: Any) -> None:
        pass
