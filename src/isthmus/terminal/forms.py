"""A server's form on the screen: a field for each blank, filled in beforehand, checked before sent."""

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from isthmus.core.blanks import Blank, blanks
from isthmus.core.plain_text import visible
from isthmus.terminal.form_fields import Field, make_field
from isthmus.terminal.guard import Guard

__all__ = ["Filled", "Form"]


class Filled(Struct, frozen=True):
    """What became of a form.

    Attributes:
        texts: what stands in its fields, by name.
        content: what that means; None where it is not to be sent yet.
    """

    texts: Mapping[str, Any]
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
    Form .blank { height: auto; margin-bottom: 1; }
    Form .wrong { text-style: bold; height: auto; }
    Form SelectionList { height: auto; max-height: 12; border: none; padding: 0 1; }
    Form Checkbox { padding: 0 1; }
    Form VerticalScroll { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", show=False, priority=True),
        Binding("escape", "back", show=False),
        Binding("down,enter", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(
        self, title: str, schema: Mapping[str, Any], texts: Mapping[str, Any], guard: Guard
    ) -> None:
        super().__init__()
        self._title = title
        self._blanks = blanks(schema)
        self._texts = texts
        self._fields: list[Field] = []
        self._guard = guard

    def compose(self) -> ComposeResult:
        """Each blank: what it asks, what it explains, the field, and what is wrong with it."""
        yield Static(self._title, markup=False)
        self._fields = [
            make_field(blank, self._texts.get(blank.name), f"field-{number}")
            for number, blank in enumerate(self._blanks)
        ]
        with VerticalScroll(can_focus=False):
            for number, (blank, field) in enumerate(zip(self._blanks, self._fields, strict=True)):
                with Vertical(classes="blank"):
                    yield Static(visible(explain(blank)), markup=False)
                    yield field.widget
                    yield Static("", id=f"wrong-{number}", classes="wrong", markup=False)
        keys = " ^S send   Tab next   Enter chooses, Space ticks   Esc back to the question"
        yield Static(keys, markup=False)

    def on_mount(self) -> None:
        """It has appeared."""
        self._guard.moved()

    def texts(self) -> dict[str, Any]:
        """What stands in the fields now."""
        pairs = zip(self._blanks, self._fields, strict=True)
        return {blank.name: field.kept() for blank, field in pairs}

    def action_back(self) -> None:
        """Leave it; nothing that was written is lost."""
        self.dismiss(Filled(self.texts()))

    def action_send(self) -> None:
        """Send what was written, where all of it fits."""
        if not self._guard.seen():  # no text that is typed has this key in it
            return
        content: dict[str, Any] = {}
        wrong = [
            number
            for number, blank in enumerate(self._blanks)
            if not self._read(number, blank, content)
        ]
        if wrong:
            self._show_wrong(wrong[0])
        else:
            self.dismiss(Filled(self.texts(), content))

    def _show_wrong(self, number: int) -> None:
        """Go to a field that does not fit, with what is asked and what is wrong in view."""
        widget = self._fields[number].widget
        widget.focus(scroll_visible=False)
        if widget.parent is not None and isinstance(widget.parent, Vertical):
            # Once the line that says why has its place.
            self.call_after_refresh(widget.parent.scroll_visible, animate=False, top=True)

    def _read(self, number: int, blank: Blank, content: dict[str, Any]) -> bool:
        """Read one field; False where it does not fit, and the screen says why."""
        error = ""
        try:
            value = self._fields[number].read()
            if value is not None:
                content[blank.name] = value
        except ValueError as reason:
            error = f"! {visible(str(reason))}"
        self.query_one(f"#wrong-{number}", Static).update(error)
        return not error


def explain(blank: Blank) -> str:
    """What stands above a field; what can be chosen stands in it."""
    described = blank.schema.get("description")
    lines = [described] if isinstance(described, str) and described else []
    if blank.choices or blank.kind == "boolean":
        needed = "" if blank.required else " (may be left out)"
        return "\n".join([*lines, f"{blank.title}{needed}:"])
    return "\n".join([*lines, blank.question()])
