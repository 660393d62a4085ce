"""The log pane: events of the host, a line each, and a search of the audit log."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import Input

from isthmus.cards.cards import format_question
from isthmus.cards.lines import StyledLine, display_name, first_sentence, format_audit_line
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.events import (
    AttemptBegan,
    AttemptEnded,
    AttemptJudged,
    AttemptProgressed,
    HostEvent,
    HostNotice,
    QuestionAnswered,
    QuestionAsked,
    QuestionTaken,
    ServerMoved,
)
from isthmus.host.remote.view import HostView
from isthmus.terminal.approver.widgets import Detail

MAX_LOG_LINES = 500

MAX_SEARCHED_ROWS = 5_000  # the last ones; isthmus audit search has all

NOT_FOUND = StyledLine(
    "  No recent row of the audit log matches; isthmus audit search searches all rows.", "dim"
)
NOTHING_HAPPENED = StyledLine("  Nothing has happened yet.", "dim")


def describe_event(event: HostEvent) -> StyledLine | None:
    """An event in a line; None for what would only fill the screen."""
    if isinstance(event, AttemptProgressed):
        return None
    text = EVENT_TEXTS[type(event)](event)
    return StyledLine(text, "warn" if isinstance(event, HostNotice) else "text")


def describe_outcome(event: AttemptEnded) -> str:
    """The outcome of an attempt, in words."""
    how = f"failed: {first_sentence(event.reason or event.error)}" if event.failed else "done"
    return f"ended    {how} ({event.seconds:.2f} s)"


def describe_state(event: ServerMoved) -> str:
    """The state of a server, in words."""
    return f"server   {display_name(event.server)} is {event.state}" + (
        event.error and f": {first_sentence(event.error)}"
    )


EVENT_TEXTS: Mapping[type, Callable[[Any], str]] = {
    QuestionAsked: lambda event: f"asked    {format_question(event.interaction)}",
    QuestionAnswered: lambda event: (
        f"answered {event.decision.verdict} by {display_name(event.decision.by)}"
    ),
    QuestionTaken: lambda event: (
        f"taken    by {display_name(event.taker.by)}" if event.taker else "freed    by its taker"
    ),
    AttemptJudged: lambda event: (
        f"judged   {event.trace.effect} {_describe_attempt(event.attempt)}"
    ),
    AttemptBegan: lambda event: f"began    {_describe_attempt(event.attempt)}",
    AttemptEnded: describe_outcome,
    ServerMoved: describe_state,
    HostNotice: lambda event: (
        f"{event.about:8} {display_name(event.server)} {first_sentence(event.text)}"
    ),
}


def _describe_attempt(attempt: Attempt) -> str:
    return f"{attempt.action} {display_name(attempt.server)}: {display_name(attempt.object)}"


class EventLogPane(Container):
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
        self._searched: list[StyledLine] = []
        self._before: list[StyledLine] = []
        self._lines: deque[StyledLine] = deque(maxlen=MAX_LOG_LINES)

    def compose(self) -> ComposeResult:
        """Make the text and the search box."""
        yield Detail(id="happenings")
        yield Input(placeholder="search the audit log: server, tool, who, how", id="log-search")

    def on_mount(self) -> None:
        """Search nothing yet."""
        self.query_one("#log-search").display = False

    async def action_search(self) -> None:
        """Ask for words; only rows of the audit log with all of them are shown."""
        self._searched = [
            format_audit_line(row) for row in await self._view.audit_tail(MAX_SEARCHED_ROWS)
        ]
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
            self._before = [format_audit_line(row) for row in await self._view.audit_tail(50)]
        self._show()

    def add(self, event: HostEvent) -> None:
        """Add an event."""
        line = describe_event(event)
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
            detail.show([*self._before, *self._lines] or [NOTHING_HAPPENED], top=False)
        detail.scroll_end(animate=False)
