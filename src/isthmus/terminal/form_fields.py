"""Fields of a form on the screen: a text to type, one of several choices, several of them, yes or no."""

from typing import Any, Protocol

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Checkbox, Input, Select, SelectionList

from isthmus.core.blanks import Blank, Choice, shown
from isthmus.core.plain_text import visible

__all__ = ["Field", "make_field"]


class Field(Protocol):
    """What a person puts into a blank."""

    @property
    def widget(self) -> Widget:
        """Where they do it."""
        ...

    def kept(self) -> Any:
        """What stands there, for another time."""
        ...

    def read(self) -> Any:
        """What that means; None to leave the blank out.

        Raises:
            ValueError: it does not fit; the message says what would.
        """
        ...


def make_field(blank: Blank, kept: Any, id: str) -> Field:
    """The field of a blank.

    Args:
        blank: what is asked.
        kept: what stood there before; None for the default.
        id: of the widget.
    """
    if blank.choices:
        return (Several if blank.many else OneOf)(blank, kept, id)
    if blank.kind == "boolean":
        # Two states would answer for who has not looked: without a default there are three.
        return (
            YesOrNo(blank, kept, id) if isinstance(blank.default, bool) else Open(blank, kept, id)
        )
    return Typed(blank, kept, id)


class Typed:
    """A line that is typed."""

    def __init__(self, blank: Blank, kept: Any, id: str) -> None:
        default = "" if blank.default is None else shown(blank.default)
        self._blank = blank
        self.widget = Input(default if kept is None else kept, id=id, select_on_focus=False)

    def kept(self) -> str:
        """What was typed."""
        return self.widget.value

    def read(self) -> Any:
        """What it means."""
        return self._blank.read(self.widget.value)


class OneOf:
    """One of the choices, or none of them."""

    def __init__(self, blank: Blank, kept: Any, id: str, choices: Any = None) -> None:
        self._blank = blank
        options = [(label(one), one.value) for one in blank.choices] if choices is None else choices
        before = blank.default if kept is None else kept
        known = [value for _, value in options]
        self.widget: Select[Any] = Select(
            options,
            prompt="choose",
            value=before if before in known else Select.NULL,
            type_to_search=False,
            id=id,
            compact=True,
        )

    def kept(self) -> Any:
        """What was chosen; empty for nothing."""
        return "" if self.widget.value is Select.NULL else self.widget.value

    def read(self) -> Any:
        """The same, held against the schema."""
        chosen = self.widget.value
        return self._blank.accept(None if chosen is Select.NULL else chosen)


class Open(OneOf):
    """Yes, no, or no answer yet."""

    def __init__(self, blank: Blank, kept: Any, id: str) -> None:
        super().__init__(blank, kept, id, [("yes", True), ("no", False)])


class Several:
    """Some of the choices, each ticked or not."""

    def __init__(self, blank: Blank, kept: Any, id: str) -> None:
        self._blank = blank
        before = blank.default if kept is None else kept
        ticked = before if isinstance(before, list) else []
        self.widget: SelectionList[str] = SelectionList(
            *((label(one), one.value, one.value in ticked) for one in blank.choices),
            id=id,
            compact=True,
        )

    def kept(self) -> list[str]:
        """What is ticked, in the server's order."""
        ticked = set(self.widget.selected)
        return [one.value for one in self._blank.choices if one.value in ticked]

    def read(self) -> Any:
        """The same, held against the schema."""
        return self._blank.accept(self.kept() or (None if self._blank.default is None else []))


class YesOrNo:
    """A box that is ticked or not; it begins as the server says."""

    def __init__(self, blank: Blank, kept: Any, id: str) -> None:
        self._blank = blank
        value = blank.default if kept is None else kept
        self.widget = Checkbox("yes", value=bool(value), id=id, compact=True)

    def kept(self) -> bool:
        """Whether it is ticked."""
        return self.widget.value

    def read(self) -> Any:
        """The same."""
        return self._blank.accept(self.widget.value)


def label(choice: Choice) -> Content:
    """A choice as a person reads it; no text of a server is read as markup."""
    also = f" ({choice.value})" if choice.title != choice.value else ""
    return Content(visible(f"{choice.title}{also}", line=True))
