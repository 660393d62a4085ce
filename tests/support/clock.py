"""A clock that a test sets: for every ``clock=`` of a class under test."""

__all__ = ["ManualClock"]


class ManualClock:
    """Seconds that pass when a test says so; :class:`isthmus.testing.VirtualLoop` moves a whole loop.

    Args:
        now: the time at first.
    """

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
