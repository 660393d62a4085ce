"""The command ``isthmus``: its commands, each imported when it is run, its options and its help."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

import isthmus
from isthmus.cli.exits import EXIT_MEANINGS, exit_at_error

EXIT_CODES_HELP = "Exit codes: " + "; ".join(
    f"{code.value} {text}" for code, text in EXIT_MEANINGS.items()
)

# each command, its module below isthmus.cli.commands, and its line in the help
COMMANDS: Mapping[str, tuple[str, str]] = {
    "chat": ("chat", "Talk to a model that may use the servers, and decide on each of its calls."),
    "host": (
        "host",
        "Run the servers of a configuration, and decide at this terminal what they may do.",
    ),
    "run": (
        "run",
        "Serve the isthmus Server in a Python file: over stdio, or where an option says.",
    ),
    "list": ("inspect", "List what a server offers, a line each."),
    "inspect": (
        "inspect",
        "Say what a server is and can do, with every tool and its parameters.",
    ),
    "call": ("call", "Call a tool; values are read as the tool's schema wants them."),
    "read": ("call", "Read a resource."),
    "prompt": ("call", "Get a prompt with its blanks filled."),
    "check": (
        "check",
        "Say what a server does wrong, clause by clause, in every revision it speaks.",
    ),
    "validate": (
        "validate",
        "Check recorded messages or a transcript against a revision; - reads standard input.",
    ),
    "login": (
        "login",
        "Log in to a server over HTTP; the other commands then use the tokens, and renew them.",
    ),
    "logout": (
        "login",
        "Forget the tokens for a server, and have them revoked where that can be done.",
    ),
    "audit": (
        "audit",
        "Look at what a host has done, and check that nobody changed what is written of it.",
    ),
    "auth": (
        "auth.app",
        "Run an authorization server, and look after its users, clients and grants.",
    ),
    "config": (
        "config",
        "Which servers there are, where that is said, and what may be known of you.",
    ),
    "grants": ("grants", "List what was granted for longer than once, and take it back."),
    "models": (
        "models",
        "List and check the models that servers may have write, and say which one would.",
    ),
    "policy": (
        "policy",
        "Look at the rules of a host, test them, and try others on what was done.",
    ),
    "servers": (
        "servers",
        "List the servers of the host, start and stop them, add and remove them.",
    ),
}


class CommandTable(TyperGroup):
    """The commands of the table above; the module of one is imported when it is run."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (_module, help) in COMMANDS.items():
            self.add_command(TyperCommand(name, help=help))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is run, from its module."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load_command(name), rest


def load_command(name: str) -> Any:
    """The command of this name, from its module.

    A module declares a group, which has the name of the command, or several commands that are
    none: then the group is without a name.
    """
    with exit_at_error():
        app: typer.Typer = import_module(f"isthmus.cli.commands.{COMMANDS[name][0]}").app
    group = get_group(app)
    return group if app.info.name == name else group.commands[name]


app = typer.Typer(
    cls=CommandTable,
    name="isthmus",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"isthmus {isthmus.__version__}")
        raise typer.Exit


@app.callback()
def root_command(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Serve the Model Context Protocol, and talk to any server that does."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; what stands after the first ``--`` is the command of a server."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    cut = given.index("--") if "--" in given else len(given)
    app(args=given[:cut], obj=given[cut + 1 :])
