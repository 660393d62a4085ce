"""``isthmus grants``: what the user said yes to for longer than once, and how to take it back."""

import asyncio
from typing import Annotated, TypeAlias

import typer

from isthmus.cli.exits import Exit, finish

__all__ = ["app"]

app = typer.Typer(
    name="grants",
    help="List what was granted for longer than once, and take it back.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

State: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="FOLDER", help="The host's state; the user's own host by default."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]


@app.command("list")
def list_(
    *,
    ended: Annotated[bool, typer.Option("--ended", help="Also those that hold no longer.")] = False,
    state: State = None,
    as_json: AsJson = False,
) -> None:
    """List what was granted, the newest first."""

    def listed() -> Exit:
        from isthmus.cli.commands.grants_shown import print_grants

        return asyncio.run(print_grants(state, ended=ended, as_json=as_json))

    finish(listed)


@app.command()
def show(
    id: Annotated[str, typer.Argument(metavar="ID", show_default=False)],
    *,
    state: State = None,
    as_json: AsJson = False,
) -> None:
    """Print all about one grant."""

    def shown() -> Exit:
        from isthmus.cli.commands.grants_shown import print_grant as print_one

        return asyncio.run(print_one(state, id, as_json=as_json))

    finish(shown)


@app.command()
def revoke(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", show_default=False)],
    *,
    state: State = None,
) -> None:
    """Take grants back; a host that runs asks again within a second."""

    def revoked() -> Exit:
        from isthmus.cli.commands.grants_shown import revoke_grants as take_back

        return asyncio.run(take_back(state, ids))

    finish(revoked)
