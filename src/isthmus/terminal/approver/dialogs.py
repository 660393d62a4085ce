"""Dialogs over the full screen: several questions at once, how long a yes holds, a text to read."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

from isthmus.cards.cards import make_card
from isthmus.cards.choices import GrantChoice
from isthmus.cards.lines import StyledLine, compare_arguments
from isthmus.host.model.interaction import Interaction, Verdict
from isthmus.terminal.answer_keys import KeyGuard
from isthmus.terminal.approver.widgets import Detail


class GrantDialog(ModalScreen[GrantChoice | None]):
    """A dialog that asks how long a yes holds: by number, and nothing is chosen beforehand.

    Args:
        choices: what there is.
        guard: says whether a key may choose.
    """

    DEFAULT_CSS = """
    GrantDialog { align: center middle; }
    GrantDialog > Vertical { width: 56; max-width: 100%; height: auto; max-height: 100%;
        border: solid $foreground; overflow-y: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", show=False)]

    def __init__(self, choices: Sequence[GrantChoice], guard: KeyGuard) -> None:
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
        self._guard.note_change()

    def on_key(self, event: Key) -> None:
        """A digit chooses."""
        digit = event.character or ""
        if not digit.isdecimal() or not 0 < int(digit) <= len(self._choices):
            return
        event.stop()
        if not self._guard.is_ready():
            return
        choice = self._choices[int(digit) - 1]
        if choice.remember == "tool_always" and self._twice != digit:
            self._twice = digit
            return
        self.dismiss(choice)


class TextDialog(ModalScreen[None]):
    """Lines to be read, until one has read them.

    Args:
        title: what they are about.
        lines: what they say.
    """

    DEFAULT_CSS = """
    TextDialog > Vertical { border: solid $foreground; }
    #reading-title { height: auto; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", show=False)
    ]

    def __init__(self, title: str, lines: Iterable[StyledLine]) -> None:
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


class BatchDialog(ModalScreen[Verdict | None]):
    """A dialog with several questions: their differences, then each whole; one key answers all.

    Args:
        several: the questions; what comes later is not among them.
        guard: says whether they have been there long enough.
    """

    DEFAULT_CSS = """
    BatchDialog > Vertical { border: solid $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "allow", show=False),
        Binding("d", "deny", show=False),
        Binding("escape,q,n", "leave", show=False),
        Binding("space", "page(1)", show=False),
        Binding("backspace", "page(-1)", show=False),
    ]

    def __init__(self, several: Sequence[Interaction], guard: KeyGuard) -> None:
        super().__init__()
        self._several = several
        self._guard = guard

    def compose(self) -> ComposeResult:
        """The cards."""
        count = len(self._several)
        with Vertical() as box:
            box.border_title = f"{count} similar questions"
            yield Detail(id="batch")
            yield Static(
                f" y  allows these {count}, once each    d  denies them    Esc  back", markup=False
            )

    def on_mount(self) -> None:
        """Show them."""
        lines: list[StyledLine] = [*compare_arguments(self._several)]
        for number, one in enumerate(self._several, 1):
            found = make_card(one)
            lines += [StyledLine(f"{number}. {found.title}", "title"), *found.lines]
        detail = self.query_one(Detail)
        detail.show(lines)
        detail.focus()
        self._guard.note_change()

    def on_resize(self) -> None:
        """Everything stands elsewhere now."""
        self._guard.note_change()

    def action_allow(self) -> None:
        """Yes to each, once they have been there long enough."""
        if self._guard.is_ready():
            self.dismiss("allow")

    def action_deny(self) -> None:
        """No to each, once they have been there long enough."""
        if self._guard.is_ready():
            self.dismiss("deny")

    def action_leave(self) -> None:
        """Back to the questions, one by one."""
        self.dismiss(None)

    def action_page(self, direction: int) -> None:
        """Turn the page."""
        detail = self.query_one(Detail)
        detail.scroll_relative(y=direction * max(1, detail.size.height - 1), animate=False)
