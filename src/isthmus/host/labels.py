"""What a run takes over from the results it has read, and what it may then no longer do unasked."""

from isthmus.host.attempt import Attempt
from isthmus.host.policy.facts import Facts

__all__ = ["Taken", "taken"]


class Taken:
    """What one run has taken over: its labels, and the chain of where they come from."""

    labels: frozenset[str]
    chain: tuple[str, ...]

    def take(self, attempt: Attempt, facts: Facts) -> None:
        """The run has read the result of an attempt."""
        raise NotImplementedError


def taken(facts: Facts) -> frozenset[str]:
    """The labels of a result that comes under these circumstances."""
    raise NotImplementedError
