"""Takers of questions: who has taken a question to answer it, so that two people do not work on one.

It is a courtesy among people at surfaces, which show it by name and let it be taken over; what counts is
the first decision, as ever. A taker who goes away frees the question: their surface says so, its connection
ends, or it has not said for a while that they are still there.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from isthmus.host.model.events import QuestionTaken
from isthmus.host.model.interaction import Interaction, QuestionTaker
from isthmus.host.model.row import AuditRow

if TYPE_CHECKING:
    from isthmus.host.approvals.broker import Broker, BrokerAudit

TAKER_TIMEOUT_S = 60.0  # after the last sign of a taker


class QuestionTakers:
    """The takers of the questions that wait at a broker.

    Args:
        broker: knows what waits.
        audit: gets a row for each question that is taken over.
        timeout: seconds after which a taker who gives no sign is gone.
    """

    def __init__(
        self, broker: "Broker", audit: "BrokerAudit", timeout: float = TAKER_TIMEOUT_S
    ) -> None:
        self._broker = broker
        self._audit = audit
        self._timeout = timeout
        self._takers: dict[str, QuestionTaker] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def list(self) -> Mapping[str, QuestionTaker]:
        """The taker of each question that waits and is taken, by its id."""
        return {id: one for id, one in self._takers.items() if self._broker.find(id) is not None}

    def take(self, id: str, taker: QuestionTaker, *, over: bool) -> QuestionTaker | None:
        """Take a question, or give a sign that one is still there; whoever has it then.

        Args:
            id: of the question.
            taker: who wants it.
            over: also from somebody else.

        Returns:
            The taker, or whoever else has it; None where it does not wait.
        """
        asked = self._broker.find(id)
        if asked is None:
            self._drop(id)
            return None
        before = self._takers.get(id)
        if before is not None and before.holder != taker.holder and not over:
            return before
        self._drop(id)
        self._takers[id] = taker
        self._timers[id] = asyncio.get_running_loop().call_later(
            self._timeout, self.free, id, taker.holder
        )
        if before != taker:
            self._broker.events.tell(QuestionTaken(id=id, taker=taker))
            if before is not None and before.holder != taker.holder:
                self._audit.note(_make_row(asked, before, taker))
        return taker

    def free(self, id: str, holder: str) -> bool:
        """Give a question back; False where somebody else has it, or nobody."""
        taker = self._takers.get(id)
        if taker is None or taker.holder != holder:
            return False
        self._drop(id)
        if self._broker.find(id) is not None:
            self._broker.events.tell(QuestionTaken(id=id))
        return True

    def _drop(self, id: str) -> None:
        self._takers.pop(id, None)
        timer = self._timers.pop(id, None)
        if timer is not None:
            timer.cancel()


def _make_row(asked: Interaction, before: QuestionTaker, taker: QuestionTaker) -> AuditRow:
    attempt = asked.attempt
    return AuditRow(
        kind="decision", call=attempt.id, parent=attempt.parent, run=attempt.run,
        principal=attempt.principal, action=attempt.action, server=attempt.server,
        object=attempt.object, origin=attempt.origin, effect="taken over", approver=taker.by,
        detail={"interaction": asked.id, "from": before.by},
    )  # fmt: skip
