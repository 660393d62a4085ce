"""Approved calls: how the pipeline has people asked about calls whose clients may not wait for the answer."""

from typing import TYPE_CHECKING

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import Denied
from isthmus.host.model.interaction import Decision, Interaction
from isthmus.host.model.trace import Trace
from isthmus.host.pipeline.passage import Passage

if TYPE_CHECKING:
    from isthmus.host.approvals.approval_desk import ApprovalDesk


class ApprovedCalls:
    """Asks about the calls of a gateway's clients, and uses what was decided.

    Args:
        desk: keeps the approvals.
    """

    def __init__(self, desk: "ApprovalDesk") -> None:
        self._desk = desk

    def handles(self, attempt: Attempt) -> bool:
        """Whether an attempt is made for a client of a gateway."""
        return self._desk.handles(attempt)

    async def ask(self, asked: Interaction, passage: Passage) -> Decision:
        """Ask, or find what was decided on the same call before.

        Raises:
            Denied, Exhausted, StoreUnavailable, AuditUnavailable: see :meth:`ApprovalDesk.ask`.
        """
        self.leave(passage)  # an earlier one, which does not suffice
        given = await self._desk.ask(asked, passage.attempt, passage.facts)
        passage.approval = given.id
        return given.decision

    def tell_edited(self, passage: Passage) -> None:
        """Have the client told of the arguments that a person put in place of its own."""
        if passage.approval:
            self._desk.tell_edited(passage.redact_attempt())

    async def use(self, passage: Passage) -> None:
        """Use what a person approved, durably; whatever happens from now on, it is used.

        Raises:
            Denied: it has expired.
            StoreUnavailable: it is not known to be used.
        """
        attempt = passage.attempt
        if passage.approval and not await self._desk.use(passage.approval, attempt.id):
            raise Denied(
                f"the approval of {attempt.action} {attempt.object!r} of server {attempt.server!r} "
                "has expired: call again, and a person is asked again",
                rule=passage.trace.rule,
                by="approval",
            )

    def leave(self, passage: Passage, error: BaseException | None = None) -> None:
        """The call is over; an approval that it has not used waits for the same call to come again."""
        if passage.approval:
            self._desk.leave(passage.approval, passage.attempt.id, error)
            passage.approval = ""


def make_denial(attempt: Attempt, trace: Trace, decision: Decision) -> Denied:
    """Make the error of an attempt that a person or silence denied."""
    why = f": {decision.reason}" if decision.reason else ""
    return Denied(
        f"{attempt.action} {attempt.object!r} of server {attempt.server!r} was not allowed "
        f"({decision.by or 'somebody'}){why}",
        rule=trace.rule,
        by=decision.by,
        verdict="cancel" if decision.verdict == "cancel" else "deny",
        reason=decision.reason,
    )
