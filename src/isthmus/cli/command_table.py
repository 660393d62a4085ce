"""The commands of ``isthmus``: their modules, their lines in the help, and the help of all."""

import textwrap
from collections.abc import Mapping

from isthmus.cli.exit_codes import EXIT_MEANINGS

DESCRIPTION = "Run Model Context Protocol servers, and connect to any MCP server."
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
    "dev": ("developing.dev", "Serve a file during development, with reload and traffic."),
    "new": ("authoring.new", "Create a server project with a passing test."),
    "install": ("authoring.install", "Write a server into the configuration of an MCP client."),
    "bundle": ("authoring.bundle", "Pack a server into an MCPB file, for desktop clients."),
    "migrate": ("authoring.migrate", "Rewrite a file or project from fastmcp or mcp to isthmus."),
    "list": ("inspect", "List the tools, resources and prompts of a server."),
    "inspect": ("inspect", "Describe a server: tools, resources, prompts, all parameters."),
    "call": ("call", "Call a tool; values are converted according to its schema."),
    "read": ("call", "Read a resource."),
    "prompt": ("call", "Get a prompt, with values for its arguments."),
    "check": ("check", "Check a server against the specification, in every revision."),
    "validate": ("validate", "Check recorded messages or a transcript (-: standard input)."),
    "login": ("login", "Log in to an HTTP server; other commands use the token."),
    "logout": ("login", "Delete and revoke the tokens for a server."),
    "chat": ("chat", "Chat with a model that uses your servers; you approve its calls."),
    "host": ("host", "Run configured servers, and approve or deny their calls."),
    "console": ("host", "Watch the running host and answer its questions in a browser."),
    "gateway": ("gateway.app", "Serve all configured servers as one server."),
    "servers": ("servers", "List, start, stop, add and remove the servers of the host."),
    "config": ("config", "Check and import configurations; manage trust, secrets, roots."),
    "models": ("models", "List and check the models that servers may use."),
    "policy": ("policy", "Show, test and check the rules of a host."),
    "grants": ("grants", "List and revoke grants that outlast a single call."),
    "audit": ("audit", "Read and verify the audit log of a host."),
    "auth": ("auth.app", "Run an authorization server; manage users and clients."),
    "version": (
        "developing.version",
        "Show versions, supported revisions and installed extras.",
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
