"""The list of open questions, the riskiest first, each with the time that is left."""

from collections.abc import Callable, Sequence

from rich.text import Text
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from isthmus.cards.lines import display_name, pick_telling_argument
from isthmus.cards.queue import SHORT_QUESTIONS, format_time_left
from isthmus.host.model.interaction import Interaction


def format_question_row(
    interaction: Interaction, now: float, *, chosen: bool, others: Sequence[Interaction] = ()
) -> Text:
    """A question in one line: readable without colours, too.

    Args:
        interaction: the question.
        now: seconds since the epoch.
        chosen: whether it is looked at.
        others: the questions beside it.
    """
    attempt = interaction.attempt
    telling = pick_telling_argument(interaction, others)
    what = f"{SHORT_QUESTIONS.get(attempt.action, '')} {display_name(attempt.object)} {telling}".strip()
    risk = "HIGH" if interaction.risk == "high" else interaction.risk[:4]
    mark = ">" if chosen else " "
    time = format_time_left(interaction.deadline, now)
    text = f"{mark} {risk:4} {time:>5} {display_name(attempt.server)}: {what}"
    return Text(text, style="bold" if chosen else "", no_wrap=True, overflow="ellipsis")


class Inbox(OptionList):
    """The list of questions; which one is looked at stays so while others come and go.

    Args:
        now: seconds since the epoch.
    """

    def __init__(self, now: Callable[[], float], *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._now = now
        self._shown: list[Interaction] = []
        self.border_title = "questions"

    @property
    def chosen(self) -> Interaction | None:
        """The question that is looked at."""
        at = self.highlighted
        return None if at is None or at >= len(self._shown) else self._shown[at]

    @property
    def rows(self) -> list[str]:
        """The rows that are shown."""
        return [str(self.get_option_at_index(n).prompt) for n in range(self.option_count)]

    def show(self, questions: Sequence[Interaction]) -> None:
        """Show these; the one that was looked at still is, where it is among them."""
        before = self.chosen
        at = min(self.highlighted or 0, len(questions) - 1)
        if before is not None:
            ids = [one.id for one in questions]
            at = ids.index(before.id) if before.id in ids else at
        self._shown = list(questions)
        self.clear_options()
        self.add_options(
            [
                Option(format_question_row(one, self._now(), chosen=False, others=questions))
                for one in questions
            ]
        )
        self.highlighted = at if questions else None
        self.paint()

    def paint(self) -> None:
        """Write the rows anew: time has passed, or another one is looked at."""
        for at, one in enumerate(self._shown):
            chosen = at == self.highlighted
            self.replace_option_prompt_at_index(
                at, format_question_row(one, self._now(), chosen=chosen, others=self._shown)
            )
