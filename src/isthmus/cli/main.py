"""The command line itself: words, options, help, and how it all ends."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

import isthmus
from isthmus.cli.commands.audit import app as audit
from isthmus.cli.commands.auth.app import app as auth
from isthmus.cli.commands.chat import chat
from isthmus.cli.commands.config import app as config
from isthmus.cli.commands.grants import app as grants
from isthmus.cli.commands.host import host
from isthmus.cli.commands.models import app as models
from isthmus.cli.commands.policy import app as policies
from isthmus.cli.commands.servers import app as servers
from isthmus.cli.exits import EXIT_MEANINGS, Exit, finish
from isthmus.cli.targets import read_target
from isthmus.cli.terminal_client import ConnectOptions, TerminalClient
from isthmus.errors import InternalError, UsageError

__all__ = ["app", "main"]

EXIT_CODES_HELP = "Exit codes: " + "; ".join(
    f"{code.value} {text}" for code, text in EXIT_MEANINGS.items()
)
TARGET_HELP = (
    "TARGET is a URL (http, ws, unix, tcp), a .py file, a name from ./mcp.json, ./.mcp.json or ./.vscode/mcp.json, or is "
    "left out where a command follows after --, as in: isthmus {} -- uvx mcp-server-time"
)

app = typer.Typer(
    name="isthmus",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(audit)
app.add_typer(auth)
app.add_typer(config)
app.add_typer(grants)
app.add_typer(models)
app.add_typer(policies)
app.add_typer(servers)
app.command()(chat)
app.command()(host)

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]
Revision: TypeAlias = Annotated[
    str | None, typer.Option(help="Speak this revision, for example 2025-06-18.")
]
Timeout: TypeAlias = Annotated[
    float | None,
    typer.Option(help="Seconds that connecting may take, and then one call.", min=0.001),
]
EraOption: TypeAlias = Annotated[
    Literal["auto", "modern", "legacy"] | None,
    typer.Option("--era", help="Open by initialize (legacy) or server/discover (modern) alone."),
]
TokenEnv: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Show the token that this environment variable holds."),
]


def run_with_target(
    context: typer.Context,
    words: Sequence[str],
    options: ConnectOptions,
    work: Callable[[TerminalClient, list[str]], Awaitable[Exit]],
    *needed: str,
) -> None:
    """Resolve the target among the words, then talk to it.

    Args:
        context: holds the command given after ``--``, if any.
        words: the positional words; the first is the target where no command was given.
        options: what every command takes.
        work: does the talking, given the words after the target.
        needed: names of words that must follow the target.
    """

    def run() -> Exit:
        command: list[str] = context.obj or []
        rest = list(words)
        if not command and not rest:
            raise UsageError(f"which server? {TARGET_HELP.format(context.info_name)}")
        name = "" if command else rest.pop(0)
        if len(rest) < len(needed):
            raise UsageError(f"{context.info_name} also needs: {' '.join(needed[len(rest) :])}")
        target = read_target(name, command, Path.cwd(), os.environ)

        async def conversation() -> Exit:
            talker = TerminalClient(target, options)
            try:
                code = await work(talker, rest)
            except InternalError:
                talker.last_words()
                raise
            if code is Exit.TOOL_FAILED:
                talker.last_words()
            return code

        return asyncio.run(conversation())

    finish(run)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"isthmus {isthmus.__version__}")
        raise typer.Exit


@app.callback()
def root_command(
    *,
    _told: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Serve the Model Context Protocol, and talk to any server that does."""


@app.command()
def run(
    file: Annotated[str, typer.Argument(metavar="FILE[:OBJECT]", show_default=False)],
    http: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Instead of stdio.")] = None,
    *,
    websocket: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="HTTP and WebSockets.")
    ] = None,
    unix: Annotated[
        str | None, typer.Option(metavar="PATH", help="Lines through a Unix socket.")
    ] = None,
    tcp: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Lines through a TCP socket.")
    ] = None,
    exposed: Annotated[
        bool, typer.Option("--exposed", help="Let other machines reach the TCP socket.")
    ] = False,
    reload: Annotated[bool, typer.Option("--reload", help="Restart when a file changes.")] = False,
) -> None:
    """Serve the isthmus Server in a Python file: over stdio, or where an option says."""

    def serve() -> None:
        from isthmus.cli.commands.run import ListenOptions, split_server_path
        from isthmus.cli.commands.run import serve_file as once

        place = ListenOptions.of(
            exposed=exposed, http=http, websocket=websocket, unix=unix, tcp=tcp
        )
        if not reload:
            once(file, place)
            return
        from isthmus.cli.reload import reload_listening, reload_stdio

        folder = split_server_path(file)[0].resolve().parent
        if place is None:
            asyncio.run(reload_stdio(file, folder))
        else:
            asyncio.run(reload_listening(file, folder, place.words()))

    finish(serve)


