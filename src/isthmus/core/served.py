"""Their calls: which are in flight, and which were withdrawn and must never be answered."""

from isthmus.wire.base import Id

__all__ = ["Served"]


class Served:
    """The other side's requests from arrival to answer.

    A withdrawn id stays taken until the work under it has stopped, so that a reused id can
    never receive the answer to an earlier request.

    Args:
        most: how many may be in flight at once, or None for any number.
    """

    __slots__ = ("_most", "_wanted")

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._wanted: dict[Id, bool] = {}

    def __len__(self) -> int:
        return len(self._wanted)

    @property
    def full(self) -> bool:
        """Whether there are as many as there may be."""
        return self._most is not None and len(self._wanted) >= self._most

    def open(self, id: Id) -> bool:
        """Take a request in; False if its id is in flight already, or there are too many."""
        # spec 2026-07-28 basic#requests: an id MUST NOT match another unanswered request's
        if id in self._wanted or (self._most is not None and len(self._wanted) >= self._most):
            return False
        self._wanted[id] = True
        return True

    def withdraw(self, id: Id) -> bool:
        """Mark a request as no longer wanted; False if it is unknown, answered or withdrawn."""
        if not self._wanted.get(id):
            return False
        self._wanted[id] = False
        return True

    def withdrawn(self, id: Id) -> bool:
        """True while work goes on for a request that nobody wants any more."""
        return self._wanted.get(id) is False

    def close(self, id: Id) -> bool:
        """The work has ended; True if its answer may be sent, False if it never may."""
        # spec 2026-07-28 basic/patterns/cancellation: no response for a cancelled request
        return self._wanted.pop(id, False)
