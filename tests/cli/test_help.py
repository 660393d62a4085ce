"""The help of the command, whose lines stand apart from the modules that they are about."""

import inspect

import pytest

from isthmus.cli.command_table import COMMANDS
from isthmus.cli.typer_app import load_command


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_of_a_command_what_its_module_says(name):
    """Ours: the module is imported when the command is run, and not for the help of all."""
    assert COMMANDS[name][1] == inspect.cleandoc(load_command(name).help)
