"""Attempt: one thing that somebody wants done, as policy, people and the audit log look at it."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
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

ID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ID_PAIRS = tuple(first + second for first in ID_ALPHABET for second in ID_ALPHABET)


RANDOM_BYTES = 10  # of an id
MAX_SPARE_DRAWS = 128
SPARE_DRAWS: list[bytes] = []


def draw_random() -> bytes:
    """Ten random bytes, of which many are fetched at once: while the system is asked, other threads may go on.

    A thread that writes the audit log would, and the one that serves calls then waits for it.
    """
    try:
        return SPARE_DRAWS.pop()
    except IndexError:
        fetched = os.urandom(RANDOM_BYTES * MAX_SPARE_DRAWS)
        ends = range(RANDOM_BYTES, len(fetched), RANDOM_BYTES)
        SPARE_DRAWS.extend(fetched[at : at + RANDOM_BYTES] for at in ends)
        return fetched[:RANDOM_BYTES]


if hasattr(os, "register_at_fork"):  # a child must not draw what its parent draws
    os.register_at_fork(after_in_child=SPARE_DRAWS.clear)


def new_id(clock: Callable[[], float] = time.time) -> str:
    """A name that nobody else has, of 26 letters and digits; those of later seconds sort after earlier ones."""
    time_ms, random = int(clock() * 1000), int.from_bytes(draw_random(), "big")
    # in parts of 50 and 40 bits: arithmetic with longer numbers takes most of the time
    first, second, pairs = random >> 40, random & 0xFF_FFFF_FFFF, ID_PAIRS
    return "".join((
        pairs[time_ms >> 40], pairs[time_ms >> 30 & 1023], pairs[time_ms >> 20 & 1023],
        pairs[time_ms >> 10 & 1023], pairs[time_ms & 1023],
        pairs[first >> 30], pairs[first >> 20 & 1023], pairs[first >> 10 & 1023], pairs[first & 1023],
        pairs[second >> 30], pairs[second >> 20 & 1023], pairs[second >> 10 & 1023], pairs[second & 1023],
    ))  # fmt: skip


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
