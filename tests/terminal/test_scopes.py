"""What a yes may hold for, in words."""

import pytest

from isthmus.terminal.scopes import kept
from waiting_host import asked


@pytest.mark.parametrize(
    ("action", "labels"),
    [
        ("tool.call", ["this tool, until the host ends", "this tool for an hour"]),
        ("elicit.form", []),
        ("server.install", []),
        ("server.connect", []),
    ],
)
def test_scopes_are_offered_for_what_a_grant_is_for(action, labels):
    """Ours: the user answers a server each time, and consent to run or connect is kept anyway."""
    question = asked("q1", action=action, remember=("once", "session", "until"))

    assert labels == [one.label for one in kept(question)][:2]
