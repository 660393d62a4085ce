"""Takers at a terminal: a question that somebody has taken to answer is shown by name, and taken over."""

from collections.abc import Iterator

from isthmus.cards.lines import StyledLine, display_name
from isthmus.host.model.interaction import Interaction, QuestionTaker
from isthmus.host.remote.view import HostView

RENEWAL_S = 15  # a taker gives a sign so often


class TerminalTaker:
    """This terminal as a taker of questions.

    Args:
        view: the host.
        taker: the name of the terminal, and its own id.
    """

    def __init__(self, view: HostView, taker: QuestionTaker) -> None:
        self._view = view
        self._taker = taker
        self._seconds = 0

    def find(self, chosen: Interaction | None) -> QuestionTaker | None:
        """Whoever has taken a question, this terminal or another."""
        return None if chosen is None else self._view.takers().get(chosen.id)

    def find_other(self, chosen: Interaction) -> QuestionTaker | None:
        """Somebody else who has taken a question."""
        taker = self.find(chosen)
        return None if taker is None or taker.holder == self._taker.holder else taker

    def list_lines(self, chosen: Interaction) -> Iterator[StyledLine]:
        """The taker of a question, for its card."""
        other = self.find_other(chosen)
        if other is not None:
            yield StyledLine(f"  ! Taken by {display_name(other.by)}; t takes it over.", "warn")
        elif self.find(chosen) is not None:
            yield StyledLine("  You have taken this question; t releases it.", "dim")

    async def take(self, chosen: Interaction) -> None:
        """Take a question that nobody else has taken."""
        await self._view.take_question(chosen.id, self._taker)

    async def move(self, chosen: Interaction) -> str:
        """Take a question, also from somebody else, or give it back; what there is to say of it."""
        taker = self.find(chosen)
        if taker is not None and taker.holder == self._taker.holder:
            await self._view.free_question(chosen.id, self._taker.holder)
            return "You have released the question."
        await self._view.take_question(chosen.id, self._taker, over=True)
        return (
            "You have taken the question."
            if taker is None
            else f"Taken over from {display_name(taker.by)}."
        )

    def is_due(self) -> bool:
        """Whether it is time for a sign; called every second."""
        self._seconds = (self._seconds + 1) % RENEWAL_S
        return self._seconds == 0 and self._taker in self._view.takers().values()

    async def renew(self) -> None:
        """Say that one is still there, for each question that was taken here."""
        for id, taker in self._view.takers().items():
            if taker.holder == self._taker.holder:
                await self._view.take_question(id, self._taker)

    async def free_all(self) -> None:
        """Give back all that was taken here."""
        for id, taker in self._view.takers().items():
            if taker.holder == self._taker.holder:
                await self._view.free_question(id, taker.holder)
