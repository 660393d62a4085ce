"""Attempts in flight: what is under way at each connection, so that it is known in whose course a server asks."""

from isthmus.host.model.attempt import Attempt


class AttemptsInFlight:
    """Attempts under way at each connection: a server that asks something asks in their course."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], dict[str, Attempt]] = {}
        self._depth: dict[str, int] = {}

    def begin(self, attempt: Attempt) -> None:
        """It is being dispatched."""
        asks_model = attempt.action == "sampling.request"
        self._depth[attempt.id] = self._depth.get(attempt.parent, 0) + asks_model

    def end(self, attempt: Attempt) -> None:
        """It is over."""
        self._depth.pop(attempt.id, None)

    def depth(self, id: str) -> int:
        """The number of samplings that an attempt is within, itself counted."""
        return self._depth.get(id, 0)

    def add(self, attempt: Attempt) -> None:
        """It is at its server now."""
        self._at.setdefault((attempt.server, attempt.isolation), {})[attempt.id] = attempt

    def remove(self, attempt: Attempt) -> None:
        """It is there no more."""
        key = attempt.server, attempt.isolation
        there = self._at[key]
        del there[attempt.id]
        if not there:
            del self._at[key]

    def at(self, server: str, isolation: str = "") -> tuple[Attempt, ...]:
        """The attempts under way at a connection."""
        return tuple(self._at.get((server, isolation), {}).values())
