"""Questions of a server: the way by which one came, the gate that limits them, and their refusal.

The functions that answer get the question and no more, since most need no more. A host wants to
know in the course of what it came: it reads :data:`QUESTION_ORIGIN` while it answers. What comes in
a result, or from a task that is waited for, is answered in the context of the call that it belongs
to, so that context variables of the caller are there as well.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Literal, TypeAlias

from isthmus.errors import Refuse
from isthmus.revisions import Revision
from isthmus.revisions.codes import LIMITED_CODE
from isthmus.store.meter import MemoryMeter, Rate

QuestionRoute: TypeAlias = Literal["request", "result", "task"]
"""A request of the server's own, the result of our call, or a task that needs input."""


class QuestionOrigin:
    """The way by which one question came.

    Args:
        route: by which way.
        revision: the revision spoken.
        task: the task that it belongs to, where there is one.
        key: what names the question within its task or result; empty for a request.
    """

    __slots__ = ("key", "revision", "route", "task")

    def __init__(
        self, route: QuestionRoute, revision: Revision, task: str = "", key: str = ""
    ) -> None:
        self.route = route
        self.revision = revision
        self.task = task
        self.key = key


# How the question came that is being answered; None outside of answering.
QUESTION_ORIGIN: ContextVar[QuestionOrigin | None] = ContextVar("isthmus_asked", default=None)


@contextmanager
def record_origin(asked: QuestionOrigin) -> Iterator[None]:
    """Answer a question within this."""
    token = QUESTION_ORIGIN.set(asked)
    try:
        yield
    finally:
        QUESTION_ORIGIN.reset(token)


class BadQuestion(Refuse):
    """A question that this client puts to nobody: it is not what may be asked, or too much.

    A server that asked by a request gets it as an error; where the question lay in a result,
    there is no way to say no, and the call ends with ``Misbehaved``.
    """


class UndeclaredQuestion(BadQuestion):
    """A question that this client did not declare that it answers."""


class RequestGate:
    """Lets things through at a rate, and a number of them at once.

    A burst may use up what the rate allows in its time; after that they come back one by one.

    Example::

        with gate:
            answer = await ask(question)

    Args:
        what: the things, for messages.
        rate: how many in which time; None for no limit.
        at_once: how many may be inside; None for no limit.
        clock: gives seconds that never go back.
    """

    __slots__ = ("_at_once", "_inside", "_meter", "_what")

    def __init__(
        self,
        what: str,
        rate: Rate | None,
        at_once: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._meter = None if rate is None else MemoryMeter(rate, clock=clock)
        self._at_once = at_once
        self._inside = 0

    def passes(self) -> bool:
        """Let one through, if the rate allows it."""
        return self._meter is None or self._meter.spend("") == 0.0

    def __enter__(self) -> None:
        """Enter, until the block is left.

        Raises:
            Refuse: too many are inside, or came in a short time.
        """
        if self._at_once is not None and self._inside >= self._at_once:
            raise BadQuestion(
                LIMITED_CODE, f"Too many {self._what} at once: this client allows {self._at_once}"
            )
        if self._meter is not None and not self.passes():
            raise BadQuestion(
                LIMITED_CODE, f"Too many {self._what}: this client allows {self._meter.rate}"
            )
        self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._inside -= 1
