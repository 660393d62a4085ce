"""Lifetimes of a yes, in words."""

import pytest

from isthmus.cards.choices import list_grant_choices
from support.host.waiting_host import make_interaction


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
    question = make_interaction("q1", action=action, remember=("once", "session", "until"))

    assert labels == [one.label for one in list_grant_choices(question)][:2]
