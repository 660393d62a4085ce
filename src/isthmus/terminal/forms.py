"""A server's form on the screen: a field for each blank, filled in beforehand, checked before sent."""

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from isthmus.core.blanks import Blank, blanks, shown
from isthmus.core.plain_text import visible
from isthmus.terminal.guard import Guard

__all__ = ["Filled", "Form"]


class Filled(Struct, frozen=True):
    """What became of a form.

    Attributes:
        texts: what stands in its fields, by name.
        content: what that means; None where it is not to be sent yet.
    """

    texts: Mapping[str, str]
    content: Mapping[str, Any] | None = None


class Form(ModalScreen[Filled]):
    """The fields of a form.

    Args:
        title: who asks, and what.
        schema: the form.
        texts: what was written before.
        guard: says whether it has been on the screen long enough to be sent.
    """

    DEFAULT_CSS = """
    Form Input { height: 1; border: none; padding: 0 1; background: $surface; }
    Form Input:focus { border: none; text-style: underline; }
    Form .wrong { text-style: bold; height: auto; }
    Form VerticalScroll { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", show=False, priority=True),
        Binding("escape", "back", show=False),
        Binding("down,enter", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(
        self, title: str, schema: Mapping[str, Any], texts: Mapping[str, str], guard: Guard
    ) -> None:
        super().__init__()
        self._title = title
        self._blanks = blanks(schema)
        self._texts = texts
        self._guard = guard

    def compose(self) -> ComposeResult:
        """Each blank: what it asks, what it explains, the field, and what is wrong with it."""
        yield Static(self._title, markup=False)
        with VerticalScroll(can_focus=False):
            for number, blank in enumerate(self._blanks):
                asked = [*blank.explanation(), blank.question()]
                yield Static("\n".join(map(visible, asked)), markup=False)
                yield Input(self._text(blank), id=f"field-{number}", select_on_focus=False)
                yield Static("", id=f"wrong-{number}", classes="wrong", markup=False)
        yield Static(" ^S send   Tab next   Esc back to the question", markup=False)

    def _text(self, blank: Blank) -> str:
        """What stands in a field at first: what was written before, or the default."""
        default = "" if blank.default is None else shown(blank.default)
        return self._texts.get(blank.name, default)

    def on_mount(self) -> None:
        """It has appeared."""
        self._guard.moved()

    def texts(self) -> dict[str, str]:
        """What stands in the fields now."""
        fields = enumerate(self._blanks)
        return {blank.name: self.query_one(f"#field-{n}", Input).value for n, blank in fields}

    def action_back(self) -> None:
        """Leave it; nothing that was written is lost."""
        self.dismiss(Filled(self.texts()))

    def action_send(self) -> None:
        """Send what was written, where all of it fits."""
        if not self._guard.ready():
            return
        texts = self.texts()
        content: dict[str, Any] = {}
        wrong = [
            number
            for number, blank in enumerate(self._blanks)
            if not self._read(number, blank, texts[blank.name], content)
        ]
        if wrong:
            self.query_one(f"#field-{wrong[0]}", Input).focus()
        else:
            self.dismiss(Filled(texts, content))

    def _read(self, number: int, blank: Blank, text: str, content: dict[str, Any]) -> bool:
        """Read one field; False where it does not fit, and the screen says why."""
        error = ""
        try:
            value = blank.read(text)
            if value is not None:
                content[blank.name] = value
        except ValueError as reason:
            error = f"! {visible(str(reason))}"
        self.query_one(f"#wrong-{number}", Static).update(error)
        return not error
