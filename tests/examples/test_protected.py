"""The example of a protected server, with its authorization server and its client."""

import pytest

from doc_blocks import run_command

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
