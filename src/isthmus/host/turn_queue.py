"""What happens in a conversation, on its way to a face that may be slow."""

import asyncio

from isthmus.host.turns import ConversationEvent, ToolRunning

__all__ = ["Waiting"]

MOST_WAITING = 1_000
"""Events that wait for a slow face before it is spared what servers say of their progress."""


class Waiting(asyncio.Queue[ConversationEvent]):
    """Events on their way to whoever shows them."""

    def tell(self, event: ConversationEvent) -> None:
        """One more; progress is left out where there is no end of it."""
        if not isinstance(event, ToolRunning) or self.qsize() < MOST_WAITING:
            self.put_nowait(event)
