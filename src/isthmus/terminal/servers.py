"""The servers: how each is, what is wrong with it, and what can be done."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from isthmus.host.attempt import asked_by
from isthmus.host.view import HostView, ServerDo, ServerStatus, ToolLine
from isthmus.terminal.chat_lines import show_content
from isthmus.terminal.choosing import Reading
from isthmus.terminal.detail import Detail
from isthmus.terminal.editing import Edit, as_json, read_draft
from isthmus.terminal.lines import Line, brief, field, name, trouble
from isthmus.terminal.questions import NO_SERVERS, Questions
from isthmus.terminal.tool_list import ToolList, make_arguments

__all__ = ["Servers", "about"]


def about(status: ServerStatus) -> list[Line]:
    """Everything known of a server."""
    has = {"tools": status.tools, "resources": status.resources, "prompts": status.prompts}
    lines = [
        Line(name(status.name), "title"),
        field("state", status.state),
        field("where", status.where or "in this process"),
        field("says it is", status.said or "(not asked yet)"),
        field("revision", status.revision or "(not connected)"),
        *(field(what, "(not asked yet)" if n is None else n) for what, n in has.items()),
        field("calls under way", status.in_flight),
        field("connections", status.connections),
        field("started again", f"{status.restarts} times"),
        field("broke the rules", f"{status.strikes} times"),
        field("trust", status.trust),
        field("process", status.pid or "(none of ours)"),
        field("written in", status.source or "(nowhere)"),
    ]
    return [*lines[:1], *trouble(status.error), *lines[1:]] if status.error else lines


def row(status: ServerStatus, *, chosen: bool) -> Text:
    """One server in a line; ``!`` where something is wrong."""
    text = f"{'>' if chosen else ' '} {name(status.name)}: {status.state}"
    return Text(text + (" !" if status.error else ""), no_wrap=True, overflow="ellipsis")


class Servers(Container):
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
            rows.add_option(Option(row(one, chosen=number == at)))
        rows.highlighted = min(at, len(self._shown) - 1) if self._shown else None
        self._show()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Another one is looked at."""
        event.stop()
        rows = self.query_one(OptionList)
        for number, one in enumerate(self._shown):
            rows.replace_option_prompt_at_index(number, row(one, chosen=number == rows.highlighted))
        self._show()

    def _show(self) -> None:
        chosen = self.chosen
        found = [NO_SERVERS] if chosen is None else about(chosen)
        self.query_one(Detail).show(found, top=False)

    def action_do(self, what: ServerDo) -> None:
        """Have something done with the server; the screen goes on meanwhile."""
        chosen = self.chosen
        if chosen is not None:
            self.run_worker(self._doing(chosen.name, what))

    async def _doing(self, server: str, what: ServerDo) -> None:
        self._say(f"{what}: {name(server)} ...")
        try:
            await self._view.server_do(server, what)
        except Exception as error:  # noqa: BLE001 - whatever it is, the user must hear of it
            self._say(f"{what} of {name(server)} failed: {brief(str(error))}")
        else:
            self._say(f"{what} of {name(server)}: done")
        self.reload()

    def _say(self, text: str) -> None:
        self.post_message(Questions.Said(text))

    def action_tools(self) -> None:
        """List the server's tools; one that is chosen there is called."""
        chosen = self.chosen
        if chosen is not None:
            self.run_worker(self._listing(chosen.name))

    async def _listing(self, server: str) -> None:
        try:
            tools = await self._view.tools(server)
        except Exception as error:  # noqa: BLE001 - whatever it is, the user must hear of it
            self._say(f"the tools of {name(server)} are not known: {brief(str(error))}")
            return
        if not tools:
            self._say(f"{name(server)} has no tools")
            return

        def done(tool: ToolLine | None) -> None:
            if tool is not None:
                self.run_worker(self._calling(tool))

        self.app.push_screen(ToolList(server, tools), done)

    async def _calling(self, tool: ToolLine) -> None:
        """Have the arguments written, call the tool, and show what it gives."""
        arguments = make_arguments(tool.tool.input_schema)
        try:
            draft = read_draft(await self._edit(as_json(arguments)), arguments)
            if draft.error:
                self._say(f"{name(tool.name)} was not called: {draft.error}")
                return
            self._say(f"calling {name(tool.name)} ...  (1 shows what is asked)")
            with asked_by("a person at this terminal"):
                result = await self._view.call(tool.name, draft.value or {})
        except Exception as error:  # noqa: BLE001 - whatever it is, the user must hear of it
            self._say(f"{name(tool.name)}: {brief(str(error))}")
            return
        how = "failed" if result.is_error else "gave"
        self._say(f"{name(tool.name)} {how} a result")
        lines = [*show_content(result.content)] or [Line("  nothing", "dim")]
        self.app.push_screen(Reading(f"what {name(tool.name)} {how}", lines))

    async def action_log(self) -> None:
        """What the server's process wrote for people."""
        chosen = self.chosen
        if chosen is not None:
            lines = [Line(name(text)) for text in await self._view.log_tail(chosen.name)]
            found = lines or [Line("  It wrote nothing.", "dim")]
            self.app.push_screen(Reading(f"what {name(chosen.name)} wrote", found))
