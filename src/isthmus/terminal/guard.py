"""Silence before an answer: keeps a key that was meant for something else from deciding."""

from collections.abc import Callable

__all__ = ["QUIET_S", "Guard"]

QUIET_S = 0.4
"""Seconds before an answer in which nothing moves on the screen and no key is pressed."""


class Guard:
    """Says whether a key stands alone and the card it would answer has been there long enough.

    A surface tells it of every key before the key is acted upon, whichever widget gets the key:
    somebody who writes a sentence answers nothing, however long the card has been there.

    Args:
        clock: seconds that only go forward.
        pause: seconds of silence that an answer needs.
    """

    def __init__(self, clock: Callable[[], float], pause: float = QUIET_S) -> None:
        self._clock = clock
        self._pause = pause
        self._moved = clock()
        self._pressed = float("-inf")
        self._alone = True

    def moved(self) -> None:
        """Something has appeared, or stands elsewhere now."""
        self._moved = self._clock()

    def pressed(self) -> None:
        """A key was pressed, or something was pasted."""
        now = self._clock()
        self._alone = now - self._pressed >= self._pause
        self._pressed = now

    def seen(self) -> bool:
        """Whether what is on the screen has been there long enough to be read."""
        return self._clock() - self._moved >= self._pause

    def alone(self) -> bool:
        """Whether no other key was pressed shortly before the last one."""
        return self._alone

    def resting(self) -> bool:
        """Whether nobody has pressed a key for a while."""
        return self._clock() - self._pressed >= self._pause

    def ready(self) -> bool:
        """Whether the last key may answer."""
        return self.seen() and self._alone
