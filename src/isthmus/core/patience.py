"""How long to wait before a broken stream is asked for again, and when to give it up.

Pure: what happened is told, and chance comes in as a number.
"""

__all__ = ["Patience"]

FIRST = 1.0  # seconds before the first attempt of our own, where the server names no time
LONGEST = 30.0  # seconds between two attempts, unless the server wants more
FREE = 5  # attempts in a row that bring nothing before the waits become longer


class Patience:
    """Counts what came of the attempts to go on with one stream.

    Args:
        failures: how many attempts in a row may meet no stream at all.
        empties: how many streams in a row may end without having brought anything new.
    """

    __slots__ = ("_empties", "_empty", "_failed", "_failures")

    def __init__(self, failures: int, empties: int) -> None:
        self._failures = failures
        self._empties = empties
        self._failed = 0
        self._empty = 0

    @property
    def over(self) -> bool:
        """Whether to give it up."""
        return self._failed > self._failures or self._empty > self._empties

    @property
    def attempts(self) -> int:
        """How many attempts in a row were in vain."""
        return self._failed + self._empty

    def failed(self) -> None:
        """There was no stream to be had."""
        self._failed += 1

    def ended(self, *, brought: bool) -> None:
        """There was a stream, and it has ended; whether it has brought anything new."""
        self._failed = 0
        self._empty = 0 if brought else self._empty + 1

    def wait(self, retry: int | None, chance: float) -> float:
        """Seconds to wait before the next attempt.

        Args:
            retry: what the server asked for, in milliseconds, or None. It is never undercut; it
                is exceeded only where attempts are in vain.
            chance: a number from 0 to 1 that is different each time, so that many clients of a
                server that comes back do not come back all at once.
        """
        # spec 2025-11-25 basic/transports#sending-messages-to-the-server: the client MUST respect
        # the retry field
        asked = FIRST if retry is None else retry / 1000
        vain = self._failed or max(0, self._empty - FREE)
        if not vain:
            return asked
        growing = min(LONGEST, FIRST * 2.0 ** min(vain - 1, 16))
        return max(asked, growing * (0.5 + chance / 2))
