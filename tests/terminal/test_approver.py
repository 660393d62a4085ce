"""The full screen, driven by keys, with a host that only asks and a clock that only tests move."""

import pytest

from isthmus.host.interaction import Decision, FormAsked
from isthmus.terminal.approver import TerminalApprover
from isthmus.terminal.detail import Detail
from isthmus.terminal.inbox import Inbox
from isthmus.terminal.questions import Surface
from isthmus.wire import ElicitParams
from waiting_host import WaitingHost, asked

FORM = FormAsked(
    params=ElicitParams(
        message="Which seat?",
        requested_schema={
            "type": "object",
            "properties": {
                "row": {"type": "integer", "maximum": 30},
                "side": {"type": "string", "enum": ["aisle", "window"], "default": "aisle"},
            },
            "required": ["row", "side"],
        },
    )
)


class Clock:
    """Time that passes when a test says so."""

    def __init__(self):
        self.at = 100.0

    def __call__(self):
        return self.at


class Screen:
    """A terminal with somebody at the keyboard."""

    def __init__(self, host, *, edits=(), **surface):
        self.host = host
        self.clock = Clock()
        self.edits = list(edits)
        self.opened = []
        self.app = TerminalApprover(
            host,
            Surface(clock=self.clock, now=lambda: 1000.0 + self.clock(), edit=self.edit, **surface),
        )

    async def edit(self, text):
        """The user's editor."""
        self.opened.append(text)
        return self.edits.pop(0)

    def run(self, size=(80, 24)):
        """Show it."""
        return self.app.run_test(size=size)

    async def press(self, pilot, *keys):
        """Look at the screen for a while, then press keys."""
        await pilot.pause()
        self.clock.at += 1
        await pilot.press(*keys)
        working = [w for w in self.app.workers if w.name != "listening"]
        if working:
            await self.app.workers.wait_for_complete(working)
        await pilot.pause()

    @property
    def told(self):
        return str(self.app.query_one("#told").content)

    @property
    def card(self):
        return self.app.query_one("#detail", Detail).text

    @property
    def rows(self):
        return self.app.query_one(Inbox).rows


def shown(app):
    """What stands on the screen, row by row."""
    width = app.size.width
    return [
        "".join(segment.text for segment in strip)[:width]
        for strip in app.screen._compositor.render_strips()
    ]


@pytest.mark.covers("hostterminal.keys.allow-once")
async def test_a_allows_once():
    """Ours: one key says yes to what is on the screen, and to nothing else."""
    screen = Screen(WaitingHost(asked("q1"), asked("q2")))

    async with screen.run() as pilot:
        await screen.press(pilot, "a")

        yes = Decision(verdict="allow", by="terminal", assurance="local_ui")
        assert {"q1": yes} == screen.host.decided
        assert "Allowed: May the tool delete of files be called?" == screen.told
        assert 1 == len(screen.rows)