@app.command("list", epilog=TARGET_HELP.format("list"))
def list_(
    context: typer.Context,
    target: Annotated[list[str] | None, typer.Argument(metavar="TARGET")] = None,
    *,
    as_json: AsJson = False,
    revision: Revision = None,
    timeout: Timeout = None,
    token_env: TokenEnv = None,
    era: EraOption = None,
) -> None:
    """List what a server offers, a line each."""
    from isthmus.cli.commands.inspect import print_list

    run_with_target(
        context,
        target or [],
        ConnectOptions(as_json, revision, timeout, token_env, era),
        lambda t, _: print_list(t),
    )


@app.command(epilog=TARGET_HELP.format("list"))
def inspect(
    context: typer.Context,
    target: Annotated[list[str] | None, typer.Argument(metavar="TARGET")] = None,
    *,
    as_json: AsJson = False,
    revision: Revision = None,
    timeout: Timeout = None,
    token_env: TokenEnv = None,
    era: EraOption = None,
) -> None:
    """Say what a server is and can do, with every tool and its parameters."""
    from isthmus.cli.commands.inspect import print_inspection as inspected

    run_with_target(
        context,
        target or [],
        ConnectOptions(as_json, revision, timeout, token_env, era),
        lambda t, _: inspected(t),
    )


@app.command(epilog=TARGET_HELP.format("list"))
def call(
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="TARGET TOOL [KEY=VALUE]")] = None,
    *,
    json_args: Annotated[
        str | None, typer.Option(metavar="JSON", help="Arguments as one JSON object.")
    ] = None,
    as_json: AsJson = False,
    revision: Revision = None,
    timeout: Timeout = None,
    token_env: TokenEnv = None,
    era: EraOption = None,
    host: Annotated[
        bool, typer.Option("--host", help="By the host that runs: TOOL is SERVER__TOOL.")
    ] = False,
    state: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="With --host: the state it runs on.")
    ] = None,
) -> None:
    """Call a tool; values are read as the tool's schema wants them."""
    from isthmus.cli.commands.call import call_tool as called

    if host:
        from isthmus.cli.commands.host_call import HostCall, call_at_host

        wanted = HostCall(tuple(words or ()), json_args, state, timeout, as_json)
        finish(lambda: asyncio.run(call_at_host(wanted)))
    options = ConnectOptions(as_json, revision, timeout, token_env, era)
    run_with_target(
        context, words or [], options, lambda t, w: called(t, w[0], w[1:], json_args), "TOOL"
    )


@app.command(epilog=TARGET_HELP.format("list"))
def read(
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="TARGET URI")] = None,
    *,
    as_json: AsJson = False,
    revision: Revision = None,
    timeout: Timeout = None,
    token_env: TokenEnv = None,
    era: EraOption = None,
) -> None:
    """Read a resource."""
    from isthmus.cli.commands.call import read_resource as read_it

    options = ConnectOptions(as_json, revision, timeout, token_env, era)
    run_with_target(context, words or [], options, lambda t, w: read_it(t, w[0]), "URI")


@app.command(epilog=TARGET_HELP.format("list"))
def prompt(
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="TARGET NAME [KEY=VALUE]")] = None,
    *,
    as_json: AsJson = False,
    revision: Revision = None,
    timeout: Timeout = None,
    token_env: TokenEnv = None,
    era: EraOption = None,
) -> None:
    """Get a prompt with its blanks filled."""
    from isthmus.cli.commands.call import get_prompt as prompted

    options = ConnectOptions(as_json, revision, timeout, token_env, era)
    run_with_target(context, words or [], options, lambda t, w: prompted(t, w[0], w[1:]), "NAME")


