"""Decisions on questions of tasks, kept until they are delivered: a host that starts again does not ask again."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from isthmus.host.model.interaction import Decision
from isthmus.host.state.database import HostState, decode_row

if TYPE_CHECKING:
    import sqlite3

MAX_DECISION_AGE_S = 30 * 86400.0  # then it is forgotten: nobody came for it

_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Decision)


def make_connection_key(server: str, isolation: str, identity: str) -> str:
    """Make the key of a connection, within which names of tasks are unique.

    Args:
        server: the server's name in the configuration.
        isolation: whose connection it is.
        identity: what the server is bound to.
    """
    return _encode((server, isolation, identity)).decode()


class TaskQuestion(Struct, frozen=True):
    """The name of a question for as long as its task lasts, over any number of restarts.

    Attributes:
        identity: which server, on whose connection; see :func:`make_connection_key`.
        task: the task's name on its server.
        key: the question's name within the task, and what is wanted.
    """

    identity: str
    task: str
    key: str


class Decisions:
    """Decisions on questions that outlive the host.

    Args:
        state: where they are kept.
        clock: says the seconds since the epoch.
    """

    def __init__(self, state: HostState, clock: Callable[[], float] = time.time) -> None:
        self._state = state
        self._clock = clock
        self._known: dict[TaskQuestion, Decision] = {}

    def __len__(self) -> int:
        return len(self._known)

    async def load(self) -> None:
        """Read what there is; what is too old is forgotten."""
        oldest = int((self._clock() - MAX_DECISION_AGE_S) * 1e6)

        def work(db: "sqlite3.Connection") -> list[tuple[str, str, str, bytes]]:
            db.execute("DELETE FROM decision WHERE at_us < ?", (oldest,))
            return db.execute("SELECT identity, task, key, decision FROM decision").fetchall()

        for identity, task, key, decision in await self._state.write(work):
            known = decode_row(_decoder, decision, "a decision")
            if known is not None:
                self._known[TaskQuestion(identity, task, key)] = known

    def find(self, question: TaskQuestion) -> Decision | None:
        """The decision on a question; None where there is none."""
        return self._known.get(question)

    async def keep(self, question: TaskQuestion, decision: Decision) -> None:
        """Keep a decision; it is durable when this returns.

        Raises:
            StoreUnavailable: it is not kept.
        """
        row = (
            question.identity,
            question.task,
            question.key,
            int(self._clock() * 1e6),
            _encode(decision),
        )
        await self._state.write(
            lambda db: db.execute("INSERT OR REPLACE INTO decision VALUES (?, ?, ?, ?, ?)", row)
        )
        self._known[question] = decision

    def forget(self, identity: str, task: str) -> None:
        """The task is over: nobody asks any more."""
        gone = [q for q in self._known if (q.identity, q.task) == (identity, task)]
        for question in gone:
            del self._known[question]
        if gone:
            self._state.post(
                lambda db: db.execute(
                    "DELETE FROM decision WHERE identity = ? AND task = ?", (identity, task)
                )
            )
