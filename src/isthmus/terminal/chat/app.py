"""The conversation's app: the full screen with the transcript, questions, and a line to type."""

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import DescendantFocus, Key, Paste
from textual.widgets import Input, Static
from textual.worker import Worker, WorkerState

from isthmus.cards.lines import StyledLine, display_name, error_lines
from isthmus.host.model.events import (
    HostEvent,
    HostNotice,
    QuestionAnswered,
    QuestionAsked,
    QuestionTaken,
    ServerMoved,
)
from isthmus.host.turns import (
    Ended,
    Inserted,
    Noted,
    Question,
    Text,
    ToolAsked,
    ToolDone,
    ToolRunning,
)
from isthmus.terminal.answer_keys import KeyGuard
from isthmus.terminal.approver.inbox import Inbox
from isthmus.terminal.approver.questions import QuestionsPane, TerminalSurface
from isthmus.terminal.approver.widgets import Detail, FullScreenApp
from isthmus.terminal.chat.completion import list_suggestions
from isthmus.terminal.chat.lines import (
    describe_inserted,
    describe_tool_call,
    describe_tool_outcome,
    describe_turn_end,
    format_progress,
)
from isthmus.terminal.chat.session import ChatItem, ChatSession
from isthmus.terminal.chat.widgets import ChatLine, Suggestions, Transcript
from isthmus.terminal.editing import edit_in_editor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TYPING_KEYS = "Enter say  Tab complete  up, down earlier lines  ^C stop, twice quits  /help"
QUESTION_KEYS = (
    "A question is open. Keys still go to your line: Tab switches to the question and back."
)
SUGGESTION_DELAY_S = 0.15  # without a key, before a server is asked for completions

LEAVE_WINDOW_S = 2.0  # a second Ctrl-C leaves


