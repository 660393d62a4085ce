"""Rate limit of log lines: what a caller can cause without end is written once a minute, and then counted."""

import time
from collections.abc import Callable, Hashable

from msgspec import Struct

from isthmus.runtime.failures import log_warning

WARNING_INTERVAL_S = 60.0
MAX_KEYS = 1000  # callers with lines of their own in one interval; all others share one


class WarningCount(Struct):
    """The lines of one caller in the interval that its first line has begun.

    Attributes:
        until: when the interval ends.
        subject: the caller, as the closing line names them.
        unwritten: the number of lines that were not written.
    """

    until: float
    subject: str
    unwritten: int = 0


class WarningLimit:
    """Writes the first warning of each caller in a minute, and says later how many more there were.

    Args:
        clock: says seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[Hashable, WarningCount] = {}  # the first to end is the first

    def warn(self, key: Hashable, subject: str, message: str, *values: object) -> None:
        """Write a warning, or count it where its caller has had one in this interval.

        Args:
            key: who causes it.
            subject: the same in words, and what it is about.
            message: the warning.
            *values: what stands in it.
        """
        now = self._clock()
        self._close_intervals(now)
        if key not in self._counts and len(self._counts) >= MAX_KEYS:
            key, subject = WarningLimit, "other callers"
        count = self._counts.get(key)
        if count is not None:
            count.unwritten += 1
            return
        self._counts[key] = WarningCount(now + WARNING_INTERVAL_S, subject)
        log_warning(message, *values)

    def _close_intervals(self, now: float) -> None:
        """Say of intervals that are over how much was not written in them."""
        while self._counts:
            key = next(iter(self._counts))
            count = self._counts[key]
            if count.until > now:
                return
            del self._counts[key]
            if count.unwritten:
                log_warning(
                    "%d more such warnings in %d s: %s",
                    count.unwritten, WARNING_INTERVAL_S, count.subject,
                )  # fmt: skip
