"""A dictionary that is bounded: whoever fills it with nonsense costs it its oldest entries only."""

from collections import OrderedDict
from typing import TypeVar

__all__ = ["Newest"]

K = TypeVar("K")
V = TypeVar("V")


class Newest(OrderedDict[K, V]):
    """The entries that were set last; what was set longest ago is forgotten first.

    Args:
        most: how many there may be; none at all where it is 0.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self.most:
            self.popitem(last=False)
