"""The tools of a server, beside the definition of one of them; Enter calls it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from isthmus.host.view import ToolLine
from isthmus.terminal.detail import Detail
from isthmus.terminal.lines import Line, block, head, name, pretty

__all__ = ["ToolList", "make_arguments"]

SAMPLES: Mapping[str, Any] = {
    "string": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "array": [],
    "object": {},
}


def make_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a tool cannot do without, to be filled in."""
    properties = schema.get("properties", {})
    needed = [key for key in schema.get("required", ()) if key in properties]
    return {key: _sample(properties[key]) for key in needed}


def _sample(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return None
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    return SAMPLES.get(kind) if isinstance(kind, str) else None


class ToolList(ModalScreen[ToolLine | None]):
    """The tools of a server; the one that was chosen is to be called.

    Args:
        server: its name.
        tools: what it has.
    """

    DEFAULT_CSS = """
    ToolList > Vertical { border: solid $foreground; }
    #tools-title { height: auto; text-style: bold; }
    #tools { height: 1fr; max-height: 40%; border: none; padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("space", "page(1)", show=False),
        Binding("backspace", "page(-1)", show=False),
    ]

    def __init__(self, server: str, tools: Sequence[ToolLine]) -> None:
        super().__init__()
        self._server = server
        self._tools = tools

    def compose(self) -> ComposeResult:
        """The list above what one of them is."""
        with Vertical():
            title = f"{len(self._tools)} tools of {name(self._server)}"
            yield Static(title, id="tools-title", markup=False)
            rows = (Option(Text(_row(one), no_wrap=True)) for one in self._tools)
            yield OptionList(*rows, id="tools", markup=False)
            yield Detail(id="tool")
            yield Static(" Enter  calls it    Space  turns the page    Esc  back", markup=False)

    def on_mount(self) -> None:
        """Begin with the first one."""
        self.query_one("#tools", OptionList).focus()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Another one is looked at."""
        event.stop()
        self.query_one(Detail).show(_lines(self._tools[event.option_index]))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """It is to be called."""
        event.stop()
        self.dismiss(self._tools[event.option_index])

    def action_leave(self) -> None:
        """Call none."""
        self.dismiss(None)

    def action_page(self, direction: int) -> None:
        """Turn the page."""
        detail = self.query_one(Detail)
        detail.scroll_relative(y=direction * max(1, detail.size.height - 1), animate=False)


def _row(one: ToolLine) -> str:
    about = " ".join((one.tool.title or one.tool.description or "").split())
    return name(f"{one.tool.name}  {about}")


def _lines(one: ToolLine) -> list[Line]:
    return [
        Line(name(one.name), "title"),
        *block(one.tool.description or "(no description)"),
        head("its definition"),
        *block(pretty(one.tool)),
    ]
