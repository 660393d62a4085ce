"""Attempt: one thing that somebody wants done, as policy, people and the audit log look at it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

from msgspec import Struct

Action: TypeAlias = Literal[
    "server.install",
    "server.connect",
    "tool.call",
    "tool.change",
    "resource.read",
    "resource.subscribe",
    "prompt.get",
    "completion",
    "task.cancel",
    "sampling.request",
    "sampling.respond",
    "elicit.form",
    "elicit.url",
    "roots.expose",
    "context.share",
]
"""What can be wanted. ``tool.change`` is the release of a tool whose definition has changed."""

Origin: TypeAlias = Literal[
    "local", "attached", "gateway", "request", "result", "task", "search", "app", "code"
]
"""By which way it came.

``local`` is a program's own call; ``attached`` that of a program in another process, which came over the
control socket of the host; ``gateway`` that of a client of a gateway; ``request``, ``result`` and ``task``
are the three routes by which a server asks: a request of its own (up to 2025-11-25), the result of our call
(since 2026-07-28), and a task; ``search`` came through the tools that find tools.
"""


class Attempt(Struct, frozen=True, kw_only=True):
    """An attempt: one action that a principal wants done.

    Attributes:
        id: its name, here, in the audit log and on every surface.
        action: what is wanted.
        principal: who wants it: ``user:NAME``, ``agent:RUN``, or ``server:NAME`` where a server asks.
        server: the server's name in the configuration.
        object: the tool, resource or prompt, as the server spells it; empty for the server as a whole.
        arguments: what it is wanted with, as plain data.
        run: the run it belongs to: what shares labels, budgets and grants.
        parent: the attempt in whose course this one came about; empty where that is not known.
        user: the principal of that attempt, where a server asks in its course; empty where nobody can tell.
        course: that attempt in words: a tool and its server.
        asker: who asked for it, in words: a model, a program; empty where nobody said so.
        origin: by which way it came.
        isolation: whose connection to the server it uses; empty for the one that all share.
        profile: the profile of a gateway that it is made through, whose rules tighten the policy; or empty.
    """

    id: str
    action: Action
    principal: str
    server: str
    object: str = ""
    arguments: Mapping[str, Any] = {}
    run: str = ""
    parent: str = ""
    user: str = ""
    origin: Origin = "local"
    isolation: str = ""
    course: str = ""
    asker: str = ""
    profile: str = ""

    @property
    def owner(self) -> str:
        """The principal whose it is: of what a server asks the user in whose call it does, where known."""
        return self.user or self.principal

    @property
    def words(self) -> str:
        """The attempt in words, for whatever comes about in its course."""
        return f"{self.object or self.action} of {self.server}" if self.server else self.object


class Asker(Struct, frozen=True):
    """The asker of an attempt that is not the host's own program: in words for a person, and by which way."""

    words: str = ""
    origin: Origin = "local"


NOBODY = Asker()

ASKER: ContextVar[Asker] = ContextVar("isthmus_asker", default=NOBODY)


@contextmanager
def asked_by(words: str, origin: Origin = "local") -> Iterator[None]:
    """Have everything that is attempted meanwhile say who asked for it."""
    token = ASKER.set(Asker(words, origin))
    try:
        yield
    finally:
        ASKER.reset(token)
