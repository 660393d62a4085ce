"""``isthmus chat``: talk to a model that may use the servers of a host."""

import asyncio
from typing import Annotated

import typer

from isthmus.cli.exits import Exit, finish

__all__ = ["chat"]


def chat(
    *,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="A file with servers; the usual ones by default."),
    ] = None,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="The model; the first there is by default.")
    ] = "",
    provider: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            help="openai:URL, anthropic, scripted:FILE or a name in the file of models.",
        ),
    ] = "",
    system: Annotated[str, typer.Option(metavar="TEXT", help="What the model is told first.")] = "",
    policy: Annotated[
        str, typer.Option(metavar="NAME", help="A policy, in place of the configured one.")
    ] = "",
    state: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="The host's state; the user's own by default."),
    ] = None,
    attach: Annotated[
        bool,
        typer.Option(
            "--attach/--no-attach",
            help="Let isthmus host --attach in another terminal answer, too.",
        ),
    ] = True,
    plain: Annotated[
        bool, typer.Option("--plain", help="Line by line; so it is where there is no terminal.")
    ] = False,
) -> None:
    """Talk to a model that may use the servers, and decide on each of its calls."""

    def talked() -> Exit:
        from isthmus.cli.commands.chatting import ChatOptions, run_chat

        wanted = ChatOptions(
            tuple(config or ()), model, provider, system, policy, state, attach=attach, plain=plain
        )
        return asyncio.run(run_chat(wanted))

    finish(talked)
