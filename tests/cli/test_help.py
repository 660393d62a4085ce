"""The help of the command, whose lines stand apart from the modules that they are about."""

import contextlib
import inspect
import io
import shlex

import pytest
import typer

from isthmus.cli.command_table import COMMANDS, format_help
from isthmus.cli.commands.authoring.install import complete_client
from isthmus.cli.examples import EXAMPLES
from isthmus.cli.main import main
from isthmus.cli.typer_app import app, load_command
from isthmus.host.config.clients import CLIENTS


def list_leaves(way, made):
    """Each command below one, by what is typed; a group that runs by itself is one, too."""
    if not getattr(made, "commands", None):
        return {way: made}
    return ({way: made} if made.invoke_without_command else {}) | {
        typed: leaf
        for name, each in made.commands.items()
        for typed, leaf in list_leaves(f"{way} {name}", each).items()
    }


LEAVES = {
    typed: leaf
    for name in COMMANDS
    for typed, leaf in list_leaves(name, load_command(name)).items()
}


def run(capsys, *words):
    """A command's exit code, and what it wrote to both outputs."""
    with pytest.raises(SystemExit) as left:
        main(words)
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_of_a_command_what_its_module_says(name):
    """Ours: the module is imported when the command is run, and not for the help of all."""
    assert COMMANDS[name][1] == inspect.cleandoc(load_command(name).help)


def test_no_line_of_the_help_is_cut_short():
    """Ours: a sentence that ends in dots says nothing."""
    assert "..." not in format_help().replace("[ARGS]...", "")


def test_every_command_has_an_example_that_is_right():
    """Ours: read by typer, with the options that it has."""
    assert set(LEAVES) == set(EXAMPLES)
    wrong = []
    for name, lines in EXAMPLES.items():
        for line in lines:
            words, _, command = line.partition(" -- ")
            typed = shlex.split(words)[len(name.split()) :]
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    LEAVES[name].make_context(name, typed, obj=command.split())
            except (typer.BadParameter.__base__, typer.Exit) as error:
                wrong.append((line, str(error)))
            assert line.startswith(name)
    assert [] == wrong


@pytest.mark.parametrize("name", ["call", "servers add", "gateway"])
def test_examples_stand_at_the_end_of_a_commands_help(capsys, name):
    """Ours: a line each, as it is typed; -h is --help."""
    code, out, _ = run(capsys, *name.split(), "-h")
    end = out.split("Examples:\n")[1].splitlines()

    assert (0, [f"    isthmus {line}" for line in EXAMPLES[name]]) == (code, end)
    assert (code, out) == run(capsys, *name.split(), "--help")[:2]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("cal", "Did you mean 'call'?"),
        ("foo", "There are: run, dev, new, install, "),
        ("app.py", "A file is served by: isthmus run app.py"),
        ("app.py:server", "A file is served by: isthmus run app.py:server"),
        ("https://example.com/mcp", "A server is asked by: isthmus list https://example.com/mcp"),
    ],
)
def test_a_word_that_is_no_command_is_told_what_there_is(capsys, word, said):
    """Ours: nobody has to look it up."""
    code, _, err = run(capsys, word)

    assert (2, True) == (code, said in err), err


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("isthmus in", ["install", "inspect"]),
        ("isthmus install --dry", ["--dry-run"]),
        ("isthmus install --into c", [name for name in CLIENTS if name.startswith("c")]),
        ("isthmus config sec", ["secret"]),
    ],
)
def test_a_shell_completes_commands_options_and_clients(monkeypatch, capsys, typed, found):
    """Ours: by isthmus --install-completion."""
    monkeypatch.setenv("_ISTHMUS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    with pytest.raises(SystemExit):
        app([], prog_name="isthmus")

    assert found == capsys.readouterr().out.split()
    assert list(CLIENTS) == complete_client("")
