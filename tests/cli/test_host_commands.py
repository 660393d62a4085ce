"""The commands about a host, as their help has them."""

import pytest

from isthmus.cli.typer_app import load_command

HOST = ("servers", "grants", "policy", "audit", "config", "models", "chat", "host")

DOING = {
    "servers start", "servers stop", "servers restart", "servers enable", "servers disable",
    "servers add", "servers remove", "grants revoke", "config trust", "config untrust",
    "config secret set", "config secret remove", "config roots grant", "config roots revoke",
    "models check", "models sync", "chat", "host",
}  # fmt: skip
"""Commands that do something, and print a line about it at most."""

FORMATS = {"audit export", "config schema", "models example"}
"""Commands that print a format of its own in any case."""


def leaves(command, path=()):
    """All commands below one, by what is typed."""
    below = getattr(command, "commands", {})
    if not below:
        yield " ".join(path), command
    for name, each in below.items():
        yield from leaves(each, (*path, name))


COMMANDS = dict(found for name in HOST for found in leaves(load_command(name), (name,)))


@pytest.mark.covers("hostterminal.commands.help")
@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_says_what_it_does_and_every_option_what_it_is(words):
    """Ours: a sentence each, so that nobody has to look elsewhere."""
    command = COMMANDS[words]
    options = [one for one in command.params if one.param_type_name == "option"]

    assert command.help.split("\n")[0].endswith(".")
    assert [] == [one.opts[0] for one in options if not one.help]


@pytest.mark.covers("hostterminal.commands.json")
def test_every_command_whose_output_is_data_gives_it_to_programs():
    """Ours: --json wherever a table or rows are printed."""
    silent = {
        words
        for words, command in COMMANDS.items()
        if not any("--json" in one.opts for one in command.params)
    }

    assert DOING | FORMATS == silent
