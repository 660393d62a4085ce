"""A server's form on the full screen: a field for each blank, checked before it is sent."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Checkbox, Input, Select, SelectionList, Static

from isthmus.core.form_fields import FieldChoice, FormField, format_answer, list_fields
from isthmus.core.text import show_invisible
from isthmus.terminal.answer_keys import KeyGuard


class FormResult(Struct, frozen=True):
    """The result of a form.

    Attributes:
        texts: what stands in its fields, by name.
        content: what that means; None where it is not to be sent yet.
    """

    texts: Mapping[str, Any]
    content: Mapping[str, Any] | None = None


class FormDialog(ModalScreen[FormResult]):
    """The fields of a form.

    Args:
        title: who asks, and what.
        schema: the form.
        texts: what was written before.
        guard: says whether it has been on the screen long enough to be sent.
    """

    DEFAULT_CSS = """
    FormDialog Input { height: 1; border: none; padding: 0 1; background: $surface; }
    FormDialog Input:focus { border: none; text-style: underline; }
    FormDialog .blank { height: auto; margin-bottom: 1; }
    FormDialog .wrong { text-style: bold; height: auto; }
    FormDialog SelectionList { height: auto; max-height: 12; border: none; padding: 0 1; }
    FormDialog Checkbox { padding: 0 1; }
    FormDialog VerticalScroll { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", show=False, priority=True),
        Binding("escape", "back", show=False),
        Binding("down,enter", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(
        self, title: str, schema: Mapping[str, Any], texts: Mapping[str, Any], guard: KeyGuard
    ) -> None:
        super().__init__()
        self._title = title
        self._blanks = list_fields(schema)
        self._texts = texts
        self._fields: list[FieldWidget] = []
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
                    yield Static(show_invisible(describe_blank(blank)), markup=False)
                    yield field.widget
                    yield Static("", id=f"wrong-{number}", classes="wrong", markup=False)
        keys = " ^S send   Tab next   Enter chooses, Space ticks   Esc back to the question"
        yield Static(keys, markup=False)

    def on_mount(self) -> None:
        """It has appeared."""
        self._guard.note_change()

    def texts(self) -> dict[str, Any]:
        """The texts of all fields, for another time."""
        pairs = zip(self._blanks, self._fields, strict=True)
        return {blank.name: field.save() for blank, field in pairs}

    def action_back(self) -> None:
        """Leave it; nothing that was written is lost."""
        self.dismiss(FormResult(self.texts()))

    def action_send(self) -> None:
        """Send what was written, where all of it fits."""
        if not self._guard.is_readable():  # no text that is typed has this key in it
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
            self.dismiss(FormResult(self.texts(), content))

    def _show_wrong(self, number: int) -> None:
        """Go to a field that does not fit, with what is asked and what is wrong in view."""
        widget = self._fields[number].widget
        widget.focus(scroll_visible=False)
        if widget.parent is not None and isinstance(widget.parent, Vertical):
            # Once the line that says why has its place.
            self.call_after_refresh(widget.parent.scroll_visible, animate=False, top=True)

    def _read(self, number: int, blank: FormField, content: dict[str, Any]) -> bool:
        """Read one field; False where it does not fit, and the screen says why."""
        error = ""
        try:
            value = self._fields[number].read()
            if value is not None:
                content[blank.name] = value
        except ValueError as reason:
            error = f"! {show_invisible(str(reason))}"
        self.query_one(f"#wrong-{number}", Static).update(error)
        return not error


def describe_blank(blank: FormField) -> str:
    """The lines above a field: title, description and constraints of its blank."""
    described = blank.schema.get("description")
    lines = [described] if isinstance(described, str) and described else []
    if blank.choices or blank.kind == "boolean":
        needed = "" if blank.required else " (optional)"
        return "\n".join([*lines, f"{blank.title}{needed}:"])
    return "\n".join([*lines, blank.question()])


class FieldWidget(Protocol):
    """The widget of a blank, and the value in it."""

    @property
    def widget(self) -> Widget:
        """The Textual widget."""
        ...

    def save(self) -> Any:
        """The text of the field, for another time."""
        ...

    def read(self) -> Any:
        """The value of the field; None to leave the blank out.

        Raises:
            ValueError: it does not fit; the message says what would.
        """
        ...


def make_field(blank: FormField, saved: Any, id: str) -> FieldWidget:
    """The field of a blank.

    Args:
        blank: what is asked.
        saved: what stood there before; None for the default.
        id: of the widget.
    """
    if blank.choices:
        return (MultiChoiceField if blank.many else ChoiceField)(blank, saved, id)
    if blank.kind == "boolean":
        # Two states would answer for who has not looked: without a default there are three.
        return (
            CheckboxField(blank, saved, id)
            if isinstance(blank.default, bool)
            else OptionalBoolField(blank, saved, id)
        )
    return TextField(blank, saved, id)


class TextField:
    """A line that is typed."""

    def __init__(self, blank: FormField, saved: Any, id: str) -> None:
        default = "" if blank.default is None else format_answer(blank.default)
        self._blank = blank
        self.widget = Input(default if saved is None else saved, id=id, select_on_focus=False)

    def save(self) -> str:
        """The text that was typed."""
        return self.widget.value

    def read(self) -> Any:
        """The value of the text."""
        return self._blank.read(self.widget.value)


class ChoiceField:
    """A list in which one of the choices is chosen, or none."""

    def __init__(self, blank: FormField, saved: Any, id: str, choices: Any = None) -> None:
        self._blank = blank
        options = (
            [(format_choice(one), one.value) for one in blank.choices]
            if choices is None
            else choices
        )
        before = blank.default if saved is None else saved
        known = [value for _, value in options]
        self.widget: Select[Any] = Select(
            options,
            prompt="choose",
            value=before if before in known else Select.NULL,
            type_to_search=False,
            id=id,
            compact=True,
        )

    def save(self) -> Any:
        """The choice; empty for none."""
        return "" if self.widget.value is Select.NULL else self.widget.value

    def read(self) -> Any:
        """The same, held against the schema."""
        chosen = self.widget.value
        return self._blank.accept(None if chosen is Select.NULL else chosen)


class OptionalBoolField(ChoiceField):
    """Yes, no, or no answer yet."""

    def __init__(self, blank: FormField, saved: Any, id: str) -> None:
        super().__init__(blank, saved, id, [("yes", True), ("no", False)])


class MultiChoiceField:
    """Some of the choices, each ticked or not."""

    def __init__(self, blank: FormField, saved: Any, id: str) -> None:
        self._blank = blank
        before = blank.default if saved is None else saved
        ticked = before if isinstance(before, list) else []
        self.widget: SelectionList[str] = SelectionList(
            *((format_choice(one), one.value, one.value in ticked) for one in blank.choices),
            id=id,
            compact=True,
        )

    def save(self) -> list[str]:
        """The choices that are ticked, in the server's order."""
        ticked = set(self.widget.selected)
        return [one.value for one in self._blank.choices if one.value in ticked]

    def read(self) -> Any:
        """The same, held against the schema."""
        return self._blank.accept(self.save() or (None if self._blank.default is None else []))


class CheckboxField:
    """A box that is ticked or not; it begins as the server says."""

    def __init__(self, blank: FormField, saved: Any, id: str) -> None:
        self._blank = blank
        value = blank.default if saved is None else saved
        self.widget = Checkbox("yes", value=bool(value), id=id, compact=True)

    def save(self) -> bool:
        """Whether it is ticked."""
        return self.widget.value

    def read(self) -> Any:
        """The same."""
        return self._blank.accept(self.widget.value)


def format_choice(choice: FieldChoice) -> Content:
    """A choice as a person reads it; no text of a server is read as markup."""
    shown = format_answer(choice.value)
    also = f" ({shown})" if choice.title != shown else ""
    return Content(show_invisible(f"{choice.title}{also}", line=True))
