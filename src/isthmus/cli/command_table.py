"""The commands of ``isthmus``: their modules, their lines in the help, and the help of all."""

import textwrap
from collections.abc import Mapping

from isthmus.cli.exit_codes import EXIT_MEANINGS

DESCRIPTION = "Serve the Model Context Protocol, and talk to any server that does."
HELP_COLUMNS = 80  # in no terminal is the help wider
EXIT_CODES_HELP = "Exit codes: " + "; ".join(
    f"{code.value} {text}" for code, text in EXIT_MEANINGS.items()
)

# each command, its module below isthmus.cli.commands, and its line in the help; everyday ones first
COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": (
        "run",
        "Serve a Python file or an OpenAPI document, over stdio or HTTP.",
    ),
    "dev": ("developing.dev", "Serve a file while you write it: reload, and show the traffic."),
    "new": ("authoring.new", "Make the project of a server, with a test that passes."),
    "install": ("authoring.install", "Write a server into the configuration of an MCP client."),
    "bundle": ("authoring.bundle", "Pack a server into an MCPB file, for desktop clients."),
    "migrate": ("authoring.migrate", "Rewrite a file or project from fastmcp or mcp to isthmus."),
    "list": ("inspect", "List what a server offers, a line each."),
    "inspect": ("inspect", "Describe a server and what it offers, with all parameters."),
    "call": ("call", "Call a tool; values are converted by the tool's schema."),
    "read": ("call", "Read a resource."),
    "prompt": ("call", "Get a prompt with its arguments filled in."),
    "check": ("check", "Check a server against the specification, in every revision."),
    "validate": ("validate", "Check recorded messages or a transcript; - is standard input."),
    "login": ("login", "Log in to a server over HTTP, for all other commands."),
    "logout": ("login", "Delete and revoke the tokens for a server."),
    "chat": ("chat", "Talk to a model that uses the servers; you decide on calls."),
    "host": ("host", "Run configured servers, and decide what they may do."),
    "console": ("host", "Watch the running host and answer its questions in a browser."),
    "gateway": ("gateway.app", "Serve all configured servers as one, for any client."),
    "servers": ("servers", "List, start, stop, add and remove the servers of the host."),
    "config": ("config", "Check and import configured servers; trust, secrets, roots."),
    "models": ("models", "List and check the models that servers may use."),
    "policy": ("policy", "Look at the rules of a host, test them, and try others."),
    "grants": ("grants", "List and revoke grants that outlast a single call."),
    "audit": ("audit", "Read and verify the audit log of a host."),
    "auth": ("auth.app", "Run an authorization server; manage users and clients."),
    "version": (
        "developing.version",
        "Show versions, the revisions spoken and the extras installed.",
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
            "  --version             Show the version.",
            "  --install-completion  Install completion for the current shell.",
            "  --show-completion     Show completion for the current shell, to copy it or",
            "                        customize the installation.",
            "  -h, --help            Show this message and exit.\n",
            "Commands:",
            *lines,
            f"\n{codes}",
        ]
    )
