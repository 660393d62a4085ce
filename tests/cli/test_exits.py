"""Exit codes: one table, every one explained, every foreseen error in it."""

import pytest

from isthmus import errors
from isthmus.cli.exits import EXIT_MEANINGS, Exit, exit_for


def test_every_code_is_explained():
    """Ours: the table is the documentation."""
    assert list(Exit) == list(EXIT_MEANINGS)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (errors.CallTimedOut(), 5),
        (errors.ConnectFailed(), 3),
        (errors.ConnectionLost(), 3),
        (errors.MethodNotFound(-32601, "no"), 4),
        (errors.Misbehaved(), 4),
        (errors.CapabilityMissing("no"), 4),
        (errors.TooManyRounds(), 4),
        (errors.UsageError(), 2),
        (errors.ToolFailed("t", "no", None), 1),
        (ZeroDivisionError(), 70),
    ],
)
def test_an_error_means_a_code(error, code):
    """Ours: scripts can branch on what went wrong."""
    assert code == exit_for(error)