Rules: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="RULE", help="A rule or an area, such as tools.")
]
Strict: TypeAlias = Annotated[bool, typer.Option("--strict", help="Warnings count, too.")]


@app.command(epilog=TARGET_HELP.format("list"))
def check(
    context: typer.Context,
    target: Annotated[list[str] | None, typer.Argument(metavar="TARGET")] = None,
    *,
    calls: Annotated[
        list[str] | None,
        typer.Option("--call", metavar="NAME[:JSON]", help="Call this tool; none is called else."),
    ] = None,
    call_read_only: Annotated[
        bool, typer.Option("--call-read-only", help="Call tools that say they change nothing.")
    ] = False,
    only: Rules = None,
    skip: Rules = None,
    strict: Strict = False,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules instead.")] = False,
    as_json: AsJson = False,
    revision: Revision = None,
    timeout: Timeout = None,
    token_env: TokenEnv = None,
) -> None:
    """Say what a server does wrong, clause by clause, in every revision it speaks."""
    from isthmus.cli.commands.check import CheckOptions, print_rules
    from isthmus.cli.commands.check import check_server as checked

    if rules:
        finish(print_rules)
    choices = CheckOptions(only or (), skip or (), calls or (), call_read_only, strict)
    options = ConnectOptions(as_json, revision, timeout, token_env)
    run_with_target(context, target or [], options, lambda t, _: checked(t, choices))


@app.command()
def validate(
    file: Annotated[str, typer.Argument(metavar="FILE", show_default=False)],
    *,
    only: Rules = None,
    skip: Rules = None,
    strict: Strict = False,
    side: Annotated[str, typer.Option(help="Whose messages: client, server or both.")] = "both",
    as_json: AsJson = False,
    revision: Annotated[
        str | None, typer.Option(help="What they are held to; by default what they say themselves.")
    ] = None,
) -> None:
    """Check recorded messages or a transcript against a revision; - reads standard input."""

    def validated() -> Exit:
        from isthmus.cli.commands.validate import validate_file as valid

        return valid(
            file,
            revision=revision,
            side=side,
            only=only or (),
            skip=skip or (),
            strict=strict,
            as_json=as_json,
        )

    finish(validated)


Scopes: TypeAlias = Annotated[
    list[str] | None, typer.Option("--scope", metavar="NAME", help="Ask for this; repeat it.")
]


@app.command()
def login(
    target: Annotated[str, typer.Argument(metavar="TARGET", show_default=False)],
    *,
    scope: Scopes = None,
    client_id: Annotated[
        str | None, typer.Option(metavar="ID", help="A client that is registered already.")
    ] = None,
    client_secret_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The variable that holds its secret.")
    ] = None,
    issuer: Annotated[
        str | None, typer.Option(metavar="URL", help="The authorization server.")
    ] = None,
    resource: Annotated[
        str | None,
        typer.Option(metavar="URL", help="What the token may be for, above the server's own URL."),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open one, or print the address.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Log in to a server over HTTP; the other commands then use the tokens, and renew them."""

    def logged_in() -> Exit:
        from isthmus.cli.commands.login import LoginOptions, read_client_secret
        from isthmus.cli.commands.login import log_in as enter

        secret = read_client_secret(client_secret_env, os.environ)
        said = LoginOptions(scope or (), client_id, secret, issuer, browser, as_json, resource)
        return asyncio.run(enter(read_target(target, (), Path.cwd(), os.environ), said))

    finish(logged_in)


@app.command()
def logout(
    target: Annotated[str, typer.Argument(metavar="TARGET", show_default=False)],
    *,
    registration: Annotated[
        bool, typer.Option("--registration", help="Forget how isthmus is registered there, too.")
    ] = False,
) -> None:
    """Forget the tokens for a server, and have them revoked where that can be done."""

    def logged_out() -> Exit:
        from isthmus.cli.commands.login import log_out as leave

        where = read_target(target, (), Path.cwd(), os.environ)
        return asyncio.run(leave(where, registration=registration))

    finish(logged_out)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; what stands after the first ``--`` is the command of a server."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    cut = given.index("--") if "--" in given else len(given)
    app(args=given[:cut], obj=given[cut + 1 :])
