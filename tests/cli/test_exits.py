"""Exit codes: one table, every one explained, every foreseen error in it."""

import pytest

from isthmus import errors
from isthmus.cli.exit_codes import EXIT_MEANINGS, Exit
from isthmus.cli.exits import exit_for
from isthmus.cli.main import main


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


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [(KeyboardInterrupt, 130, "isthmus: interrupted"), (ImportError, 70, "no such library")],
)
def test_a_command_that_cannot_be_imported_ends_with_the_code_of_the_error(
    monkeypatch, capsys, kind, code, said
):
    """Ours: a command is imported when it is run, and its codes hold from there on."""

    def fail(_name):
        raise kind("no such library")

    monkeypatch.setattr("isthmus.cli.main.import_module", fail)
    with pytest.raises(SystemExit) as left:
        main(["audit", "stats"])
    assert left.value.code == code
    assert said in capsys.readouterr().err
