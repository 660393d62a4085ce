"""``isthmus migrate``: what it prints, what it writes, and its exit codes."""

import builtins

import pytest

from isthmus.cli.commands.authoring.migrate import run_migration
from isthmus.cli.exit_codes import Exit
from isthmus.errors import UsageError

SERVER = 'from mcp.types import Tool\n\ntool = Tool(name="a", inputSchema={})\n'


def test_without_write_the_difference_is_printed(tmp_path, capsys):
    """The file stays, and the difference and a summary are on standard output."""
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    assert run_migration(str(path), write=False) == Exit.OK
    printed = capsys.readouterr().out
    assert "-from mcp.types import Tool" in printed.splitlines()
    assert "would change 1 file of 1" in printed
    assert path.read_text() == SERVER


def test_with_write_the_file_is_changed(tmp_path, capsys):
    """The new text stands in the file, and a second run has nothing to do."""
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    run_migration(str(tmp_path), write=True)
    assert path.read_text().startswith("from isthmus.")
    capsys.readouterr()
    run_migration(str(tmp_path), write=True)
    assert "changed 0 files of 1" in capsys.readouterr().out


def test_an_untouched_file_makes_the_exit_code_1(tmp_path, capsys):
    """A script sees that something is left to be done."""
    (tmp_path / "server.py").write_text("from fastmcp import *\n")
    assert run_migration(str(tmp_path), write=True) == Exit.TOOL_FAILED
    assert "server.py:1: from fastmcp import *" in capsys.readouterr().out


def test_a_path_that_is_not_there_is_named(tmp_path):
    """The error says what to name."""
    with pytest.raises(UsageError, match="does not exist: name the folder or file of a server"):
        run_migration(str(tmp_path / "nothing"), write=False)


def test_without_libcst_the_extra_is_named(tmp_path, monkeypatch):
    """The missing extra is an error that says how to install it."""
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "isthmus.migration.project":
            raise ModuleNotFoundError("No module named 'libcst'", name="libcst")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(UsageError, match=r"takes libcst: pip install 'isthmus\[migrate\]'"):
        run_migration(str(tmp_path), write=False)
