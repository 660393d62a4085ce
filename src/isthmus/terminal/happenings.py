"""What happens in the host, a line each, and what the audit log has of what happened before."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import Input

from isthmus.host.attempt import Attempt
from isthmus.host.events import (
    Answered,
    Asked,
    Began,
    Ended,
    HostEvent,
    Noticed,
    Progressed,
    ServerMoved,
)
from isthmus.host.view import HostView
from isthmus.terminal.cards import question
from isthmus.terminal.detail import Detail
from isthmus.terminal.lines import Line, brief, name
from isthmus.terminal.rows import written

__all__ = ["Happenings", "told"]

MOST = 500
"""Lines that are kept."""

MAX_SEARCHED = 5_000
"""Rows of the audit log that are searched, the last ones; ``isthmus audit search`` has all."""

NOT_FOUND = Line(
    "  No row of the audit log has these words; isthmus audit search looks further.", "dim"
)
QUIET = Line("  Nothing has happened yet.", "dim")


def told(event: HostEvent) -> Line | None:
    """An event in a line; None for what would only fill the screen."""
    if isinstance(event, Progressed):
        return None
    text = TOLD[type(event)](event)
    return Line(text, "warn" if isinstance(event, Noticed) else "text")


def ended(event: Ended) -> str:
    """How something came out."""
    how = f"failed: {brief(event.reason or event.error)}" if event.failed else "done"
    return f"ended    {how} ({event.seconds:.2f} s)"


def moved(event: ServerMoved) -> str:
    """How a server is now."""
    return f"server   {name(event.server)} is {event.state}" + (
        event.error and f": {brief(event.error)}"
    )


TOLD: Mapping[type, Callable[[Any], str]] = {
    Asked: lambda event: f"asked    {question(event.interaction)}",
    Answered: lambda event: f"answered {event.decision.verdict} by {name(event.decision.by)}",
    Began: lambda event: f"began    {_attempt(event.attempt)}",
    Ended: ended,
    ServerMoved: moved,
    Noticed: lambda event: f"{event.about:8} {name(event.server)} {brief(event.text)}",
}


def _attempt(attempt: Attempt) -> str:
    return f"{attempt.action} {name(attempt.server)}: {name(attempt.object)}"


class Happenings(Container):
    """The log.

    Args:
        view: the host.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "search"),
        Binding("escape", "all", show=False),
    ]

    def __init__(self, view: HostView) -> None:
        super().__init__(id="log")
        self._view = view
        self._words = ""
        self._searched: list[Line] = []
        self._before: list[Line] = []
        self._lines: deque[Line] = deque(maxlen=MOST)

    def compose(self) -> ComposeResult:
        """One text, and a place to search."""
        yield Detail(id="happenings")
        yield Input(placeholder="search the audit log: server, tool, who, how", id="log-search")

    def on_mount(self) -> None:
        """Search nothing yet."""
        self.query_one("#log-search").display = False

    async def action_search(self) -> None:
        """Ask for words; only rows of the audit log with all of them are shown."""
        self._searched = [written(row) for row in await self._view.audit_tail(MAX_SEARCHED)]
        box = self.query_one("#log-search", Input)
        box.display = True
        box.focus()

    def action_all(self) -> None:
        """Search no more."""
        box = self.query_one("#log-search", Input)
        box.value = ""
        box.display = False
        self.query_one(Detail).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while one types."""
        event.stop()
        self._words = event.value
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go back to the rows that were found."""
        event.stop()
        event.input.display = bool(event.value)
        self.query_one(Detail).focus()

    async def open(self) -> None:
        """Show it, with what the audit log has of the time before."""
        if not self._before:
            self._before = [written(row) for row in await self._view.audit_tail(50)]
        self._show()

    def add(self, event: HostEvent) -> None:
        """One more thing has happened."""
        line = told(event)
        if line is not None:
            self._lines.append(line)
            if self.display:
                self._show()

    def _show(self) -> None:
        detail = self.query_one(Detail)
        words = self._words.lower().split()
        if words:
            found = [one for one in self._searched if all(x in one.text.lower() for x in words)]
            detail.show(found or [NOT_FOUND], top=False)
        else:
            detail.show([*self._before, *self._lines] or [QUIET], top=False)
        detail.scroll_end(animate=False)
