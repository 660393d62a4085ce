"""How often, and how often at once: a gate that lets so much through and refuses the rest."""

import time
from collections.abc import Callable
from types import TracebackType

from isthmus.errors import Refuse
from isthmus.revisions.codes import LIMITED

__all__ = ["BadQuestion", "Gate"]


class BadQuestion(Refuse):
    """A question that this client puts to nobody: it is not what may be asked, or too much.

    A server that asked by a request gets it as an error; where the question lay in a result,
    there is no way to say no, and the call ends with ``Misbehaved``.
    """


class Gate:
    """Lets a number of things through per minute, and a number of them at once.

    A burst may use up a minute's worth; after that they come back one by one.

    Example::

        with gate:
            answer = await ask(question)

    Args:
        what: the things, for messages.
        per_minute: how many a minute; None for no limit.
        at_once: how many may be inside; None for no limit.
        clock: gives seconds that never go back.
    """

    __slots__ = ("_at_once", "_clock", "_inside", "_per_minute", "_until", "_what")

    def __init__(
        self,
        what: str,
        per_minute: int | None,
        at_once: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._per_minute = per_minute
        self._at_once = at_once
        self._clock = clock
        self._inside = 0
        self._until = 0.0

    def passes(self) -> bool:
        """Let one through, if the rate allows it."""
        if self._per_minute is None:
            return True
        now = self._clock()
        until = max(self._until, now) + 60.0 / self._per_minute if self._per_minute else now + 61.0
        if until > now + 60.0 + 1e-6:  # a minute's worth is in use
            return False
        self._until = until
        return True

    def __enter__(self) -> None:
        """Enter, until the block is left.

        Raises:
            Refuse: too many are inside, or came in the last minute.
        """
        if self._at_once is not None and self._inside >= self._at_once:
            raise BadQuestion(
                LIMITED, f"Too many {self._what} at once: this client allows {self._at_once}"
            )
        if not self.passes():
            raise BadQuestion(
                LIMITED, f"Too many {self._what}: this client allows {self._per_minute} a minute"
            )
        self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._inside -= 1
