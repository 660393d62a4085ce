"""The example of a protected server, with its authorization server and its client."""

import webbrowser

import pytest

from support.docs.blocks import run_command

pytestmark = pytest.mark.timeout(90)


def test_the_protected_example_logs_in_twice_and_books():
    """Ours: once for what every request takes, once more for the tool that takes more."""
    printed = run_command("python protected --headless").splitlines()

    assert [
        "the browser opens: may the client have bookings:read?",
        "bookings: []",
        "the browser opens: may the client have bookings:read bookings:write?",
        "booked 2026-05-01 for ada",
        "bookings: ['2026-05-01']",
    ] == printed


def has_browser():
    """Whether this machine has a browser that would really open."""
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


@pytest.mark.skipif(has_browser(), reason="it would open")
def test_without_a_browser_the_protected_example_says_what_to_do():
    """Ours: one clear last line, and no traceback."""
    printed = run_command("python protected")

    assert "Traceback" not in printed
    assert printed.splitlines()[-1].startswith("there is no browser here to log in with: ")
    assert printed.splitlines()[-1].endswith(" --headless logs in without a browser.")
