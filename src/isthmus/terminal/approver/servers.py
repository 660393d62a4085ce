"""The servers pane: the state of each server, its tools, its log, and what can be done with it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from isthmus.cards.cards import describe_blocks
from isthmus.cards.drafts import read_draft, to_editor_json
from isthmus.cards.lines import (
    StyledLine,
    display_name,
    error_lines,
    field_line,
    first_sentence,
    format_json,
    head_line,
    quote_block,
)
from isthmus.host.model.attempt import asked_by
from isthmus.host.model.view import ServerDo, ServerStatus, ToolLine
from isthmus.host.remote.view import HostView
from isthmus.terminal.approver.dialogs import TextDialog
from isthmus.terminal.approver.questions import NO_SERVERS, QuestionsPane
from isthmus.terminal.approver.widgets import Detail
from isthmus.terminal.editing import Edit


def describe_server(status: ServerStatus) -> list[StyledLine]:
    """Everything known of a server."""
    has = {"tools": status.tools, "resources": status.resources, "prompts": status.prompts}
    lines = [
        StyledLine(display_name(status.name), "title"),
        field_line("state", status.state),
        field_line("where", status.where or "in this process"),
        field_line("says it is", status.said or "(not asked yet)"),
        field_line("revision", status.revision or "(not connected)"),
        *(field_line(what, "(not asked yet)" if n is None else n) for what, n in has.items()),
        field_line("calls under way", status.in_flight),
        field_line("connections", status.connections),
        field_line("started again", f"{status.restarts} times"),
        field_line("broke the rules", f"{status.strikes} times"),
        field_line("trust", status.trust),
        field_line("process", status.pid or "(none of ours)"),
        field_line("written in", status.source or "(nowhere)"),
    ]
    return [*lines[:1], *error_lines(status.error), *lines[1:]] if status.error else lines


def format_server_row(status: ServerStatus, *, chosen: bool) -> Text:
    """A server in one line; ``!`` where something is wrong."""
    text = f"{'>' if chosen else ' '} {display_name(status.name)}: {status.state}"
    return Text(text + (" !" if status.error else ""), no_wrap=True, overflow="ellipsis")


class ServersPane(Container):
    """The list of servers beside what is known of one.

    Args:
        view: the host.
        edit: lets the user write the arguments of a call.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "do('start')", "start"),
        Binding("x", "do('stop')", "stop"),
        Binding("r", "do('restart')", "restart"),
        Binding("l,enter", "log", "its log"),
        Binding("t", "tools", "its tools"),
    ]

    def __init__(self, view: HostView, edit: Edit) -> None:
        super().__init__(id="servers")
        self._view = view
        self._edit = edit
        self._shown: list[ServerStatus] = []

    def compose(self) -> ComposeResult:
        """The list and the facts."""
        yield OptionList(id="server-list", markup=False)
        yield Detail(id="server-detail")

    @property
    def chosen(self) -> ServerStatus | None:
        """The server that is looked at."""
        at = self.query_one(OptionList).highlighted
        return None if at is None or at >= len(self._shown) else self._shown[at]

    def reload(self) -> None:
        """Show how they are now."""
        rows = self.query_one(OptionList)
        at = rows.highlighted or 0
        self._shown = list(self._view.servers())
        rows.clear_options()
        for number, one in enumerate(self._shown):
            rows.add_option(Option(format_server_row(one, chosen=number == at)))
        rows.highlighted = min(at, len(self._shown) - 1) if self._shown else None
        self._show()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Another one is looked at."""
        event.stop()
        rows = self.query_one(OptionList)
        for number, one in enumerate(self._shown):
            rows.replace_option_prompt_at_index(
                number, format_server_row(one, chosen=number == rows.highlighted)
            )
        self._show()

    def _show(self) -> None:
        chosen = self.chosen
        found = [NO_SERVERS] if chosen is None else describe_server(chosen)
        self.query_one(Detail).show(found, top=False)

    def action_do(self, what: ServerDo) -> None:
        """Have something done with the server; the screen goes on meanwhile."""
        chosen = self.chosen
        if chosen is not None:
            self.run_worker(self._do(chosen.name, what))

    async def _do(self, server: str, what: ServerDo) -> None:
        self._say(f"{what}: {display_name(server)} ...")
        try:
            await self._view.server_do(server, what, by="terminal")
        except Exception as error:  # noqa: BLE001 - whatever it is, the user must hear of it
            self._say(f"{what} of {display_name(server)} failed: {first_sentence(str(error))}")
        else:
            self._say(f"{what} of {display_name(server)}: done")
        self.reload()

    def _say(self, text: str) -> None:
        self.post_message(QuestionsPane.Status(text))

    def action_tools(self) -> None:
        """List the server's tools; one that is chosen there is called."""
        chosen = self.chosen
        if chosen is not None:
            self.run_worker(self._list_tools(chosen.name))

    async def _list_tools(self, server: str) -> None:
        try:
            tools = await self._view.tools(server)
        except Exception as error:  # noqa: BLE001 - whatever it is, the user must hear of it
            self._say(
                f"the tools of {display_name(server)} are not known: {first_sentence(str(error))}"
            )
            return
        if not tools:
            self._say(f"{display_name(server)} has no tools")
            return

        def done(tool: ToolLine | None) -> None:
            if tool is not None:
                self.run_worker(self._call(tool))

        self.app.push_screen(ToolList(server, tools), done)

    async def _call(self, tool: ToolLine) -> None:
        """Have the arguments written, call the tool, and show what it gives."""
        arguments = make_arguments(tool.tool.input_schema)
        try:
            draft = read_draft(await self._edit(to_editor_json(arguments)), arguments)
            if draft.error:
                self._say(f"{display_name(tool.name)} was not called: {draft.error}")
                return
            self._say(f"calling {display_name(tool.name)} ...  (1 shows its questions)")
            with asked_by("a person at this terminal"):
                result = await self._view.call(tool.name, draft.value or {})
        except Exception as error:  # noqa: BLE001 - whatever it is, the user must hear of it
            self._say(f"{display_name(tool.name)}: {first_sentence(str(error))}")
            return
        how = "failed" if result.is_error else "gave"
        self._say(f"{display_name(tool.name)} {how} a result")
        lines = [*describe_blocks(result.content)] or [StyledLine("  nothing", "dim")]
        self.app.push_screen(TextDialog(f"what {display_name(tool.name)} {how}", lines))

    async def action_log(self) -> None:
        """Show the log of the server's process."""
        chosen = self.chosen
        if chosen is not None:
            lines = [
                StyledLine(display_name(text)) for text in await self._view.log_tail(chosen.name)
            ]
            found = lines or [StyledLine("  It wrote nothing.", "dim")]
            self.app.push_screen(TextDialog(f"what {display_name(chosen.name)} wrote", found))


