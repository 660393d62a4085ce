"""``isthmus host``: the servers of a configuration, and a terminal that decides what they may do."""

from enum import StrEnum
from typing import Annotated

import typer

from isthmus.cli.exits import Exit, finish

__all__ = ["ApproverChoice", "host"]


class ApproverChoice(StrEnum):
    """Where questions are asked."""

    TUI = "tui"
    PROMPT = "prompt"
    NONE = "none"


def host(
    *,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config", metavar="FILE", help="Instead of the user's and ./mcp.json; repeat it."
        ),
    ] = None,
    approve: Annotated[
        ApproverChoice, typer.Option(help="Ask on the full screen, at a prompt, or nowhere here.")
    ] = ApproverChoice.TUI,
    policy: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Rules: a policy of isthmus, or a file."),
    ] = None,
    state: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="What lasts; the user's own by default.")
    ] = None,
    attach: Annotated[
        bool, typer.Option("--attach", help="Show the host that runs already; start none.")
    ] = False,
) -> None:
    """Run the servers of a configuration, and decide at this terminal what they may do."""

    def hosted() -> Exit:
        from isthmus.cli.commands.hosting import HostCommandOptions, run_host

        return run_host(
            HostCommandOptions(tuple(config or ()), approve.value, policy, state, attach)
        )

    finish(hosted)
