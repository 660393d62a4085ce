"""Where every question to a person goes, by whichever way it came."""

from collections.abc import Sequence

from isthmus.host.events import Events
from isthmus.host.interaction import Approver, Decision, Interaction

__all__ = ["Broker"]


class Broker:
    """Puts questions to the surfaces that are attached; the first answer counts.

    Attributes:
        events: tells of questions and answers.
    """

    def __init__(self, *, events: Events | None = None) -> None:
        self.events = events or Events()

    def attach(self, approver: Approver) -> None:
        """Put questions to this surface, also those that wait already."""
        raise NotImplementedError

    def detach(self, approver: Approver) -> None:
        """Put no more questions to it; those that it shows are withdrawn there."""
        raise NotImplementedError

    async def ask(self, interaction: Interaction) -> Decision:
        """Ask, and wait; silence is no.

        Raises:
            Exhausted: the server has too many questions waiting.
        """
        raise NotImplementedError

    def pending(self) -> Sequence[Interaction]:
        """The questions that wait, those that matter most first."""
        raise NotImplementedError

    async def decide(self, id: str, decision: Decision) -> bool:
        """Answer a question; False where somebody else was first, or nobody asks it any more."""
        raise NotImplementedError