SAMPLE_VALUES: Mapping[str, Any] = {
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
    return {key: _make_sample(properties[key]) for key in needed}


def _make_sample(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return None
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    return SAMPLE_VALUES.get(kind) if isinstance(kind, str) else None


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
            title = f"{len(self._tools)} tools of {display_name(self._server)}"
            yield Static(title, id="tools-title", markup=False)
            rows = (Option(Text(_format_tool_row(one), no_wrap=True)) for one in self._tools)
            yield OptionList(*rows, id="tools", markup=False)
            yield Detail(id="tool")
            yield Static(" Enter  calls it    Space  turns the page    Esc  back", markup=False)

    def on_mount(self) -> None:
        """Begin with the first one."""
        self.query_one("#tools", OptionList).focus()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Another one is looked at."""
        event.stop()
        self.query_one(Detail).show(_describe_tool(self._tools[event.option_index]))

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


def _format_tool_row(one: ToolLine) -> str:
    about = " ".join((one.tool.title or one.tool.description or "").split())
    return display_name(f"{one.tool.name}  {about}")


def _describe_tool(one: ToolLine) -> list[StyledLine]:
    return [
        StyledLine(display_name(one.name), "title"),
        *quote_block(one.tool.description or "(no description)"),
        head_line("its definition"),
        *quote_block(format_json(one.tool)),
    ]
