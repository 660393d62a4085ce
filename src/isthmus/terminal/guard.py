"""What keeps a key that was meant for something else from answering a question."""

from collections.abc import Callable

__all__ = ["PAUSE", "Guard"]

PAUSE = 0.4
"""Seconds after a card has appeared or moved in which no key answers it."""


class Guard:
    """Whether what is on the screen has been there long enough to be answered.

    Args:
        clock: seconds that only go forward.
        pause: how long is long enough.
    """

    def __init__(self, clock: Callable[[], float], pause: float = PAUSE) -> None:
        self._clock = clock
        self._pause = pause
        self._since = clock()

    def moved(self) -> None:
        """Something has appeared, or stands elsewhere now."""
        self._since = self._clock()

    def ready(self) -> bool:
        """Whether a key may answer."""
        return self._clock() - self._since >= self._pause
