"""An app that fails."""

from isthmus.terminal.answer_keys import KeyGuard
from isthmus.terminal.approver.app import TerminalApprover
from isthmus.terminal.approver.widgets import FullScreenApp
from isthmus.terminal.chat.app import ChatApp


class Failing(FullScreenApp):
    """Fails at once, and knows something."""

    def on_mount(self):
        """Fail."""
        known = "yranac-eht"[::-1]
        raise RuntimeError(f"something is wrong with {len(known)} letters")


async def test_a_screen_that_fails_does_not_tell_what_it_knew(capsys):
    """Ours: what stands on the terminal afterwards is where it failed, and no value."""
    await Failing(KeyGuard(lambda: 0.0)).run_async(headless=True)
    told = capsys.readouterr()

    assert "something is wrong with 10 letters" in told.err + told.out
    assert "canary" not in told.err + told.out


def test_both_screens_are_discreet():
    """Ours: whichever one looks at."""
    assert [True, True] == [issubclass(one, FullScreenApp) for one in (TerminalApprover, ChatApp)]
