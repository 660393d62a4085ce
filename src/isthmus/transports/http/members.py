"""The requests of one batch, as an HTTP client waits for their answers."""

from typing import Any

from isthmus.runtime.channel import Outgoing
from isthmus.wire.base import Id

__all__ = ["Members"]


class Members:
    """Which requests of an array have no answer yet.

    Args:
        out: the array.
    """

    __slots__ = ("_open",)

    def __init__(self, out: Outgoing) -> None:
        self._open: set[Id] = {one.calls for one in out.members if one.calls is not None}

    def __len__(self) -> int:
        return len(self._open)

    def settle(self, id: Any) -> bool:
        """Count an answer; True as soon as nothing is left to wait for."""
        self._open.discard(id)
        return not self._open

    def give_up(self, id: Id) -> bool:
        """Wait no longer for one of them; False where it is none of them."""
        known = id in self._open
        self._open.discard(id)
        return known
