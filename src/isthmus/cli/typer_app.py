"""The commands for typer: whatever is not a plain line, with help and errors."""

import difflib
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

import isthmus
from isthmus.cli.command_table import COMMANDS, DESCRIPTION, EXIT_CODES_HELP
from isthmus.cli.declarations import (
    Argument,
    CommandSet,
    Invocation,
    Option,
    list_parameters,
)
from isthmus.cli.examples import format_examples
from isthmus.cli.exits import exit_at_error


class CommandTable(TyperGroup):
    """The commands of the table; the module of one is imported when it is run."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (_module, help) in COMMANDS.items():
            self.add_command(TyperCommand(name, help=help))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is run, from its module."""
        if args and args[0] not in COMMANDS:
            _suggest_run(ctx, args[0])
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load_command(name), rest


def _suggest_run(ctx: Any, word: str) -> None:
    """Say what there is, where a word is neither a command nor nearly one.

    Raises:
        UsageError: of typer's, with its exit code.
    """
    if word.startswith("-"):
        return
    if word.endswith((".py", ".json", ".yaml", ".yml")) or ".py:" in word:
        ctx.fail(f"No such command '{word}'. A file is served by: isthmus run {word}")
    if word.startswith(("http://", "https://")):
        ctx.fail(f"No such command '{word}'. A server is asked by: isthmus list {word}")
    if not difflib.get_close_matches(word, COMMANDS):
        ctx.fail(f"No such command '{word}'. There are: {', '.join(COMMANDS)}.")


def load_command(name: str) -> Any:
    """The command of this name, from its module.

    A module declares a group, which has the name of the command, or several commands that are
    none: then the group is without a name.
    """
    with exit_at_error():
        declared: CommandSet = import_module(f"isthmus.cli.commands.{COMMANDS[name][0]}").app
    group = get_group(make_typer(declared))
    return group if declared.name == name else group.commands[name]


def make_typer(declared: CommandSet, around: str = "") -> typer.Typer:
    """The commands of a module for typer, with their examples.

    Args:
        declared: the commands.
        around: the groups that they are in, as they are typed.
    """
    way = f"{around} {declared.name}".strip() if declared.name else around
    told = {"epilog": format_examples(way), **declared.settings}
    made = typer.Typer(name=declared.name, rich_markup_mode=None, **told)
    if declared.own is not None:
        made.callback()(_make_function(declared.own))
    for name, (function, settings) in declared.commands.items():
        parts = (settings.get("epilog", ""), format_examples(f"{way} {name}".strip()))
        told = {**settings, "epilog": "\n\n".join(part for part in parts if part)}
        made.command(name, **told)(_make_function(function))
    for group in declared.groups:
        made.add_typer(make_typer(group, way))
    return made


def _make_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a command as typer wants it: with typer's declarations, and its context."""
    told = [name for name, kind, _, _ in list_parameters(function) if kind is Invocation]

    def call(**given: Any) -> None:
        for name in told:
            context = given[name]
            command, subcommand = context.obj or (), context.invoked_subcommand
            given[name] = Invocation(context.info_name, command, subcommand)
        function(**given)

    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is ... else default,
            annotation=_make_annotation(kind, declared),
        )
        for name, kind, default, declared in list_parameters(function)
    ]
    made: Any = call
    made.__name__, made.__doc__ = function.__name__, function.__doc__
    made.__signature__ = inspect.Signature(parameters)
    made.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def _make_annotation(kind: Any, declared: Any) -> Any:
    """An annotation with typer's declaration in place of ours."""
    if isinstance(declared, Option):
        return Annotated[kind, typer.Option(*declared.names, **declared.settings)]
    if isinstance(declared, Argument):
        return Annotated[kind, typer.Argument(**declared.settings)]
    return typer.Context if kind is Invocation else kind


app = typer.Typer(
    cls=CommandTable,
    name="isthmus",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"isthmus {isthmus.__version__}")
        raise typer.Exit


@app.callback(help=DESCRIPTION)
def root_command(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Run Model Context Protocol servers, and connect to any MCP server."""
