"""Plain command lines: read without typer, and never otherwise than typer reads them."""

import contextlib
import io
import sys
from importlib import import_module

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.cli import main as command
from isthmus.cli.command_table import COMMANDS, format_help
from isthmus.cli.declarations import Invocation, list_parameters, read_plain_line
from isthmus.cli.typer_app import app, load_command
from support.examples import count_examples


def list_leaves():
    """Each command that is no group: what is typed, its function, and typer's form of it."""
    for name, (module, _) in COMMANDS.items():
        declared = import_module(f"isthmus.cli.commands.{module}").app
        made = load_command(name)
        if declared.name != name:
            yield name, declared.commands[name].function, made
            continue
        for each, (function, _) in declared.commands.items():
            yield f"{name} {each}", function, made.commands[each]


LEAVES = {name: (function, made) for name, function, made in list_leaves()}
TOLD = Invocation("x", ("server", "--flag"))


def parse_with_typer(made, words):
    """The arguments that typer finds in a line, or None where it finds fault."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return made.make_context("x", list(words), obj=list(TOLD.command)).params
        except (typer.BadParameter.__base__, typer.Exit):
            return None


def normalize(value):
    """A value as both may have it: no list and an empty one are the same."""
    return (list(value) if isinstance(value, tuple | list) else value) or None


@st.composite
def command_lines(draw):
    """A command, and words that have something to do with it."""
    name = draw(st.sampled_from(sorted(LEAVES)))
    typed = [word for option in LEAVES[name][1].params for word in option.opts]
    plain = st.sampled_from(["server.py", "a=1", "127.0.0.1:80", "7", "", "-", "-x", "--no", "a b"])
    options = [word for word in typed if word.startswith("-")]
    spelled = st.sampled_from([*options, *(f"{word}=7" for word in options), "--help"])
    return name, draw(st.lists(plain | spelled, max_size=5))


@given(command_lines())
@settings(max_examples=count_examples(600))
def test_a_plain_line_means_what_typer_says_it_means(line):
    """Ours: the short way reads less, and nothing differently."""
    name, words = line
    function, made = LEAVES[name]
    found = read_plain_line(function, words, TOLD)
    if found is None:
        return
    parsed = parse_with_typer(made, words)

    assert parsed is not None
    for parameter, kind, default, _ in list_parameters(function):
        if kind is Invocation:
            assert TOLD is found[parameter]
        else:
            value = found.get(parameter, None if default is ... else default)
            assert normalize(value) == normalize(parsed[parameter]), parameter


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["run", "a.py"], {"file": "a.py", "context": TOLD}),
        (["run", "--http", ":80", "a.py"], {"file": "a.py", "http": ":80", "context": TOLD}),
        (["run", "a.py", "--reload"], {"file": "a.py", "reload": True, "context": TOLD}),
        (
            ["call", "http://x/mcp", "add", "a=1", "--json"],
            {"words": ["http://x/mcp", "add", "a=1"], "as_json": True, "context": TOLD},
        ),
        (["audit", "tail"], {}),
        (["servers", "list"], None),  # what its group does comes first
        (["run"], None),
        (["run", ""], None),
        (["run", "a.py", "b.py"], None),
        (["run", "a.py", "--http"], None),
        (["run", "a.py", "--http", "--reload"], None),
        (["run", "a.py", "--http=:80"], None),
        (["run", "a.py", "--http", ":80", "--http", ":81"], None),
        (["run", "a.py", "--nothing"], None),
        (["call", "x", "y", "--timeout", "3"], None),
        (["call", "--help"], None),
    ],
)
def test_what_is_plain_is_read_and_the_rest_is_left(words, found):
    """Ours: typer tells what is wrong, and reads what has to be converted."""
    declared = import_module(f"isthmus.cli.commands.{COMMANDS[words[0]][0]}").app
    meant = declared.find_plain(words[0], words[1:])
    read = (
        None
        if meant is None
        else read_plain_line(find_function(words[0], meant[0]), meant[1], TOLD)
    )

    assert found == read


def find_function(name, meant):
    """The function of a command, alone or in its group."""
    return LEAVES[name if name == meant else f"{name} {meant}"][0]


@pytest.mark.parametrize("columns", [None, "80", "81", "200", "0", "wide", "79", "40"])
@pytest.mark.parametrize("program", ["/usr/bin/isthmus", "-c"])
def test_the_help_is_the_one_that_typer_writes(monkeypatch, capsys, columns, program):
    """Ours: whatever the terminal is like, and whatever name the command was called by."""
    monkeypatch.setattr(sys, "argv", [program])
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    said = []
    for run in (lambda: command.main(["--help"]), lambda: app(["--help"])):
        with pytest.raises(SystemExit) as ended:
            run()
        said.append((ended.value.code, capsys.readouterr()))

    assert said[0] == said[1]
    wide, named = columns not in {"79", "40"}, program != "-c"
    assert (wide and named) == (said[0][1].out == format_help() + "\n")


def test_the_version_is_told_as_typer_tells_it(capsys):
    """Ours: by either way."""
    for run in (lambda: command.main(["--version"]), lambda: app(["--version"])):
        with pytest.raises(SystemExit) as ended:
            run()
        assert 0 == ended.value.code
    one, other = capsys.readouterr().out.splitlines()

    assert one == other
