"""The panes beside the questions, on a whole host: its tools, its grants, its log."""

import asyncio
import json

import pytest

from isthmus import Server
from isthmus.host.host import Host
from isthmus.terminal.approver.app import TerminalApprover
from isthmus.terminal.approver.dialogs import TextDialog
from isthmus.terminal.approver.questions import TerminalSurface
from isthmus.terminal.approver.servers import ToolList, make_arguments
from isthmus.terminal.approver.widgets import Detail

pytestmark = pytest.mark.timeout(60)


def shop():
    """A server with two tools."""
    server = Server("shop")

    @server.tool
    async def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    @server.tool
    async def wave() -> str:
        """Wave to [bold]somebody."""
        return "[bold]hello"

    return server


class Screen:
    """Somebody at the terminal of a host."""

    def __init__(self, host):
        self.at = 100.0
        self.opened = []
        self.app = TerminalApprover(
            host.view, TerminalSurface(clock=lambda: self.at, edit=self.edit)
        )

    async def edit(self, text):
        """The user's editor: five for whatever is missing."""
        self.opened.append(text)
        return json.dumps(dict.fromkeys(json.loads(text), 5))

    async def press(self, pilot, *keys):
        """Look at the screen for a while, then press keys."""
        for key in keys:
            await pilot.pause()
            self.at += 1
            await pilot.press(key)
        await pilot.pause()

    async def until(self, pilot, fits):
        """Wait until something is on the screen."""
        async with asyncio.timeout(20):
            while not fits():
                await pilot.pause()

    @property
    def told(self):
        return str(self.app.query_one("#told").content)


@pytest.fixture
async def host():
    """A host with a server."""
    host = Host()
    host.add("shop", shop())
    async with host:
        yield host


@pytest.mark.covers("hostterminal.panes.tools")
async def test_the_tools_of_a_server_are_listed_and_one_is_called(host):
    """Ours: the call is asked about like any other, and its result is shown."""
    screen = Screen(host)
    async with host.view.attend("terminal"), screen.app.run_test(size=(80, 30)) as pilot:
        await screen.press(pilot, "2", "t")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ToolList))
        await screen.press(pilot, "down")
        shown = screen.app.screen.query_one(Detail).text
        await screen.press(pilot, "up", "enter")
        await screen.until(pilot, lambda: bool(host.view.pending()))
        asked = host.view.pending()[0]
        await screen.press(pilot, "1")
        await screen.press(pilot, "a")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, TextDialog))
        result = screen.app.screen.query_one(Detail).text

    assert "Wave to [bold]somebody." in shown
    assert ['{\n  "a": 0\n}\n'] == screen.opened
    assert {"a": 5} == asked.payload.arguments
    assert "a person at this terminal" == asked.attempt.asker
    assert "  | 7" == result


@pytest.mark.covers("hostterminal.panes.grants")
async def test_grants_are_listed_and_one_is_taken_back(host):
    """Ours: the same call is asked about again."""
    screen = Screen(host)
    async with host.view.attend("terminal"), screen.app.run_test(size=(80, 30)) as pilot:
        call = asyncio.ensure_future(host.call("shop__wave"))
        await screen.until(pilot, lambda: bool(host.view.pending()))
        await screen.press(pilot, "r", "1")
        await call
        await screen.press(pilot, "4")
        before = screen.app.query_one("#grant-detail", Detail).text
        await screen.press(pilot, "x")
        await screen.until(pilot, lambda: "Taken back" in screen.told)
        after = screen.app.query_one("#grant-detail", Detail).text
        grants = await host.view.grants()

    assert "  for: arguments" in before
    assert "There are no grants." in after
    assert [] == list(grants)


@pytest.mark.covers("hostterminal.panes.search")
async def test_the_audit_log_is_searched(host):
    """Ours: rows with all of the words, until Esc."""
    screen = Screen(host)
    async with screen.app.run_test(size=(80, 30)) as pilot:
        await host.audit.flush()
        await asyncio.gather(
            host.call("shop__wave"), host.call("shop__add", {"a": 1}), return_exceptions=True
        )
        await screen.press(pilot, "3", "slash", *"wave failed")
        found = screen.app.query_one("#happenings", Detail).text.splitlines()
        await screen.press(pilot, "escape")
        everything = screen.app.query_one("#happenings", Detail).text

    assert found
    assert all("shop: wave" in row and "failed" in row for row in found)
    assert "shop: add" in everything


def test_arguments_to_be_filled_in_are_those_that_a_tool_needs():
    """Ours: a default, the first of several, or an empty one of the kind; odd schemas give nothing."""
    schema = {
        "properties": {
            "a": {"type": "string"},
            "b": {"type": ["integer", "null"]},
            "c": {"enum": ["x", "y"]},
            "d": {"type": "boolean", "default": True},
            "e": {"$ref": "#/x"},
            "f": {"type": "string"},
            "g": True,
        },
        "required": ["a", "b", "c", "d", "e", "g", "gone"],
    }

    assert {"a": "", "b": 0, "c": "x", "d": True, "e": None, "g": None} == make_arguments(schema)
