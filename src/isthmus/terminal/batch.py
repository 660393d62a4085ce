"""Several questions of one kind, read one after the other and allowed together."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from isthmus.host.interaction import Interaction, Verdict
from isthmus.terminal.argument_lines import compare_arguments
from isthmus.terminal.cards import card
from isthmus.terminal.detail import Detail
from isthmus.terminal.guard import Guard
from isthmus.terminal.lines import Line

__all__ = ["Batch", "alike"]

OF_ONE_NAME = frozenset({"tool.call", "prompt.get"})
"""What is alike only where it is the same tool or prompt."""

TOGETHER = OF_ONE_NAME | {"resource.read"}
"""What may be allowed together."""

MOST = 50
"""Questions that are allowed together at most: more is nothing that anybody reads."""


def alike(chosen: Interaction, waiting: Iterable[Interaction]) -> list[Interaction]:
    """The questions that may be allowed together with one, itself among them.

    They are of one server, action and principal, and of one tool or prompt; none of them is of high
    risk.
    """
    if chosen.attempt.action not in TOGETHER:
        return []
    found = [one for one in waiting if one.risk != "high" and kind(one) == kind(chosen)]
    return found[:MOST] if any(one.id == chosen.id for one in found[:MOST]) else []


def kind(one: Interaction) -> tuple[str, ...]:
    """What questions have in common that may be allowed together."""
    attempt = one.attempt
    named = attempt.object if attempt.action in OF_ONE_NAME else ""
    return attempt.principal, attempt.server, attempt.action, attempt.origin, named


class Batch(ModalScreen[Verdict | None]):
    """What differs between them, then all of them, whole; one key answers each of them.

    Args:
        several: the questions; what comes later is not among them.
        guard: says whether they have been there long enough.
    """

    DEFAULT_CSS = """
    Batch > Vertical { border: solid $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "allow", show=False),
        Binding("d", "deny", show=False),
        Binding("escape,q,n", "leave", show=False),
        Binding("space", "page(1)", show=False),
        Binding("backspace", "page(-1)", show=False),
    ]

    def __init__(self, several: Sequence[Interaction], guard: Guard) -> None:
        super().__init__()
        self._several = several
        self._guard = guard

    def compose(self) -> ComposeResult:
        """The cards."""
        count = len(self._several)
        with Vertical() as box:
            box.border_title = f"{count} questions of one kind"
            yield Detail(id="batch")
            yield Static(
                f" y  allows these {count}, once each    d  denies them    Esc  back", markup=False
            )

    def on_mount(self) -> None:
        """Show them."""
        lines: list[Line] = [*compare_arguments(self._several)]
        for number, one in enumerate(self._several, 1):
            found = card(one)
            lines += [Line(f"{number}. {found.title}", "title"), *found.lines]
        detail = self.query_one(Detail)
        detail.show(lines)
        detail.focus()
        self._guard.moved()

    def on_resize(self) -> None:
        """Everything stands elsewhere now."""
        self._guard.moved()

    def action_allow(self) -> None:
        """Yes to each, once they have been there long enough."""
        if self._guard.ready():
            self.dismiss("allow")

    def action_deny(self) -> None:
        """No to each, once they have been there long enough."""
        if self._guard.ready():
            self.dismiss("deny")

    def action_leave(self) -> None:
        """Back to the questions, one by one."""
        self.dismiss(None)

    def action_page(self, direction: int) -> None:
        """Turn the page."""
        detail = self.query_one(Detail)
        detail.scroll_relative(y=direction * max(1, detail.size.height - 1), animate=False)
