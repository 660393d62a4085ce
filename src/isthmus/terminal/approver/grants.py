"""The grants pane: what was allowed for longer than once, and how to revoke it."""

import time
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from isthmus.cards.lines import StyledLine, display_name, field_line, first_sentence
from isthmus.host.model.view import GrantLine
from isthmus.host.remote.view import HostView
from isthmus.terminal.approver.questions import QuestionsPane
from isthmus.terminal.approver.widgets import Detail

NO_GRANTS = StyledLine("  There are no grants.", "dim")


class GrantsPane(Container):
    """The list of grants beside one of them.

    Args:
        view: the host.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("x", "revoke", "take back")]

    def __init__(self, view: HostView) -> None:
        super().__init__(id="grants")
        self._view = view
        self._shown: list[GrantLine] = []

    def compose(self) -> ComposeResult:
        """The list and the facts."""
        yield OptionList(id="grant-list", markup=False)
        yield Detail(id="grant-detail")

    async def open(self) -> None:
        """Show those that hold now."""
        rows = self.query_one(OptionList)
        at = rows.highlighted or 0
        self._shown = list(await self._view.grants())
        rows.clear_options()
        rows.add_options(
            [Option(Text(display_name(one.text), no_wrap=True)) for one in self._shown]
        )
        rows.highlighted = min(at, len(self._shown) - 1) if self._shown else None
        self._show()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Another one is looked at."""
        event.stop()
        self._show()

    @property
    def _chosen(self) -> GrantLine | None:
        at = self.query_one(OptionList).highlighted
        return None if at is None or at >= len(self._shown) else self._shown[at]

    def _show(self) -> None:
        chosen = self._chosen
        found = [NO_GRANTS] if chosen is None else describe_grant(chosen)
        self.query_one(Detail).show(found, top=False)

    def action_revoke(self) -> None:
        """Take the yes back: the next call is asked about again."""
        chosen = self._chosen
        if chosen is not None:
            self.run_worker(self._revoke(chosen))

    async def _revoke(self, chosen: GrantLine) -> None:
        try:
            gone = await self._view.revoke(chosen.id, by="terminal")
        except Exception as error:  # noqa: BLE001 - whatever it is, the user must hear of it
            told = f"The grant was not revoked: {first_sentence(str(error))}"
        else:
            told = (
                f"{'Taken back' if gone else 'It had already ended'}: {display_name(chosen.text)}"
            )
        self.post_message(QuestionsPane.Status(told))
        await self.open()


def describe_grant(grant: GrantLine) -> list[StyledLine]:
    """Everything known of a grant."""
    until = "no expiry" if grant.until is None else _format_time(grant.until)
    return [
        StyledLine(display_name(grant.text), "title"),
        field_line("for", grant.scope),
        field_line("who", grant.principal),
        field_line("what", f"{grant.action} {grant.object}".strip()),
        field_line("server", grant.server),
        field_line("given", _format_time(grant.created)),
        field_line("by", f"{grant.by} ({grant.assurance})"),
        field_line("until", until),
        field_line("uses left", "any number" if grant.uses is None else grant.uses),
        field_line("id", grant.id),
    ]


def _format_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
