"""Small questions over the screen: what a yes holds for, why one is asked, whether to leave."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

from isthmus.host.policy.trace import Remember
from isthmus.terminal.detail import Detail
from isthmus.terminal.lines import Line

__all__ = ["Kept", "Reading", "Remembering", "kept"]

HOUR = 3600.0
TIMES = (("for an hour", HOUR), ("for a day", 24 * HOUR), ("for 30 days", 30 * 24 * HOUR))

SCOPES: Mapping[Remember, str] = {
    "arguments": "these exact arguments",
    "shape": "arguments of this shape",
    "tool_run": "this tool, for this run",
    "session": "this tool, until the host ends",
    "server_read_only": "all tools of this server that only read",
    "tool_always": "ALWAYS, with any arguments (press it twice)",
}


class Kept(Struct, frozen=True):
    """What a yes may hold for beyond this once.

    Attributes:
        remember: the scope.
        label: the same for a person.
        seconds: until when it holds, from now; None for no end of its own.
    """

    remember: Remember
    label: str
    seconds: float | None = None


def kept(offered: Iterable[Remember]) -> list[Kept]:
    """The choices there are, of what policy offers, in its order and with times spelt out."""
    found: list[Kept] = []
    for scope in offered:
        if scope == "until":
            found += [Kept("until", f"this tool {label}", seconds) for label, seconds in TIMES]
        elif scope != "once":
            found.append(Kept(scope, SCOPES[scope]))
    return found


class Remembering(ModalScreen[Kept | None]):
    """What the yes is to hold for: by number, and nothing is chosen beforehand."""

    DEFAULT_CSS = """
    Remembering { align: center middle; }
    Remembering > Vertical { width: 56; max-width: 100%; height: auto; max-height: 100%;
        border: solid $foreground; overflow-y: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", show=False)]

    def __init__(self, choices: Sequence[Kept]) -> None:
        super().__init__()
        self._choices = choices
        self._twice = ""

    def compose(self) -> ComposeResult:
        """The choices, a line each."""
        rows = [f" {number}  {one.label}" for number, one in enumerate(self._choices, 1)]
        text = "\n".join(["Allow, and remember it for:", *rows, " Esc  do not answer yet"])
        with Vertical():
            yield Static(text, markup=False)

    def on_key(self, event: Key) -> None:
        """A digit chooses."""
        digit = event.character or ""
        if not digit.isdecimal() or not 0 < int(digit) <= len(self._choices):
            return
        event.stop()
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
        with Vertical() as box:
            box.border_title = self._title
            yield Detail(id="reading")
            yield Static(" Esc  back", markup=False)

    def on_mount(self) -> None:
        """Show them."""
        detail = self.query_one(Detail)
        detail.show(self._lines)
        detail.focus()