class ChatApp(FullScreenApp):
    """The conversation in a terminal.

    Args:
        session: does what is typed.
        surface: what else it needs; None for this process's terminal, clock and editor.

    Attributes:
        surface: the same.
    """

    TITLE = "isthmus chat"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #bar, #keys, #told { height: auto; padding: 0 1; }
    #bar { text-style: bold; }
    #told { text-style: italic; }
    Transcript { height: 1fr; padding: 0 1; scrollbar-gutter: stable; }
    Transcript > Static { height: auto; margin-bottom: 1; }
    Suggestions { height: auto; max-height: 8; border: none; padding: 0 1; display: none; }
    #line { height: 3; }
    QuestionsPane { height: 3fr; layout: grid; grid-size: 1; grid-rows: 3 1fr; display: none;
        border-top: solid $foreground; }
    QuestionsPane OptionList { border: none; padding: 0; height: 1fr; max-height: 100%; }
    QuestionsPane Detail { border-top: solid $foreground; }
    #search { height: 1; border: none; padding: 0 1; dock: bottom; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+q", "leave", show=False, priority=True),
        Binding("pageup", "scroll(-1)", show=False),
        Binding("pagedown", "scroll(1)", show=False),
    ]

    def __init__(self, session: ChatSession, surface: TerminalSurface | None = None) -> None:
        self.surface = surface or TerminalSurface(by="chat")
        super().__init__(KeyGuard(self.surface.clock))
        self._session = session
        self._turn: Worker[None] | None = None
        self._interrupted = float("-inf")
        self._writing = False

    def compose(self) -> ComposeResult:
        """From top to bottom: where one is, what was said, questions, what may follow, the line."""
        yield Static("", id="bar", markup=False)
        yield Transcript(id="transcript")
        edit = self.surface.edit or self._edit
        yield QuestionsPane(self._session.view, self.surface, self._guard, edit)
        offered = Suggestions(id="suggestions")
        yield offered
        yield ChatLine(offered, id="line")
        yield Static("", id="told", markup=False)
        yield Static(TYPING_KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        """Begin to listen, and learn what the servers have."""
        self.run_worker(self._listen(), name="listening")
        self.run_worker(self._learn(), name="learning")
        self.set_interval(1, self.query_one(QuestionsPane).tick)
        self._transcript.lines(self._session.concerns())
        self._line.focus()
        self._paint()

    @property
    def _line(self) -> ChatLine:
        return self.query_one(ChatLine)

    @property
    def _transcript(self) -> Transcript:
        return self.query_one(Transcript)

    # What happens in the host

    async def _learn(self) -> None:
        await self._session.host.catalog.load(isolation=self._session.talk.viewer)
        self._paint()

    async def _listen(self) -> None:
        events = self._session.view.events()
        self._ask()
        async for event in events:
            self._hear(event)
        self.exit(message="The host has ended.")

    def _hear(self, event: HostEvent) -> None:
        match event:
            case QuestionAsked() | QuestionTaken():
                self.query_one(QuestionsPane).reload()
                self._ask()
            case QuestionAnswered():
                self.query_one(QuestionsPane).answered(event)
                self._ask()
            case HostNotice():
                self._transcript.lines([*error_lines(f"{event.server}: {event.text}".lstrip(": "))])
            case ServerMoved():
                self._paint()

    def _ask(self) -> None:
        """Show the questions that wait, and where there are none, go on typing."""
        questions = self.query_one(QuestionsPane)
        waiting = bool(self._session.view.pending())
        if waiting == questions.display:
            return
        questions.display = waiting
        self._guard.note_change()
        if not waiting:
            self.screen.set_focus(self._line)
        else:
            self.query_one(Suggestions).show([])
            # A line that is being written keeps its keys; its first ones may not stand there yet.
            if not self._line.value and (self._guard.is_quiet() or not self._writing):
                self.screen.set_focus(questions.query_one(Inbox))
        self._paint()

    def on_descendant_focus(self, _event: DescendantFocus) -> None:
        """Say what the keys do here."""
        self._paint()

    def redirect(self, event: Key | Paste) -> None:
        """A letter that means nothing to a question begins a line, and what is pasted goes there."""
        if isinstance(self.focused, Inbox | Detail) and (
            isinstance(event, Paste)
            or (event.is_printable and event.key not in {*QuestionsPane.BOUND, "tab"})
        ):
            self.screen.set_focus(self._line, scroll_visible=False)
        entered = isinstance(event, Key) and event.key == "enter"
        self._writing = isinstance(self.focused, ChatLine) and not entered

    def on_questions_pane_status(self, event: QuestionsPane.Status) -> None:
        """Tell it."""
        self._tell(event.text)

    def on_questions_pane_looked(self, _event: QuestionsPane.Looked) -> None:
        """Say what the keys do now."""
        self._paint()

    def _tell(self, text: str) -> None:
        self.query_one("#told", Static).update(text)

    def _paint(self) -> None:
        session = self._session
        ready = [one for one in session.view.servers() if one.state == "ready"]
        labels = ", ".join(sorted(session.talk.run.labels))
        count = f"{len(ready)} server{'s' * (len(ready) != 1)} running"
        parts = [self.TITLE, display_name(session.voice), count]
        if labels:
            parts.append(f"has read: {labels}")
        self.query_one("#bar", Static).update(" | ".join(parts))
        questions = self.query_one(QuestionsPane)
        keys = TYPING_KEYS
        if questions.display:
            keys = QUESTION_KEYS if self._line.has_focus else questions.keys()
        self.query_one("#keys", Static).update(keys)

    # What is typed

    def on_input_changed(self, event: Input.Changed) -> None:
        """Look for what may follow."""
        if event.input.id == "line":
            # No coroutine before it runs: the next key may cancel it before that.
            suggest: Callable[[], Awaitable[None]] = partial(self._suggest, event.value)
            self.run_worker(suggest, name="suggesting", group="suggest", exclusive=True)

    async def _suggest(self, text: str) -> None:
        if "=" in text:  # a server is asked for what goes into a blank: not for every key
            await asyncio.sleep(SUGGESTION_DELAY_S)
        found = await list_suggestions(text, self._session.talk)
        if text == self._line.value:
            asking = self.query_one(QuestionsPane).display
            self.query_one(Suggestions).show([] if asking else found)

    def on_option_list_option_selected(self, event: Suggestions.OptionSelected) -> None:
        """A suggestion was clicked."""
        if event.option_list.id == "suggestions":
            self._line.action_take()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do what the line says."""
        if event.input.id != "line":
            return
        text = event.value.strip()
        if not text:
            return
        if self._turn is not None and self._turn.is_running:
            self._tell("The last answer is still running: ^C stops it.")
            return
        self._line.remember(text)
        self._line.take_off(event.value)
        self.query_one(Suggestions).show([])
        self._tell("")
        self._transcript.user(text)
        self._turn = self.run_worker(self._enter(text), name="turn", exit_on_error=False)

    async def _enter(self, text: str) -> None:
        async for item in self._session.enter(text):
            self._show(item)
        self._transcript.close()
        self._paint()
        if self._session.quitting:
            self.exit()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say that a turn failed where nothing else does."""
        if event.worker.name == "turn" and event.state is WorkerState.ERROR:
            self._transcript.lines(
                error_lines(f"{type(event.worker.error).__name__}: {event.worker.error}")
            )

    def _show(self, item: ChatItem) -> None:
        transcript = self._transcript
        match item:
            case StyledLine():
                transcript.line(item)
            case Text():
                transcript.stream(item.text)
            case Inserted():
                transcript.lines(describe_inserted(item.messages))
            case ToolAsked():
                transcript.lines(describe_tool_call(item))
            case ToolRunning():
                transcript.progress(item.id, format_progress(item))
            case ToolDone():
                transcript.finish(item.id)
                transcript.lines(describe_tool_outcome(item))
                self._paint()
            case Noted():
                transcript.lines(error_lines(item.text))
            case Ended():
                transcript.lines(describe_turn_end(item))
            case Question():
                pass  # the host's own events show it

    # Keys

    def action_interrupt(self) -> None:
        """Stop what goes on; twice, leave."""
        now = self.surface.clock()
        if now - self._interrupted < LEAVE_WINDOW_S:
            self.exit()
            return
        self._interrupted = now
        if self._session.talk.busy:
            self._session.talk.cancel()
            self._tell("Stopped. ^C again quits.")
        elif self._turn is not None and self._turn.is_running:
            self._turn.cancel()
            self._tell("Stopped. ^C again quits.")
        else:
            self._tell("^C again quits.")

    def action_leave(self) -> None:
        """Quit."""
        self.exit()

    def action_scroll(self, direction: int) -> None:
        """Turn a page of what was said."""
        transcript = self._transcript
        transcript.scroll_relative(y=direction * max(1, transcript.size.height - 1), animate=False)

    async def _edit(self, text: str) -> str:
        """Hand the terminal to the user's editor; the host goes on, and paints nothing meanwhile."""
        with self.suspend(), self.batch_update():
            return await edit_in_editor(text, os.environ)


async def show_chat(
    session: ChatSession,
    surface: TerminalSurface | None = None,
    *,
    end: asyncio.Event | None = None,
) -> None:
    """Show the conversation until its user leaves, or the host ends.

    Args:
        session: does what is typed.
        surface: as :class:`ChatApp` takes it.
        end: closes the screen when it is set, as ``/quit`` does.
    """
    app = ChatApp(session, surface)
    async with session.view.attend(app.surface.by, app.surface.assurance):
        try:
            await app.show(end)
        finally:
            session.talk.cancel()
