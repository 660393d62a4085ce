"""By which way a server's question reached us, for whoever answers it.

The functions that answer get the question and no more, since most need no more. A host wants to
know in the course of what it came: it reads :data:`ASKED` while it answers. What comes in a result,
or from a task that is waited for, is answered in the context of the call that it belongs to, so that
context variables of the caller are there as well.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias

from isthmus.revisions import Revision

__all__ = ["ASKED", "Asked", "Route", "asked_by"]

Route: TypeAlias = Literal["request", "result", "task"]
"""A request of the server's own, the result of our call, or a task that needs input."""


class Asked:
    """How one question came.

    Args:
        route: by which way.
        revision: the revision spoken.
        task: the task that it belongs to, where there is one.
        key: what names the question within its task or result; empty for a request.
    """

    __slots__ = ("key", "revision", "route", "task")

    def __init__(self, route: Route, revision: Revision, task: str = "", key: str = "") -> None:
        self.route = route
        self.revision = revision
        self.task = task
        self.key = key


ASKED: ContextVar[Asked | None] = ContextVar("isthmus_asked", default=None)
"""How the question came that is being answered; None outside of answering."""


@contextmanager
def asked_by(asked: Asked) -> Iterator[None]:
    """Answer a question within this."""
    token = ASKED.set(asked)
    try:
        yield
    finally:
        ASKED.reset(token)
