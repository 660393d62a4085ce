"""The commands of ``isthmus``: their modules, their lines in the help, and the help of all."""

import textwrap
from collections.abc import Mapping

from isthmus.cli.exit_codes import EXIT_MEANINGS

DESCRIPTION = "Serve the Model Context Protocol, and talk to any server that does."
HELP_COLUMNS = 80  # in no terminal is the help wider
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


def format_help() -> str:
    """The help of the whole command, as typer writes it for a terminal of 80 columns or more."""
    longest = max(map(len, COMMANDS))
    room = HELP_COLUMNS - longest - 8  # two columns at each end, before and after the name
    lines = [
        f"  {name:{longest}}  {textwrap.shorten(help, room, placeholder='...')}"
        for name, (_, help) in COMMANDS.items()
    ]
    codes = textwrap.indent(textwrap.fill(EXIT_CODES_HELP, HELP_COLUMNS - 4), "  ")
    return "\n".join(
        [
            "Usage: isthmus [OPTIONS] COMMAND [ARGS]...\n",
            f"  {DESCRIPTION}\n",
            "Options:",
            "  --version  Show the version.",
            "  --help     Show this message and exit.\n",
            "Commands:",
            *lines,
            f"\n{codes}",
        ]
    )
