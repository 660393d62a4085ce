"""The approver's app: the full screen with its panes.

It knows a host only as a :class:`~isthmus.host.remote.view.HostView`, in this process or another.
"""

import asyncio
import os
from contextlib import suppress
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import ContentSwitcher, Static

from isthmus.errors import IsthmusError
from isthmus.host.model.events import (
    HostEvent,
    QuestionAnswered,
    QuestionAsked,
    QuestionTaken,
    ServerMoved,
)
from isthmus.host.remote.view import HostView
from isthmus.terminal.answer_keys import KeyGuard
from isthmus.terminal.approver.event_log import EventLogPane
from isthmus.terminal.approver.grants import GrantsPane
from isthmus.terminal.approver.inbox import Inbox
from isthmus.terminal.approver.questions import QuestionsPane, TerminalSurface
from isthmus.terminal.approver.servers import ServersPane
from isthmus.terminal.approver.takers import TerminalTaker
from isthmus.terminal.approver.widgets import Detail, FullScreenApp
from isthmus.terminal.editing import edit_in_editor

KEYS = {
    "servers": "s start  x stop  r restart  l its log  t its tools",
    "log": "up, down: scroll  / search",
    "grants": "x take back",
}
PANES = "1 questions  2 servers  3 log  4 grants  q quit"


class TerminalApprover(FullScreenApp):
    """The approver in a terminal.

    Args:
        view: the host.
        surface: what else it needs; None for this process's terminal, clock and editor.

    Attributes:
        surface: the same.
    """

    TITLE = "isthmus host"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [  # noqa: RUF012 - as Textual declares it
        (0, "-narrow"),
        (100, "-wide"),
    ]
    CSS = """
    #bar, #keys, #told { height: auto; padding: 0 1; }
    #bar { text-style: bold; }
    #told { text-style: italic; }
    ContentSwitcher { height: 1fr; }
    #questions, #servers, #log, #grants { height: 1fr; layout: grid; grid-size: 1; }
    #questions, #servers, #grants { grid-rows: 4 1fr; }
    #log { grid-rows: 1fr; }
    OptionList { border: none; padding: 0; height: 1fr; max-height: 100%; }
    Detail { border-top: solid $foreground; }
    #search, #log-search { height: 1; border: none; padding: 0 1; dock: bottom; }
    .-wide #questions, .-wide #servers, .-wide #grants { grid-size: 2; grid-columns: 44 1fr; grid-rows: 1fr; }
    .-wide Detail { border-top: none; border-left: solid $foreground; padding-left: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "pane('questions')", "questions"),
        Binding("2", "pane('servers')", "servers"),
        Binding("3", "pane('log')", "log"),
        Binding("4", "pane('grants')", "grants"),
        Binding("q,ctrl+q,ctrl+c", "leave", "quit"),
    ]

    def __init__(self, view: HostView, surface: TerminalSurface | None = None) -> None:
        self.surface = surface or TerminalSurface()
        super().__init__(KeyGuard(self.surface.clock))
        self._view = view
        self._leaving = False

    def compose(self) -> ComposeResult:
        """A line of where one is, the panes, what was told last, and the keys."""
        yield Static("", id="bar", markup=False)
        edit = self.surface.edit or self._edit
        with ContentSwitcher(initial="questions"):
            yield QuestionsPane(self._view, self.surface, self._guard, edit)
            yield ServersPane(self._view, edit)
            yield EventLogPane(self._view)
            yield GrantsPane(self._view)
        yield Static("", id="told", markup=False)
        yield Static("", id="keys", markup=False)

    def on_mount(self) -> None:
        """Begin to listen."""
        self.run_worker(self._listen(), name="listening")
        self.set_interval(1, self.tick)
        self._paint()

    def tick(self) -> None:
        """A second has passed: less time is left."""
        for questions in self.query(QuestionsPane):  # none where the screen is being closed
            questions.tick()

    async def _listen(self) -> None:
        events = self._view.events()
        self.query_one(QuestionsPane).reload()
        async for event in events:
            self._hear(event)
        self.exit(message="The host has ended.")

    def _hear(self, event: HostEvent) -> None:
        questions = self.query_one(QuestionsPane)
        self.query_one(EventLogPane).add(event)
        match event:
            case QuestionAnswered():
                questions.answered(event)
            case QuestionAsked() | QuestionTaken():
                questions.reload()
            case ServerMoved():
                self.query_one(ServersPane).reload()
        self._paint()

    def on_questions_pane_status(self, event: QuestionsPane.Status) -> None:
        """Tell it."""
        self.query_one("#told", Static).update(event.text)
        self._paint()

    def on_questions_pane_looked(self, _event: QuestionsPane.Looked) -> None:
        """Say what the keys do now."""
        self._paint()

    def _paint(self) -> None:
        waiting, servers = len(self._view.pending()), self._view.servers()
        ill = sum(bool(one.error) for one in servers)
        health = f"{len(servers)} server{'s' * (len(servers) != 1)}" + (
            f", {ill} with an error" if ill else ""
        )
        bar = f"isthmus host | {waiting} question{'s' * (waiting != 1)} | {health}"
        self.query_one("#bar", Static).update(bar)
        pane = self.query_one(ContentSwitcher).current or ""
        keys = KEYS.get(pane) or self.query_one(QuestionsPane).keys()
        self.query_one("#keys", Static).update(f"{keys}\n{PANES}")

    async def action_pane(self, pane: str) -> None:
        """Show another part."""
        self.query_one(ContentSwitcher).current = pane
        self._guard.note_change()
        if pane == "servers":
            self.query_one(ServersPane).reload()
            self.query_one("#server-list").focus()
        elif pane == "log":
            await self.query_one(EventLogPane).open()
            self.query_one("#happenings", Detail).focus()
        elif pane == "grants":
            await self.query_one(GrantsPane).open()
            self.query_one("#grant-list").focus()
        else:
            self.query_one(Inbox).focus()
        self._paint()

    def action_leave(self) -> None:
        """Quit; where questions wait, only at the second time."""
        waiting = len(self._view.pending())
        if waiting and not self._leaving:
            self._leaving = True
            self.set_timer(5, self._stay)
            text = f"{waiting} waiting; {self.surface.leaving}. q again quits."
            self.query_one("#told", Static).update(text)
        else:
            self.exit()

    def _stay(self) -> None:
        self._leaving = False

    async def _edit(self, text: str) -> str:
        """Hand the terminal to the user's editor; the host goes on, and paints nothing meanwhile."""
        with self.suspend(), self.batch_update():
            return await edit_in_editor(text, os.environ)


async def approve(
    view: HostView, surface: TerminalSurface | None = None, *, end: asyncio.Event | None = None
) -> None:
    """Show the full screen until its user leaves, or the host ends.

    Args:
        view: the host; it knows that somebody attends as long as this lasts.
        surface: as :class:`TerminalApprover` takes it.
        end: closes the screen when it is set, as ``q`` does.
    """
    app = TerminalApprover(view, surface)
    async with view.attend(app.surface.by, app.surface.assurance):
        try:
            await app.show(end)
        finally:
            with suppress(IsthmusError):  # the host has ended
                await TerminalTaker(view, app.surface.taker).free_all()
