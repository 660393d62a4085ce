"""The command ``isthmus``: plain command lines, read with nothing imported that they do not need.

Everything else, with help and errors, is :mod:`isthmus.cli.typer_app` (ADR 0076).
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import isthmus
from isthmus.cli.command_table import COMMANDS, HELP_COLUMNS, format_help
from isthmus.cli.declarations import Invocation, read_plain_line

if TYPE_CHECKING:
    from isthmus.cli.declarations import CommandSet


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; what stands after the first ``--`` is the command of a server."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    cut = given.index("--") if "--" in given else len(given)
    words, command = given[:cut], given[cut + 1 :]
    if words == ["--version"]:
        print(f"isthmus {isthmus.__version__}")
    elif words in (["--help"], ["-h"]) and _is_help_usual():
        print(format_help())
    elif not words or words[0] not in COMMANDS or not _run_plain_line(*words, command=command):
        from isthmus.cli.typer_app import app  # for what is not plain

        app(args=words, obj=command)
    raise SystemExit(0)


def _run_plain_line(name: str, *words: str, command: Sequence[str]) -> bool:
    """Run a command that is typed plainly; False where it is not, and nothing was done."""
    from isthmus.cli.exits import exit_at_error  # help needs no event loop

    with exit_at_error():
        declared: CommandSet = import_module(f"isthmus.cli.commands.{COMMANDS[name][0]}").app
    found = declared.find_plain(name, words)
    if found is None:
        return False
    function = declared.commands[found[0]].function
    arguments = read_plain_line(function, found[1], Invocation(found[0], command))
    if arguments is None:
        return False
    function(**arguments)
    return True


def _is_help_usual() -> bool:
    """Whether typer would write the help as :func:`format_help` does: the command has its name."""
    return os.path.basename(sys.argv[0]) == "isthmus" and _count_columns() >= HELP_COLUMNS  # noqa: PTH119 - pathlib costs start-up time


def _count_columns() -> int:
    """The columns of the terminal, as ``shutil`` counts them, which takes long to import."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or HELP_COLUMNS  # type: ignore[union-attr]  # None has no fileno: below
    except (AttributeError, ValueError, OSError):
        return HELP_COLUMNS
