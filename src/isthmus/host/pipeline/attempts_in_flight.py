"""Attempts in flight: what is under way at each connection, so that it is known in whose course a server asks."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from isthmus.host.model.attempt import Attempt

T = TypeVar("T")


class AttemptsInFlight:
    """Attempts under way at each connection: a server that asks something asks in their course."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], dict[str, Attempt]] = {}
        self._depth: dict[str, int] = {}
        self._questions: dict[str, set[asyncio.Future[None]]] = {}

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

    def void_questions(self, attempt: Attempt) -> None:
        """It has failed or was cancelled: what its server asked in its course waits for no answer any more."""
        for failed in self._questions.pop(attempt.id, ()):
            if not failed.done():
                failed.set_result(None)

    async def answer_within(
        self, attempt: Attempt | None, answer: Coroutine[object, object, T], void: T
    ) -> T:
        """Answer a question that was asked in the course of an attempt.

        Args:
            attempt: which; None where nobody knows.
            answer: what gives the answer; it is cancelled once the attempt has failed or was cancelled,
                since a server need not take its question back then.
            void: the answer in that case.
        """
        if attempt is None or attempt.id not in self._at.get(
            (attempt.server, attempt.isolation), {}
        ):
            return await answer
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        questions = self._questions.setdefault(attempt.id, set())
        questions.add(failed)
        task = asyncio.ensure_future(answer)
        try:
            await asyncio.wait((task, failed), return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else void
        finally:
            task.cancel()
            questions.discard(failed)
            if not questions and self._questions.get(attempt.id) is questions:
                del self._questions[attempt.id]

    def at(self, server: str, isolation: str = "") -> tuple[Attempt, ...]:
        """The attempts under way at a connection."""
        return tuple(self._at.get((server, isolation), {}).values())
