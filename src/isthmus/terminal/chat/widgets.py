"""Widgets of the conversation's screen: the transcript, the line that is typed, suggestions."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType, NoBinding
from textual.containers import VerticalScroll
from textual.events import Key, Paste
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from isthmus.cards.lines import StyledLine
from isthmus.core.text import clean_text
from isthmus.terminal.approver.widgets import STYLES
from isthmus.terminal.chat.completion import Suggestion

MAX_TRANSCRIPT_PARTS = 1_000  # that can be scrolled back to

MAX_TRANSCRIPT_LINES = 20_000  # kept as text

MAX_HISTORY_LINES = 200  # that the keys up and down bring back


class Transcript(VerticalScroll, can_focus=False):
    """The transcript, the latest at the bottom; no text in it is read as markup."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._written = ""
        self._open: Static | None = None
        self._listed: tuple[Static, Text] | None = None
        self._bars: dict[str, Static] = {}
        self._texts: deque[str] = deque(maxlen=MAX_TRANSCRIPT_LINES)

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join([*self._texts, self._written] if self._written else self._texts)

    def on_mount(self) -> None:
        """Stay at the bottom, unless somebody scrolls away from it."""
        self.anchor()

    def _add(self, part: Static) -> Static:
        self.mount(part)
        if len(self.children) > MAX_TRANSCRIPT_PARTS:
            self.children[0].remove()
        return part

    def close(self) -> None:
        """End the current part: the next text begins another one."""
        if self._open is not None:
            self._texts.append(self._written)
        self._open, self._written, self._listed = None, "", None

    def lines(self, lines: Iterable[StyledLine]) -> None:
        """Add lines, as one part."""
        self.close()
        found = list(lines)
        if not found:
            return
        self._texts.extend(line.text for line in found)
        text = Text("\n").join(Text(line.text, STYLES[line.role]) for line in found)
        self._add(Static(text))

    def line(self, line: StyledLine) -> None:
        """Add a line, to the part of the lines before it."""
        if self._listed is None:
            self.close()
            self._listed = self._add(Static("", markup=False)), Text()
        part, text = self._listed
        self._texts.append(line.text)
        text.append("\n" if text else "").append(Text(line.text, STYLES[line.role]))
        part.update(text.copy())

    def user(self, text: str) -> None:
        """Add what the user said."""
        self.lines([StyledLine(f"> {clean_text(text)}", "title")])

    def stream(self, text: str) -> None:
        """Go on with what the model writes."""
        if self._open is None:
            self.close()
            self._open = self._add(Static("", markup=False))
        self._written += clean_text(text)
        self._open.update(Text(self._written))

    def progress(self, id: str, text: str) -> None:
        """Show how far a call has come, in the one line that it has for that."""
        bar = self._bars.get(id)
        if bar is None:
            self.close()
            bar = self._bars[id] = self._add(Static("", markup=False, classes="progress"))
        bar.update(Text(text))

    def finish(self, id: str) -> None:
        """Take the line of a call away."""
        bar = self._bars.pop(id, None)
        if bar is not None:
            bar.remove()


class Suggestions(OptionList, can_focus=False):
    """The list of suggestions; hidden where there are none."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._shown: Sequence[Suggestion] = ()

    @property
    def rows(self) -> list[str]:
        """The rows that are shown."""
        return [one.label for one in self._shown]

    @property
    def chosen(self) -> Suggestion | None:
        """The one that the tab key takes."""
        at = self.highlighted
        return None if at is None or at >= len(self._shown) else self._shown[at]

    def move(self, step: int) -> None:
        """Look at the next one, or the one before."""
        if step > 0:
            self.action_cursor_down()
        else:
            self.action_cursor_up()

    def show(self, found: Sequence[Suggestion]) -> None:
        """Show these instead."""
        self._shown = found
        self.clear_options()
        self.add_options([Option(Text(one.label, no_wrap=True)) for one in found])
        self.highlighted = 0 if found else None
        self.display = bool(found)


class ChatLine(Input):
    """The line that is typed into; the keys up and down bring back earlier ones.

    Args:
        offered: what it may go on with, which the tab key takes.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "back(1)", show=False),
        Binding("down", "back(-1)", show=False),
        Binding("tab", "take", show=False),
        Binding("escape", "leave", show=False),
    ]

    def __init__(self, offered: Suggestions, *, id: str | None = None) -> None:
        super().__init__(
            id=id,
            placeholder="type a message; / for commands, @ for resources",
            select_on_focus=False,
        )
        self._offered = offered
        self._past: list[str] = []
        self._at = 0
        self._draft = ""

    def remember(self, text: str) -> None:
        """Bring this line back later."""
        if text and self._past[-1:] != [text]:
            self._past = [*self._past[1 - MAX_HISTORY_LINES :], text]
        self._at = 0

    async def _on_key(self, event: Key) -> None:
        """Let each key do here what it is bound to, before the next one is looked at.

        Textual runs the actions of bound keys later than it inserts letters: of keys that come in one
        piece, a tab would complete, and a backspace delete, after the line was entered.
        """
        try:
            bound = self._bindings.get_bindings_for_key(event.key)
        except NoBinding:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        await self.run_action(bound[0].action)

    def take_off(self, entered: str) -> None:
        """Remove what was entered; what was typed since then stays."""
        self.value = self.value.removeprefix(entered)
        self.cursor_position = len(self.value)

    def action_back(self, step: int) -> None:
        """An earlier line, or a later one; among suggestions, the one above or below."""
        if self._offered.display:
            self._offered.move(-step)
            return
        at = min(max(0, self._at + step), len(self._past))
        if at == self._at:
            return
        if self._at == 0:
            self._draft = self.value
        self._at = at
        self.value = self._past[-at] if at else self._draft
        self.cursor_position = len(self.value)

    def action_take(self) -> None:
        """Take the suggestion that is looked at; where there is none, go on to what is beside."""
        chosen = self._offered.chosen
        if chosen is None:
            self.screen.focus_next()
        else:
            self.value = chosen.text
            self.cursor_position = len(chosen.text)
            self._offered.show([])

    def action_leave(self) -> None:
        """Want no suggestion."""
        self._offered.show([])

    def _on_paste(self, event: Paste) -> None:
        """Take all lines of what is pasted, as one."""
        event.prevent_default()
        event.stop()
        self.insert_text_at_cursor(" ".join(event.text.splitlines()))
