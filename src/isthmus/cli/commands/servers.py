"""``isthmus servers``: which servers there are, how they are, and what is to become of them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeAlias

import typer

from isthmus.cli.exits import Exit, finish

__all__ = ["app"]

app = typer.Typer(
    name="servers",
    help="List the servers of the host, start and stop them, add and remove them.",
    invoke_without_command=True,
    rich_markup_mode=None,
)

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]
Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
File: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--config",
        "--file",
        metavar="FILE",
        help="The configuration; the user's and ./mcp.json by default.",
    ),
]
State: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="FOLDER", help="The state that the host runs on; the user's by default."),
]
Pairs: TypeAlias = list[str] | None


def run_and_finish(work: Callable[[], Coroutine[Any, Any, Exit]]) -> None:
    """Do the work, and leave with its exit code."""
    finish(lambda: asyncio.run(work()))


@app.callback()
def servers(
    context: typer.Context, *, as_json: AsJson = False, file: File = None, state: State = None
) -> None:
    """List the servers of the host, start and stop them, add and remove them."""
    if context.invoked_subcommand is None:
        list_servers(file, state, as_json=as_json)


@app.command("list")
def list_(*, as_json: AsJson = False, file: File = None, state: State = None) -> None:
    """List all servers: as the running host sees them, or as they are configured."""
    list_servers(file, state, as_json=as_json)


def list_servers(file: str | None, state: str | None, *, as_json: bool) -> None:
    """List all servers."""

    async def work() -> Exit:
        from isthmus.cli.commands.servers_shown import print_servers

        return await print_servers(file, state, as_json=as_json)

    run_and_finish(work)


def _add_server_command(what: str, help: str) -> None:
    """A command that has the running host do something with a server."""

    @app.command(what, help=help)
    def does(name: Name, *, file: File = None, state: State = None) -> None:
        async def work() -> Exit:
            from isthmus.cli.commands.servers_shown import do_with_server

            return await do_with_server(name, what, file, state)

        run_and_finish(work)


_add_server_command(
    "start", "Start a server in the running host, whatever went wrong there before."
)
_add_server_command("stop", "Stop a server in the running host when its calls have ended.")
_add_server_command("restart", "Stop a server in the running host, and start it again.")
_add_server_command("enable", "Let a server be started again; written into the configuration.")
_add_server_command(
    "disable", "Stop a server and keep it from being started; written into the configuration."
)


@app.command()
def logs(name: Name, *, as_json: AsJson = False, state: State = None) -> None:
    """Show what a server has logged, and written to standard error, in the running host."""

    async def work() -> Exit:
        from isthmus.cli.commands.servers_shown import print_log

        return await print_log(name, state, as_json=as_json)

    run_and_finish(work)


@app.command(
    epilog="A command follows after --, as in: isthmus servers add time -- uvx mcp-server-time"
)
def add(
    context: typer.Context,
    name: Name,
    url: Annotated[str, typer.Argument(metavar="URL", show_default=False)] = "",
    *,
    env: Annotated[
        Pairs, typer.Option(metavar="NAME=VALUE", help="A variable of its environment; repeat it.")
    ] = None,
    header: Annotated[
        Pairs, typer.Option(metavar="NAME=VALUE", help="A header of its requests; repeat it.")
    ] = None,
    file: File = None,
) -> None:
    """Write a server into the configuration; it is not started by that."""

    def work() -> Exit:
        from isthmus.cli.commands.servers_shown import add_to_config, make_server_entry

        entry = make_server_entry(url, context.obj or (), env or (), header or ())
        return add_to_config(name, entry, file)

    finish(work)


@app.command()
def remove(name: Name, *, file: File = None) -> None:
    """Take a server out of the configuration; a running host ends it."""

    def work() -> Exit:
        from isthmus.cli.commands.servers_shown import remove_from_config

        return remove_from_config(name, file)

    finish(work)
