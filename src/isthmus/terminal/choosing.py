"""Small questions over the screen: what a yes holds for, why one is asked, whether to leave."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

from isthmus.terminal.detail import Detail
from isthmus.terminal.guard import Guard
from isthmus.terminal.lines import Line
from isthmus.terminal.scopes import Kept

__all__ = ["Reading", "Remembering"]


class Remembering(ModalScreen[Kept | None]):
    """What the yes is to hold for: by number, and nothing is chosen beforehand.

    Args:
        choices: what there is.
        guard: says whether a key may choose.
    """

    DEFAULT_CSS = """
    Remembering { align: center middle; }
    Remembering > Vertical { width: 56; max-width: 100%; height: auto; max-height: 100%;
        border: solid $foreground; overflow-y: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", show=False)]

    def __init__(self, choices: Sequence[Kept], guard: Guard) -> None:
        super().__init__()
        self._choices = choices
        self._guard = guard
        self._twice = ""

    def compose(self) -> ComposeResult:
        """The choices, a line each."""
        rows = [f" {number}  {one.label}" for number, one in enumerate(self._choices, 1)]
        text = "\n".join(["Allow, and remember it for:", *rows, " Esc  do not answer yet"])
        with Vertical():
            yield Static(text, markup=False)

    def on_mount(self) -> None:
        """It has appeared."""
        self._guard.moved()

    def on_key(self, event: Key) -> None:
        """A digit chooses."""
        digit = event.character or ""
        if not digit.isdecimal() or not 0 < int(digit) <= len(self._choices):
            return
        event.stop()
        if not self._guard.ready():
            return
        choice = self._choices[int(digit) - 1]
        if choice.remember == "tool_always" and self._twice != digit:
            self._twice = digit
            return
        self.dismiss(choice)


class Reading(ModalScreen[None]):
    """Lines to be read, until one has read them.

    Args:
        title: what they are about.
        lines: what they say.
    """

    DEFAULT_CSS = """
    Reading > Vertical { border: solid $foreground; }
    #reading-title { height: auto; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", show=False)
    ]

    def __init__(self, title: str, lines: Iterable[Line]) -> None:
        super().__init__()
        self._title = title
        self._lines = tuple(lines)

    def compose(self) -> ComposeResult:
        """All of them, to be scrolled through."""
        with Vertical():
            yield Static(self._title, id="reading-title", markup=False)  # a border's reads markup
            yield Detail(id="reading")
            yield Static(" Esc  back", markup=False)

    def on_mount(self) -> None:
        """Show them."""
        detail = self.query_one(Detail)
        detail.show(self._lines)
        detail.focus()
