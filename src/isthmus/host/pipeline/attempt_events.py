"""Events of attempts, for whoever watches the host, and the end of attempts that a person has stopped."""

import asyncio
from typing import TYPE_CHECKING

from isthmus.core.text import clean_text
from isthmus.errors import IsthmusError
from isthmus.host.model.errors import Denied, HostError, OutcomeUnknown
from isthmus.host.model.events import AttemptEnded, AttemptJudged

if TYPE_CHECKING:
    from isthmus.host.pipeline.acts.act import ActOutcome
    from isthmus.host.pipeline.passage import Passage

MAX_REASON_CHARS = 2_000  # of an error, for those who watch


def make_judged(passage: "Passage") -> AttemptJudged:
    """The event that policy has decided about an attempt."""
    spoken = passage.facts.era
    return AttemptJudged(attempt=passage.redact_attempt(), trace=passage.trace, revision=spoken)


def make_ended(passage: "Passage", outcome: "ActOutcome") -> AttemptEnded:
    """The event that an attempt has ended with a result."""
    tokens = (outcome.tokens_in, outcome.tokens_out)
    return AttemptEnded(
        id=passage.attempt.id,
        failed=outcome.failed,
        seconds=passage.seconds(),
        tokens=None if tokens == (None, None) else sum(one or 0 for one in tokens),
    )


def make_failed(passage: "Passage", error: BaseException) -> AttemptEnded:
    """The event that an attempt has ended without a result."""
    said = str(error) if isinstance(error, IsthmusError) else ""
    return AttemptEnded(
        id=passage.attempt.id,
        failed=True,
        error=type(error).__name__,
        reason=clean_text(said[:MAX_REASON_CHARS]),
        seconds=passage.seconds(),
        attempt=None if passage.trace.rule else passage.attempt,
    )


class StoppedAttempts:
    """The attempts that a person has stopped, until they have ended."""

    def __init__(self) -> None:
        self._by: dict[str, str] = {}

    def stop(self, id: str, task: "asyncio.Task[object]", by: str) -> bool:
        """Stop an attempt; False where it has ended.

        Args:
            id: of the attempt.
            task: makes it.
            by: who stops it.
        """
        if task.done():
            return False
        self._by[id] = by or "a person"
        return task.cancel()

    def forget(self, id: str) -> None:
        """An attempt has ended, however."""
        self._by.pop(id, None)

    def find_error(self, passage: "Passage") -> HostError | None:
        """The error of an attempt that was cancelled; None where its caller is gone."""
        attempt, task = passage.attempt, asyncio.current_task()
        by = self._by.pop(attempt.id, None)
        if by is None or task is None or task.uncancel():
            return None
        said = (
            f"{attempt.action} {attempt.object!r} of server {attempt.server!r} was stopped by {by}"
        )
        if not passage.intended:
            return Denied(f"{said}: nothing was sent", by=by, verdict="cancel")
        text = f"{said} while the server worked on it: nobody knows what it has done by then"
        return OutcomeUnknown(text, call=attempt.id)
